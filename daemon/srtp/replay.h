/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packet index (RFC 3711 3.3.1, appendix A) and replay window (3.3.2). Estimates and checks only
 * read. Only adding writes, and only complete() adds. */
#ifndef SRTP_REPLAY_H
#define SRTP_REPLAY_H

#include "base/bytes.h"

#define SRTP_INDEX_MAX     ((1ull << 48) - 1)
#define SRTCP_INDEX_MAX    ((1ull << 31) - 1)
#define SRTP_REPLAY_WINDOW 128u /* packets, by default; RFC 3711 asks for at least 64 */
#define SRTP_REPLAY_WINDOW_MAX \
	32768u /* a longer window exceeds the half cycle that estimates rely on */

#define SRTP_REPLAY_NEAR (SRTP_REPLAY_WINDOW / 64)

struct replay {
	uint64_t last; /* highest index added; free for the owner's use while !started */
	/* Bit index % window. Windows up to the default length are stored here, longer ones in
	 * memory of the owner. */
	union {
		uint64_t near[SRTP_REPLAY_NEAR];
		uint64_t *far;
	};
	uint16_t words; /* window / 64 */
	bool started;
};

enum replay_verdict { REPLAY_NEW, REPLAY_SEEN, REPLAY_OLD };

/* The 48-bit index that seq most likely has, given the highest index so far. Never negative: near
 * index 0, ROC - 1 does not exist, so an older sequence number counts as a later one (RFC 3711
 * appendix A). */
static inline uint64_t srtp_index_estimate(uint64_t last, uint16_t seq)
{
	uint64_t roc = last >> 16;
	uint32_t s_l = (uint32_t)(last & 0xffff);

	if (s_l < 0x8000) {
		if (seq > s_l + 0x8000 && roc > 0)
			roc--;
	} else if (seq < s_l - 0x8000 && last >> 16 != SRTP_INDEX_MAX >> 16) {
		/* After the last ROC the keys are used up (RFC 3711 9.2): the index does not wrap,
		 * and counts as old. */
		roc++;
	}
	return roc << 16 | seq;
}

/* Initialises a window of words times 64 packets, not started. far: memory for the window, need not
 * be zeroed; unused up to the default length. */
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

/* Starts with all indexes up to this one marked as seen, because earlier traffic is unknown. */
void replay_start_after(struct replay *r, uint64_t index);
/* Starts, or continues, with no index marked as seen. index is the base of estimates. Indexes more
 * than a window older count as old. */
void replay_expect(struct replay *r, uint64_t index);
enum replay_verdict replay_check(const struct replay *r, uint64_t index);
/* Only for an index that replay_check() reported as REPLAY_NEW, of an authenticated packet. */
void replay_add(struct replay *r, uint64_t index);

#endif
