/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits jumps of indexes without authentication: of plain RTP that leaves as SRTP, of
 * UNAUTHENTICATED_SRTP, and of media that is passed through. Otherwise one forged packet could move
 * the index so far that the terminal's own packets are too old. An index cannot be moved back after
 * it was sent (RFC 3711 9.1).
 *
 * So an index may be ahead by at most MEDIA_LEAD missing packets, and each received packet reduces
 * this lead by one. Packets of the terminal, which are then behind, still fit into the window. A
 * stream that loses half of its packets continues. In the long run a forged packet moves the index
 * by two. Larger jumps need RUN packets in a row, over RUN_NS, without a packet of the terminal in
 * between. RFC 3550 A.1 does this for plain RTP with two packets and no minimum time. */
#include "media/jump.h"
#include "media/state.h"

enum { RUN = 8 };
#define RUN_NS 100000000ull

/* The current lead: number of missing packets. */
static uint32_t lead(const struct ssrc_state *s)
{
	uint16_t since = (uint16_t)((uint16_t)s->seen.last - s->lead_at);

	return s->lead > since ? s->lead - since : 0;
}

static bool in_reach(struct ssrc_state *s, uint64_t index)
{
	uint64_t missing = index - s->seen.last - 1 + lead(s);

	if (missing > MEDIA_LEAD)
		return false;
	/* The packet itself reduces the lead by one. Packets in a row need no record. */
	if (index > s->seen.last + 1) {
		s->lead = (uint8_t)(missing - 1);
		s->lead_at = (uint16_t)index;
	}
	return true;
}

static bool has_run(struct jump *j, const struct ssrc_state *s, uint16_t seq, uint64_t now_ns)
{
	bool more = j->count && j->ssrc == s->ssrc && j->last == s->seen.last &&
		seq == (uint16_t)(j->seq + 1);

	if (!more)
		*j = (struct jump){.last = s->seen.last, .since_ns = now_ns, .ssrc = s->ssrc};
	j->seq = seq;
	j->count += j->count < RUN;
	return j->count == RUN && now_ns >= j->since_ns + RUN_NS;
}

bool media_believable(struct jump *j, struct ssrc_state *s, uint64_t index, uint64_t now_ns)
{
	if (s->seen.started && index > s->seen.last && !in_reach(s, index)) {
		if (!has_run(j, s, (uint16_t)index, now_ns))
			return false;
		s->lead = 0;
	}
	/* An index in the expected range ends a run. */
	if (j->ssrc == s->ssrc)
		j->count = 0;
	return true;
}
