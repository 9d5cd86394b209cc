/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MIKEY in offers and answers (RFC 4567). A terminal's message is answered when its offer is read:
 * what does not verify is refused before the other party hears of the call. The response waits in
 * mikey_host.h until the answer. A message of ours is for all m-lines if all have MIKEY.
 *
 * With SDES in the same offer, MIKEY goes first. A message that fails for any reason refuses the
 * offer: else an attacker could choose SDES by damaging it, and the identity and the mode are read
 * before the proof (RFC 4567 4.1.2, 5). SDES takes its place only in an emergency call. */
#include "base/secmem.h"
#include "keying/mikey_row_int.h"
#include "keying/preauth_policy.h"

/* --- Offers ----------------------------------------------------------------------------------- */

static bool could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in)
{
	struct said said;

	(void)l;
	return mikey_row_said(&said, m, in) && said.message.len;
}

static void forget_offered(struct keying_mikey *s)
{
	s->offered = s->offered_hash = 0;
	s->offered_place = 0;
	s->offered_session = false;
	s->preauth.offered = 0;
}

/* Keys are for one m-line: two would encrypt with the same key, and their senders choose SSRCs. */
static bool takes_place(
	struct mikey_talk *t, uint32_t place, const struct sdp_media *m, const struct keying_in *in)
{
	uint8_t line = (uint8_t)(m - in->sdp->media + 1);

	if (place >= t->media || (t->line[place] && t->line[place] != line))
		return false;
	t->line[place] = line;
	return true;
}

const char *mikey_row_unfit(const struct keying_state *s, const struct mikey_medium *m,
	bool is_sender, const struct keying_in *in)
{
	const char *why = in->refusal(in->arg, &m->rx, !is_sender);

	return why ? why : in->tx_refusal(in->arg, &m->tx, s);
}

static bool read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why)
{
	struct keying_mikey *s = &l->state->mikey;
	const char *unfit;
	struct mikey_talk *t;
	struct said said;
	uint64_t id;

	forget_offered(s);
	if (in->r->mikey == NG_MIKEY_OFF || !mikey_row_said(&said, m, in))
		return false;
	if (!said.message.len || said.lines.malformed) {
		*why = mikey_row_refuses(why, STR("malformed a=key-mgmt line"), in);
		return false;
	}
	id = mikey_row_number(said.message, in);
	s->offered_hash = mikey_row_hash(said.text);
	s->offered_place = (uint8_t)said.lines.place;
	s->offered_session = said.lines.session;
	s->preauth.offered = keying_preauth_read(in, m);
	if (l->state->in_force == KEYING_MIKEY && s->used_hash == s->offered_hash &&
		!mikey_talk_find(in->host->mikey, id)) {
		s->offered = MIKEY_KEPT;
		return true;
	}
	t = mikey_row_talk(&said, suites, id, in, why);
	if (!t)
		return false;
	/* The call ended since: packet indexes would begin again under the same keys. */
	if (t->answered_ns && s->used != id) {
		*why = mikey_row_refuses(why, str_from(mikey_failure_text(MIKEY_FAIL_REPLAY)), in);
		return false;
	}
	if (!takes_place(t, said.lines.place, m, in)) {
		*why = mikey_row_refuses(
			why, str_from(mikey_failure_text(MIKEY_FAIL_SESSIONS)), in);
		return false;
	}
	unfit = t->spent ? NULL
			 : mikey_row_unfit(l->state, &t->keys.medium[said.lines.place], true, in);
	if (unfit) {
		*why = mikey_row_refuses(why, str_from(unfit), in);
		return false;
	}
	s->offered = id;
	return true;
}

static bool is_same_offer(
	const struct keying_state *state, const struct sdp *sdp, const struct sdp_media *m)
{
	const struct keying_mikey *s = &state->mikey;
	struct sdp_keymgmt_lines lines;
	const struct sdp_keymgmt *line;

	if (!s->offered_hash)
		return true;
	if (!sdp)
		return false;
	sdp_keymgmt_read(&lines, sdp, m);
	line = sdp_keymgmt_find(&lines, MIKEY_PROTOCOL);
	return line && mikey_row_hash(line->data) == s->offered_hash;
}

/* --- Retired keys ----------------------------------------------------------------------------- */

bool mikey_row_note_key(struct keying_mikey *s, const struct srtp_master *key, uint64_t of)
{
	uint32_t i = 0;

	while (i < s->ours_n && !srtp_same_key(&s->ours[i].key.master, key))
		i++;
	if (i < s->ours_n)
		return true;
	for (i = 0; i < s->ours_n; i++)
		if (s->ours[i].of != s->offered && s->ours[i].of != s->asked)
			break;
	if (i == KEYING_MIKEY_KEYS)
		return false;
	s->ours_n += i == s->ours_n;
	s->ours[i] = (struct mikey_key){.key.master = *key, .of = of};
	return true;
}

static const struct keying_key *our_key(const struct keying_state *s, uint32_t n)
{
	return n < s->mikey.ours_n ? &s->mikey.ours[n].key : NULL;
}

static void hold(struct keying_state *s, const struct srtp_master *key, uint32_t slot)
{
	for (uint32_t i = 0; i < s->mikey.ours_n; i++)
		if (srtp_same_key(&s->mikey.ours[i].key.master, key))
			s->mikey.ours[i].key.slot = slot;
}

static void forget_key(struct keying_mikey *s, const struct mikey_key *k)
{
	if (k->of == s->offered)
		s->offered = MIKEY_GONE;
	if (k->of == s->asked)
		s->asked = MIKEY_GONE;
}

static void keep_ours(struct keying_state *state,
	bool (*keep)(const void *arg, const struct keying_key *k), const void *arg)
{
	struct keying_mikey *s = &state->mikey;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->ours_n; i++)
		if (keep(arg, &s->ours[i].key))
			s->ours[n++] = s->ours[i];
		else
			forget_key(s, &s->ours[i]);
	secmem_wipe(&s->ours[n], (s->ours_n - n) * sizeof(*s->ours));
	s->ours_n = n;
}

/* Theirs are not known before the exchange. */
static bool is_theirs(const struct keying_state *s, const struct srtp_master *key)
{
	(void)s;
	(void)key;
	return false;
}

/* --- State ------------------------------------------------------------------------------------ */

static bool was_offered(const struct keying_state *s)
{
	return s->mikey.offered;
}

static bool asks(const struct keying_state *s)
{
	return s->mikey.asked;
}

static void drop_offered(struct keying_state *s)
{
	forget_offered(&s->mikey);
}

static void drop_asked(struct keying_state *s)
{
	s->mikey.asked = 0;
	s->mikey.asked_only = false;
	s->mikey.preauth.asked = 0;
}

static void end(struct keying_state *s)
{
	s->mikey.used = s->mikey.used_hash = s->mikey.used_time = 0;
	s->mikey.mode = 0;
	s->mikey.preauth.agreed = 0;
	memset(s->mikey.peer, 0, sizeof(s->mikey.peer));
}

void keying_restored(const struct keying_state *s, struct mikey_host *m)
{
	if (m && s->in_force == KEYING_MIKEY && s->mikey.used_time)
		mikey_replay_passed(m->replay, str_from(s->mikey.peer), s->mikey.used_time);
}

struct str keying_mikey_peer(const struct keying_state *s)
{
	return s->in_force == KEYING_MIKEY ? str_from(s->mikey.peer) : STR_NONE;
}

static bool is_of(const struct srtp_params *rx, uint32_t suites)
{
	return suites >> srtp_params_suite(rx) & 1;
}

static void describe(const struct keying_state *s, struct sbuf *b)
{
	if (s->mikey.asked)
		sbuf_printf(b, " with MIKEY");
}

static bool is_sound(const struct keying_state *s)
{
	return s->mikey.mode < MIKEY_MODE_COUNT && !s->mikey.peer[sizeof(s->mikey.peer) - 1];
}

static const struct keying_key_ops keys = {
	.ours = our_key, .hold = hold, .keep = keep_ours, .is_theirs = is_theirs};

static const char *const *flags(const struct keying_state *s)
{
#define X(id, name, type, rfc) {"MIKEY", "MIKEY mode " name, NULL},
	static const char *const names[][3] = {MIKEY_MODES(X)};
#undef X
	static const char *const unknown[] = {"MIKEY", NULL};

	return s->mikey.mode < ARRAY_LEN(names) ? names[s->mikey.mode] : unknown;
}

const struct keying_ops keying_mikey = {.id = KEYING_MIKEY,
	.name = "MIKEY",
	.read_offer = read_offer,
	.could_accept = could_accept,
	.is_same_offer = is_same_offer,
	.write_offer = mikey_row_write_offer,
	.end_offer = mikey_row_end_offer,
	.read_answer = mikey_row_read_answer,
	.write_answer = mikey_row_write_answer,
	.was_offered = was_offered,
	.asks = asks,
	.drop_offered = drop_offered,
	.drop_asked = drop_asked,
	.end = end,
	.is_of = is_of,
	.flags = flags,
	.describe = describe,
	.is_sound = is_sound,
	.keys = &keys};
