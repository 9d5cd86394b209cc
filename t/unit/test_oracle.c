/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An outside oracle: what libsrtp2 protects each engine turns from one key to another, and libsrtp2 accepts the
 * result and finds the bytes that went in. AES_CM_128 with 80 and 32 bit tags only: Debian's libsrtp2 is wrong for
 * AES-192 and knows no F8 (t/vectors covers those). */
#include <stdio.h>
#include <srtp2/srtp.h>

#include "engine_cases.h"
#include "batch/sample.h"

enum { ROUNDS = 300, PER_ROUND = 8 };

struct leg { /* one key, in libsrtp and in ours */
	enum srtp_suite_id suite;
	uint32_t slot;
	srtp_t send, recv;
};

static int setup_serial(void **state)
{
	return srtp_init()
		? -1
		: engine_setup(state, &engine_serial, &(struct engine_config){.device = ""});
}

static int setup_opencl(void **state)
{
	return srtp_init()
		? -1
		: engine_setup(state, &engine_opencl, &(struct engine_config){.device = ""});
}

static int teardown(void **state)
{
	srtp_shutdown();
	return engine_teardown(state);
}

static srtp_t libsrtp_open(const struct srtp_master *m, srtp_ssrc_type_t dir)
{
	uint8_t key[30];
	srtp_policy_t p;
	srtp_t s;

	memset(&p, 0, sizeof(p));
	if (m->suite == SUITE_AES_CM_128_32)
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&p.rtp);
	else
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&p.rtp);
	/* RFC 4568 6.2: SRTCP's tag is 80 bits for both. */
	srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&p.rtcp);
	memcpy(key, m->key, 16);
	memcpy(key + 16, m->salt, 14);
	p.key = key;
	p.ssrc.type = dir;
	p.window_size = 128;
	assert_int_equal(srtp_create(&s, &p), srtp_err_status_ok);
	return s;
}

static void leg_open(struct engine_fixture *f, struct leg *l, uint64_t seed)
{
	struct srtp_master m;

	sample_master(&m, l->suite, seed);
	l->send = libsrtp_open(&m, ssrc_any_outbound);
	l->recv = libsrtp_open(&m, ssrc_any_inbound);
	assert_int_equal(srtp_key_fill(&f->a.key[l->slot], &m), 0);
	assert_int_equal(f->ops->key_changed(f->q, l->slot), 0);
}

static void leg_close(struct leg *l)
{
	srtp_dealloc(l->send);
	srtp_dealloc(l->recv);
}

struct packet {
	uint8_t plain[ARENA_MAX_PACKET];
	uint32_t len, hdr_len;
	uint64_t index;
	bool rtcp;
};

/* RTP with 0 to 15 CSRCs and perhaps an extension of 0 to 4 words; RTCP of whole words (RFC 3550 6.4). */
static void packet_make(struct packet *p, uint32_t n, uint64_t *rnd)
{
	uint64_t r = sample_random(rnd);
	uint32_t cc = r % 3 ? 0 : (r >> 8) % 16, ext = (r >> 16) % 5;

	for (size_t i = 0; i < sizeof(p->plain); i++)
		p->plain[i] = (uint8_t)sample_random(rnd);
	p->rtcp = (r >> 20) % 4 == 0;
	if (p->rtcp) {
		p->hdr_len = 8;
		p->len = 8 + 4 * (uint32_t)((r >> 32) % 60);
		p->plain[0] = 0x80;
		p->plain[1] = 200;
		put_be16(p->plain + 2, (uint16_t)(p->len / 4 - 1));
		put_be32(p->plain + 4, 0x1234);
		return;
	}
	p->plain[0] = (uint8_t)(0x80 | cc);
	p->plain[1] &= 0x7f;
	put_be16(p->plain + 2, (uint16_t)n);
	put_be32(p->plain + 8, 0xcafe);
	p->index = n;
	p->hdr_len = 12 + 4 * cc;
	if ((r >> 24) % 3 == 0) {
		p->plain[0] |= 0x10;
		put_be16(p->plain + p->hdr_len + 2, (uint16_t)ext);
		p->hdr_len += 4 + 4 * ext;
	}
	p->len = p->hdr_len + (uint32_t)((r >> 40) % 1401);
}

/* libsrtp protects into the arena's slot, and the job is written as prepare() would. */
static void job_make(struct engine_fixture *f, struct packet *p, uint32_t slot,
	const struct leg *from, const struct leg *to)
{
	struct xc_job *j = &f->a.job[slot];
	uint8_t *in = f->a.in + (size_t)slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	int len = (int)p->len;

	memcpy(in, p->plain, p->len);
	if (p->rtcp) {
		assert_int_equal(srtp_protect_rtcp(from->send, in, &len), srtp_err_status_ok);
		assert_int_equal(be32(in + p->len) >> 31, 1);
		p->index = be32(in + p->len) & 0x7fffffff;
	} else {
		assert_int_equal(srtp_protect(from->send, in, &len), srtp_err_status_ok);
	}
	*j = (struct xc_job){
		.rx_index = p->index,
		.tx_index = p->index,
		.in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = from->slot + p->rtcp,
		.tx_key = to->slot + p->rtcp,
		.hdr_len = p->hdr_len,
		.body_len = p->len - p->hdr_len,
		.rx_tag_off = p->len + (p->rtcp ? 4 : 0),
		.tx_tag_off = p->len + (p->rtcp ? 4 : 0),
		.ssrc = be32(p->plain + (p->rtcp ? 4 : 8)),
		.flags = p->rtcp ? XC_JOB_RTCP : 0,
	};
	assert_int_equal(len, j->rx_tag_off + f->a.key[j->rx_key].tag_len);
}

static void job_check(
	struct engine_fixture *f, const struct packet *p, uint32_t slot, const struct leg *to)
{
	const struct xc_job *j = &f->a.job[slot];
	uint8_t *out = f->a.out + j->out_off;
	int len = (int)(j->tx_tag_off + f->a.key[j->tx_key].tag_len);

	assert_int_equal(f->a.status[slot], XC_OK);
	if (p->rtcp)
		assert_int_equal(srtp_unprotect_rtcp(to->recv, out, &len), srtp_err_status_ok);
	else
		assert_int_equal(srtp_unprotect(to->recv, out, &len), srtp_err_status_ok);
	assert_int_equal(len, p->len);
	assert_memory_equal(out, p->plain, p->len);
}

static void libsrtp_accepts_what_was_recrypted(void **state)
{
	struct engine_fixture *f = *state;
	static const struct {
		enum srtp_suite_id from, to;
	} T[] = {
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_80},
		{SUITE_AES_CM_128_80, SUITE_AES_CM_128_32},
		{SUITE_AES_CM_128_32, SUITE_AES_CM_128_80},
		{SUITE_AES_CM_128_32, SUITE_AES_CM_128_32},
	};
	static struct packet p[PER_ROUND];
	uint64_t rnd = 3711;

	for (size_t t = 0; t < ARRAY_LEN(T); t++) {
		struct leg from = {.suite = T[t].from, .slot = 2},
			   to = {.suite = T[t].to, .slot = 4};
		/* Up to the wrap of the sequence number and beyond, so that ROC 1 is seen too. */
		uint32_t n = 65536 - ROUNDS * PER_ROUND / 2;

		leg_open(f, &from, 100 + t);
		leg_open(f, &to, 200 + t);
		/* A receiver takes an unknown stream's first packet for ROC 0 when its number is below half a cycle only
		 * by luck of the implementation: so both are told. */
		for (uint32_t warm = 1000; warm < n; warm += 20000) {
			memset(&p[0], 0, sizeof(p[0]));
			p[0].plain[0] = 0x80;
			put_be16(p[0].plain + 2, (uint16_t)warm);
			put_be32(p[0].plain + 8, 0xcafe);
			p[0].len = 20;
			p[0].hdr_len = 12;
			p[0].index = warm;
			job_make(f, &p[0], 0, &from, &to);
			assert_int_equal(
				f->ops->run(f->q, &(struct batch){f->a.job, f->a.status, 1}), 0);
			job_check(f, &p[0], 0, &to);
		}
		for (uint32_t round = 0; round < ROUNDS; round++) {
			for (uint32_t i = 0; i < PER_ROUND; i++, n++) {
				packet_make(&p[i], n, &rnd);
				job_make(f, &p[i], i, &from, &to);
			}
			assert_int_equal(f->ops->run(f->q,
						 &(struct batch){f->a.job, f->a.status, PER_ROUND}),
				0);
			for (uint32_t i = 0; i < PER_ROUND; i++)
				job_check(f, &p[i], i, &to);
		}
		assert_true(n > 65536);
		leg_close(&from);
		leg_close(&to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libsrtp_accepts_what_was_recrypted),
	};

	return cmocka_run_group_tests_name("serial", tests, setup_serial, teardown) ||
		cmocka_run_group_tests_name("opencl", tests, setup_opencl, teardown);
}
