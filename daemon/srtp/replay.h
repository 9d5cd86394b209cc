/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packet index (RFC 3711 3.3.1, appendix A) and replay window (3.3.2): three small functions that never surprise.
 * Estimating and checking read; only adding writes, and only complete() adds. */
#ifndef SRTP_REPLAY_H
#define SRTP_REPLAY_H

#include "base/bytes.h"

#define SRTP_INDEX_MAX     ((1ull << 48) - 1)
#define SRTCP_INDEX_MAX    ((1ull << 31) - 1)
#define SRTP_REPLAY_WINDOW 128u /* packets; RFC 3711 asks for at least 64 */

struct replay {
	uint64_t last;    /* highest index added; meaningless while !started */
	uint64_t seen[2]; /* bit i: index last - i was added */
	bool started;
};

enum replay_verdict { REPLAY_NEW, REPLAY_SEEN, REPLAY_OLD };

/* The 48-bit index that seq most likely belongs to, given the highest index so far. Never negative: near index 0 a
 * sequence number "from before the start" is taken as ahead (RFC 3711 appendix A with ROC - 1 unavailable at ROC 0). */
uint64_t srtp_index_estimate(uint64_t last, uint16_t seq);

/* The same for a stream's state: its first packet has ROC 0. */
static inline uint64_t replay_estimate(const struct replay *r, uint16_t seq)
{
	return r->started ? srtp_index_estimate(r->last, seq) : seq;
}

enum replay_verdict replay_check(const struct replay *r, uint64_t index);
/* Call only with an index that replay_check() found REPLAY_NEW, from a packet that authenticated. */
void replay_add(struct replay *r, uint64_t index);

#endif
