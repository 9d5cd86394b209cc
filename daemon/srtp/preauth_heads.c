/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tags of the headers that probably come next (srtp/preauth_heads.h). */
#include "srtp/preauth_heads.h"

#include "base/secmem.h"
#include "srtp/sha1_ways.h"

enum { LATE = 128 /* packets: as the replay window */ };
_Static_assert(PREAUTH_HEADS == SHA1_LANES, "a lane for each");

static void load(uint32_t h[5][SHA1_LANES], const uint32_t state[5])
{
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t l = 0; l < SHA1_LANES; l++)
			h[i][l] = state[i];
}

/* HMAC-SHA1 of the headers after h, from the states after the key blocks (RFC 2104). */
static void compute(const struct sha1_way *way, const struct preauth_heads *h, uint32_t ssrc,
	const struct preauth_key *k, uint32_t *tag)
{
	_Alignas(64) uint32_t state[5][SHA1_LANES], w[16][SHA1_LANES] = {0};

	_Static_assert(PREAUTH_HEADER_LEN == 12, "three words, then padding");
	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		w[0][l] = (uint32_t)h->first << 24 | (uint32_t)h->second << 16 |
			(uint16_t)(h->seq + 1 + l);
		w[1][l] = h->time + (l + 1) * h->step;
		w[2][l] = ssrc;
		w[3][l] = 0x80000000;
		w[15][l] = 8 * (64 + PREAUTH_HEADER_LEN);
	}
	load(state, k->inner);
	way->words(state, w);
	memcpy(w, state, sizeof(state));
	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		w[5][l] = 0x80000000;
		w[15][l] = 8 * (64 + 20);
	}
	load(state, k->outer);
	way->words(state, w);
	memcpy(tag, state[0], sizeof(state[0]));
}

void preauth_heads_learn(struct preauth_heads *h, uint32_t *ssrc, uint32_t *tag,
	const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	const struct sha1_way *way = sha1_way_in_lanes();
	uint16_t seq = be16(hdr + 2), ahead = (uint16_t)(seq - h->seq);
	uint32_t time = be32(hdr + 4), grown = time - h->time;
	bool same = *ssrc == be32(hdr + 8), regular = same && grown == (uint32_t)ahead * h->step;

	if (!way || (same && (uint16_t)-ahead < LATE))
		return;
	if (preauth_heads_expects(h, *ssrc, hdr) && ahead < h->n)
		return;
	if (same && ahead == 1)
		h->step = (uint16_t)grown;
	h->time = time;
	h->seq = seq;
	h->first = hdr[0];
	h->second = hdr[1] & (uint8_t)~PREAUTH_MARKER;
	h->n = regular ? PREAUTH_HEADS : 0;
	*ssrc = be32(hdr + 8);
	if (regular)
		compute(way, h, *ssrc, k, tag);
}
