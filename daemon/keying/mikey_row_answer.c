/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal's response to our message, and our response to the terminal's. */
#include "keying/mikey_row_int.h"

#include "base/secmem.h"
#include "keying/preauth_policy.h"

static void into(struct keying_answer *a, const struct mikey_medium *m)
{
	a->rx = (struct srtp_params){.keys = 1};
	a->tx = a->rx;
	a->rx.key[0] = m->rx;
	a->tx.key[0] = m->tx;
}

static void in_force(struct keying_state *s, const struct mikey_run *run)
{
	s->in_force = KEYING_MIKEY;
	s->mikey.mode = run->mode;
	memset(s->mikey.peer, 0, sizeof(s->mikey.peer));
	memcpy(s->mikey.peer, run->peer.name, run->peer.len);
}

/* Keys of ours and the terminal's have the same scheme. */
static void add_tags(struct keying_answer *a, struct keying_mikey *s, uint8_t scheme)
{
	s->preauth.agreed = scheme;
	a->rx.preauth = keying_preauth_fits(scheme, &a->rx.key[0], false);
	a->tx.preauth = keying_preauth_fits(scheme, &a->tx.key[0], false);
}

static enum keying_result refuse(struct keying_answer *a, struct str detail)
{
	a->error = mikey_row_error(detail);
	return KEYING_REFUSES;
}

/* Our message stays unchanged, because other branches of a fork may answer it, too. */
static enum mikey_failure finish(struct mikey_talk *t, const struct said *said,
	const struct keying_in *in, struct mikey_run *run)
{
	struct mikey_host *h = in->host->mikey;
	struct mikey_party party = {0};
	struct mikey_keys keys = {0};
	enum mikey_failure f = MIKEY_FAIL_IDENTITY; /* a reload removed it */

	if (mikey_config_find(h->config, &party, &run->peer) == 0) {
		const struct mikey_end end = {
			.mine = &party.mine, .peer = &party.peer, .env = mikey_row_env(h)};

		/* The offer used one unit of the rate limit, which covers the first answer. A
		 * repeated answer needs a unit of its own. */
		f = t->tried && run->mode != MIKEY_PSK &&
				!mikey_host_afford(h, &party.peer, in->emergency)
			? MIKEY_FAIL_RATE
			: mikey_finish(run, &end, said->message, &keys);
		t->tried = true;
	}
	mikey_host_count(h, (enum mikey_mode)t->run.mode, true, f);
	if (!f) {
		t->keys = keys;
		t->answerer = run->peer;
	}
	secmem_wipe(&party, sizeof(party));
	secmem_wipe(&keys, sizeof(keys));
	return f;
}

/* The keys of this response, which several m-lines and repeated answers may contain. */
static enum mikey_failure keys_of(struct keying_answer *a, struct mikey_talk *t,
	const struct said *said, const struct keying_in *in, struct str *why)
{
	uint64_t got = mikey_host_hash(in->host->mikey, said->message) | 1;
	struct keying_mikey *s = &a->answerer.state->mikey;
	struct mikey_run run = t->run;
	enum mikey_failure f = MIKEY_OK;
	const char *unfit = NULL;

	if (t->got != got)
		f = finish(t, said, in, &run);
	if (!f)
		t->got = got;
	run.peer = t->answerer;
	if (!f && s->asked_place >= t->keys.media)
		f = MIKEY_FAIL_STATE;
	if (!f)
		unfit = mikey_row_unfit(
			a->answerer.state, &t->keys.medium[s->asked_place], true, in);
	if (unfit)
		f = MIKEY_FAIL_SHARED_KEY;
	if (!f && !mikey_row_note_key(s, &t->keys.medium[s->asked_place].tx, t->id))
		f = MIKEY_FAIL_STATE;
	if (!f && !t->answered_ns)
		t->answered_ns = in->host->mikey->clock.mono();
	if (f) {
		*why = unfit ? str_from(unfit) : mikey_row_failure(in->p, f, &run);
	} else {
		in_force(a->answerer.state, &run);
		s->used = s->used_hash = s->used_time = 0;
		into(a, &t->keys.medium[s->asked_place]);
	}
	secmem_wipe(&run, sizeof(run));
	return f;
}

enum keying_result mikey_row_read_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_mikey *s = &a->answerer.state->mikey;
	struct mikey_talk *t;
	struct said said;
	uint8_t scheme;
	struct str why;

	if (!s->asked || !in->host->mikey)
		return KEYING_PASSES;
	if (!mikey_row_said(&said, a->media, in)) {
		if (!s->asked_only || !sdp_proto_is_secure(a->media->proto))
			return KEYING_PASSES;
		return refuse(a, STR("the answer has no a=key-mgmt line of MIKEY"));
	}
	t = mikey_talk_find(in->host->mikey, s->asked);
	if (!t)
		return refuse(a, STR("the exchange of this offer was forgotten"));
	if (keys_of(a, t, &said, in, &why))
		return refuse(a, why);
	scheme = keying_preauth_read(in, a->media);
	add_tags(a, s, scheme == s->preauth.asked ? scheme : 0);
	return KEYING_AGREES;
}

static bool write_response(
	struct keying_answer *a, const struct mikey_talk *t, const struct keying_in *in)
{
	const struct keying_mikey *s = &a->offerer.state->mikey;
	struct str line;

	if (!t->len)
		return true; /* none was asked for */
	line = sdp_keymgmt_write(
		in->p, MIKEY_PROTOCOL, (struct str){(const char *)t->response, t->len});
	if (!line.s)
		return false;
	if (s->offered_session)
		a->lines->session = line;
	else if (a->lines->n < KEYING_LINES)
		a->lines->line[a->lines->n++] = line;
	return true;
}

/* Keys in force that stay. */
static enum keying_result keep(struct keying_answer *a)
{
	a->rx = *a->offerer.rx;
	a->tx = *a->offerer.tx;
	return KEYING_AGREES;
}

static enum keying_result agree(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_mikey *s = &a->offerer.state->mikey;
	const char *unfit;
	struct mikey_talk *t;

	t = mikey_talk_find(in->host->mikey, s->offered);
	/* The response was deleted, perhaps after this offer came: the keys stay in force without
	 * it. */
	if (s->offered == MIKEY_KEPT || (!t && s->used == s->offered))
		return keep(a);
	if (!t || (t->spent && s->used != s->offered))
		return refuse(a, STR("the exchange of this offer was forgotten"));
	if (!write_response(a, t, in)) {
		a->error = (struct keying_error){NGE_NOMEM, STR("keys")};
		return KEYING_REFUSES;
	}
	if (t->spent)
		return keep(a);
	/* Again: another m-line of this offer may have the same keys. */
	unfit = mikey_row_unfit(a->offerer.state, &t->keys.medium[s->offered_place], false, in);
	if (unfit)
		return refuse(a, str_from(unfit));
	if (!mikey_row_note_key(s, &t->keys.medium[s->offered_place].tx, s->offered))
		return refuse(a, str_from(mikey_failure_text(MIKEY_FAIL_STATE)));
	in_force(a->offerer.state, &t->run);
	if (!t->answered_ns)
		t->answered_ns = in->host->mikey->clock.mono();
	s->used = s->offered;
	s->used_hash = s->offered_hash;
	s->used_time = t->run.time;
	into(a, &t->keys.medium[s->offered_place]);
	return KEYING_AGREES;
}

enum keying_result mikey_row_write_answer(struct keying_answer *a, const struct keying_in *in)
{
	struct keying_mikey *s = &a->offerer.state->mikey;
	enum keying_result r;

	if (!s->offered || !in->host->mikey || in->r->mikey == NG_MIKEY_OFF ||
		(a->offerer.state->sdes.lines && in->r->sdes.flags & NG_SDES_PREFER))
		return KEYING_PASSES;
	r = agree(a, in);
	if (r != KEYING_AGREES)
		return r;
	add_tags(a, s, keying_preauth_accepts(in) ? s->preauth.offered : 0);
	if (keying_preauth_write(a->lines, a->rx.preauth, in))
		return KEYING_AGREES;
	a->error = (struct keying_error){NGE_NOMEM, STR("keys")};
	return KEYING_REFUSES;
}
