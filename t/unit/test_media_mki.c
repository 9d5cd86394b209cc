/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Re-keying by MKI against libsrtp2 on both sides. A's terminal has three master keys in one
 * session and uses any of them for each packet. B's terminal knows all of our keys, and we switch
 * between them. Random order, loss and wraps, with SRTCP in between. */
#include <srtp2/srtp.h>
#undef SRTP_MAX_KEY_LEN
#undef SRTP_MAX_MKI_LEN

#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N = 3, MKI_LEN = 4, BURSTS = 200 };

/* The rig's slots, three a side. */
static const uint32_t slot[2][N] = {{A_TX, A_TX2, A_RX}, {B_RX, LENT, LENT + 2}};

struct peer { /* a libsrtp2 session with several master keys */
	srtp_t s;
	uint8_t key[N][SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN], mki[N][MKI_LEN];
	srtp_master_key_t master[N], *list[N];
};

static void policy(srtp_crypto_policy_t *rtp, srtp_crypto_policy_t *rtcp, enum srtp_suite_id suite)
{
	switch (suite) {
	case SUITE_AEAD_AES_128_GCM:
		srtp_crypto_policy_set_aes_gcm_128_16_auth(rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(rtcp);
		return;
	case SUITE_AES_CM_128_32:
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(rtp);
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(rtcp);
		return;
	default:
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(rtp);
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(rtcp);
	}
}

static void peer_open(struct peer *p, int side, enum srtp_suite_id suite, srtp_ssrc_type_t type)
{
	const struct srtp_suite *row = srtp_suite_get(suite);
	srtp_policy_t pol = {.ssrc = {.type = type}, .window_size = 1024};

	policy(&pol.rtp, &pol.rtcp, suite);
	for (int i = 0; i < N; i++) {
		struct srtp_master m = rig_master(slot[side][i], suite);

		memcpy(p->key[i], m.key, row->key_len);
		memcpy(p->key[i] + row->key_len, m.salt, row->salt_len);
		memset(p->mki[i], 0xa0 + (int)slot[side][i], MKI_LEN);
		p->master[i] = (srtp_master_key_t){
			.key = p->key[i], .mki_id = p->mki[i], .mki_size = MKI_LEN};
		p->list[i] = &p->master[i];
	}
	pol.keys = p->list;
	pol.num_master_keys = N;
	assert_int_equal(srtp_create(&p->s, &pol), srtp_err_status_ok);
}

static struct media_crypto keys_of(const struct rig *r, int side, enum srtp_suite_id suite)
{
	struct media_crypto c = rig_crypto(r, slot[side][0], suite);

	for (c.keys = 1; c.keys < N; c.keys++)
		c.key[c.keys] = rig_crypto(r, slot[side][c.keys], suite).key[0];
	return c;
}

static void use(struct rig *r, uint8_t tx_use, bool new)
{
	struct media_cmd a = {.type = MEDIA_CTX_SET, .ctx = {.rx_new = new}};
	struct media_cmd b = {.type = MEDIA_CTX_SET, .id = 1, .ctx = {.tx_new = new}};

	a.ctx.rx = keys_of(r, 0, r->suite_a);
	b.ctx.tx = keys_of(r, 1, r->suite_b);
	b.ctx.tx.use = tx_use;
	assert_int_equal(media_command(r->m, &a), 0);
	assert_int_equal(media_command(r->m, &b), 0);
}

/* Puts a plain packet into the next place, protected by A's terminal under one of its keys. */
static void a_sends(struct rig *r, struct peer *a, uint16_t seq, bool rtcp)
{
	uint8_t p[512], *at = rig_slot(r, A, PORT_A);
	int len = rtcp ? 28 : 172;
	unsigned k = (unsigned)random() % N;

	if (rtcp) {
		rig_plain_rtcp(p, 7, seq);
		assert_int_equal(srtp_protect_rtcp_mki(a->s, p, &len, 1, k), srtp_err_status_ok);
	} else {
		rig_plain_rtp(p, 7, seq);
		assert_int_equal(srtp_protect_mki(a->s, p, &len, 1, k), srtp_err_status_ok);
	}
	memcpy(at, p, (size_t)len);
	r->in[r->n - 1].len = (uint32_t)len;
}

static void b_hears(const struct rig *r, struct peer *b, uint32_t k, uint8_t tx_use)
{
	uint8_t p[512], want[172];
	int len = (int)r->out[k].len;
	bool rtcp;

	memcpy(p, r->a.out + r->out[k].out_off, r->out[k].len);
	rtcp = p[1] == 200;
	if (rtcp && r->suite_b == SUITE_AES_CM_128_32)
		/* libsrtp2 2.5 expects SRTCP's MKI at SRTP's tag length */
		return;
	if (rtcp) {
		assert_int_equal(srtp_unprotect_rtcp_mki(b->s, p, &len, 1), srtp_err_status_ok);
		assert_int_equal(len, 28);
		rig_plain_rtcp(want, 7, p[10]);
		assert_memory_equal(p, want, 28);
		return;
	}
	/* The packet was sent under the current key: it carries its MKI. */
	if (srtp_suite_get(r->suite_b)->auth == XC_AUTH_GCM)
		assert_int_equal(p[len - 1], 0xa0 + (int)slot[1][tx_use]);
	else
		assert_int_equal(p[172], 0xa0 + (int)slot[1][tx_use]);
	assert_int_equal(srtp_unprotect_mki(b->s, p, &len, 1), srtp_err_status_ok);
	assert_int_equal(len, 172);
	rig_plain_rtp(want, 7, be16(p + 2));
	assert_memory_equal(p, want, 172);
}

static void play(enum srtp_suite_id suite_a, enum srtp_suite_id suite_b)
{
	struct rig *r = rig_new(suite_a, suite_b, MKI_LEN);
	struct peer a = {0}, b = {0};
	uint16_t seq = 64000; /* libsrtp2 estimates wraps itself */
	uint8_t tx_use = 0;

	for (int i = 0; i < N; i++) {
		rig_key(r, slot[0][i], suite_a);
		rig_key(r, slot[1][i], suite_b);
	}
	peer_open(&a, 0, suite_a, ssrc_any_outbound);
	peer_open(&b, 1, suite_b, ssrc_any_inbound);
	use(r, 0, true);
	for (int i = 0; i < BURSTS; i++) {
		uint32_t n = 1 + (uint32_t)random() % 20;

		for (uint32_t k = 0; k < n; k++) {
			bool rtcp = random() % 8 == 0;

			a_sends(r, &a, rtcp ? (uint16_t)k : seq, rtcp);
			seq += !rtcp;
			if (!rtcp && random() % 30 == 0)
				seq = (uint16_t)(seq + random() % 60); /* lost */
			if (r->n > 1 && random() % 4 == 0) {           /* reordered */
				struct packet_in last = r->in[r->n - 1];

				r->in[r->n - 1] = r->in[r->n - 2];
				r->in[r->n - 2] = last;
			}
		}
		rig_run(r);
		assert_int_equal(r->outs, n); /* no packet is lost or repeated */
		for (uint32_t k = 0; k < n; k++)
			b_hears(r, &b, k, tx_use);
		if (random() % 4 == 0) {
			tx_use = (uint8_t)(random() % N);
			use(r, tx_use, false);
		}
	}
	assert_true(r->m->ctx[0].rx.first.seen.last > 65536);
	srtp_dealloc(a.s);
	srtp_dealloc(b.s);
	rig_free(r);
}

static void libsrtp2_rekeys_by_mki_on_both_sides(void **state)
{
	static const enum srtp_suite_id pair[][2] = {
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_80},
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
		{SUITE_AES_CM_128_32, SUITE_AEAD_AES_128_GCM},
		{SUITE_AEAD_AES_128_GCM, SUITE_AES_CM_128_80},
	};

	(void)state;
	srandom(20260101);
	assert_int_equal(srtp_init(), srtp_err_status_ok);
	for (size_t i = 0; i < ARRAY_LEN(pair); i++)
		play(pair[i][0], pair[i][1]);
	srtp_shutdown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libsrtp2_rekeys_by_mki_on_both_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
