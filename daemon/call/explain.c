/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Explains a call in plain words: the offers, the choices and their reasons, and the events since.
 * Copies only names of known suites from SDP, never a key or anything that could be one. */
#include "call/explain.h"

#include <stdio.h>

#include "base/clock.h"
#include "call/call_int.h"
#include "call/gate.h"
#include "call/leg_audio.h"
#include "call/sight.h"
#include "call/table.h"
#include "keying/keying.h"

#define MEDIA_TOLD 6u /* m-lines of an offer or answer that are described */

/* X(id, text): why a leg speaks what it does */
#define LEG_WHYS(X)                                                                                \
	X(UNKNOWN, "it was chosen before this node took the call over")                            \
	X(FIRST, "the first suite in the terminal's offer that --sdes-accept and the flags allow") \
	X(CHOSEN, "the terminal chose this suite among those it was offered")                      \
	X(PASSED, "the terminals use the same keys end to end; this relay does not decrypt")       \
	X(NO_CRYPTO, "the terminal's offer had no a=crypto line that could be used")               \
	X(ANSWERED_PLAIN, "the terminal was offered SRTP, and answered RTP")                       \
	X(OFFERED_PLAIN,                                                                           \
		"the terminal was offered only RTP, by transport-protocol or other flags")         \
	X(TOLD_PLAIN, "the terminal offered SRTP, and was answered RTP (OSRTP)")                   \
	X(REJECTED, "this media was rejected")                                                     \
	X(RAW, "this media is not RTP; its packets are relayed unchanged")

enum leg_why {
#define X(id, text) WHY_##id,
	LEG_WHYS(X)
#undef X
};

static const char *why_text(uint8_t why)
{
	static const char *const texts[] = {
#define X(id, text) text,
		LEG_WHYS(X)
#undef X
	};

	return texts[why < ARRAY_LEN(texts) ? why : 0];
}

static const char *dir_name(enum sdp_dir dir)
{
	return dir == SDP_DIR_SENDRECV    ? "sendrecv"
		: dir == SDP_DIR_SENDONLY ? "sendonly"
		: dir == SDP_DIR_RECVONLY ? "recvonly"
					  : "inactive";
}

/* --- Offers and answers ----------------------------------------------------------------------- */

/* The second word of each a=crypto line, if it is a suite that we know. */
static void add_suites(struct sbuf *b, const struct sdp_media *m)
{
	const struct sdp_line *l = sdp_attr(m->lines, STR("crypto"));
	uint32_t n = 0, unknown = 0;

	for (; l; l = sdp_attr(l->next, STR("crypto"))) {
		struct str rest = l->arg;
		const struct srtp_suite *s;

		(void)str_word(&rest);
		s = srtp_suite_find(str_word(&rest));
		if (s)
			sbuf_printf(b, "%s%s", n++ ? ", " : " with ", s->name);
		else
			unknown++;
	}
	if (unknown)
		sbuf_printf(b, "%s%u unknown suite%s", n ? ", " : " with ", unknown,
			unknown == 1 ? "" : "s");
}

/* history_add() replaces control characters. */
static void add_cut(struct sbuf *b, struct str text, size_t max)
{
	sbuf_str(b, (struct str){text.s, text.len < max ? text.len : max});
}

static void describe_said(struct sbuf *b, const struct sdp *said)
{
	char addr[ENDPOINT_STRLEN];

	for (uint32_t i = 0; i < said->media_count && i < MEDIA_TOLD; i++) {
		const struct sdp_media *m = &said->media[i];
		struct str codec = sdp_first_codec(m);

		sbuf_printf(b, "%s", i ? "; " : "");
		add_cut(b, m->kind, 16);
		if (!m->port) {
			sbuf_printf(b, " rejected");
			continue;
		}
		sbuf_printf(b, " ");
		add_cut(b, m->proto_text, 24);
		add_suites(b, m);
		if (m->conn.present)
			sbuf_printf(b, ", at %s port %u", endpoint_fmt_addr(&m->conn.addr, addr),
				m->port);
		sbuf_printf(b, ", %s", dir_name(m->dir));
		if (codec.len) {
			sbuf_printf(b, ", ");
			add_cut(b, codec, 32);
		}
	}
	if (said->media_count > MEDIA_TOLD)
		sbuf_printf(b, "; %u more media", said->media_count - MEDIA_TOLD);
}

/* Describes the offer as written to the other party. */
static void describe_asked(struct sbuf *b, const struct side *s)
{
	for (uint32_t i = 0; i < s->legs && i < MEDIA_TOLD; i++) {
		const struct leg *l = s->leg[i];

		if (!l || !l->has_port)
			continue;
		sbuf_printf(
			b, "%s%s %s", b->len ? "; " : "", l->kind, sdp_proto_name(l->asked.proto));
		keying_describe(&l->keying, b);
		if (l->asked.either)
			sbuf_printf(b, ", or RTP");
	}
}

static enum leg_why why_of(const struct leg *l, bool answered)
{
	bool plain = srtp_params_are_plain(&l->rx);

	if (!l->active)
		return WHY_REJECTED;
	if (!sdp_proto_is_rtp(l->proto))
		return WHY_RAW;
	if (l->rx.pass || l->tx.pass)
		return WHY_PASSED;
	if (answered)
		return !plain                     ? WHY_CHOSEN
			: keying_asks(&l->keying) ? WHY_ANSWERED_PLAIN
						  : WHY_OFFERED_PLAIN;
	return !plain ? WHY_FIRST : keying_was_offered(&l->keying) ? WHY_TOLD_PLAIN : WHY_NO_CRYPTO;
}

/* A later offer of RTP does not change why the leg became plain. */
static enum leg_why why_now(const struct leg *l, bool answered)
{
	enum leg_why now = why_of(l, answered);
	bool new_reason = now != WHY_NO_CRYPTO && now != WHY_OFFERED_PLAIN;

	if (!new_reason && (l->why == WHY_ANSWERED_PLAIN || l->why == WHY_TOLD_PLAIN))
		return (enum leg_why)l->why;
	return now;
}

static void note_chosen(struct call *call, struct side *s, bool answered, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->legs; i++) {
		struct leg *l = s->leg[i];
		bool again;

		if (!l || !l->has_port)
			continue;
		again = l->why != WHY_UNKNOWN && l->why != WHY_REJECTED;
		l->why = (uint8_t)why_now(l, answered);
		if (i >= MEDIA_TOLD || !l->active)
			continue;
		history_add(&call->history, now_ns, HISTORY_KEYS, s->tag,
			"%s %u: from the terminal %s, to it %s: %s%s", l->kind, i + 1,
			leg_suite(l, &l->rx, ""), leg_suite(l, &l->tx, ""), why_text(l->why),
			again && (l->rx_new || l->tx_new) && l->rx.keys ? "; new keys" : "");
	}
}

void explain_exchange(struct call *call, uint64_t now_ns, const struct explain_exchange *e)
{
	struct side *a = e->from < call->sides ? call->side[e->from] : NULL;
	struct side *b = e->to < call->sides ? call->side[e->to] : NULL;
	struct sbuf text;

	sbuf_init(&text, 1u << 16);
	describe_said(&text, e->said);
	if (a)
		history_add(&call->history, now_ns, e->is_answer ? HISTORY_ANSWER : HISTORY_OFFER,
			a->tag, "%s%.*s", e->again && !e->is_answer ? "again: " : "",
			STR_ARG(sbuf_view(&text)));
	sbuf_fini(&text);
	sbuf_init(&text, 1u << 16);
	if (b && !e->is_answer) {
		describe_asked(&text, b);
		if (text.len)
			history_add(&call->history, now_ns, HISTORY_OFFER, b->tag,
				"%swas offered: %.*s", b->tag.len ? "" : "the callee ",
				STR_ARG(sbuf_view(&text)));
	}
	sbuf_fini(&text);
	if (!e->is_answer)
		return;
	if (b)
		note_chosen(call, b, false, now_ns);
	if (a)
		note_chosen(call, a, true, now_ns);
}

/* --- Commands --------------------------------------------------------------------------------- */

void calls_note(struct calls *c, const struct ng_request *r, uint64_t now_ns, const char *error,
	struct str detail)
{
	struct call *call = r->call_id.len ? call_table_find(&c->table, r->call_id) : NULL;
	bool exchange = r->command == NG_OFFER || r->command == NG_ANSWER;
	char from[ENDPOINT_STRLEN] = "this machine";

	if (!call)
		return;
	if (exchange && error)
		snprintf(call->refused, sizeof(call->refused), "%s refused: %s%s" STR_FMT,
			ng_command_name(r->command), error, detail.len ? ", " : "",
			STR_ARG(detail));
	else if (exchange)
		call->refused[0] = 0;
	if (r->from.family)
		endpoint_fmt(&r->from, from);
	if (error)
		history_add(&call->history, now_ns, HISTORY_REFUSED, r->from_tag,
			"%s by %s: %s%s" STR_FMT, ng_command_name(r->command), from, error,
			detail.len ? ", " : "", STR_ARG(detail));
	else if (!exchange)
		history_add(&call->history, now_ns, HISTORY_COMMAND, r->from_tag, "%s by %s",
			ng_command_name(r->command), from);
}

/* --- Explaining ------------------------------------------------------------------------------- */

struct explain {
	const struct calls *c;
	const struct call *call;
	struct pool *p;
	uint64_t now_ns;
	struct sight sight;
};

static void add(struct explain *x, struct ngval *d, const char *key, const char *text)
{
	ngval_add_str(x->p, d, str_from(key), str_from(text));
}

static double ago(uint64_t then_ns, uint64_t now_ns)
{
	return now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
}

/* The source of media, and the packets received and sent. */
static void add_media(
	struct explain *x, struct ngval *d, const struct leg *l, const struct relay_stats *st)
{
	char sdp[ENDPOINT_STRLEN], now[ENDPOINT_STRLEN];
	const struct endpoint *signalled = &l->remote;
	struct str text;

	text = !signalled->family  ? STR("no address signalled")
		: !signalled->port ? STR("no port signalled")
		: !st->confirmed   ? pool_printf(x->p, "%s by SDP; no source confirmed yet",
					     endpoint_fmt(signalled, sdp))
		: endpoint_eq(signalled, &st->remote)
		? pool_printf(x->p, "%s, as signalled", endpoint_fmt(signalled, sdp))
		: pool_printf(x->p, "%s, learned; SDP has %s", endpoint_fmt(&st->remote, now),
			  endpoint_fmt(signalled, sdp));
	ngval_add_str(x->p, d, STR("source"), text);
	text = st->packets
		? pool_printf(x->p, "%llu packets received, the last %.1f s ago",
			  (unsigned long long)st->packets, ago(st->last_packet_ns, x->now_ns))
		: STR("no packet received");
	ngval_add_str(x->p, d, STR("received"), text);
	ngval_add_str(x->p, d, STR("sent"),
		pool_printf(x->p, "%llu packets sent to it", (unsigned long long)st->packets_out));
}

static void add_drops(
	struct explain *x, struct ngval *d, const char *key, const struct relay_stats *st)
{
	struct str text = STR("");

	for (int v = 0; v < PACKET_VERDICTS; v++)
		if (st->drops[v])
			text = pool_printf(x->p, STR_FMT "%s%llu %s", STR_ARG(text),
				text.len ? ", " : "", (unsigned long long)st->drops[v],
				packet_drop_name((enum packet_verdict)v));
	if (text.len)
		ngval_add_str(x->p, d, str_from(key), text);
}

/* The fault of this leg, if it has one. */
static void add_trouble(struct explain *x, struct ngval *d, uint32_t side, uint32_t media,
	const struct relay_stats *rtp, const struct relay_stats *rtcp)
{
	const struct sight *g = &x->sight;
	uint32_t bad = 1u << SIGHT_TROUBLE_BAD_TAGS | 1u << SIGHT_TROUBLE_WRONG_SOURCE;
	bool silent = g->troubles >> SIGHT_TROUBLE_ONE_WAY & 1 && g->silent_side == side &&
		g->silent_media == media;
	bool wrong = g->troubles & bad && g->bad_side == side && g->bad_media == media;
	const struct leg *l = x->call->side[side]->leg[media];
	struct str tag = x->call->short_tags ? STR_NONE : sight_short_tag(x->p, rtcp);
	struct str text = STR("");

	if (silent || wrong)
		text = pool_printf(x->p, "%s" STR_FMT, silent ? "silent; " : "",
			STR_ARG(sight_cause(x->p, l, rtp)));
	if (tag.len)
		text = pool_printf(x->p, STR_FMT "%s" STR_FMT, STR_ARG(text), text.len ? "; " : "",
			STR_ARG(tag));
	if (text.len)
		ngval_add_str(x->p, d, STR("trouble"), text);
}

/* Its suites in both directions and the reason. */
static void add_suites_now(struct explain *x, struct ngval *d, const struct side *s,
	const struct leg *l, const struct relay_stats *st)
{
	const char *keying = leg_keying_now(x->c->relay, x->call, s, l, st->others);
	const char *in = leg_suite(l, &l->rx, keying), *out = leg_suite(l, &l->tx, keying);
	bool ours = !in || in != keying; /* the relay's choice, and not that of the terminals */

	add(x, d, "suite in", in ? in : "none yet");
	add(x, d, "suite out", out ? out : "none yet");
	add(x, d, "why",
		!ours                                   ? why_text(WHY_PASSED)
			: !in && l->why != WHY_REJECTED ? "the call is not answered yet"
							: why_text(l->why));
}

static void add_sas(struct explain *x, struct ngval *d, const struct leg *l)
{
	const struct keying_zrtp *z = keying_sas(&l->keying);

	if (z)
		ngval_add_str(x->p, d, STR("SAS"),
			pool_printf(x->p, "%s, %s%s%s", z->sas,
				z->verified ? "verified" : "not verified",
				z->mismatched ? ", retained secrets do not match" : "",
				z->discloses ? ", the terminal may disclose keys or media" : ""));
}

static void add_mikey(struct explain *x, struct ngval *d, const struct leg *l)
{
	struct str peer = keying_mikey_peer(&l->keying);

	if (peer.len)
		ngval_add_str(x->p, d, STR("MIKEY peer"), pool_strdup(x->p, peer));
}

static const char *role_of(const struct call *c, uint32_t side)
{
	return c->side[side]->listener     ? "listener"
		: c->side[side]->publisher ? "publisher"
		: side == 0                ? "caller"
					   : "callee";
}

/* Media of this terminal that commands keep from all others, or from some. */
static void add_blocked(struct explain *x, struct ngval *d, const struct side *s)
{
	uint8_t gate = gate_of_side(x->call, s);
	struct str text;

	for (uint32_t to = 0; to < x->call->sides; to++)
		gate |= s->flow[to];
	text = pool_printf(x->p, "%s%s%s", gate & MEDIA_GATE_MEDIA ? ", media" : "",
		gate & MEDIA_GATE_DTMF ? ", digits" : "",
		gate & MEDIA_GATE_QUIET ? ", audio (silence is sent)" : "");
	if (text.len)
		ngval_add_str(x->p, d, STR("blocked"), (struct str){text.s + 2, text.len - 2});
}

static void add_leg(struct explain *x, struct ngval *list, uint32_t side, uint32_t media)
{
	const struct side *s = x->call->side[side];
	const struct leg *l = s->leg[media];
	struct ngval *d = ngval_add_dict(x->p, list, STR_NONE);
	struct relay_stats st = {0}, rtcp = {0};
	struct str transcoded, counts;

	leg_stats(x->c->relay, x->call, l, false, &st);
	leg_stats(x->c->relay, x->call, l, true, &rtcp);
	ngval_add_str(x->p, d, STR("tag"), history_name(x->p, s->tag));
	add(x, d, "role", role_of(x->call, side));
	ngval_add_int(x->p, d, STR("media"), media + 1);
	add(x, d, "kind", l->kind);
	if (l->codec[0])
		add(x, d, "codec", l->codec);
	transcoded = leg_audio_pair(x->call, s, media, x->p);
	if (transcoded.len)
		ngval_add_str(x->p, d, STR("transcoded"), transcoded);
	counts = leg_audio_counts(x->c->relay, l, x->p);
	if (counts.len)
		ngval_add_str(x->p, d, STR("audio"), counts);
	add(x, d, "protocol",
		sdp_proto_name(l->active          ? l->proto
				: l->said.relayed ? l->said.proto
						  : l->asked.proto));
	add(x, d, "direction", dir_name(l->dir));
	add_suites_now(x, d, s, l, &st);
	add_sas(x, d, l);
	add_mikey(x, d, l);
	if (l->rx.preauth)
		add(x, d, "SRTP+", preauth_name((enum preauth_scheme)(l->rx.preauth - 1)));
	add_blocked(x, d, s);
	add_media(x, d, l, &st);
	add_drops(x, d, "dropped", &st);
	add_drops(x, d, "RTCP dropped", &rtcp);
	add_trouble(x, d, side, media, &st, &rtcp);
}

/* The call in a line or two. */
static void add_summary(struct explain *x, struct ngval *dict)
{
	const struct call *c = x->call;
	struct ngval *list = ngval_add_list(x->p, dict, STR("summary"));
	const struct sight *s = &x->sight;

	ngval_add_str(x->p, list, STR_NONE,
		pool_printf(x->p, "%s; began %.0f s ago, %s", sight_state_name(s->state),
			ago(c->created_ns, x->now_ns),
			call_is_answered(c) ? "answered" : "not answered"));
	if (s->measured)
		ngval_add_str(x->p, list, STR_NONE,
			pool_printf(x->p,
				"worst leg by RTCP: MOS %u.%02u, %u.%02u %% lost, round trip %u ms, jitter %u ms",
				s->mos / 100, s->mos % 100, s->loss / 100, s->loss % 100,
				s->rtt / 1000, s->jitter / 1000));
	for (uint32_t t = 0; t < SIGHT_TROUBLE_COUNT; t++)
		if (s->troubles >> t & 1)
			ngval_add_str(x->p, list, STR_NONE,
				pool_printf(x->p, "trouble: %s",
					sight_trouble_text((enum sight_trouble)t)));
	if (s->plain)
		ngval_add_str(x->p, list, STR_NONE,
			STR("some media is RTP in the clear: see \"why\" of its leg"));
}

const char *calls_explain(
	struct calls *c, struct pool *p, struct str call_id, uint64_t now_ns, struct ngval *dict)
{
	struct explain x = {
		.c = c, .call = call_table_find(&c->table, call_id), .p = p, .now_ns = now_ns};
	struct ngval *legs;

	if (!x.call)
		return NGE_UNKNOWN_CALL;
	sight_take(&x.sight, c->relay, x.call, now_ns);
	ngval_add_str(p, dict, STR("call-id"), history_name(p, x.call->id));
	ngval_add_str(p, dict, STR("state"), str_from(sight_state_name(x.sight.state)));
	ngval_add_int(p, dict, STR("created"), (int64_t)(x.call->created_ns / 1000000));
	ngval_add_int(p, dict, STR("answered"), (int64_t)(x.call->answered_ns / 1000000));
	add_summary(&x, dict);
	legs = ngval_add_list(p, dict, STR("legs"));
	for (uint32_t i = 0; i < x.call->sides; i++)
		for (uint32_t m = 0; m < x.call->side[i]->legs && !x.call->side[i]->gone; m++)
			if (x.call->side[i]->leg[m] && x.call->side[i]->leg[m]->has_port)
				add_leg(&x, legs, i, m);
	history_tree(x.call->history, p, dict);
	return NULL;
}
