/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How far an index may jump that nobody authenticated: of plain RTP which leaves as SRTP, of UNAUTHENTICATED_SRTP, of what is
 * passed through. Whoever can forge such a packet could otherwise move the index so far that the terminal's own packets are
 * old, and an index once sent cannot be taken back (RFC 3711 9.1).
 *
 * So an index may be ahead by MEDIA_LEAD packets that never came, and each packet that comes makes up for one of them. The
 * terminal's packets, which are then behind, still fit into the window. A stream that loses half of its packets goes on; a
 * forger's packet moves the index by two in the long run. Further jumps need RUN packets in a row, over RUN_NS, and none of the
 * terminal's own in between; RFC 3550 A.1 does this for plain RTP with two packets and no time. */
#include "media/int.h"

enum { RUN = 8 };
#define RUN_NS 100000000ull

/* Packets missing now. */
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
	/* The packet itself makes up for one. Packets in a row need no mark. */
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
	/* One that fits ends a run. */
	if (j->ssrc == s->ssrc)
		j->count = 0;
	return true;
}
