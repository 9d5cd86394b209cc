/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES counter mode (RFC 3711 4.1.1) for the serial engine, by AES-NI. Decrypts a packet under the
 * receiving key and encrypts it under the sending key in one pass. */
#ifndef BATCH_AES_CM_H
#define BATCH_AES_CM_H

#include <endian.h>

#include "base/bytes.h"
#include "layout.h"

struct aes_cm_side {
	const struct xc_key *key;
	uint64_t low, high; /* halves of the first counter block, in memory order */
	uint32_t rounds;    /* 0: this side is not encrypted */
};

/* Whether this processor has AES-NI. */
bool aes_cm_usable(void);

static inline void aes_cm_side(
	struct aes_cm_side *s, const struct xc_key *key, uint64_t index, uint32_t ssrc, bool clear)
{
	uint64_t low, high;

	memcpy(&low, key->salt, 8);
	memcpy(&high, key->salt + 8, 8);
	s->key = key;
	s->rounds = key->cipher == XC_CIPHER_AES_CM && !clear ? key->rounds : 0;
	/* SSRC in bytes 4 to 7, the 48-bit index in bytes 8 to 13. */
	s->low = low ^ (uint64_t)htobe32(ssrc) << 32;
	s->high = high ^ htobe64(index) >> 16;
}

/* dst = src XOR keystream(rx) XOR keystream(tx). Reads and writes up to 79 bytes beyond len
 * (XC_SLACK). Packets must be shorter than 256 blocks, and aes_cm_usable() true. */
void aes_cm_recrypt(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx);
/* dst = src XOR keystream(s), for len bytes, at most XC_BLOCK_MAX, which begin at byte "at" of a
 * body. Writes no other bytes. */
void aes_cm_part(
	uint8_t *dst, const uint8_t *src, size_t len, size_t at, const struct aes_cm_side *s);
/* The same, and converts the decrypted bytes. law: XC_LAW_*. */
void aes_cm_convert(uint8_t *dst, const uint8_t *src, size_t len, const struct aes_cm_side *rx,
	const struct aes_cm_side *tx, uint32_t law);
/* The same, without instructions that not every processor with AES-NI has. */
void aes_cm_convert_anywhere(uint8_t *dst, const uint8_t *src, size_t len,
	const struct aes_cm_side *rx, const struct aes_cm_side *tx, uint32_t law);

#endif
