/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ends calls that nobody ends: silence, offers that were never answered, deletions that were to wait. A part of the
 * table per run, so that a run stays short whatever the number of calls. */
#include "call/model.h"

#define TICK_MIN   1024u /* calls looked at in one run, at least */
#define TICK_SHARE 8u    /* and an eighth of them: each is seen every eight seconds at the latest */

/* On hold silence is what was asked for. */
static bool on_hold(const struct call *call)
{
	for (uint32_t i = 0; i < call->nego.count; i++) {
		const struct nego_media *m = &call->nego.media[i];

		if (m->linked && m->end[0].dir == SDP_DIR_SENDRECV &&
			m->end[1].dir == SDP_DIR_SENDRECV && m->end[0].rtp.port &&
			m->end[1].rtp.port)
			return false;
	}
	return true;
}

static uint64_t last_sign(const struct calls *c, const struct call *call)
{
	uint64_t last = call->signal_ns;

	for (uint32_t i = 0; i < call->nego.count; i++)
		for (int s = 0; s < 2; s++) {
			const struct held *h = &call->held[i];
			const uint32_t stream[] = {h->port[s].rtp_stream, h->port[s].rtcp_stream};

			for (int k = 0; k < 2 && h->has_port[s]; k++) {
				struct relay_stats st = {0};

				c->relay.ops->stats(c->relay.arg, call->worker, stream[k], &st);
				if (st.last_packet_ns > last)
					last = st.last_packet_ns;
			}
		}
	return last;
}

static bool over(uint64_t since, uint64_t limit, uint64_t now)
{
	return limit && now > since && now - since >= limit;
}

static void look(struct calls *c, struct call *call, uint64_t now_ns)
{
	uint64_t limit;

	if (call->delete_ns) {
		if (now_ns >= call->delete_ns)
			call_end(c, call);
		return;
	}
	if (!call->nego.answered)
		limit = c->policy.offer_timeout_ns;
	else
		limit = on_hold(call) ? c->policy.silent_timeout_ns : c->policy.timeout_ns;
	/* Statistics are read only when signalling alone would not keep the call. */
	if (over(call->signal_ns, limit, now_ns) && over(last_sign(c, call), limit, now_ns)) {
		c->count.timeouts++;
		call_end(c, call);
	}
}

void calls_tick(struct calls *c, uint64_t now_ns)
{
	uint64_t n = c->count.current / TICK_SHARE + TICK_MIN;

	if (n > c->count.current)
		n = c->count.current;
	for (; n; n--) {
		struct call *call = c->cursor ? c->cursor : c->first;

		c->cursor = call->next;
		look(c, call, now_ns);
	}
}
