/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scalar reference: one job in plain C, written to be read with the RFCs. Every engine is
 * tested against it. On the packet path, only SRTCP after a restart (media/rewrite.c) and lost
 * roll-over counters (media/roc.c) use it. */
#ifndef SRTP_REF_H
#define SRTP_REF_H

#include <stdbool.h>

#include "layout.h"

/* Does an engine's work for one job: reads in, keys and job, writes out, returns XC_OK or
 * XC_BAD_TAG. in and out may be the same memory if the received side is plain. Supports all ciphers
 * of layout.h. For XC_OK, engines must produce the same bytes. */
uint32_t srtp_ref_job(
	const struct xc_job *job, const struct xc_key *keys, const uint8_t *in, uint8_t *out);

/* Whether the received packet of an HMAC-SHA1 key authenticates with a tag of tag_len bytes, up to
 * 20, at rx_tag_off, regardless of the key's tag length. Does not decrypt. */
bool srtp_ref_tag_fits(
	const struct xc_job *job, const struct xc_key *key, uint32_t tag_len, const uint8_t *in);

/* Primitives, for the tests and for key derivation. */
void srtp_ref_aes_expand(uint8_t rk[240], const uint8_t *key, unsigned key_len);
void srtp_ref_aes_block(uint8_t out[16], const uint8_t in[16], const uint8_t *rk, unsigned rounds);
void srtp_ref_sha1_block(uint32_t state[5], const uint8_t block[64]);
extern const uint32_t srtp_ref_sha1_init[5];

#endif
