/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SipHash-2-4 after its authors' definition (Aumasson, Bernstein 2012). */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static uint64_t rotl(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static inline __attribute__((always_inline)) void absorb(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

/* All but the final rounds. wide: 0, or 0xee for a result of 128 bits. */
static inline __attribute__((always_inline)) void sip_absorb(
	uint64_t v[4], const uint8_t key[16], const void *p, size_t len, uint8_t wide)
{
	uint64_t k0 = load64(key), k1 = load64(key + 8);
	const uint8_t *at = p;
	uint8_t last[8] = {0};
	size_t rest = len % 8;

	v[0] = k0 ^ 0x736f6d6570736575ull;
	v[1] = k1 ^ 0x646f72616e646f6dull ^ wide;
	v[2] = k0 ^ 0x6c7967656e657261ull;
	v[3] = k1 ^ 0x7465646279746573ull;
	for (size_t i = 0; i + 8 <= len; i += 8)
		absorb(v, load64(at + i));
	if (rest)
		memcpy(last, at + len - rest, rest);
	last[7] = (uint8_t)len;
	absorb(v, load64(last));
}

static inline __attribute__((always_inline)) uint64_t sip_finish(uint64_t v[4])
{
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_siphash(const uint8_t key[16], const void *p, size_t len)
{
	uint64_t v[4];

	sip_absorb(v, key, p, len, 0);
	v[2] ^= 0xff;
	return sip_finish(v);
}

void hash_siphash128(uint8_t out[16], const uint8_t key[16], const void *p, size_t len)
{
	uint64_t v[4], half[2];

	sip_absorb(v, key, p, len, 0xee);
	v[2] ^= 0xee;
	half[0] = htole64(sip_finish(v));
	v[1] ^= 0xdd;
	half[1] = htole64(sip_finish(v));
	memcpy(out, half, sizeof(half));
}
