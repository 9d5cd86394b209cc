/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes the tags of SRTP+. Tags are computed ahead of packets, or by one short MAC, so this file
 * may call a library for AES. */
#include "srtp/preauth.h"

#include <errno.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "srtp/ref.h"

enum { AES_KEY_LEN = 16, AES_BLOCKS = 32 };

static const struct {
	const char *name;
	unsigned bits;
} schemes[] = {
#define X(id, text, width) [PREAUTH_##id] = {text, width},
	PREAUTH_SCHEMES(X)
#undef X
};

const char *preauth_name(enum preauth_scheme s)
{
	return schemes[s].name;
}

unsigned preauth_bits(enum preauth_scheme s)
{
	return schemes[s].bits;
}

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
	*k = (struct preauth_key){.scheme = s};
	/* Each scheme has its own label, so no key serves two schemes. */
	if (srtp_kdf_label(k->seed, sizeof(k->seed), m, (uint8_t)(PREAUTH_LABEL + s)))
		return -EINVAL;
	hmac_state(k->inner, k->seed, 0x36);
	hmac_state(k->outer, k->seed, 0x5c);
	if (s != PREAUTH_SEQUENCE_AES)
		return 0;
	k->aes = EVP_CIPHER_CTX_new();
	if (k->aes && EVP_EncryptInit_ex(k->aes, EVP_aes_128_ecb(), NULL, k->seed, NULL) == 1 &&
		EVP_CIPHER_CTX_set_padding(k->aes, 0) == 1)
		return 0;
	preauth_key_fini(k);
	return -ENOMEM;
}

void preauth_key_fini(struct preauth_key *k)
{
	EVP_CIPHER_CTX_free(k->aes); /* wipes its round keys */
	secmem_wipe(k, sizeof(*k));
}

/* --- Sequence --------------------------------------------------------------------------------- */

void preauth_sequence(
	const struct preauth_key *k, uint32_t ssrc, uint64_t index, uint32_t *tag, uint32_t n)
{
	uint8_t block[AES_BLOCKS * 16];
	uint64_t end = index + n;
	int len;

	while (index < end) {
		uint64_t first = index / 4, last = (end - 1) / 4;
		uint32_t blocks =
			last - first < AES_BLOCKS ? (uint32_t)(last - first + 1) : AES_BLOCKS;

		for (uint32_t i = 0; i < blocks; i++) {
			put_be32(block + 16 * i, ssrc);
			put_be32(block + 16 * i + 4, 0);
			put_be32(block + 16 * i + 8, (uint32_t)((first + i) >> 32));
			put_be32(block + 16 * i + 12, (uint32_t)(first + i));
		}
		(void)EVP_EncryptUpdate(k->aes, block, &len, block, (int)(16 * blocks));
		for (; index < end && index / 4 < first + blocks; index++)
			*tag++ = be32(block + 4 * (index - 4 * first));
	}
	secmem_wipe(block, sizeof(block));
}

void preauth_fips_init(
	struct preauth_fips *g, const struct preauth_key *k, uint32_t ssrc, uint32_t bytes)
{
	*g = (struct preauth_fips){.bytes = bytes, .used = 5};
	memcpy(g->xkey, k->seed, bytes);
	/* Each SSRC gets its own seed. */
	put_be32(g->xkey, be32(g->xkey) ^ ssrc);
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
		srtp_ref_sha1_block(g->word, block + at);
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
	for (uint32_t i = 0; i < n; i++, g->index++) {
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
	srtp_ref_sha1_block(state, block);

	memset(block, 0, sizeof(block));
	for (int i = 0; i < 5; i++)
		put_be32(block + 4 * i, state[i]);
	block[20] = 0x80;
	put_be32(block + 60, 8 * (64 + 20));
	memcpy(state, k->outer, sizeof(state));
	srtp_ref_sha1_block(state, block);
	return state[0];
}

uint32_t preauth_header(const struct preauth_key *k, const uint8_t hdr[PREAUTH_HEADER_LEN])
{
	if (k->scheme == PREAUTH_HEADER_HMAC)
		return hmac_sha1(k, hdr);
	return (uint32_t)hash_siphash(k->seed, hdr, PREAUTH_HEADER_LEN);
}

/* --- Chain ------------------------------------------------------------------------------------ */

void preauth_chain_write(uint8_t block[16], const uint32_t tag[PREAUTH_CHAIN_NEXT])
{
	for (unsigned i = 0; i < 16; i++)
		block[i] = (uint8_t)((tag[2 * i] & 15) << 4 | (tag[2 * i + 1] & 15));
}

void preauth_chain_read(uint32_t tag[PREAUTH_CHAIN_NEXT], const uint8_t block[16])
{
	for (unsigned i = 0; i < PREAUTH_CHAIN_NEXT; i++)
		tag[i] = block[i / 2] >> (i % 2 ? 0 : 4) & 15;
}
