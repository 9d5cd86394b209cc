/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What time does to calls: silence and unanswered offers end them, keys run out, a call under --debug tells how it goes. A run
 * looks at a bounded number of calls. */
#include "base/clock.h"
#include "call/calls.h"

#define TRACE_NS (10 * NS_PER_SEC)
#define TICK_MAX 4096u /* calls looked at per run */

struct life {
	uint64_t last_ns; /* anything authentic, or signalling */
	bool held;        /* nobody both sends and receives */
};

/* A packet that is stamped later than now came before the clock was set back, and calls_clock_set() has taken account of it. */
#define AHEAD_NS (uint64_t) CLOCK_STEP_NS

static struct life life_of(const struct calls *c, const struct call *call, uint64_t now_ns)
{
	struct life l = {.last_ns = call->signal_ns, .held = true};

	/* Nobody can have sent to us while we were not there. */
	if (call->resumed_ns > l.last_ns)
		l.last_ns = call->resumed_ns;

	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *leg = call->side[s]->leg[i];

			if (!leg || !leg->has_port)
				continue;
			if (leg->active && call->side[s]->publisher && leg->dir != SDP_DIR_INACTIVE)
				l.held = false;
			if (leg->active) {
				const struct leg *o = leg_peer(call, call->side[s], i);

				if (o && o->active && leg->dir == SDP_DIR_SENDRECV &&
					o->dir == SDP_DIR_SENDRECV)
					l.held = false;
			}
			for (int k = 0; k < 2; k++) {
				uint64_t heard_ns =
					c->relay->ops->heard(c->relay->arg, call->worker,
						k ? leg->port.rtcp_stream : leg->port.rtp_stream);

				if (heard_ns > l.last_ns && heard_ns <= now_ns + AHEAD_NS)
					l.last_ns = heard_ns;
			}
		}
	return l;
}

static bool timed_out(
	struct calls *c, const struct call *call, enum call_end *why, enum call_end is)
{
	struct call_timeout t;

	*why = is;
	c->counters.timeouts++;
	if (c->timeout) {
		told_write(&t, call);
		c->timeout(c->timeout_arg, &t);
	}
	return true;
}

static bool is_over(struct calls *c, const struct call *call, uint64_t now_ns, enum call_end *why)
{
	uint64_t limit;
	struct life l;

	*why = CALL_END_DELETED;
	if (call->delete_ns)
		return now_ns >= call->delete_ns;
	if (c->policy.final_timeout_ns && now_ns >= call->created_ns &&
		now_ns - call->created_ns >= c->policy.final_timeout_ns) {
		c->counters.final_timeouts++;
		return timed_out(c, call, why, CALL_END_FINAL_TIMEOUT);
	}
	l = life_of(c, call, now_ns);
	limit = !call->answered ? c->policy.offer_timeout_ns
		: l.held        ? c->policy.silent_timeout_ns
				: c->policy.timeout_ns;
	if (limit == 0 || now_ns < l.last_ns || now_ns - l.last_ns < limit)
		return false;
	c->counters.offer_timeouts += !call->answered;
	c->counters.silent_timeouts += call->answered && l.held;
	return timed_out(c, call, why,
		!call->answered  ? CALL_END_OFFER_TIMEOUT
			: l.held ? CALL_END_SILENT_TIMEOUT
				 : CALL_END_TIMEOUT);
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

/* How it goes, now and then. */
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
			for (uint32_t k = 0; k < SDES_MAX_KEYS; k++)
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
	if (*t_ns) /* 0 is no time */
		*t_ns = step_ns >= 0 || *t_ns > (uint64_t)-step_ns ? *t_ns + (uint64_t)step_ns : 1;
}

void calls_clock_set(struct calls *c, uint64_t now_ns, int64_t step_ns)
{
	for (struct call *call = c->table.first; call; call = call->next) {
		move(&call->signal_ns, step_ns);
		move(&call->delete_ns, step_ns);
		move(&call->traced_ns, step_ns);
		move(&call->save.written_ns, step_ns);
		/* What its streams heard bears the old time: silence counts from now. */
		call->resumed_ns = now_ns;
	}
}

void calls_tick(struct calls *c, uint64_t now_ns)
{
	uint32_t n = min_u32(TICK_MAX, c->table.count);

	while (n-- && c->table.first) {
		struct call *call = c->cursor ? c->cursor : c->table.first;

		enum call_end why;

		c->cursor = call->next;
		if (is_over(c, call, now_ns, &why)) {
			calls_end(c, call, why, now_ns);
			continue;
		}
		watch_call(c, call, now_ns);
		pierce_again(c->relay, call, now_ns);
		circle_look(c->relay, call, now_ns);
		keys_life(c, call);
		handovers(c, call, now_ns);
		trace_again(c, call, now_ns);
	}
}
