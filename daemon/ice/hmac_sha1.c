/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMAC-SHA1 (RFC 2104) of STUN packets, on the block function of srtp/sha1_block.h. OpenSSL 3
 * allocates memory and looks up the algorithm for every packet, which costs more than the hash. */
#include "ice/hmac_sha1.h"

#include "base/secmem.h"
#include "srtp/ref.h"
#include "srtp/sha1_block.h"

#define BLOCK 64u

struct sha1 {
	uint32_t state[5];
	uint32_t fast;
	uint64_t len; /* bytes so far, the key block included */
	uint8_t block[BLOCK];
};

static void update(struct sha1 *h, const uint8_t *p, size_t len)
{
	size_t used = h->len % BLOCK;

	h->len += len;
	while (len > 0) {
		size_t n = BLOCK - used < len ? BLOCK - used : len;

		memcpy(h->block + used, p, n);
		p += n;
		len -= n;
		used += n;
		if (used == BLOCK) {
			srtp_sha1_block(h->state, h->block, h->fast);
			used = 0;
		}
	}
}

static void final(struct sha1 *h, uint8_t digest[HMAC_SHA1_LEN])
{
	static const uint8_t pad[BLOCK] = {0x80};
	uint64_t bits = 8 * h->len;
	size_t used = h->len % BLOCK;
	uint8_t len[8];

	update(h, pad, used < BLOCK - 8 ? BLOCK - 8 - used : 2 * BLOCK - 8 - used);
	put_be32(len, (uint32_t)(bits >> 32));
	put_be32(len + 4, (uint32_t)bits);
	update(h, len, sizeof(len));
	for (int i = 0; i < 5; i++)
		put_be32(digest + 4 * i, h->state[i]);
}

static void key_state(uint32_t state[5], const uint8_t key[BLOCK], uint8_t pad, bool fast)
{
	uint8_t block[BLOCK];

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = key[i] ^ pad;
	memcpy(state, srtp_ref_sha1_init, 5 * sizeof(state[0]));
	srtp_sha1_block(state, block, fast);
	secmem_wipe(block, sizeof(block));
}

void hmac_sha1_key_init(struct hmac_sha1_key *key, const void *secret, size_t len)
{
	uint8_t block[BLOCK] = {0};
	struct sha1 h = {.fast = srtp_sha1_has_instructions()};

	key->fast = h.fast;
	if (len > BLOCK) { /* a longer key is replaced by its hash */
		memcpy(h.state, srtp_ref_sha1_init, sizeof(h.state));
		update(&h, secret, len);
		final(&h, block);
		secmem_wipe(&h, sizeof(h));
	} else if (len > 0) {
		memcpy(block, secret, len);
	}
	key_state(key->inner, block, 0x36, key->fast);
	key_state(key->outer, block, 0x5c, key->fast);
	secmem_wipe(block, sizeof(block));
}

void hmac_sha1(uint8_t mac[HMAC_SHA1_LEN], const struct hmac_sha1_key *key, struct str head,
	struct str rest)
{
	struct sha1 h;

	h.fast = key->fast;
	h.len = BLOCK;
	memcpy(h.state, key->inner, sizeof(h.state));
	update(&h, (const uint8_t *)head.s, head.len);
	update(&h, (const uint8_t *)rest.s, rest.len);
	final(&h, mac);
	h.len = BLOCK;
	memcpy(h.state, key->outer, sizeof(h.state));
	update(&h, mac, HMAC_SHA1_LEN);
	final(&h, mac);
}
