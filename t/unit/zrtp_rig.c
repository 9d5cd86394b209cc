/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See zrtp_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "zrtp_rig.h"

#define STEP_NS 10000000ull

void zrtp_rig_init(struct zrtp_rig *r)
{
	memset(r, 0, sizeof(*r));
	for (int i = 0; i < 2; i++) {
		zrtp_prefs_all(&r->prefs[i]);
		r->cfg[i] = (struct zrtp_config){
			.ssrc = (uint32_t)i + 1, .prefs = &r->prefs[i], .counts = &r->counts[i]};
		memset(r->cfg[i].seed, 0x11 * (i + 1), sizeof(r->cfg[i].seed));
	}
}

void zrtp_rig_begin(struct zrtp_rig *r)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(zrtp_create(&r->z[i], &r->cfg[i]), 0);
		zrtp_start(r->z[i], r->now_ns);
	}
}

static void answer(struct zrtp_rig *r, int i)
{
	if (zrtp_state(r->z[i]) == ZRTP_WANTS_SECRETS)
		zrtp_secrets(r->z[i], r->has[i] ? &r->known[i] : NULL, r->now_ns);
}

static bool carry(struct zrtp_rig *r, int from)
{
	uint8_t p[ZRTP_PACKET_MAX], *copy;
	int n = zrtp_next(r->z[from], p, sizeof(p));

	if (n <= 0)
		return false;
	r->packets++;
	if (r->wire && !r->wire(r, !from, p, &n))
		return true;
	/* Of its own size, so that a sanitizer sees who reads beyond it. */
	copy = test_malloc((size_t)n);
	memcpy(copy, p, (size_t)n);
	(void)zrtp_take(r->z[!from], copy, (size_t)n, r->now_ns);
	test_free(copy);
	return true;
}

bool zrtp_rig_open(const struct zrtp_rig *r)
{
	return zrtp_state(r->z[US]) == ZRTP_OPEN && zrtp_state(r->z[THEM]) == ZRTP_OPEN;
}

void zrtp_rig_run(struct zrtp_rig *r, uint32_t ms)
{
	for (uint32_t at = 0; at <= ms; at += 10, r->now_ns += STEP_NS) {
		bool any = true;

		for (int turns = 0; any && turns < 50; turns++) {
			any = carry(r, US);
			any |= carry(r, THEM);
			answer(r, US);
			answer(r, THEM);
		}
		if (zrtp_rig_open(r) ||
			(!r->persists &&
				(zrtp_state(r->z[US]) == ZRTP_FAILED ||
					zrtp_state(r->z[THEM]) == ZRTP_FAILED)))
			return;
		for (int i = 0; i < 2; i++)
			zrtp_tick(r->z[i], r->now_ns);
	}
}

void zrtp_rig_agreed(const struct zrtp_rig *r)
{
	struct srtp_master rx[2], tx[2];

	assert_true(zrtp_rig_open(r));
	assert_string_equal(zrtp_sas(r->z[US]), zrtp_sas(r->z[THEM]));
	assert_int_equal(strlen(zrtp_sas(r->z[US])), 4);
	assert_int_not_equal(zrtp_initiated(r->z[US]), zrtp_initiated(r->z[THEM]));
	for (int i = 0; i < 2; i++)
		assert_int_equal(zrtp_keys(r->z[i], &rx[i], &tx[i]), 0);
	assert_memory_equal(&rx[US], &tx[THEM], sizeof(rx[0]));
	assert_memory_equal(&rx[THEM], &tx[US], sizeof(rx[0]));
	assert_memory_not_equal(rx[US].key, tx[US].key, 16);
}

void zrtp_rig_end(struct zrtp_rig *r)
{
	zrtp_destroy(r->z[US]);
	zrtp_destroy(r->z[THEM]);
	r->z[US] = r->z[THEM] = NULL;
}

void zrtp_rig_only(struct zrtp_rig *r, int side, enum zrtp_kind kind, uint8_t alg)
{
	r->prefs[side].n[kind] = 1;
	r->prefs[side].list[kind][0] = alg;
}
