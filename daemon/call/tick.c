/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Periodic work on calls: timeouts by silence and unanswered offers, key lifetimes, debug lines.
 * Each run checks a bounded number of calls. */
#include "call/tick.h"

#include <stdio.h>

#include "base/clock.h"
#include "call/call.h"
#include "call/call_int.h"
#include "call/circle.h"
#include "call/delete.h"
#include "call/dialog.h"
#include "call/lifetime.h"
#include "call/pierce.h"
#include "call/dtmf_trigger.h"
#include "call/play.h"
#include "call/session_places.h"
#include "call/table.h"
#include "call/timeout_report.h"
#include "call/trace.h"
#include "call/watch.h"

#define TRACE_NS (10 * NS_PER_SEC)
#define TICK_MAX 4096u /* calls looked at per run */
#define SCRATCH  (8u << 20)

static const char *const texts[CALL_END_COUNT] = {
#define X(id, name, text) text,
	CALL_ENDS(X)
#undef X
};

static void count(struct calls *c, enum call_end why)
{
	c->counters.timeouts++;
	c->counters.final_timeouts += why == CALL_END_FINAL_TIMEOUT;
	c->counters.offer_timeouts += why == CALL_END_OFFER_TIMEOUT;
	c->counters.silent_timeouts += why == CALL_END_SILENT_TIMEOUT;
}

static void end_all(struct calls *c, struct call *call, enum call_end why, uint64_t now_ns)
{
	struct call_timeout t;

	count(c, why);
	if (c->timeout) {
		timeout_report_write(&t, call, UINT32_MAX);
		c->timeout(c->timeout_arg, &t);
	}
	calls_end(c, call, why, now_ns);
}

/* Report of dialogs that end alone. Copies strings, because the call is replaced before the
 * report. */
static struct call_timeout *told_before(
	struct pool *p, const struct call *call, const struct lifetime_end *over, uint32_t n)
{
	struct call_timeout *t = pool_alloc(p, n * sizeof(*t));

	for (uint32_t i = 0; t && i < n; i++) {
		timeout_report_write(&t[i], call, over[i].sides);
		t[i].call_id = pool_strdup(p, t[i].call_id);
		for (uint32_t k = 0; k < t[i].tags; k++)
			t[i].tag[k] = pool_strdup(p, t[i].tag[k]);
	}
	return pool_failed(p) ? NULL : t;
}

static void report_end(struct calls *c, struct str call_id, const struct lifetime_end *over,
	const struct call_timeout *t, uint64_t now_ns)
{
	static const char rest[] = "other dialogs of the Call-ID continue";
	struct call *call = call_table_find(&c->table, call_id);
	struct str tag = t->tags ? t->tag[0] : STR_NONE;
	char text[128];

	snprintf(text, sizeof(text), "a dialog ended: %s; %s", texts[over->why], rest);
	count(c, over->why);
	if (call)
		history_add(&call->history, now_ns, HISTORY_END, tag, "%s", text);
	if (c->trouble)
		c->trouble(c->trouble_arg,
			&(struct call_trouble){.call_id = call_id,
				.tag = tag,
				.name = "dialog-ended",
				.text = str_from(text)});
	if (c->timeout && t->tags)
		c->timeout(c->timeout_arg, t);
}

/* If the worker is busy, the next tick tries again. */
/* False: it failed, and the call is unchanged. */
static bool end_some(struct calls *c, struct call *call, const struct lifetime_end *over,
	uint32_t n, uint32_t sides, uint64_t now_ns)
{
	struct call_timeout *t;
	struct pool *p;
	bool ended;

	if (pool_create(&p, SCRATCH))
		return false;
	t = told_before(p, call, over, n);
	ended = t && calls_end_sides(c, p, call, sides, now_ns) == 0;
	for (uint32_t i = 0; ended && i < n; i++)
		report_end(c, t[i].call_id, &over[i], &t[i], now_ns);
	pool_destroy(p);
	return ended;
}

/* True: the call was replaced or ended. */
static bool end_over(struct calls *c, struct call *call, uint64_t now_ns)
{
	struct lifetime_end over[CALL_MAX_SIDES];
	uint32_t n, sides = 0;

	if (call->delete_ns) {
		if (now_ns < call->delete_ns)
			return false;
		calls_end(c, call, CALL_END_DELETED, now_ns);
		return true;
	}
	n = lifetime_over(over, &c->policy, c->relay, call, now_ns);
	for (uint32_t i = 0; i < n; i++)
		sides |= over[i].sides;
	if (n && dialog_others_live(call, sides))
		return end_some(c, call, over, n, sides, now_ns);
	if (n)
		end_all(c, call, over[0].why, now_ns);
	return n != 0;
}

void calls_on_timeout(
	struct calls *c, void (*timeout)(void *arg, const struct call_timeout *t), void *arg)
{
	c->timeout = timeout;
	c->timeout_arg = arg;
}

void calls_on_key_life(
	struct calls *c, void (*notice)(void *arg, const struct call_key_notice *n), void *arg)
{
	c->notice = notice;
	c->notice_arg = arg;
}

void calls_on_trace(
	struct calls *c, void (*trace)(void *arg, const struct call_trace *line), void *arg)
{
	c->trace = (struct trace){trace, arg};
}

bool calls_set_debug(struct calls *c, struct str call_id, bool on)
{
	struct call *call = call_table_find(&c->table, call_id);

	if (!call)
		return false;
	call->debug = on;
	trace_call(&c->trace, c->relay, call);
	return true;
}

bool calls_debug(const struct calls *c, struct str call_id)
{
	const struct call *call = call_id.len ? call_table_find(&c->table, call_id) : NULL;

	return call && call->debug;
}

/* Writes debug lines periodically. */
static void trace_again(struct calls *c, struct call *call, uint64_t now_ns)
{
	if (!call->debug || now_ns < call->traced_ns + TRACE_NS)
		return;
	call->traced_ns = now_ns;
	trace_call(&c->trace, c->relay, call);
}

static void key_life(struct calls *c, const struct call *call, uint32_t slot, enum key_life *told,
	struct call_key_notice n)
{
	struct media_key_usage u;
	enum key_life life;

	if (slot == 0)
		return;
	c->relay->ops->key_usage(c->relay->arg, call->worker, slot, &u);
	life = u.expired ? LIFE_OVER : u.warned ? LIFE_NEARLY_OVER : LIFE_LEFT;
	if (life <= *told)
		return;
	*told = life;
	n.expired = life == LIFE_OVER;
	n.lifetime = u.lifetime;
	c->notice(c->notice_arg, &n);
}

static void keys_life(struct calls *c, struct call *call)
{
	for (uint32_t s = 0; s < call->sides && c->notice; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			struct leg *l = call->side[s]->leg[i];
			struct call_key_notice n = {
				.call_id = call->id, .tag = call->side[s]->tag, .media = i + 1};

			if (!l || !l->committed)
				continue;
			for (uint32_t k = 0; k < SRTP_PARAMS_KEYS; k++)
				key_life(c, call, l->rx_slot[k], &l->rx_told[k], n);
			n.ours = true;
			key_life(c, call, l->tx_slot, &l->tx_told, n);
		}
}

void calls_on_handover(
	struct calls *c, void (*handover)(void *arg, const struct call_handover *h), void *arg)
{
	c->handover = handover;
	c->handover_arg = arg;
}

static void handover(struct calls *c, struct call *call, const struct side *s, uint32_t media,
	bool rtcp, uint64_t now_ns)
{
	struct leg *l = s->leg[media];
	uint32_t stream = rtcp ? l->port.rtcp_stream : l->port.rtp_stream;
	struct media_handover now = c->relay->ops->handover(c->relay->arg, call->worker, stream);
	struct relay_stats st;

	if (now.short_tags && !l->short_tag_told) {
		l->short_tag_told = true;
		history_add(&call->history, now_ns, HISTORY_TROUBLE, s->tag,
			"%s %u: SRTCP tags have 32 bits, 80 are required (RFC 4568 6.2); %s",
			l->kind, media + 1,
			call->short_tags
				? "accepted and answered in kind"
				: "dropped, --srtcp-tag-32=yes or the flag SRTCP-tag-32 accepts them");
		c->handover(c->handover_arg,
			&(struct call_handover){.call_id = call->id,
				.tag = s->tag,
				.media = media + 1,
				.rtcp = true,
				.short_tag = true,
				.accepted = call->short_tags});
	}
	if (now.count == l->handovers[rtcp])
		return;
	c->relay->ops->stats(c->relay->arg, call->worker, stream, &st);
	c->handover(c->handover_arg,
		&(struct call_handover){.call_id = call->id,
			.tag = s->tag,
			.media = media + 1,
			.rtcp = rtcp,
			.times = now.count - l->handovers[rtcp],
			.last = now,
			.remote = st.remote});
	l->handovers[rtcp] = now.count;
}

static void handovers(struct calls *c, struct call *call, uint64_t now_ns)
{
	for (uint32_t s = 0; s < call->sides && c->handover; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *l = call->side[s]->leg[i];

			if (!l || !l->committed)
				continue;
			handover(c, call, call->side[s], i, false, now_ns);
			handover(c, call, call->side[s], i, true, now_ns);
		}
}

static void move(uint64_t *t_ns, int64_t step_ns)
{
	if (*t_ns) /* 0 means unset */
		*t_ns = step_ns >= 0 || *t_ns > (uint64_t)-step_ns ? *t_ns + (uint64_t)step_ns : 1;
}

static void move_plays(struct call *call, int64_t step_ns)
{
	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			struct leg *l = call->side[s]->leg[i];

			if (!l)
				continue;
			move(&l->play.began_ns, step_ns);
			move(&l->play.until_ns, step_ns);
			move(&l->play.digits_ns, step_ns);
		}
}

void calls_clock_set(struct calls *c, uint64_t now_ns, int64_t step_ns)
{
	for (struct call *call = c->table.first; call; call = call->next) {
		move(&call->signal_ns, step_ns);
		for (uint32_t i = 0; i < call->sides; i++) {
			move(&call->side[i]->signal_ns, step_ns);
			move(&call->side[i]->created_ns, step_ns);
		}
		move_plays(call, step_ns);
		move(&call->delete_ns, step_ns);
		move(&call->traced_ns, step_ns);
		move(&call->save.written_ns, step_ns);
		/* Last packets have old times: count silence from now. */
		call->resumed_ns = now_ns;
	}
}

void calls_tick(struct calls *c, uint64_t now_ns)
{
	uint32_t n = min_u32(TICK_MAX, c->table.count);

	while (n-- && c->table.first) {
		struct call *call = c->cursor ? c->cursor : c->table.first;

		c->cursor = call->next;
		if (end_over(c, call, now_ns))
			continue;
		watch_call(c, call, now_ns);
		pierce_again(c->relay, call, now_ns);
		circle_look(c->relay, call, now_ns);
		keys_life(c, call);
		session_places_settle(c->relay, call);
		handovers(c, call, now_ns);
		trace_again(c, call, now_ns);
		if (!dtmf_tick(c, call, now_ns)) /* last: these may replace the call */
			(void)play_tick(c, call, now_ns);
	}
}
