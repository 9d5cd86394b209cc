/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packet index estimation (RFC 3711 3.3.1 and appendix A) and the replay window (3.3.2). Pure; estimating and
 * checking only read, so that nothing changes before a packet has authenticated. */
#include "srtp/replay.h"

uint64_t srtp_index_estimate(uint64_t last, uint16_t seq)
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

enum replay_verdict replay_check(const struct replay *r, uint64_t index)
{
	uint64_t back;

	if (!r->started || index > r->last)
		return REPLAY_NEW;
	back = r->last - index;
	if (back >= SRTP_REPLAY_WINDOW)
		return REPLAY_OLD;
	return r->seen[back / 64] >> (back % 64) & 1 ? REPLAY_SEEN : REPLAY_NEW;
}

static void window_shift(uint64_t seen[2], uint64_t by)
{
	if (by >= 128) {
		seen[0] = seen[1] = 0;
	} else if (by >= 64) {
		seen[1] = seen[0] << (by - 64);
		seen[0] = 0;
	} else if (by > 0) {
		seen[1] = seen[1] << by | seen[0] >> (64 - by);
		seen[0] <<= by;
	}
}

void replay_add(struct replay *r, uint64_t index)
{
	uint64_t back;

	if (!r->started) {
		*r = (struct replay){.last = index, .seen = {1, 0}, .started = true};
		return;
	}
	if (index > r->last) {
		window_shift(r->seen, index - r->last);
		r->last = index;
	}
	back = r->last - index;
	if (back < SRTP_REPLAY_WINDOW)
		r->seen[back / 64] |= 1ull << (back % 64);
}
