/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the a=crypto lines of a terminal that we could accept, and converts them for the packet
 * side. Pure. RFC 4568 5.1, 6.3. */
#include "keying/sdes_lines.h"
#include "base/secmem.h"

uint32_t sdes_params_of(const struct sdes *s)
{
	return (s->unencrypted_srtp ? NG_SDES_UNENCRYPTED_SRTP : 0) |
		(s->unencrypted_srtcp ? NG_SDES_UNENCRYPTED_SRTCP : 0) |
		(s->master.no_rtp_auth ? NG_SDES_UNAUTHENTICATED_SRTP : 0);
}

/* NULL, or why a well-formed line cannot be taken. more: its further keys. */
static const char *refusal(const struct sdes *s, const struct srtp_master *more,
	const struct sdes_rules *rules, const struct keying_in *in)
{
	uint32_t unwanted = sdes_params_of(s) & ~rules->params;
	const char *why;

	if (!(rules->suites >> s->master.suite & 1))
		return "suite is not accepted";
	if (unwanted & NG_SDES_UNENCRYPTED_SRTP)
		return "UNENCRYPTED_SRTP is not accepted";
	if (unwanted & NG_SDES_UNENCRYPTED_SRTCP)
		return "UNENCRYPTED_SRTCP is not accepted";
	if (unwanted)
		return "UNAUTHENTICATED_SRTP is not accepted";
	why = in->refusal(in->arg, &s->master, rules->end_to_end);
	for (uint32_t i = 0; i < s->more && !why; i++)
		why = in->refusal(in->arg, &more[i], rules->end_to_end);
	return why;
}

uint32_t sdes_lines(struct sdes out[SDES_MAX_LINES], struct sdes_bag *bag,
	const struct sdp_media *m, const struct sdes_rules *rules, const struct keying_in *in,
	struct sdes_refused *refused)
{
	uint32_t n = 0, number = 0;

	*refused = (struct sdes_refused){0};
	secmem_wipe(bag, sizeof(*bag));
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("crypto")); l && n < SDES_MAX_LINES;
		l = sdp_attr(l->next, STR("crypto"))) {
		struct sdes s = {0};
		uint32_t keys = bag->n;
		enum sdes_err err = sdes_parse(&s, bag, l->arg);
		const char *why =
			err ? sdes_err_text(err) : refusal(&s, &bag->master[s.more_at], rules, in);

		number++;
		if (!why)
			out[n++] = s;
		else if (!refused->line)
			*refused = (struct sdes_refused){.line = number, .why = why};
		if (why)
			bag->n = keys; /* the next line's keys go there */
		secmem_wipe(&s, sizeof(s));
	}
	return n;
}

void sdes_rx(struct srtp_params *out, const struct sdes *line, const struct sdes_bag *bag)
{
	*out = (struct srtp_params){.keys = (uint8_t)(1 + line->more),
		.unencrypted_srtp = line->unencrypted_srtp,
		.unencrypted_srtcp = line->unencrypted_srtcp,
		.preauth = line->preauth};
	_Static_assert(SDES_MAX_KEYS == SRTP_PARAMS_KEYS, "every key of a line has a place");
	out->key[0] = line->master;
	if (line->more)
		memcpy(&out->key[1], &bag->master[line->more_at], line->more * sizeof(*out->key));
}

void sdes_tx(struct srtp_params *out, const struct sdes_key *k)
{
	*out = (struct srtp_params){.keys = 1,
		.unencrypted_srtp = k->unencrypted_srtp,
		.unencrypted_srtcp = k->unencrypted_srtcp,
		.preauth = k->preauth};
	out->key[0] = k->key.master;
}

void sdes_in_force(struct keying_sdes *s, const struct sdes *line, struct sdes_key *k)
{
	s->rx_old_name = line->old_name;
	s->tx_tag = k ? k->tag : 0;
	if (k)
		k->key.used = true;
}
