/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our message in an offer, at media level: one for each m-line. */
#include "keying/mikey_row_int.h"

#include <errno.h>

#include "base/secmem.h"

/* What the request wants, or the operator. A leg that has MIKEY keeps it. */
static enum mikey_use use_of(const struct keying_state *to, const struct keying_in *in)
{
	static const uint8_t ordered[] = {[NG_MIKEY_OFF] = MIKEY_USE_OFF,
		[NG_MIKEY_OFFER] = MIKEY_USE_OFFER,
		[NG_MIKEY_REQUIRE] = MIKEY_USE_REQUIRE};

	if (!in->host->mikey)
		return MIKEY_USE_OFF;
	if (in->r->mikey != NG_MIKEY_DEFAULT)
		return (enum mikey_use)ordered[in->r->mikey];
	if (in->host->mikey->use == MIKEY_USE_ACCEPT && to->in_force == KEYING_MIKEY)
		return MIKEY_USE_OFFER;
	return in->host->mikey->use;
}

/* Identity of the terminal: as the request names it, or as it was proven before. */
static int party_of(
	struct mikey_party *out, const struct keying_state *to, const struct keying_in *in)
{
	struct mikey_id id = {0};
	struct str name = in->r->mikey_peer;

	if (!name.len)
		name = (struct str){
			to->mikey.peer, strnlen(to->mikey.peer, sizeof(to->mikey.peer) - 1)};
	if (!name.len || mikey_id_from_text(&id, name))
		return -ENOENT;
	return mikey_config_find(in->host->mikey->config, out, &id);
}

/* The first mode of the request that the peer is allowed, else the first of the peer. */
static bool mode_of(enum mikey_mode *out, const struct mikey_party *p, const struct ng_request *r)
{
	if (!p->may_respond || !p->modes)
		return false;
	*out = (enum mikey_mode)p->mode[0];
	if (!r->mikey_mode[0])
		return true;
	for (uint32_t n = 0; n < NG_MIKEY_MODES && r->mikey_mode[n]; n++)
		for (uint32_t i = 0; i < p->modes; i++)
			if (p->mode[i] == r->mikey_mode[n] - 1) {
				*out = (enum mikey_mode)p->mode[i];
				return true;
			}
	return false;
}

static uint64_t draw_number(const struct keying_in *in)
{
	uint64_t n;

	if (in->random->len < sizeof(n))
		return 0;
	memcpy(&n, in->random->at, sizeof(n));
	in->random->at += sizeof(n);
	in->random->len -= sizeof(n);
	return n | 4;
}

/* A message of ours as a line; the failure otherwise. */
static enum mikey_failure initiate(struct keying_offer *o, const struct mikey_party *party,
	enum mikey_mode mode, const struct keying_in *in)
{
	struct mikey_host *h = in->host->mikey;
	const struct ng_sdes *flags = &in->r->sdes;
	struct mikey_offer offer = {.media = 1, .sdp_ids = MIKEY_PROTOCOL};
	const struct mikey_start start = {.mode = mode,
		.mine = &party->mine,
		.peer = &party->peer,
		.offer = &offer,
		.env = mikey_row_env(h)};
	struct mikey_out out = {
		.buf = pool_alloc(in->p, MIKEY_MESSAGE_MAX), .cap = MIKEY_MESSAGE_MAX};
	uint64_t id = draw_number(in);
	struct mikey_talk *t = out.buf && id ? mikey_talk_add(h, id, in->r->call_id, 0) : NULL;
	enum mikey_failure f;
	struct str line;

	offer.suites = mikey_row_suites(
		offer.suite, in->policy->accept & (flags->only ? flags->only : ~flags->no), in);
	if (!t)
		return MIKEY_FAIL_INTERNAL;
	/* The answer is not limited again: the callee rings. */
	if (mode != MIKEY_PSK && !mikey_host_afford(h, &party->peer, in->emergency))
		return MIKEY_FAIL_RATE;
	f = mikey_initiate(&t->run, &start, &out);
	if (f)
		return f;
	line = sdp_keymgmt_write(
		in->p, MIKEY_PROTOCOL, (struct str){(const char *)out.buf, out.len});
	if (!line.s || o->lines->n == KEYING_LINES)
		return MIKEY_FAIL_INTERNAL;
	o->lines->line[o->lines->n++] = line;
	o->to.state->mikey.asked = id;
	return MIKEY_OK;
}

/* Where MIKEY is only wished for, a warning says why there is none. */
static enum keying_result no_message(
	struct keying_offer *o, enum mikey_use use, struct str why, const struct keying_in *in)
{
	if (use == MIKEY_USE_REQUIRE) {
		o->error = mikey_row_error(why);
		return KEYING_REFUSES;
	}
	o->warning = pool_printf(in->p, "MIKEY not offered: " STR_FMT, STR_ARG(why));
	o->weaker = true;
	return KEYING_PASSES;
}

enum keying_result mikey_row_write_offer(struct keying_offer *o, const struct keying_in *in)
{
	enum mikey_use use = use_of(o->to.state, in);
	struct mikey_party party;
	enum mikey_mode mode;
	enum mikey_failure f;
	struct str why;

	if (use < MIKEY_USE_OFFER || !sdp_proto_is_secure(o->proto) || sdp_proto_is_dtls(o->proto))
		return KEYING_PASSES;
	if (party_of(&party, o->to.state, in)) {
		/* The operator's default is for those who have a section. */
		if (in->r->mikey == NG_MIKEY_DEFAULT)
			return KEYING_PASSES;
		mikey_host_count(in->host->mikey, MIKEY_MODE_COUNT, true, MIKEY_FAIL_IDENTITY);
		return no_message(o, use, STR("no section for MIKEY-peer"), in);
	}
	if (!mode_of(&mode, &party, in->r)) {
		secmem_wipe(&party, sizeof(party));
		return no_message(o, use, STR("the peer allows no such mode"), in);
	}
	f = initiate(o, &party, mode, in);
	secmem_wipe(&party, sizeof(party));
	if (f) {
		mikey_host_count(in->host->mikey, mode, true, f);
		why = str_from(mikey_failure_text(f));
		return no_message(o, use, why, in);
	}
	o->to.state->mikey.asked_only = use == MIKEY_USE_REQUIRE;
	return use == MIKEY_USE_REQUIRE ? KEYING_AGREES : KEYING_ADDS;
}
