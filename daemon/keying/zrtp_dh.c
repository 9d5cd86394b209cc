/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DHPart1 and DHPart2 (RFC 6189 5.5, 5.6): the public values, and what they prove. */
#include "keying/zrtp_int.h"

#include <errno.h>

#include "base/secmem.h"
#include "keying/zrtp_agree.h"

#define BAD_VALUE 0x61u /* code of an Error */

static enum zrtp_agreement agreement(const struct zrtp *z)
{
	return (enum zrtp_agreement)z->alg[ZRTP_K_AGREEMENT];
}

int zrtp_hvi(uint8_t hvi[32], enum zrtp_hash h, const struct zrtp_msg *dhpart2,
	const struct zrtp_msg *hello)
{
	const struct zrtp_part part[] = {{dhpart2->b, dhpart2->len}, {hello->b, hello->len}};
	uint8_t hash[ZRTP_DIGEST_MAX];
	int err = zrtp_hash(hash, h, part, 2);

	memcpy(hvi, hash, 32);
	return err;
}

/* A key pair serves one exchange, whatever our role becomes. Forged Hellos and Commits that ask for
 * one agreement after the other cost one pair of each. */
static int have_pair(struct zrtp *z)
{
	struct zrtp_pair **k = &z->pair[agreement(z)];

	if (*k)
		return 0;
	if (z->cfg.counts)
		z->cfg.counts->pairs++;
	return zrtp_pair_make(k, agreement(z));
}

void zrtp_pairs_free(struct zrtp *z)
{
	for (uint32_t a = 0; a < ARRAY_LEN(z->pair); a++) {
		zrtp_pair_free(z->pair[a]);
		z->pair[a] = NULL;
	}
}

int zrtp_dhpart_make(struct zrtp *z, enum zrtp_message type)
{
	struct zrtp_msg *m = &z->me.dhpart;
	uint8_t ids[ZRTP_SECRETS_N][ZRTP_ID];
	int err = have_pair(z);

	err = err ? err : zrtp_ids(ids, z, type == ZRTP_M_DHPART2);
	if (err)
		return err;
	zrtp_msg_begin(m, type);
	zrtp_msg_add(m, z->image[1], ZRTP_IMAGE);
	zrtp_msg_add(m, ids, sizeof(ids));
	zrtp_msg_add(m, zrtp_pair_value(z->pair[agreement(z)]), zrtp_value_len(agreement(z)));
	return zrtp_add_mac(m, z->image[0]);
}

/* Agrees on s0 with the peer's DHPart. 0; an error: the exchange has failed. */
static int agree(struct zrtp *z, uint64_t now_ns)
{
	uint8_t result[ZRTP_VALUE_MAX];
	int err = zrtp_pair_agree(z->pair[agreement(z)], result, z->peer.dhpart.b + DHPART_VALUE);

	if (err == -EBADMSG) {
		zrtp_refuse(z, ZRTP_FAIL_VALUE, BAD_VALUE, now_ns);
		return err;
	}
	err = err ? err : zrtp_match(z);
	err = err ? err : zrtp_derive(z, result, zrtp_result_len(agreement(z)));
	secmem_wipe(result, sizeof(result));
	zrtp_pairs_free(z);
	zrtp_rivals_forget_commits(z); /* they were answered with these pairs */
	if (err)
		zrtp_fail(z, ZRTP_FAIL_INTERNAL);
	return err;
}

static bool has_length(const struct zrtp *z, uint32_t len)
{
	return len == DHPART_VALUE + zrtp_value_len(agreement(z)) + ZRTP_MAC;
}

static void keep(struct zrtp *z, const uint8_t *m, uint32_t len)
{
	memcpy(z->peer.dhpart.b, m, len);
	z->peer.dhpart.len = (uint16_t)len;
}

/* Whether we wait for a DHPart1 of the Hello that this image proves. We may have turned to a
 * stranger's Hello or Commit. */
static bool is_awaited(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE], uint64_t now_ns)
{
	if (zrtp_yield(z, h2, now_ns))
		z->phase = PH_COMMIT;
	else if ((z->phase == PH_DHPART1 || z->phase == PH_COMMIT) &&
		!zrtp_image_fits(h2, z->peer.hello.b + HELLO_H3)) {
		if (zrtp_rivals_take_own(z, h2))
			z->phase = PH_COMMIT;
		else if (z->phase == PH_COMMIT && zrtp_rivals_has_hello(z, h2))
			zrtp_rivals_own_commit(z);
	}
	return z->phase == PH_COMMIT && zrtp_value_len(agreement(z));
}

/* We sent the Commit. The responder's H1 proves that its Hello is the one that we answered. */
int zrtp_on_dhpart1(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	uint8_t h2[ZRTP_IMAGE];

	if (zrtp_hash(h2, ZRTP_S256, &(struct zrtp_part){m + DHPART_H1, ZRTP_IMAGE}, 1))
		return zrtp_drop(z, ZRTP_DROP_CHAIN);
	if (!is_awaited(z, h2, now_ns))
		return zrtp_drop(z, ZRTP_DROP_STATE);
	if (!has_length(z, len))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (!zrtp_hello_of(z, h2))
		return zrtp_drop(z, ZRTP_DROP_CHAIN);
	if (z->stale) {
		z->phase = PH_HELLO;
		zrtp_may_commit(z, now_ns);
		return 0;
	}
	keep(z, m, len);
	if (agree(z, now_ns))
		return 0;
	z->phase = PH_DHPART2;
	zrtp_repeat(z, &z->me.dhpart, false, now_ns);
	return 0;
}

int zrtp_on_dhpart2(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns)
{
	const struct zrtp_msg *confirm = zrtp_rivals_confirm_for(z, m, len);
	struct zrtp_msg part = {.len = (uint16_t)len};
	uint8_t hvi[32];

	if (confirm) {
		zrtp_send(z, confirm);
		return 0;
	}
	if (z->phase == PH_CONFIRM1 && z->peer.dhpart.len == len &&
		memcmp(z->peer.dhpart.b, m, len) == 0) {
		zrtp_send(z, &z->confirm);
		return 0;
	}
	if (len > sizeof(part.b))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	memcpy(part.b, m, len);
	if (zrtp_rivals_take_commit(z, &part)) {
		if (z->phase != PH_DHPART1)
			zrtp_wait(z, now_ns);
		z->phase = PH_DHPART1;
		z->initiator = false;
	}
	if (z->phase != PH_DHPART1)
		return zrtp_drop(z, ZRTP_DROP_STATE);
	if (!has_length(z, len))
		return zrtp_drop(z, ZRTP_DROP_MESSAGE);
	if (!zrtp_image_fits(m + DHPART_H1, z->peer.commit.b + COMMIT_H2) ||
		!zrtp_has_mac_of(&z->peer.commit, m + DHPART_H1))
		return zrtp_drop(z, ZRTP_DROP_CHAIN);
	if (zrtp_hvi(hvi, (enum zrtp_hash)z->alg[ZRTP_K_HASH], &part, &z->me.hello) ||
		!secmem_equal(hvi, z->peer.commit.b + COMMIT_HVI, sizeof(hvi)))
		return zrtp_drop(z, ZRTP_DROP_HVI);
	keep(z, m, len);
	if (agree(z, now_ns))
		return 0;
	if (zrtp_confirm_make(z)) {
		zrtp_fail(z, ZRTP_FAIL_INTERNAL);
		return 0;
	}
	z->phase = PH_CONFIRM1;
	zrtp_stop(z);
	zrtp_wait(z, now_ns);
	zrtp_send(z, &z->confirm);
	return 0;
}
