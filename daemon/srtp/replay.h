/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packet index (RFC 3711 3.3.1, appendix A) and replay window (3.3.2): a few small functions that never surprise.
 * Estimating and checking read; only adding writes, and only complete() adds. */
#ifndef SRTP_REPLAY_H
#define SRTP_REPLAY_H

#include "base/bytes.h"

#define SRTP_INDEX_MAX         ((1ull << 48) - 1)
#define SRTCP_INDEX_MAX        ((1ull << 31) - 1)
#define SRTP_REPLAY_WINDOW     128u   /* packets, by default; RFC 3711 asks for at least 64 */
#define SRTP_REPLAY_WINDOW_MAX 32768u /* more is behind the half cycle that estimates go by */

#define SRTP_REPLAY_NEAR (SRTP_REPLAY_WINDOW / 64)

struct replay {
	uint64_t last; /* highest index added; the owner's while !started */
	/* Bit index % window of the window: up to the default it is here, a longer one is in the owner's memory. */
	union {
		uint64_t near[SRTP_REPLAY_NEAR];
		uint64_t *far;
	};
	uint16_t words; /* window / 64 */
	bool started;
};

enum replay_verdict { REPLAY_NEW, REPLAY_SEEN, REPLAY_OLD };

/* The 48-bit index that seq most likely belongs to, given the highest index so far. Never negative: near index 0 a
 * sequence number "from before the start" is taken as ahead (RFC 3711 appendix A with ROC - 1 unavailable at ROC 0). */
static inline uint64_t srtp_index_estimate(uint64_t last, uint16_t seq)
{
	uint64_t roc = last >> 16;
	uint32_t s_l = (uint32_t)(last & 0xffff);

	if (s_l < 0x8000) {
		if (seq > s_l + 0x8000 && roc > 0)
			roc--;
	} else if (seq < s_l - 0x8000 && last >> 16 != SRTP_INDEX_MAX >> 16) {
		/* At the last ROC the keys are used up (RFC 3711 9.2): the index stays, and is found to be old. */
		roc++;
	}
	return roc << 16 | seq;
}

/* A window of 64 * words packets, not started. far: memory for it, which need not be clear; unused up to the default window. */
static inline void replay_init(struct replay *r, uint64_t *far, uint32_t words)
{
	*r = (struct replay){.words = (uint16_t)words};
	if (words > SRTP_REPLAY_NEAR)
		r->far = far;
}

static inline uint64_t *replay_bits(struct replay *r)
{
	return r->words > SRTP_REPLAY_NEAR ? r->far : r->near;
}

/* Start with everything up to this index as seen: what happened before is not known. */
void replay_start_after(struct replay *r, uint64_t index);
/* Start, or go on, with nothing seen yet: the index is only what estimates go by, and what is further behind than a window is old. */
void replay_expect(struct replay *r, uint64_t index);
enum replay_verdict replay_check(const struct replay *r, uint64_t index);
/* Call only with an index that replay_check() found REPLAY_NEW, from a packet that authenticated. */
void replay_add(struct replay *r, uint64_t index);

#endif
