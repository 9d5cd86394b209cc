/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ceiling of the SRTP indexes of an SSRC: the highest one that may be sent at a given time. Its
 * parameters are chosen when the SSRC begins, and never change. It grows with the clock, somewhat
 * faster than an audio session sends packets. A later process begins above the ceiling of that
 * time. So it repeats no index that an earlier process sent, whichever record of the call it reads.
 * A receiver still estimates the right roll-over counter, as long as the jump is less than half a
 * cycle of sequence numbers (RFC 3711 3.3.1). Times are those of CLOCK_MONOTONIC, which nobody can
 * set, so a ceiling holds within one boot of the machine. */
#ifndef PACKET_CEILING_H
#define PACKET_CEILING_H

#include <stdbool.h>
#include <stdint.h>

/* Packets that may be sent in addition, in a burst: 5 s of 20 ms each. */
#define CEILING_BURST 256u

struct ceiling {
	uint64_t from_ns;
	uint32_t unit_ns; /* the ceiling grows by one index in this time; 0: no ceiling */
	uint32_t first;   /* index of the SSRC's first packet */
};

static inline uint64_t ceiling_at(const struct ceiling *c, uint64_t now_ns)
{
	return c->first + CEILING_BURST +
		(now_ns > c->from_ns && c->unit_ns ? (now_ns - c->from_ns) / c->unit_ns : 0);
}

/* Whether an index may be sent now. */
static inline bool ceiling_allows(const struct ceiling *c, uint64_t index, uint64_t now_ns)
{
	return !c->unit_ns || index <= ceiling_at(c, now_ns);
}

#endif
