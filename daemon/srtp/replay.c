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

/* The window is a ring of bits: bit index % window says whether that index was added, for the last window indexes. */
static uint64_t window_of(const struct replay *r)
{
	return 64 * (uint64_t)r->words;
}

static uint32_t bit_of(const struct replay *r, uint64_t index)
{
	/* Usually a power of two, and a division is dear. */
	if ((r->words & (r->words - 1)) == 0)
		return (uint32_t)(index & (window_of(r) - 1));
	return (uint32_t)(index % window_of(r));
}

enum replay_verdict replay_check(const struct replay *r, uint64_t index)
{
	uint32_t bit;

	if (!r->started || index > r->last)
		return REPLAY_NEW;
	if (r->last - index >= window_of(r))
		return REPLAY_OLD;
	bit = bit_of(r, index);
	return r->seen[bit / 64] >> (bit % 64) & 1 ? REPLAY_SEEN : REPLAY_NEW;
}

static void fill(struct replay *r, uint64_t with)
{
	for (uint32_t i = 0; i < r->words; i++)
		r->seen[i] = with;
}

/* The places of last + 1 to index are taken over from indexes that fall out of the window. */
static void advance(struct replay *r, uint64_t index)
{
	uint64_t by = index - r->last;
	uint32_t bit = bit_of(r, r->last + 1);

	if (by >= window_of(r)) {
		fill(r, 0);
	} else {
		while (by) {
			uint32_t at = bit % 64, n = by < 64 - at ? (uint32_t)by : 64 - at;

			r->seen[bit / 64] &= ~((n == 64 ? ~0ull : (1ull << n) - 1) << at);
			by -= n;
			bit = bit + n == window_of(r) ? 0 : bit + n;
		}
	}
	r->last = index;
}

void replay_start_after(struct replay *r, uint64_t index)
{
	fill(r, ~0ull);
	r->last = index;
	r->started = true;
}

void replay_expect(struct replay *r, uint64_t index)
{
	fill(r, 0);
	r->last = index;
	r->started = true;
}

void replay_add(struct replay *r, uint64_t index)
{
	uint32_t bit;

	if (!r->started) {
		fill(r, 0);
		r->last = index;
		r->started = true;
	}
	if (index > r->last)
		advance(r, index);
	if (r->last - index >= window_of(r))
		return;
	bit = bit_of(r, index);
	r->seen[bit / 64] |= 1ull << (bit % 64);
}
