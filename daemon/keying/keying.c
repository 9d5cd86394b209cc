/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the keyings, in order. Pure. */
#include "keying/keying.h"

#include "base/secmem.h"
#include "keying/rows.h"

/* Pass-through comes first: it serves only where the request demands it, and then alone. */
static const struct keying_ops *const rows[] = {
	&keying_pass, &keying_dtls, &keying_zrtp, &keying_mikey, &keying_sdes};

_Static_assert(ARRAY_LEN(rows) == KEYING_ROWS, "one row per keying");

const struct keying_ops *keying_row(uint32_t i)
{
	return rows[i];
}

bool keying_draw(struct keying_random *random, void *out, size_t len)
{
	if (random->len < len)
		return false;
	memcpy(out, random->at, len);
	secmem_wipe(random->at, len);
	random->at += len;
	random->len -= len;
	return true;
}

/* --- Offers and answers ----------------------------------------------------------------------- */

/* A message of MIKEY that fails refuses the offer: nothing takes its place. */
static bool refuses(const struct keying_error *why)
{
	return why->reason == NGE_MIKEY || why->reason == NGE_NOMEM;
}

bool keying_read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	struct keying_error passed_over = {0};
	bool found = false;

	*why = (struct keying_error){.reason = NGE_SUITE};
	for (uint32_t i = 0; i < KEYING_ROWS && !refuses(why); i++) {
		struct keying_error before = *why;

		if (rows[i]->read_offer(l, m, suites, in, why)) {
			passed_over = found ? passed_over : before;
			found = true;
		}
	}
	if (refuses(why))
		keying_drop_offered(l->state);
	else if (found)
		*why = passed_over;
	return found && !refuses(why);
}

bool keying_could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->could_accept(l, m, in))
			return true;
	return false;
}

bool keying_is_same_offer(
	const struct keying_state *s, const struct sdp *sdp, const struct sdp_media *m)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (!rows[i]->is_same_offer(s, sdp, m))
			return false;
	return true;
}

static struct keying_error nena_error(void)
{
	return (struct keying_error){NGE_SUITE, STR("DTLS=NENA demands DTLS-SRTP with AES-256")};
}

bool keying_write_offer(struct keying_offer *o, const struct keying_in *in)
{
	enum keying_result r = KEYING_PASSES;

	keying_drop_asked(o->to.state);
	for (uint32_t i = 0; i < KEYING_ROWS && r < KEYING_AGREES; i++)
		r = rows[i]->write_offer(o, in);
	if (r != KEYING_REFUSES && sdp_proto_is_secure(o->proto) && !keying_asks(o->to.state)) {
		o->error.reason = NGE_SUITE;
		o->error.detail = in->r->sdes.flags & NG_SDES_OFF ? STR("SDES is off") : STR("");
	}
	if (!o->error.reason && in->r->nena && !keying_dtls.asks(o->to.state))
		o->error = nena_error();
	return !o->error.reason;
}

bool keying_end_offer(struct keying_written *w, uint32_t n, bool whole, const struct keying_in *in)
{
	bool ok = true;

	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->end_offer)
			rows[i]->end_offer(w, n, whole, in);
	for (uint32_t i = 0; i < n; i++)
		ok = ok && !w[i].error.reason;
	return ok;
}

/* Ends what the other keyings had in force. One that is agreed on later starts from the
 * beginning. */
static void end_others(enum keying_result r, struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS && r == KEYING_AGREES; i++)
		if (rows[i]->id != s->in_force)
			rows[i]->end(s);
}

enum keying_result keying_read_answer(struct keying_answer *a, const struct keying_in *in)
{
	enum keying_result r = KEYING_PASSES;

	for (uint32_t i = 0; i < KEYING_ROWS && r == KEYING_PASSES; i++)
		r = rows[i]->read_answer(a, in);
	end_others(r, a->answerer.state);
	return r;
}

enum keying_result keying_write_answer(struct keying_answer *a, const struct keying_in *in)
{
	enum keying_result r = KEYING_PASSES;

	for (uint32_t i = 0; i < KEYING_ROWS && r == KEYING_PASSES; i++)
		if (a->joint ? a->row == rows[i] : !a->in_band_only || rows[i]->exchange)
			r = rows[i]->write_answer(a, in);
	if ((in->r->nena || a->offerer.state->dtls.nena) && r != KEYING_REFUSES &&
		(r != KEYING_AGREES || a->offerer.state->in_force != KEYING_DTLS)) {
		a->error = nena_error();
		r = KEYING_REFUSES;
	}
	end_others(r, a->offerer.state);
	return r;
}

enum sdp_proto keying_profile(
	enum sdp_proto ordered, const struct keying_host *host, const char **instead)
{
	bool dtls = sdp_proto_is_dtls(ordered);

	*instead = NULL;
	if (dtls && host->dtls)
		return ordered;
	if (dtls)
		*instead = "DTLS-SRTP is not available: offering SDES instead";
	return sdp_proto_make(sdp_proto_is_secure(ordered), sdp_proto_is_feedback(ordered));
}

/* --- State ------------------------------------------------------------------------------------ */

bool keying_was_offered(const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->was_offered(s))
			return true;
	return false;
}

bool keying_asks(const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->asks(s))
			return true;
	return false;
}

bool keying_asks_end_to_end(const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->end_to_end && rows[i]->asks(s))
			return true;
	return false;
}

void keying_drop_offered(struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		rows[i]->drop_offered(s);
}

void keying_drop_asked(struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		rows[i]->drop_asked(s);
}

void keying_end(struct keying_state *s)
{
	s->in_force = KEYING_NONE;
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		rows[i]->end(s);
}

static const struct keying_ops *in_force(const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->id == s->in_force)
			return rows[i];
	return NULL;
}

const char *keying_name(const struct keying_state *s)
{
	const struct keying_ops *row = in_force(s);

	return row ? row->name : "";
}

bool keying_is_of(const struct keying_state *s, const struct srtp_params *rx, uint32_t suites)
{
	const struct keying_ops *row = in_force(s);

	return row ? row->is_of(rx, suites) : suites >> SUITE_PLAIN & 1;
}

bool keying_association(struct keying_association *out, const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->association && rows[i]->association(out, s))
			return true;
	return false;
}

bool keying_exchange(struct keying_exchange *out, const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->exchange && rows[i]->exchange(out, s))
			return true;
	return false;
}

bool keying_is_announced(const struct keying_state *s)
{
	return s->zrtp.offered.given;
}

const char *const *keying_flags(const struct keying_state *s, bool keyed)
{
	static const char *const none[] = {NULL};
	const struct keying_ops *row = in_force(s);

	return row && (keyed || row->awaited) ? row->flags(s) : none;
}

const char *keying_proof(const struct keying_state *s)
{
	const struct keying_ops *row = in_force(s);

	return row && row->proof ? row->proof : "";
}

const char *keying_awaited(const struct keying_state *s)
{
	const struct keying_ops *row = in_force(s);

	return row && row->awaited ? row->awaited : "no keys yet";
}

void keying_describe(const struct keying_state *s, struct sbuf *b)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		rows[i]->describe(s, b);
}

bool keying_is_sound(const struct keying_state *s)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (!rows[i]->is_sound(s))
			return false;
	return true;
}

/* --- Retired keys ----------------------------------------------------------------------------- */

const struct keying_key *keying_our_key(const struct keying_state *s, uint32_t n)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++) {
		const struct keying_key_ops *keys = rows[i]->keys;
		uint32_t k = 0;

		for (const struct keying_key *key; keys && (key = keys->ours(s, k)); k++)
			if (k == n)
				return key;
		n -= k;
	}
	return NULL;
}

const struct keying_key *keying_ours(const struct keying_state *s, const struct srtp_master *key)
{
	const struct keying_key *k;

	for (uint32_t i = 0; (k = keying_our_key(s, i)); i++)
		if (srtp_same_key(&k->master, key))
			return k;
	return NULL;
}

void keying_hold(struct keying_state *s, const struct srtp_master *key, uint32_t slot)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->keys)
			rows[i]->keys->hold(s, key, slot);
}

void keying_keep_ours(struct keying_state *s,
	bool (*keep)(const void *arg, const struct keying_key *k), const void *arg)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->keys)
			rows[i]->keys->keep(s, keep, arg);
}

static bool keep_none(const void *arg, const struct keying_key *k)
{
	(void)arg;
	(void)k;
	return false;
}

void keying_forget_ours(struct keying_state *s)
{
	keying_keep_ours(s, keep_none, NULL);
}

bool keying_is_theirs(const struct keying_state *s, const struct srtp_master *key)
{
	for (uint32_t i = 0; i < KEYING_ROWS; i++)
		if (rows[i]->keys && rows[i]->keys->is_theirs(s, key))
			return true;
	return false;
}
