/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's addresses changed. A destination that was allowed may be the host's own now, so all
 * destinations are judged again: those in force, those of offers without an answer, and those that
 * streams learned. Media ports of ours are left to call/links.h.
 *
 * One pass goes over all calls, in steps of a bounded number. A second pass follows, because a
 * worker that was learning a source during the first one may have judged it by the old addresses.
 */
#include "call/reach_again.h"
#include "base/clock.h"
#include "call/call_int.h"
#include "call/unsaved.h"

#define STEP_CALLS 128u             /* calls checked per step */
#define STEP_NS    (2 * 1000000ull) /* from one step to the next */
#define PASS_NS    (NS_PER_SEC / 2) /* from one pass to the next: no batch takes so long */
#define PASSES     2u

static bool may_go(const struct calls *c, const struct endpoint *to)
{
	enum reach_verdict v;

	if (!to->family || reach_local(c->reach, to, -1) >= 0)
		return true;
	v = reach_check(c->reach, to);
	return v == REACH_OK || v == REACH_NOWHERE;
}

/* True: the call was replaced. */
static bool judge_stream(
	struct calls *c, struct call *call, struct leg *l, bool rtcp, uint64_t now_ns)
{
	uint32_t stream = rtcp ? l->port.rtcp_stream : l->port.rtp_stream;
	const struct endpoint *to = rtcp ? &l->rtcp_remote : &l->remote;
	struct relay_stats st;

	if (!may_go(c, to)) {
		leg_cut(l, rtcp);
		c->relay->ops->stream_cut(c->relay->arg, call->worker, stream);
		return true;
	}
	c->relay->ops->stats(c->relay->arg, call->worker, stream, &st);
	if (may_go(c, &st.remote))
		return false;
	/* The stream learned an address of this host, but SDP named another: restart the stream
	 * with that one. If the worker is busy, the next offer or answer does it. */
	(void)c->relay->ops->stream_restart(c->relay->arg, call->worker, stream, now_ns);
	return true;
}

static bool judge_leg(struct calls *c, struct call *call, struct leg *l, uint64_t now_ns)
{
	bool changed = false;

	if (!may_go(c, &l->said.remote) || !may_go(c, &l->said.rtcp_remote)) {
		l->said.remote = l->said.rtcp_remote = (struct endpoint){0};
		changed = true;
	}
	for (int rtcp = 0; rtcp < 2; rtcp++) {
		if (may_go(c, &l->ice.named[rtcp]))
			continue;
		l->ice.named[rtcp] = (struct endpoint){0};
		changed = true;
	}
	for (int rtcp = 0; rtcp < 2 && l->has_port && l->committed; rtcp++)
		changed |= judge_stream(c, call, l, rtcp, now_ns);
	return changed;
}

static void judge(struct calls *c, struct call *call, uint64_t now_ns)
{
	bool changed = false;

	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++)
			if (call->side[s]->leg[i])
				changed |= judge_leg(c, call, call->side[s]->leg[i], now_ns);
	/* The saved call must not restore the destination. */
	if (changed)
		save_changed(&c->saver, call, call);
}

void calls_host_changed(struct calls *c)
{
	/* The current pass has already checked some calls. */
	c->again.passes = PASSES + (c->again.at ? 1 : 0);
}

uint64_t calls_reach_again(struct calls *c, uint64_t now_ns)
{
	if (!c->again.passes)
		return 0;
	if (!c->again.at)
		c->again.at = c->table.first;
	for (uint32_t n = 0; n < STEP_CALLS && c->again.at; n++) {
		struct call *call = c->again.at;

		c->again.at = call->next;
		judge(c, call, now_ns);
	}
	if (c->again.at)
		return STEP_NS;
	return --c->again.passes ? PASS_NS : 0;
}
