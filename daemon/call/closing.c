/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The closing report of a call: a dictionary for call records (CDR), and a line with the same for
 * the log. It never contains a key. */
#include "call/closing.h"
#include "base/clock.h"
#include "call/call.h"
#include "call/call_int.h"
#include "call/leg_audio.h"
#include "call/names.h"
#include "call/sight.h"
#include "call/summary.h"

#define SCRATCH    (4u << 20)
#define LINE_LEGS  6u   /* legs in the line; the record has all */
#define LINE_BYTES 800u /* of the line; the log truncates longer ones */

static const char *const end_names[CALL_END_COUNT] = {
#define X(id, name, text) name,
	CALL_ENDS(X)
#undef X
};

static const char *const end_texts[CALL_END_COUNT] = {
#define X(id, name, text) text,
	CALL_ENDS(X)
#undef X
};

struct closing {
	const struct calls *c;
	const struct call *call;
	struct pool *p;
	struct ngval *sides;
	struct str legs; /* of the line */
	uint32_t legs_n;
	uint64_t drops[PACKET_VERDICTS];
	struct calls_ended sums; /* of this call */
};

static void add_int(struct closing *x, struct ngval *d, const char *key, uint64_t v)
{
	ngval_add_int(x->p, d, str_from(key), (int64_t)v);
}

static void add_text(struct closing *x, struct ngval *d, const char *key, struct str v)
{
	if (v.len)
		ngval_add_str(x->p, d, str_from(key), v);
}

static void add_endpoint(
	struct closing *x, struct ngval *d, const char *key, const struct endpoint *e)
{
	char text[ENDPOINT_STRLEN];

	if (e->family)
		add_text(x, d, key, pool_strdup(x->p, str_from(endpoint_fmt(e, text))));
}

static void add_drops(struct closing *x, struct ngval *d, const struct relay_stats *rtp,
	const struct relay_stats *rtcp)
{
	struct ngval *list = ngval_add_dict(x->p, d, STR("drops"));

	for (int v = 0; v < PACKET_VERDICTS; v++) {
		uint64_t n = rtp->drops[v] + rtcp->drops[v];

		x->drops[v] += n;
		if (n)
			add_int(x, list, packet_drop_name((enum packet_verdict)v), n);
	}
}

static void add_quality(struct closing *x, struct ngval *d, const struct media_quality *q)
{
	if (!q->samples)
		return;
	add_int(x, d, "lost", q->lost);
	add_int(x, d, "loss_percent_x100", q->mean[QUALITY_LOSS]);
	add_int(x, d, "mos_x100", q->mean[QUALITY_MOS]);
	add_int(x, d, "mos_lowest_x100", q->low[QUALITY_MOS]);
	add_int(x, d, "rtt_us", q->mean[QUALITY_RTT]);
	add_int(x, d, "jitter_us", q->mean[QUALITY_JITTER]);
}

/* "audio PCMA/8000 AES_CM_128_HMAC_SHA1_80 in 3120 out 3110 lost 2 (0.06 %) MOS 4.32" */
static void add_to_line(struct closing *x, const struct leg *l, const char *suite,
	const struct relay_stats *st, const struct media_quality *q)
{
	struct str quality = STR("");

	if (++x->legs_n > LINE_LEGS)
		return;
	if (q->samples)
		quality = pool_printf(x->p, " lost %u (%u.%02u %%) MOS %u.%02u", (unsigned)q->lost,
			q->mean[QUALITY_LOSS] / 100, q->mean[QUALITY_LOSS] % 100,
			q->mean[QUALITY_MOS] / 100, q->mean[QUALITY_MOS] % 100);
	x->legs = pool_printf(x->p, STR_FMT "; %s%s%s %s in %llu out %llu" STR_FMT,
		STR_ARG(x->legs), l->kind, l->codec[0] ? " " : "", l->codec, suite ? suite : "-",
		(unsigned long long)st->packets, (unsigned long long)st->packets_out,
		STR_ARG(quality));
}

static void add_leg(struct closing *x, struct ngval *list, const struct side *s, uint32_t media)
{
	const struct leg *l = s->leg[media];
	struct ngval *d = ngval_add_dict(x->p, list, STR_NONE);
	struct relay_stats rtp = {0}, rtcp = {0};
	const struct media_quality *q;
	const char *keying, *in, *out;

	leg_stats(x->c->relay, x->call, l, false, &rtp);
	leg_stats(x->c->relay, x->call, l, true, &rtcp);
	q = sight_quality(&rtp, &rtcp);
	keying = leg_keying_now(x->c->relay, x->call, s, l, rtp.others);
	in = leg_suite(l, &l->rx, keying);
	out = leg_suite(l, &l->tx, keying);
	add_int(x, d, "index", media + 1);
	add_text(x, d, "kind", str_from(l->kind));
	add_text(x, d, "codec", str_from(l->codec));
	add_text(x, d, "transcoded", leg_audio_pair(x->call, s, media, x->p));
	add_int(x, d, "active", l->active);
	add_text(x, d, "suite_in", in ? str_from(in) : STR_NONE);
	add_text(x, d, "suite_out", out ? str_from(out) : STR_NONE);
	add_int(x, d, "local_port", l->port.rtp.port);
	add_endpoint(x, d, "remote", &rtp.remote);
	add_int(x, d, "packets_in", rtp.packets);
	add_int(x, d, "bytes_in", rtp.bytes);
	add_int(x, d, "packets_out", rtp.packets_out);
	add_int(x, d, "bytes_out", rtp.bytes_out);
	add_int(x, d, "rtcp_in", rtcp.packets);
	add_int(x, d, "last_packet_ms", rtp.last_packet_ns / 1000000);
	add_int(x, d, "handovers", rtp.handovers);
	add_quality(x, d, q);
	add_drops(x, d, &rtp, &rtcp);
	add_to_line(x, l, in, &rtp, q);
}

static void add_side(struct closing *x, uint32_t i)
{
	const struct side *s = x->call->side[i];
	struct ngval *d = ngval_add_dict(x->p, x->sides, STR_NONE), *list;

	add_text(x, d, "tag", history_name(x->p, s->tag));
	add_text(x, d, "label", history_name(x->p, s->label));
	list = ngval_add_list(x->p, d, STR("media"));
	for (uint32_t m = 0; m < s->legs; m++)
		if (s->leg[m] && s->leg[m]->has_port)
			add_leg(x, list, s, m);
}

static struct ngval *record(struct closing *x, enum call_end why, uint64_t end_ns)
{
	const struct call *call = x->call;
	struct ngval *d = ngval_dict(x->p);

	add_text(x, d, "call_id", history_name(x->p, call->id));
	add_text(x, d, "reason", str_from(end_names[why]));
	add_text(x, d, "refused", str_from(call->refused));
	add_int(x, d, "created_ms", call->created_ns / 1000000);
	add_int(x, d, "answered_ms", call->answered_ns / 1000000);
	add_int(x, d, "ended_ms", end_ns / 1000000);
	add_int(x, d, "emergency", call->emergency);
	add_int(x, d, "recorded", call->tap != 0 || call->tap_parts != 0);
	add_text(x, d, "metadata", call->metadata);
	x->sides = ngval_add_list(x->p, d, STR("sides"));
	for (uint32_t i = 0; i < call->sides; i++)
		if (!call->side[i]->gone)
			add_side(x, i);
	summary_ended(x->c->relay, call, &x->sums);
	add_int(x, d, "one_way", x->sums.one_way);
	return d;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static struct str line(struct closing *x, enum call_end why, uint64_t end_ns)
{
	const struct call *call = x->call;
	struct str text, drops = STR("");

	text = call->answered_ns
		? pool_printf(x->p, "call ended: %s; %.1f s, %.1f s since its answer%s",
			  end_texts[why], seconds(call->created_ns, end_ns),
			  seconds(call->answered_ns, end_ns), x->sums.one_way ? "; one-way" : "")
		: pool_printf(x->p, "call ended: %s; %.1f s, never answered", end_texts[why],
			  seconds(call->created_ns, end_ns));
	if (call->refused[0])
		text = pool_printf(x->p, STR_FMT "; last %s", STR_ARG(text), call->refused);
	for (int v = 0; v < PACKET_VERDICTS; v++)
		if (x->drops[v])
			drops = pool_printf(x->p, STR_FMT "%s%llu %s", STR_ARG(drops),
				drops.len ? ", " : "; dropped ", (unsigned long long)x->drops[v],
				packet_drop_name((enum packet_verdict)v));
	text = pool_printf(
		x->p, STR_FMT STR_FMT STR_FMT, STR_ARG(text), STR_ARG(x->legs), STR_ARG(drops));
	if (x->legs_n > LINE_LEGS)
		text = pool_printf(
			x->p, STR_FMT "; %u more media", STR_ARG(text), x->legs_n - LINE_LEGS);
	text.len = text.len < LINE_BYTES ? text.len : LINE_BYTES;
	return text;
}

void closing_report(struct calls *c, const struct call *call, enum call_end why, uint64_t now_ns)
{
	struct closing x = {.c = c, .call = call, .legs = STR("")};
	uint64_t end_ns = call->deleted_ns ? call->deleted_ns : now_ns;
	struct call_closing out = {.call_id = call->id,
		.reason = end_texts[why],
		.created_ns = call->created_ns,
		.answered_ns = call->answered_ns,
		.ended_ns = end_ns};
	struct names names;

	/* The first end counts: a deleted call continues for delete-delay. */
	if (call->deleted_ns)
		why = CALL_END_DELETED;
	if (pool_create(&x.p, SCRATCH))
		return;
	out.record = record(&x, why, end_ns);
	out.text = line(&x, why, end_ns);
	names_of(&names, call);
	out.from = names.from;
	out.to = names.to;
	out.one_way = x.sums.one_way != 0;
	if (!pool_failed(x.p))
		c->ended(c->ended_arg, &out);
	pool_destroy(x.p);
}

void calls_on_end(
	struct calls *c, void (*ended)(void *arg, const struct call_closing *e), void *arg)
{
	c->ended = ended;
	c->ended_arg = arg;
}
