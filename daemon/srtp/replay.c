/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replay window (RFC 3711 3.3.2). Pure; checking only reads, so that nothing changes before a
 * packet has authenticated. */
#include "srtp/replay.h"

/* The window is a ring of bits: bit index % window says whether that index was added, for the last
 * window indexes. */
static uint64_t window_of(const struct replay *r)
{
	return 64 * (uint64_t)r->words;
}

static uint32_t bit_of(const struct replay *r, uint64_t index)
{
	/* The window is usually a power of two, and a division is slow. */
	if ((r->words & (r->words - 1)) == 0)
		return (uint32_t)(index & (window_of(r) - 1));
	return (uint32_t)(index % window_of(r));
}

enum replay_verdict replay_check(const struct replay *r, uint64_t index)
{
	const uint64_t *bits = r->words > SRTP_REPLAY_NEAR ? r->far : r->near;
	uint32_t bit;

	if (!r->started || index > r->last)
		return REPLAY_NEW;
	if (r->last - index >= window_of(r))
		return REPLAY_OLD;
	bit = bit_of(r, index);
	return bits[bit / 64] >> (bit % 64) & 1 ? REPLAY_SEEN : REPLAY_NEW;
}

static void fill(struct replay *r, uint64_t with)
{
	uint64_t *bits = replay_bits(r);

	for (uint32_t i = 0; i < r->words; i++)
		bits[i] = with;
}

/* Clears the bits of last + 1 to index, which held indexes that leave the window. */
static void advance(struct replay *r, uint64_t index)
{
	uint64_t by = index - r->last, *bits = replay_bits(r);
	uint32_t bit = bit_of(r, r->last + 1);

	if (by >= window_of(r)) {
		fill(r, 0);
	} else {
		while (by) {
			uint32_t at = bit % 64, n = by < 64 - at ? (uint32_t)by : 64 - at;

			bits[bit / 64] &= ~((n == 64 ? ~0ull : (1ull << n) - 1) << at);
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
	replay_bits(r)[bit / 64] |= 1ull << (bit % 64);
}
