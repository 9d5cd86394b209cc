/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Published vectors (t/vectors/published.json) on the reference (as the mock engine), the serial
 * engine and each variant of the OpenCL engine. A job exposes each primitive. An AES block is the
 * first block of keystream: CM if the input ends in two zero bytes, else F8. HMAC is the tag of a
 * packet that ends in the ROC. GCM has its additional data as the header. Only the reference
 * accepts headers that are not RTP. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/aes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>

#include "batch/engine.h"
#include "engine_cases.h"
#include "engine_mock.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "published.h"
#include "srtp/kdf.h"
#include "srtp/ref.h"

enum { BATCH = 500 };

/* The expected result of a job. */
struct want {
	const struct published *v;
	const uint8_t *body, *tag; /* NULL: not compared */
	uint32_t body_len, tag_len;
	bool taken;
};

struct trial {
	struct engine_fixture *f;
	struct want want[BATCH];
	uint32_t n;
	size_t tried, left_out;
	bool any_header; /* the reference */
};

static const uint8_t zeroes[32];

/* --- Slots and jobs --------------------------------------------------------------------------- */

static uint32_t slot_of(uint32_t n)
{
	return 2 + 2 * n;
}

static struct xc_key *slot_clear(struct trial *t)
{
	struct xc_key *k = &t->f->a.key[slot_of(t->n)];

	memset(k, 0, 2 * sizeof(*k));
	return k;
}

/* Fills a slot with session keys; auth: keep the suite's authentication. */
static void slot_set(struct trial *t, enum srtp_suite_id suite, bool rtcp, bool auth,
	const struct srtp_session_keys *keys)
{
	struct xc_key *k = slot_clear(t) + rtcp;

	srtp_slot_fill(k, srtp_suite_get(suite), keys, rtcp);
	if (!auth) {
		k->auth = XC_AUTH_NULL;
		k->tag_len = 0;
	}
}

/* Writes the first job: a packet with this header and body, to or from the slot's keys. */
struct part {
	const uint8_t *s;
	uint32_t len;
};

static struct xc_job *job_add(
	struct trial *t, bool protect, bool rtcp, struct part hdr, struct part body)
{
	struct xc_job *j = &t->f->a.job[t->n];
	uint32_t key = slot_of(t->n) + rtcp, plain = rtcp;
	uint8_t *in;

	assert_int_equal(t->f->ops->key_changed(t->f->q, slot_of(t->n)), 0);
	*j = (struct xc_job){.in_off = t->n * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.out_off = t->n * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = protect ? plain : key,
		.tx_key = protect ? key : plain,
		.hdr_len = hdr.len,
		.body_len = body.len,
		.rx_tag_off = hdr.len + body.len,
		.tx_tag_off = hdr.len + body.len,
		.flags = rtcp ? XC_JOB_RTCP : 0};
	in = t->f->a.in + j->in_off;
	memset(in, 0, hdr.len + body.len + 32);
	if (hdr.s)
		memcpy(in, hdr.s, hdr.len);
	else if (hdr.len)
		in[0] = 0x80;
	if (body.s)
		memcpy(in + hdr.len, body.s, body.len);
	return j;
}

static void want(struct trial *t, const struct published *v, const uint8_t *body, uint32_t body_len,
	const uint8_t *tag, uint32_t tag_len)
{
	struct xc_job *j = &t->f->a.job[t->n];

	t->want[t->n] = (struct want){
		.v = v, .body = body, .body_len = body_len, .tag = tag, .tag_len = tag_len};
	t->want[t->n].taken =
		t->f->ops->can(t->f->q, &t->f->a.key[j->rx_key], &t->f->a.key[j->tx_key]);
	if (!t->want[t->n].taken) {
		j->rx_key = j->tx_key = 0;
		t->left_out++;
	}
	t->n++;
}

static void flush(struct trial *t)
{
	struct batch b = {.job = t->f->a.job, .status = t->f->a.status, .n = t->n};

	if (t->n == 0)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		b.status[i] = XC_NOT_DONE;
	assert_int_equal(t->f->ops->run(t->f->q, &b), 0);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct want *w = &t->want[i];
		const struct xc_job *j = &b.job[i];
		const uint8_t *out = t->f->a.out + j->out_off;

		if (!w->taken)
			continue;
		if (b.status[i] != XC_OK ||
			(w->body && memcmp(out + j->hdr_len, w->body, w->body_len)) ||
			(w->tag && memcmp(out + j->tx_tag_off, w->tag, w->tag_len)))
			fail_msg("%s, vector %u: not as published (status %u)", w->v->source,
				w->v->n, b.status[i]);
		t->tried++;
	}
	t->n = 0;
}

static struct trial trial_begin(void **state)
{
	struct trial t = {.f = *state};

	t.any_header = t.f->ops == &engine_mock;
	return t;
}

static void trial_end(struct trial *t, const char *what)
{
	flush(t);
	print_message("%s: %zu tried\n", what, t->tried);
	assert_int_equal(t->left_out, 0);
	assert_true(t->tried > 0);
}

/* --- AES blocks ------------------------------------------------------------------------------- */

static enum srtp_suite_id cm_suite(uint32_t key_len)
{
	return key_len == 16    ? SUITE_AES_CM_128_80
		: key_len == 24 ? SUITE_AES_192_CM_80
				: SUITE_AES_256_CM_80;
}

/* The input as counter block 0: salt || 0. */
static void blocks_by_counter_mode(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "block"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];
		struct srtp_session_keys k = {0};

		if (v->b[1][14] || v->b[1][15])
			continue;
		memcpy(k.enc, v->b[0], v->len[0]);
		memcpy(k.salt, v->b[1], 14);
		slot_set(&t, cm_suite(v->len[0]), false, false, &k);
		job_add(&t, true, false, (struct part){NULL, 12}, (struct part){NULL, 16});
		want(&t, v, v->b[2], 16, NULL, 0);
		if (t.n == BATCH)
			flush(&t);
	}
	trial_end(&t, "AES blocks by counter mode");
	published_free(&set);
}

/* F8's first block of keystream is E(k_e, IV'), with IV' = E(k_e XOR m, IV) (RFC 3711 4.1.2). IV is
 * the header without its first byte, then the ROC. A search finds a salt whose IV for the input has
 * a first byte of 0. */
static void f8_iv_search(struct srtp_session_keys *k, uint8_t iv[16], const struct published *v)
{
	uint8_t mask[16];
	AES_KEY aes;

	for (uint32_t n = 0; n < 65536; n++) {
		put_be32(k->salt, n);
		for (int i = 0; i < 16; i++)
			mask[i] = k->enc[i] ^ (i < 14 ? k->salt[i] : 0x55);
		AES_set_decrypt_key(mask, 128, &aes);
		AES_decrypt(v->b[1], iv, &aes);
		if (iv[0] == 0)
			return;
	}
	fail_msg("%s, vector %u: no salt found", v->source, v->n);
}

static void blocks_by_f8(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "block"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];
		struct srtp_session_keys k = {0};
		struct xc_job *j;
		uint8_t iv[16];

		if (v->len[0] != 16)
			continue;
		memcpy(k.enc, v->b[0], 16);
		f8_iv_search(&k, iv, v);
		slot_set(&t, SUITE_F8_128_80, false, false, &k);
		iv[0] = 0x80;
		j = job_add(&t, true, false, (struct part){iv, 12}, (struct part){NULL, 16});
		j->ssrc = be32(iv + 8);
		j->tx_index = j->rx_index = (uint64_t)be32(iv + 12) << 16 | be16(iv + 2);
		want(&t, v, v->b[2], 16, NULL, 0);
		if (t.n == BATCH)
			flush(&t);
	}
	trial_end(&t, "AES-128 blocks by F8");
	published_free(&set);
}

/* --- Keystreams ------------------------------------------------------------------------------- */

static void cm_keystreams(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "cm"), 0);
	for (size_t i = 0; i < set.n; i++)
		for (int protect = 0; protect < 2; protect++) {
			const struct published *v = &set.v[i];
			struct srtp_session_keys k = {0};
			uint32_t first = be16(v->b[2]), len = 16 * first + v->len[3];
			struct xc_job *j;

			/* Only the reference takes a packet of a megabyte, alone in its arena. */
			if (first && !t.any_header)
				continue;
			flush(&t);
			memcpy(k.enc, v->b[0], v->len[0]);
			memcpy(k.salt, v->b[1], 14);
			slot_set(&t, cm_suite(v->len[0]), false, false, &k);
			j = job_add(&t, protect, false, (struct part){NULL, 12},
				(struct part){NULL, len});
			if (!protect)
				memcpy(t.f->a.in + j->in_off + 12 + 16 * first, v->b[3], v->len[3]);
			want(&t, v, NULL, 0, protect ? v->b[3] : zeroes, protect ? v->len[3] : 32);
			j->tx_tag_off = 12 + 16 * first; /* shows where the tag would be: none is
			                                  * written */
			flush(&t);
		}
	trial_end(&t, "counter mode");
	published_free(&set);
}

static void f8_packets(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "f8"), 0);
	for (size_t i = 0; i < set.n; i++)
		for (int protect = 0; protect < 2; protect++) {
			const struct published *v = &set.v[i];
			struct srtp_session_keys k = {0};
			struct xc_job *j;

			memcpy(k.enc, v->b[0], 16);
			memset(k.salt, 0x55, 14);
			memcpy(k.salt, v->b[1], v->len[1]);
			slot_set(&t, SUITE_F8_128_80, false, false, &k);
			j = job_add(&t, protect, false, (struct part){v->b[3], 12},
				(struct part){v->b[protect ? 4 : 5], v->len[4]});
			j->ssrc = be32(v->b[3] + 8);
			j->tx_index = j->rx_index =
				(uint64_t)be32(v->b[2]) << 16 | be16(v->b[3] + 2);
			want(&t, v, v->b[protect ? 5 : 4], v->len[5], NULL, 0);
		}
	trial_end(&t, "F8");
	published_free(&set);
}

/* --- GCM -------------------------------------------------------------------------------------- */

/* Only the reference accepts additional data shorter than an RTP header. For other engines only the
 * ciphertext is compared, which does not depend on it. */
static void gcm_vectors(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "gcm"), 0);
	for (size_t i = 0; i < set.n; i++)
		for (int protect = 0; protect < 2; protect++) {
			const struct published *v = &set.v[i];
			bool whole = v->len[2] >= 12 || t.any_header;
			struct srtp_session_keys k = {0};
			struct xc_job *j;

			if (!whole && !protect)
				continue;
			memcpy(k.enc, v->b[0], v->len[0]);
			memcpy(k.salt, v->b[1], 12);
			slot_set(&t,
				v->len[0] == 16 ? SUITE_AEAD_AES_128_GCM : SUITE_AEAD_AES_256_GCM,
				false, true, &k);
			j = job_add(&t, protect, false,
				(struct part){whole ? v->b[2] : NULL, whole ? v->len[2] : 12},
				(struct part){v->b[protect ? 3 : 4], v->len[3]});
			if (!protect)
				memcpy(t.f->a.in + j->in_off + j->rx_tag_off, v->b[5], 16);
			want(&t, v, v->b[protect ? 4 : 3], v->len[4],
				whole && protect ? v->b[5] : NULL, 16);
			if (t.n == BATCH)
				flush(&t);
		}
	trial_end(&t, "GCM");
	published_free(&set);
}

/* RFC 7714 16 and 17: whole packets. */
static void aead_packets(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "aead"), 0);
	for (size_t i = 0; i < set.n; i++)
		for (int protect = 0; protect < 2; protect++) {
			const struct published *v = &set.v[i];
			bool rtcp = strcmp(v->text[3], "rtcp") == 0;
			bool clear = strcmp(v->text[4], "clear") == 0;
			uint32_t hdr_len = rtcp ? 8 : 12, len = v->len[protect ? 6 : 7];
			struct srtp_session_keys k = {0};
			struct xc_job *j;

			memcpy(k.enc, v->b[1], v->len[1]);
			memcpy(k.salt, v->b[2], 12);
			slot_set(&t,
				v->len[1] == 16 ? SUITE_AEAD_AES_128_GCM : SUITE_AEAD_AES_256_GCM,
				rtcp, true, &k);
			j = job_add(&t, protect, rtcp,
				(struct part){v->b[protect ? 6 : 7], hdr_len},
				(struct part){v->b[protect ? 6 : 7] + hdr_len, len - hdr_len});
			j->body_len = v->len[6] - hdr_len;
			j->rx_tag_off = j->tx_tag_off = v->len[6];
			j->ssrc = be32(v->b[6] + hdr_len - 4);
			j->rx_index = j->tx_index =
				(uint64_t)be16(v->b[5]) << 32 | be32(v->b[5] + 2);
			if (clear)
				j->flags |= protect ? XC_JOB_TX_CLEAR : XC_JOB_RX_CLEAR;
			len = v->len[protect ? 7 : 6]; /* body, tag and index word are contiguous */
			want(&t, v, v->b[protect ? 7 : 6] + hdr_len, len - hdr_len, NULL, 0);
		}
	trial_end(&t, "RFC 7714 packets");
	published_free(&set);
}

/* --- HMAC ------------------------------------------------------------------------------------- */

/* RFC 2104: longer keys are hashed first. */
static void hmac_slot(struct xc_key *k, const uint8_t *key, size_t len)
{
	uint8_t block[64] = {0};

	if (len > sizeof(block))
		SHA1(key, len, block);
	else
		memcpy(block, key, len);
	*k = (struct xc_key){
		.valid = XC_KEY_VALID, .auth = XC_AUTH_HMAC_SHA1, .rounds = 10, .tag_len = 16};
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36;
	memcpy(k->inner, srtp_ref_sha1_init, sizeof(k->inner));
	srtp_ref_sha1_block(k->inner, block);
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36 ^ 0x5c;
	memcpy(k->outer, srtp_ref_sha1_init, sizeof(k->outer));
	srtp_ref_sha1_block(k->outer, block);
}

static void hmac_vectors(void **state)
{
	struct trial t = trial_begin(state);
	struct published_set set;

	assert_int_equal(published_load(&set, "hmac"), 0);
	for (size_t i = 0; i < set.n; i++)
		for (int protect = 0; protect < 2; protect++) {
			const struct published *v = &set.v[i];
			uint32_t hdr_len = v->len[1] >= 16 ? 12 : 0;
			uint32_t body_len = v->len[1] - 4 - hdr_len;
			struct xc_job *j;

			if (!hdr_len && !t.any_header)
				continue;
			hmac_slot(slot_clear(&t), v->b[0], v->len[0]);
			j = job_add(&t, protect, false, (struct part){v->b[1], hdr_len},
				(struct part){v->b[1] + hdr_len, body_len});
			j->rx_index = j->tx_index = (uint64_t)be32(v->b[1] + v->len[1] - 4) << 16;
			if (!protect)
				memcpy(t.f->a.in + j->in_off + j->rx_tag_off, v->b[2], 16);
			want(&t, v, v->b[1] + hdr_len, body_len, protect ? v->b[2] : NULL, 16);
		}
	trial_end(&t, "HMAC-SHA1");
	published_free(&set);
}

/* --- Without an engine ------------------------------------------------------------------------ */

static void session_keys_are_derived(void **state)
{
	struct published_set set;

	(void)state;
	assert_int_equal(published_load(&set, "kdf"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];
		const struct srtp_suite *s = srtp_suite_find(str_from(v->text[0]));
		struct srtp_session_keys k;
		struct srtp_master m = {0};

		assert_non_null(s);
		m.suite = s->id;
		memcpy(m.key, v->b[1], v->len[1]);
		memcpy(m.salt, v->b[2], v->len[2]);
		assert_int_equal(srtp_kdf(&k, &m, false, 0), 0);
		assert_memory_equal(k.enc, v->b[3], v->len[3]);
		assert_memory_equal(k.auth, v->b[4], v->len[4]);
		assert_memory_equal(k.salt, v->b[5], v->len[5]);
	}
	published_free(&set);
}

static void reference_blocks(void **state)
{
	struct published_set set;
	uint8_t rk[240], out[16];

	(void)state;
	assert_int_equal(published_load(&set, "block"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];

		srtp_ref_aes_expand(rk, v->b[0], v->len[0]);
		srtp_ref_aes_block(out, v->b[1], rk, 6 + v->len[0] / 4);
		if (memcmp(out, v->b[2], 16))
			fail_msg("%s, vector %u: not as published", v->source, v->n);
	}
	published_free(&set);
}

/* A typing error in the file would have to be made twice to pass. */
static void the_file_agrees_with_openssl(void **state)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	struct published_set set;
	uint8_t out[PUBLISHED_MAX_LEN], tag[20];
	int n;

	(void)state;
	assert_int_equal(published_load(&set, "block"), 0);
	assert_true(set.n > 1000);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];
		AES_KEY k;

		AES_set_encrypt_key(v->b[0], 8 * (int)v->len[0], &k);
		AES_encrypt(v->b[1], out, &k);
		assert_memory_equal(out, v->b[2], 16);
	}
	published_free(&set);
	assert_int_equal(published_load(&set, "gcm"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];

		assert_int_equal(EVP_EncryptInit_ex(c,
					 v->len[0] == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm(),
					 NULL, v->b[0], v->b[1]),
			1);
		EVP_EncryptUpdate(c, NULL, &n, v->b[2], (int)v->len[2]);
		EVP_EncryptUpdate(c, out, &n, v->b[3], (int)v->len[3]);
		EVP_EncryptFinal_ex(c, tag, &n);
		EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, tag);
		assert_memory_equal(out, v->b[4], v->len[4]);
		assert_memory_equal(tag, v->b[5], 16);
	}
	published_free(&set);
	assert_int_equal(published_load(&set, "hmac"), 0);
	for (size_t i = 0; i < set.n; i++) {
		const struct published *v = &set.v[i];

		HMAC(EVP_sha1(), v->b[0], (int)v->len[0], v->b[1], v->len[1], tag, NULL);
		assert_memory_equal(tag, v->b[2], 20);
	}
	published_free(&set);
	EVP_CIPHER_CTX_free(c);
}

/* --- Engines ---------------------------------------------------------------------------------- */

static int setup_mock(void **state)
{
	return engine_setup(state, &engine_mock, &(struct engine_config){.device = ""});
}

static int setup_serial(void **state)
{
	return engine_setup(state, &engine_serial, &(struct engine_config){.device = ""});
}

#define OPENCL_SETUP(name, how)                                                 \
	static int name(void **state)                                           \
	{                                                                       \
		return engine_setup(state, &engine_opencl,                      \
			&(struct engine_config){.device = "", .flags = (how)}); \
	}
OPENCL_SETUP(setup_opencl, 0)
OPENCL_SETUP(setup_portable, ENGINE_PORTABLE_AES)
OPENCL_SETUP(setup_scalar, ENGINE_SCALAR_LANES)
OPENCL_SETUP(setup_gpu, ENGINE_SCALAR_LANES | ENGINE_PORTABLE_AES | ENGINE_OWN_MEMORY)

/* PoCL frees some memory only when the process ends (for LeakSanitizer). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

int main(void)
{
	static const struct CMUnitTest no_engine[] = {
		cmocka_unit_test(the_file_agrees_with_openssl),
		cmocka_unit_test(reference_blocks),
		cmocka_unit_test(session_keys_are_derived),
	};
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_by_counter_mode),
		cmocka_unit_test(blocks_by_f8),
		cmocka_unit_test(cm_keystreams),
		cmocka_unit_test(f8_packets),
		cmocka_unit_test(gcm_vectors),
		cmocka_unit_test(aead_packets),
		cmocka_unit_test(hmac_vectors),
	};
	int failed = cmocka_run_group_tests_name("no engine", no_engine, NULL, NULL);

	failed += cmocka_run_group_tests_name("reference", tests, setup_mock, engine_teardown);
	failed += cmocka_run_group_tests_name("serial", tests, setup_serial, engine_teardown);
	failed += cmocka_run_group_tests_name("opencl", tests, setup_opencl, engine_teardown);
	failed +=
		cmocka_run_group_tests_name("portable AES", tests, setup_portable, engine_teardown);
	failed += cmocka_run_group_tests_name("scalar lanes", tests, setup_scalar, engine_teardown);
	failed += cmocka_run_group_tests_name("as on a GPU", tests, setup_gpu, engine_teardown);
	return failed;
}
