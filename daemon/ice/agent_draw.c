/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random bytes of an agent: HMAC-SHA1 of a counter under its seed. So the agent needs no source of
 * its own, and a test with a fixed seed repeats exactly. */
#include "ice/agent_int.h"

#include "base/secmem.h"

void ice_draw(struct ice_agent *a, void *out, size_t len)
{
	uint8_t counter[8], block[HMAC_SHA1_LEN];

	put_be32(counter, (uint32_t)(a->drawn >> 32));
	put_be32(counter + 4, (uint32_t)a->drawn);
	a->drawn++;
	hmac_sha1(block, &a->seed, (struct str){(const char *)counter, sizeof(counter)}, STR_NONE);
	memcpy(out, block, len < sizeof(block) ? len : sizeof(block));
	secmem_wipe(block, sizeof(block));
}

uint64_t ice_draw_around(struct ice_agent *a, uint64_t ns)
{
	uint8_t r[4];

	ice_draw(a, r, sizeof(r));
	return a->now_ns + ns / 10 * 8 + (ns / 10 * 4 >> 16) * (be32(r) >> 16);
}

/* Letters and digits, '+' and '/': the ice-chars of RFC 8839 5.4. */
static void ice_draw_text(struct ice_agent *a, char *out, size_t len)
{
	static const char chars[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t r[HMAC_SHA1_LEN];

	for (size_t i = 0; i < len; i++) {
		if (i % sizeof(r) == 0)
			ice_draw(a, r, sizeof(r));
		out[i] = chars[r[i % sizeof(r)] & 63];
	}
	secmem_wipe(r, sizeof(r));
}

void ice_new_credentials(struct ice_agent *a)
{
	ice_draw_text(a, a->cur.own.ufrag, sizeof(a->cur.own.ufrag));
	ice_draw_text(a, a->cur.pwd, sizeof(a->cur.pwd));
	stun_key_init(&a->cur.own.key, (struct str){a->cur.pwd, sizeof(a->cur.pwd)});
}

/* FNV-1a: tells foundations and names apart. Collisions cost a check, never safety. */
uint32_t ice_hash(const void *p, size_t len)
{
	const uint8_t *b = p;
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 16777619u;
	return h;
}
