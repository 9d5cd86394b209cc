/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks calls periodically: records in their history where media are sent, and reports media that
 * flow one way only and packets that fail authentication, with a likely cause. Attackers can
 * provoke some of these reports, so their number per call is limited. */
#include "call/watch.h"
#include "base/clock.h"
#include "call/call_int.h"
#include "call/sight.h"
#include "media/learn.h"

#define WATCH_NS (2 * NS_PER_SEC) /* between two checks of a call's counters */
#define TOLD_MAX 6u               /* reports of a call */
#define SCRATCH  (1u << 16)

static void note_handover(const struct relay *relay, struct call *call, const struct side *s,
	const struct leg *l, bool rtcp)
{
	struct media_handover now = relay->ops->handover(
		relay->arg, call->worker, rtcp ? l->port.rtcp_stream : l->port.rtp_stream);

	if (now.count != l->handovers[rtcp])
		history_add(&call->history, clock_real_ns(), HISTORY_HANDOVER, s->tag,
			"%s: confirmed source replaced: %s", rtcp ? "RTCP" : "RTP",
			learn_cause_text((enum learn_cause)now.cause));
}

static void note_source(const struct relay *relay, struct call *call, const struct side *s,
	struct leg *l, uint64_t now_ns)
{
	char to[ENDPOINT_STRLEN], sdp[ENDPOINT_STRLEN];
	bool signalled;
	struct relay_stats st;

	leg_stats(relay, call, l, false, &st);
	if (!st.confirmed || endpoint_eq(&st.remote, &l->noted))
		return;
	l->noted = st.remote;
	signalled = endpoint_eq(&st.remote, &l->remote);
	history_add(&call->history, now_ns, HISTORY_SOURCE, s->tag,
		signalled ? "%s received from %s, as signalled%s"
			  : "%s received from %s; SDP has %s: NAT, or another terminal",
		l->kind, endpoint_fmt(&st.remote, to),
		signalled ? "" : endpoint_fmt(&l->remote, sdp));
}

static void report(struct calls *c, struct call *call, const struct sight *s,
	enum sight_trouble which, uint64_t now_ns)
{
	bool one_way = which == SIGHT_TROUBLE_ONE_WAY;
	const struct side *side = call->side[one_way ? s->silent_side : s->bad_side];
	uint32_t media = one_way ? s->silent_media : s->bad_media;
	const struct leg *l = side_leg_get(side, media);
	struct relay_stats st;
	struct call_trouble t = {.call_id = call->id,
		.tag = side->tag,
		.media = media + 1,
		.name = sight_trouble_name(which)};
	struct str cause;
	struct pool *p;

	if (!l || pool_create(&p, SCRATCH))
		return;
	leg_stats(c->relay, call, l, false, &st);
	cause = sight_cause(p, l, &st);
	t.text = pool_printf(
		p, "%s; likely cause: " STR_FMT, sight_trouble_text(which), STR_ARG(cause));
	history_add(&call->history, now_ns, HISTORY_TROUBLE, side->tag, "%s %u: " STR_FMT, l->kind,
		(unsigned)media + 1, STR_ARG(t.text));
	if (c->trouble && !pool_failed(p))
		c->trouble(c->trouble_arg, &t);
	pool_destroy(p);
}

/* Low quality is only in the closing line and in lists, because it changes with each RTCP report.
 */
#define REPORTED                                                      \
	(1u << SIGHT_TROUBLE_ONE_WAY | 1u << SIGHT_TROUBLE_BAD_TAGS | \
		1u << SIGHT_TROUBLE_WRONG_SOURCE)

static void look(struct calls *c, struct call *call, uint64_t now_ns)
{
	uint32_t began, over;
	struct sight s;

	sight_take(&s, c->relay, call, now_ns);
	s.troubles &= REPORTED;
	began = s.troubles & ~call->troubles;
	over = call->troubles & ~s.troubles;
	for (uint32_t t = 0; t < SIGHT_TROUBLE_COUNT; t++) {
		if (began >> t & 1 && call->troubles_told++ < TOLD_MAX)
			report(c, call, &s, (enum sight_trouble)t, now_ns);
		if (over >> t & 1 && call->troubles_told < TOLD_MAX)
			history_add(&call->history, now_ns, HISTORY_TROUBLE, STR_NONE, "%s is over",
				sight_trouble_name((enum sight_trouble)t));
	}
	call->troubles = s.troubles;
}

void watch_call(struct calls *c, struct call *call, uint64_t now_ns)
{
	bool due = now_ns >= call->watched_ns + WATCH_NS || now_ns < call->watched_ns;

	if (due)
		call->watched_ns = now_ns;
	for (uint32_t i = 0; i < call->sides; i++)
		for (uint32_t m = 0; m < call->side[i]->legs && !call->side[i]->gone; m++) {
			struct leg *l = call->side[i]->leg[m];

			if (!l || !l->committed)
				continue;
			note_handover(c->relay, call, call->side[i], l, false);
			note_handover(c->relay, call, call->side[i], l, true);
			if (due)
				note_source(c->relay, call, call->side[i], l, now_ns);
		}
	if (due)
		look(c, call, now_ns);
}

void calls_on_trouble(
	struct calls *c, void (*trouble)(void *arg, const struct call_trouble *t), void *arg)
{
	c->trouble = trouble;
	c->trouble_arg = arg;
}
