/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads versions 1 and 2 of the format. They have a=crypto lines instead of SRTP parameters and
 * keying states. Version 2 only adds that media are passed through. Pure. */
#include "persist/save_old.h"
#include "persist/save_rows.h"

#include <errno.h>

static const struct field ours_fields[] = {
	RECORD_ROW("s", old_key, s, save_sdes),
	FLAG("u", old_key, used),
};
static const struct record ours_record = RECORD_OF(ours_fields);

static const struct field said_fields[] = {
	{"l", LIST, ONE(old_said, line), .max = SDES_MAX_LINES, .record = &save_sdes,
		N(old_said, lines)},
	RECORD_ROW("b", old_said, bag, save_bag),
};
static const struct record said_record = RECORD_OF(said_fields);

static const struct field asked_fields[] = {
	BYTES_ROW("s", old_asked, suite),
	NUM("n", old_asked, suites, SUITE_COUNT),
	FLAG("t", old_asked, pass),
};
static const struct record asked_record = RECORD_OF(asked_fields);

static const struct field leg_fields[] = {
	RECORD_ROW("rx", old_leg, rx, save_sdes),
	RECORD_ROW("rm1", old_leg, rx_more[0], save_master),
	RECORD_ROW("rm2", old_leg, rx_more[1], save_master),
	RECORD_ROW("rm3", old_leg, rx_more[2], save_master),
	FLAG("pi", old_leg, pass_rx),
	RECORD_ROW("tx", old_leg, tx, save_sdes),
	FLAG("po", old_leg, pass_tx),
	{"o", LIST, ONE(old_leg, ours), .max = SUITE_COUNT, .record = &ours_record,
		N(old_leg, ours_n)},
	RECORD_ROW("said", old_leg, said, said_record),
	RECORD_ROW("ask", old_leg, asked, asked_record),
};
const struct record save_old_leg = RECORD_OF(leg_fields);

static void params(struct srtp_params *to, const struct sdes *s, bool pass)
{
	*to = (struct srtp_params){
		.keys = (uint8_t)(s->master.suite == SUITE_PLAIN ? 0 : 1 + s->more),
		.unencrypted_srtp = s->unencrypted_srtp,
		.unencrypted_srtcp = s->unencrypted_srtcp,
		.pass = pass};
	if (to->keys)
		to->key[0] = s->master;
}

int save_old_convert(struct leg *l, const struct old_leg *from)
{
	struct keying_sdes *s = &l->keying.sdes;

	if (from->tx.more || (from->rx.more && from->rx.master.suite == SUITE_PLAIN))
		return -EBADMSG;
	params(&l->rx, &from->rx, from->pass_rx);
	params(&l->tx, &from->tx, from->pass_tx);
	if (from->rx.more)
		memcpy(&l->rx.key[1], from->rx_more, from->rx.more * sizeof(*l->rx.key));
	l->keying.in_force = from->pass_rx ? KEYING_PASS : l->rx.keys ? KEYING_SDES : KEYING_NONE;
	l->keying.pass.asked = from->asked.pass;
	s->tx_tag = from->tx.tag;
	s->rx_old_name = from->rx.old_name;
	memcpy(s->line, from->said.line, sizeof(s->line));
	s->lines = from->said.lines;
	s->bag = from->said.bag;
	memcpy(s->suite, from->asked.suite, sizeof(s->suite));
	s->suites = from->asked.suites;
	for (uint32_t i = 0; i < from->ours_n; i++) {
		const struct sdes *o = &from->ours[i].s;

		if (o->more)
			return -EBADMSG;
		s->ours[s->ours_n++] = (struct sdes_key){.key.master = o->master,
			.key.used = from->ours[i].used,
			.tag = o->tag,
			.unencrypted_srtp = o->unencrypted_srtp,
			.unencrypted_srtcp = o->unencrypted_srtcp,
			.old_name = o->old_name};
	}
	return 0;
}
