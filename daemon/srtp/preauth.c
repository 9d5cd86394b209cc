/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the tags of SRTP+. */
#include "srtp/preauth.h"

#include <endian.h>
#include <errno.h>

#include "base/secmem.h"
#include "srtp/preauth_header.h"
#include "srtp/ref.h"
#include "srtp/sha1_block.h"
#include "srtp/sha1_ways.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { AES_KEY_LEN = 16, AES_ROUNDS = 10, AES_BLOCKS = 32, FIPS_BYTES = 20 };

/* --- Keys ------------------------------------------------------------------------------------- */

/* HMAC's state after a key block (RFC 2104), with a key of 20 bytes. */
static void hmac_state(uint32_t state[5], const uint8_t *key, uint8_t pad)
{
	uint8_t block[64];

	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = pad ^ (i < 20 ? key[i] : 0);
	memcpy(state, srtp_ref_sha1_init, sizeof(srtp_ref_sha1_init[0]) * 5);
	srtp_ref_sha1_block(state, block);
	secmem_wipe(block, sizeof(block));
}

int preauth_key_init(struct preauth_key *k, enum preauth_scheme s, const struct srtp_master *m)
{
	uint8_t rk[240],
		label = (uint8_t)(PREAUTH_LABEL + (preauth_is_chain(s) ? PREAUTH_CHAIN : s));

	*k = (struct preauth_key){.scheme = s, .fast_sha1 = srtp_sha1_has_instructions()};
	/* Each scheme has its own label, so no key serves two schemes. */
	if (srtp_kdf_label(k->seed, sizeof(k->seed), m, label))
		return -EINVAL;
	hmac_state(k->inner, k->seed, 0x36);
	hmac_state(k->outer, k->seed, 0x5c);
	srtp_ref_aes_expand(rk, k->seed, AES_KEY_LEN);
	memcpy(k->rk, rk, sizeof(k->rk));
	secmem_wipe(rk, sizeof(rk));
	return 0;
}

/* --- Sequence --------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* The compiler interleaves the blocks, which hides the latency of a round. */
__attribute__((target("aes"))) static void encrypt_by_cpu(
	uint8_t *block, uint32_t n, const uint8_t *rk)
{
	for (uint32_t i = 0; i < n; i += 4) {
		__m128i x[4];

		for (uint32_t j = 0; j < 4; j++)
			x[j] = _mm_xor_si128(
				_mm_loadu_si128((const __m128i *)(block + 16 * (i + j))),
				_mm_loadu_si128((const __m128i *)rk));
		for (uint32_t r = 1; r < AES_ROUNDS; r++)
			for (uint32_t j = 0; j < 4; j++)
				x[j] = _mm_aesenc_si128(
					x[j], _mm_loadu_si128((const __m128i *)(rk + 16 * r)));
		for (uint32_t j = 0; j < 4; j++)
			_mm_storeu_si128((__m128i *)(block + 16 * (i + j)),
				_mm_aesenclast_si128(x[j],
					_mm_loadu_si128((const __m128i *)(rk + 16 * AES_ROUNDS))));
	}
}
#endif

/* Encrypts n blocks; up to three blocks after them may change, too. */
static void encrypt(uint8_t *block, uint32_t n, const uint8_t *rk)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("aes")) {
		encrypt_by_cpu(block, n, rk);
		return;
	}
#endif
	for (uint32_t i = 0; i < n; i++)
		srtp_ref_aes_block(block + 16 * i, block + 16 * i, rk, AES_ROUNDS);
}

static void aes_sequence(
	const struct preauth_key *k, uint32_t ssrc, uint64_t index, uint32_t *tag, uint32_t n)
{
	uint8_t block[AES_BLOCKS * 16];
	uint64_t end = index + n;
	size_t used = 0;

	_Static_assert(AES_BLOCKS % 4 == 0, "encrypt() works by four blocks");
	while (index < end) {
		uint64_t first = index / 4, last = (end - 1) / 4;
		uint32_t blocks =
			last - first < AES_BLOCKS ? (uint32_t)(last - first + 1) : AES_BLOCKS;

		uint32_t round = (blocks + 3) / 4 * 4;

		for (uint32_t i = 0; i < round; i++) {
			put_be32(block + 16 * i, ssrc);
			put_be32(block + 16 * i + 4, 0);
			put_be32(block + 16 * i + 8, (uint32_t)((first + i) >> 32));
			put_be32(block + 16 * i + 12, (uint32_t)(first + i));
		}
		used = 16 * (size_t)round > used ? 16 * (size_t)round : used;
		encrypt(block, blocks, k->rk);
		for (; index < end && index / 4 < first + blocks; index++)
			*tag++ = be32(block + 4 * (index - 4 * first));
	}
	secmem_wipe(block, used);
}

/* The same as fips_step() for SHA1_LANES generators with keys of FIPS_BYTES. */
static void fips_step_lanes(
	const struct sha1_way *way, uint32_t key[SHA1_LANES][5], uint32_t h[5][SHA1_LANES])
{
	uint8_t block[SHA1_LANES][64] = {0};
	const uint8_t *p[SHA1_LANES];

	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		for (uint32_t i = 0; i < 5; i++) {
			put_be32(block[l] + 4 * i, key[l][i]);
			h[i][l] = srtp_ref_sha1_init[i];
		}
		block[l][FIPS_BYTES] = 0x80;
		put_be32(block[l] + 60, 8 * FIPS_BYTES);
		p[l] = block[l];
	}
	way->lanes(h, p, 1);
	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		uint64_t carry = 1;

		for (uint32_t i = 5; i-- > 0; carry >>= 32) {
			carry += (uint64_t)key[l][i] + h[i][l];
			key[l][i] = (uint32_t)carry;
		}
	}
	secmem_wipe(block, sizeof(block));
}

/* The tags of SHA1_LANES runs from this one on. */
static void fips_lanes(const struct sha1_way *way, const struct preauth_key *k, uint32_t ssrc,
	uint64_t run, uint32_t *tag)
{
	_Alignas(64) uint32_t h[5][SHA1_LANES];
	uint32_t key[SHA1_LANES][5];

	for (uint32_t l = 0; l < SHA1_LANES; l++) {
		for (uint32_t i = 0; i < 5; i++)
			key[l][i] = be32(k->seed + 4 * i);
		key[l][0] ^= ssrc;
		key[l][1] ^= (uint32_t)((run + l) >> 32);
		key[l][2] ^= (uint32_t)(run + l);
	}
	for (uint32_t at = 0; at < PREAUTH_FIPS_RUN; at += 5) {
		fips_step_lanes(way, key, h);
		for (uint32_t l = 0; l < SHA1_LANES; l++)
			for (uint32_t i = 0; i < 5; i++)
				tag[l * PREAUTH_FIPS_RUN + at + i] = h[i][l];
	}
	secmem_wipe(key, sizeof(key));
}

static void fips_sequence(
	const struct preauth_key *k, uint32_t ssrc, uint64_t index, uint32_t *tag, uint32_t n)
{
	enum { ALL = SHA1_LANES * PREAUTH_FIPS_RUN };
	const struct sha1_way *way = sha1_way_in_lanes();
	uint32_t run[PREAUTH_FIPS_RUN];
	struct preauth_fips g = {0};

	for (; way && n >= ALL && index % PREAUTH_FIPS_RUN == 0; n -= ALL) {
		fips_lanes(way, k, ssrc, index / PREAUTH_FIPS_RUN, tag);
		tag += ALL;
		index += ALL;
	}
	while (n) {
		uint32_t at = (uint32_t)(index % PREAUTH_FIPS_RUN), got = PREAUTH_FIPS_RUN - at;

		got = got < n ? got : n;
		preauth_fips_init(&g, k, ssrc, index / PREAUTH_FIPS_RUN, FIPS_BYTES);
		preauth_fips_next(&g, run, at + got);
		memcpy(tag, run + at, got * sizeof(*tag));
		tag += got;
		index += got;
		n -= got;
	}
	if (g.bytes) {
		secmem_wipe(&g, sizeof(g));
		secmem_wipe(run, sizeof(run));
	}
}

void preauth_sequence(
	const struct preauth_key *k, uint32_t ssrc, uint64_t index, uint32_t *tag, uint32_t n)
{
	if (k->scheme == PREAUTH_SEQUENCE_FIPS)
		fips_sequence(k, ssrc, index, tag, n);
	else
		aes_sequence(k, ssrc, index, tag, n);
}

void preauth_fips_init(struct preauth_fips *g, const struct preauth_key *k, uint32_t ssrc,
	uint64_t run, uint32_t bytes)
{
	*g = (struct preauth_fips){.bytes = bytes, .fast_sha1 = k->fast_sha1, .used = 5};
	memcpy(g->xkey, k->seed, bytes);
	/* Each SSRC and each run gets its own seed. */
	put_be32(g->xkey, be32(g->xkey) ^ ssrc);
	put_be32(g->xkey + 4, be32(g->xkey + 4) ^ (uint32_t)(run >> 32));
	put_be32(g->xkey + 8, be32(g->xkey + 8) ^ (uint32_t)run);
}

/* SHA-1 of the key, with padding: two blocks for keys of 56 bytes and more. */
static void fips_hash(struct preauth_fips *g)
{
	uint8_t block[128] = {0};
	uint32_t len = g->bytes < 56 ? 64 : 128;

	memcpy(block, g->xkey, g->bytes);
	block[g->bytes] = 0x80;
	put_be32(block + len - 4, 8 * g->bytes);
	memcpy(g->word, srtp_ref_sha1_init, sizeof(g->word));
	for (uint32_t at = 0; at < len; at += 64)
		srtp_sha1_block(g->word, block + at, g->fast_sha1);
	secmem_wipe(block, sizeof(block));
}

/* XKEY = (1 + XKEY + x) mod 2^b, x being the 160 bits of output. */
static void fips_step(struct preauth_fips *g)
{
	uint32_t carry = 1;

	fips_hash(g);
	g->used = 0;
	for (uint32_t i = 0; i < g->bytes; i++) {
		uint8_t *at = &g->xkey[g->bytes - 1 - i];

		carry += *at + (i < 20 ? g->word[4 - i / 4] >> (i % 4 * 8) & 0xff : 0);
		*at = (uint8_t)carry;
		carry >>= 8;
	}
}

void preauth_fips_next(struct preauth_fips *g, uint32_t *tag, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (g->used == 5)
			fips_step(g);
		tag[i] = g->word[g->used++];
	}
}

/* --- Header ----------------------------------------------------------------------------------- */

static uint32_t hmac_sha1(const struct preauth_key *k, const uint8_t *hdr)
{
	uint8_t block[64] = {0};
	uint32_t state[5];

	memcpy(block, hdr, PREAUTH_HEADER_LEN);
	block[PREAUTH_HEADER_LEN] = 0x80;
	put_be32(block + 60, 8 * (64 + PREAUTH_HEADER_LEN));
	memcpy(state, k->inner, sizeof(state));
	srtp_sha1_block(state, block, k->fast_sha1);

	memset(block, 0, sizeof(block));
	for (int i = 0; i < 5; i++)
		put_be32(block + 4 * i, state[i]);
	block[20] = 0x80;
	put_be32(block + 60, 8 * (64 + 20));
	memcpy(state, k->outer, sizeof(state));
	srtp_sha1_block(state, block, k->fast_sha1);
	return state[0];
}

uint32_t preauth_header(const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	if (k->scheme == PREAUTH_HEADER_HMAC)
		return hmac_sha1(k, hdr);
	return preauth_header_sip(k->seed, hdr);
}

static uint64_t le_word(const uint8_t *p, uint32_t len)
{
	uint64_t v = 0;

	memcpy(&v, p, len);
	return le64toh(v);
}

uint32_t preauth_header_sip(const uint8_t key[16], const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	_Static_assert(PREAUTH_HEADER_LEN == 12, "the bytes of preauth_sip_tag()");
	return preauth_sip_tag(le_word(key, 8), le_word(key + 8, 8), le_word(hdr, 8),
		(uint32_t)le_word(hdr + 8, 4));
}

void preauth_sip_words(uint64_t word[2], const uint8_t key[16])
{
	word[0] = le_word(key, 8);
	word[1] = le_word(key + 8, 8);
}
