/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests against libsrtp2. Each engine turns packets that libsrtp2 protected from one suite's key to
 * another's, all 13 x 13 pairs. libsrtp2 must accept the result and return the original bytes. Runs
 * with Debian's libsrtp2 (on NSS), and with the same source on OpenSSL if build/peers has it
 * (tools/peer-libsrtp.sh). The reference replaces libsrtp2 for suites it lacks (F8) or gets wrong.
 * Its AES-192 derives session keys with AES-256 over master key and salt, which is not RFC 6188 3.
 * Two of three pairs change the SSRC. XCIPHER_SEED repeats a run. */
#include <dlfcn.h>
#include <libgen.h>
#include <srtp2/crypto_types.h>
#include <srtp2/srtp.h>
#include <stdio.h>
#include <unistd.h>
#undef SRTP_MAX_KEY_LEN
#undef SRTP_MAX_MKI_LEN

#include "batch/engine.h"
#include "engine_cases.h"
#include "base/secmem.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/ref.h"

enum { ROUNDS = 24, PAIRS = SUITE_COUNT * SUITE_COUNT, MKI_LEN = 4 };

/* One libsrtp2, and its sessions: [suite][with MKI]. */
struct oracle {
	const char *name;
	void *lib;
	srtp_err_status_t (*init)(void), (*shutdown)(void);
	srtp_err_status_t (*create)(srtp_t *, const srtp_policy_t *);
	srtp_err_status_t (*dealloc)(srtp_t);
	srtp_err_status_t (*protect)(srtp_t, void *, int *, unsigned, unsigned);
	srtp_err_status_t (*unprotect)(srtp_t, void *, int *, unsigned);
	srtp_err_status_t (*protect_rtcp)(srtp_t, void *, int *, unsigned, unsigned);
	srtp_err_status_t (*unprotect_rtcp)(srtp_t, void *, int *, unsigned);
	srtp_t send[SUITE_COUNT][2], recv[SUITE_COUNT][2];
};

/* A pair of suites with or without an MKI on either side has a stream of its own. */
struct stream {
	uint64_t index;
	uint32_t srtcp_index;
};

struct packet {
	uint8_t plain[ARENA_MAX_PACKET];
	uint32_t len, hdr_len, ssrc;
	int rx, tx;
	bool rx_mki, tx_mki, rtcp;
};

struct run {
	struct engine_fixture *f;
	struct oracle *o;
	uint64_t rnd, seed;
	struct stream stream[PAIRS][4];
	struct packet p[PAIRS];
	bool can[PAIRS];
};

static struct oracle debian = {.name = "libsrtp2 on NSS"};
static struct oracle openssl = {.name = "libsrtp2 on OpenSSL"};
static struct oracle *oracle_now;
static const uint8_t mki[MKI_LEN] = {0xca, 0xfe, 0, 1};

/* --- libsrtp2 --------------------------------------------------------------------------------- */

#define SYMBOL(field, symbol) (*(void **)&o->field = dlsym(o->lib, symbol)) != NULL

static bool oracle_load(struct oracle *o, const char *path)
{
	o->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return o->lib && SYMBOL(init, "srtp_init") && SYMBOL(shutdown, "srtp_shutdown") &&
		SYMBOL(create, "srtp_create") && SYMBOL(dealloc, "srtp_dealloc") &&
		SYMBOL(protect, "srtp_protect_mki") && SYMBOL(unprotect, "srtp_unprotect_mki") &&
		SYMBOL(protect_rtcp, "srtp_protect_rtcp_mki") &&
		SYMBOL(unprotect_rtcp, "srtp_unprotect_rtcp_mki") && o->init() == 0;
}

/* In the folder of this program (BUILD/t), or in make's default build. */
static bool openssl_load(void)
{
	char exe[4096] = "", path[4200];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n > 0) {
		snprintf(path, sizeof(path), "%s/../peers/libsrtp2-openssl.so", dirname(exe));
		if (access(path, R_OK) == 0)
			return oracle_load(&openssl, path);
	}
	return access("build/peers/libsrtp2-openssl.so", R_OK) == 0 &&
		oracle_load(&openssl, "build/peers/libsrtp2-openssl.so");
}

static bool oracle_has(const struct srtp_suite *s)
{
	return s->id != SUITE_PLAIN && s->cipher != XC_CIPHER_AES_F8 && s->key_len != 24;
}

/* NULL where the reference replaces it. libsrtp2 2.5 looks for SRTCP's MKI as if the tag had SRTP's
 * length. */
static srtp_t session_of(srtp_t const session[SUITE_COUNT][2], int suite, bool with_mki, bool rtcp)
{
	const struct srtp_suite *s = srtp_suite_get((enum srtp_suite_id)suite);

	if (rtcp && with_mki && s->rtp_tag_len != s->rtcp_tag_len)
		return NULL;
	return session[suite][with_mki];
}

static void policy_set(srtp_crypto_policy_t *p, const struct srtp_suite *s, int tag_len)
{
	static const int cm[] = {SRTP_AES_ICM_128, SRTP_AES_ICM_192, SRTP_AES_ICM_256};

	p->cipher_key_len = s->key_len + s->salt_len;
	p->auth_tag_len = tag_len;
	p->sec_serv = sec_serv_conf_and_auth;
	if (s->cipher == XC_CIPHER_GCM) {
		p->cipher_type = s->key_len == 16 ? SRTP_AES_GCM_128 : SRTP_AES_GCM_256;
		p->auth_type = SRTP_NULL_AUTH;
		return;
	}
	p->auth_type = SRTP_HMAC_SHA1;
	p->auth_key_len = 20;
	p->cipher_type = s->cipher == XC_CIPHER_NULL ? SRTP_NULL_CIPHER : cm[s->key_len / 8 - 2];
	if (s->cipher == XC_CIPHER_NULL)
		p->sec_serv = sec_serv_auth;
}

static srtp_t session_open(
	const struct oracle *o, const struct srtp_master *m, bool with_mki, srtp_ssrc_type_t dir)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	uint8_t key[SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN], id[MKI_LEN];
	srtp_master_key_t master = {.key = key, .mki_id = id, .mki_size = MKI_LEN};
	srtp_master_key_t *masters[1] = {&master};
	srtp_policy_t p;
	srtp_t session;

	memset(&p, 0, sizeof(p));
	memcpy(id, mki, MKI_LEN);
	memcpy(key, m->key, s->key_len);
	memcpy(key + s->key_len, m->salt, s->salt_len);
	policy_set(&p.rtp, s, s->rtp_tag_len);
	policy_set(&p.rtcp, s, s->rtcp_tag_len);
	if (with_mki) {
		p.keys = masters;
		p.num_master_keys = 1;
	} else {
		p.key = key;
	}
	p.ssrc.type = dir;
	p.window_size = 128;
	if (o->create(&session, &p) != srtp_err_status_ok)
		fail_msg("%s does not take %s", o->name, s->name);
	return session;
}

/* Slots 4s and 4s + 2: to receive and to send under suite s. */
static void suites_open(struct run *r)
{
	struct oracle *o = r->o;

	for (int s = 0; s < SUITE_COUNT; s++)
		for (int tx = 0; tx < 2; tx++) {
			struct srtp_master m;
			uint32_t slot = 4 * (uint32_t)s + 2 * (uint32_t)tx;

			sample_master(&m, (enum srtp_suite_id)s, r->seed + slot);
			assert_int_equal(srtp_key_fill(&r->f->a.key[slot], &m), 0);
			assert_int_equal(r->f->ops->key_changed(r->f->q, slot), 0);
			for (int k = 0; k < 2 && oracle_has(srtp_suite_get(m.suite)); k++)
				*(tx ? &o->recv[s][k] : &o->send[s][k]) = session_open(
					o, &m, k, tx ? ssrc_any_inbound : ssrc_any_outbound);
		}
}

static void suites_close(struct oracle *o)
{
	for (int s = 0; s < SUITE_COUNT; s++)
		for (int k = 0; k < 2; k++) {
			if (o->send[s][k])
				o->dealloc(o->send[s][k]);
			if (o->recv[s][k])
				o->dealloc(o->recv[s][k]);
			o->send[s][k] = o->recv[s][k] = NULL;
		}
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Lengths around block sizes of AES and SHA-1, tiny, long and random ones. */
static uint32_t body_len(uint64_t r, uint32_t hdr_len)
{
	uint32_t any = (uint32_t)(r >> 16), most = ARENA_MAX_PACKET - hdr_len - 16 - 4 - MKI_LEN;

	switch (r & 7) {
	case 0:
		return any % (most + 1);
	case 1:
		return most - any % 20;
	case 2:
	case 3: /* with the ROC appended, the message ends within 13 bytes of a block's end */
		return 64 * (2 + any % 20) - hdr_len % 64 + (any >> 8) % 15 - 13;
	default:
		return any % 67;
	}
}

/* RTP with 0 to 15 CSRCs and perhaps an extension; RTCP of whole words (RFC 3550 6.4). */
static void packet_make(struct run *r, struct packet *p, const struct stream *s)
{
	uint64_t x = sample_random(&r->rnd);
	uint32_t cc = x % 3 ? 0 : (x >> 8) % 16, ext = (x >> 16) % 5;

	for (size_t i = 0; i < sizeof(p->plain); i++)
		p->plain[i] = (uint8_t)sample_random(&r->rnd);
	p->rtcp = (x >> 20) % 4 == 0;
	if (p->rtcp) {
		p->hdr_len = 8;
		p->len = 8 + body_len(x >> 24, 8) / 4 * 4;
		p->plain[0] = 0x80;
		p->plain[1] = 200;
		put_be16(p->plain + 2, (uint16_t)(p->len / 4 - 1));
		put_be32(p->plain + 4, p->ssrc);
		return;
	}
	p->plain[0] = (uint8_t)(0x80 | cc);
	p->plain[1] &= 0x7f;
	put_be16(p->plain + 2, (uint16_t)s->index);
	put_be32(p->plain + 8, p->ssrc);
	p->hdr_len = 12 + 4 * cc;
	if ((x >> 22) % 3 == 0) {
		p->plain[0] |= 0x10;
		put_be16(p->plain + p->hdr_len + 2, (uint16_t)ext);
		p->hdr_len += 4 + 4 * ext;
	}
	p->len = p->hdr_len + body_len(x >> 24, p->hdr_len);
}

/* RFC 3711 3.1 and 3.4: [word,] MKI, tag. RFC 7714 8.2 and 9.2: tag, [word,] MKI. */
static uint32_t tag_off(const struct packet *p, int suite, bool with_mki)
{
	const struct srtp_suite *s = srtp_suite_get((enum srtp_suite_id)suite);

	if (s->id == SUITE_PLAIN || s->auth == XC_AUTH_GCM)
		return p->len;
	return p->len + (p->rtcp ? 4 : 0) + (with_mki ? MKI_LEN : 0);
}

static uint32_t wire_len(const struct packet *p, int suite, bool with_mki)
{
	const struct srtp_suite *s = srtp_suite_get((enum srtp_suite_id)suite);

	if (s->id == SUITE_PLAIN)
		return p->len;
	return p->len + (p->rtcp ? 4u + s->rtcp_tag_len : s->rtp_tag_len) +
		(with_mki ? MKI_LEN : 0);
}

/* Protects with the reference, in the place of libsrtp2. */
static void ref_protect(struct run *r, const struct xc_job *j, const struct packet *p)
{
	struct xc_job one = *j;

	one.in_off = 0;
	one.out_off = j->in_off;
	one.rx_key = p->rtcp;
	one.tx_key = j->rx_key;
	one.tx_index = j->rx_index;
	one.flags =
		(p->rtcp ? XC_JOB_RTCP : 0) | (j->flags & XC_JOB_RX_CLEAR ? XC_JOB_TX_CLEAR : 0);
	one.ssrc_change = 0;
	one.rx_tag_off = p->len;
	one.tx_tag_off = j->rx_tag_off;
	assert_int_equal(srtp_ref_job(&one, r->f->a.key, p->plain, r->f->a.in), XC_OK);
}

static void in_make(struct run *r, struct packet *p, struct stream *s, struct xc_job *j)
{
	uint8_t *in = r->f->a.in + j->in_off;
	srtp_t session = session_of(r->o->send, p->rx, p->rx_mki, p->rtcp);
	int len = (int)p->len, err;

	j->rx_index = p->rtcp ? s->srtcp_index : s->index;
	memcpy(in, p->plain, p->len);
	if (p->rx != SUITE_PLAIN && !session) {
		ref_protect(r, j, p);
	} else if (p->rx != SUITE_PLAIN) {
		err = p->rtcp ? r->o->protect_rtcp(session, in, &len, p->rx_mki, 0)
			      : r->o->protect(session, in, &len, p->rx_mki, 0);
		assert_int_equal(err, srtp_err_status_ok);
		assert_int_equal(len, wire_len(p, p->rx, p->rx_mki));
	}
	if (p->rtcp && session) { /* libsrtp2 selected the key */
		uint32_t word = srtp_suite_get((enum srtp_suite_id)p->rx)->auth == XC_AUTH_GCM
			? p->len + 16
			: p->len;

		j->rx_index = s->srtcp_index = be32(in + word) & 0x7fffffff;
	}
	j->tx_index = j->rx_index;
	s->srtcp_index++;
}

static void job_make(struct run *r, uint32_t n)
{
	struct packet *p = &r->p[n];
	struct xc_job *j = &r->f->a.job[n];
	uint64_t x = sample_random(&r->rnd);
	struct stream *s;

	p->rx = (int)n / SUITE_COUNT;
	p->tx = (int)n % SUITE_COUNT;
	p->rx_mki = p->rx != SUITE_PLAIN && x & 1;
	p->tx_mki = p->tx != SUITE_PLAIN && x & 2;
	p->ssrc = 0x10000 + 4 * n + 2 * p->rx_mki + p->tx_mki;
	s = &r->stream[n][2 * p->rx_mki + p->tx_mki];
	packet_make(r, p, s);
	*j = (struct xc_job){
		.in_off = n * ARENA_SLOT_LEN + ARENA_HEADROOM + (x >> 8) % 64,
		.out_off = n * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.rx_key = 4 * (uint32_t)p->rx + p->rtcp,
		.tx_key = 4 * (uint32_t)p->tx + 2 + p->rtcp,
		.hdr_len = p->hdr_len,
		.body_len = p->len - p->hdr_len,
		.rx_tag_off = tag_off(p, p->rx, p->rx_mki),
		.tx_tag_off = tag_off(p, p->tx, p->tx_mki),
		.ssrc = p->ssrc,
		.flags = p->rtcp ? XC_JOB_RTCP : 0,
		.ssrc_change = n % 3 ? 0x40000000 : 0,
	};
	/* With the NULL cipher, libsrtp2 sends and accepts SRTCP with E = 0 only. */
	if (p->rtcp && j->rx_key && r->f->a.key[j->rx_key].cipher == XC_CIPHER_NULL)
		j->flags |= XC_JOB_RX_CLEAR;
	if (p->rtcp && r->f->a.key[j->tx_key].cipher == XC_CIPHER_NULL)
		j->flags |= XC_JOB_TX_CLEAR;
	in_make(r, p, s, j);
	s->index += !p->rtcp;
	r->can[n] = r->f->ops->can(r->f->q, &r->f->a.key[j->rx_key], &r->f->a.key[j->tx_key]);
	if (!r->can[n])
		j->rx_key = j->tx_key = 0;
}

/* Unprotects the engine's result by libsrtp2, or by the reference. */
static bool out_right(struct run *r, uint32_t n)
{
	struct packet *p = &r->p[n];
	const struct xc_job *j = &r->f->a.job[n];
	uint8_t out[ARENA_SLOT_LEN];
	srtp_t session = session_of(r->o->recv, p->tx, p->tx_mki, p->rtcp);
	int len = (int)wire_len(p, p->tx, p->tx_mki), err;
	bool gcm = srtp_suite_get((enum srtp_suite_id)p->tx)->auth == XC_AUTH_GCM;

	memcpy(out, r->f->a.out + j->out_off, (size_t)len);
	if (p->tx_mki)
		memcpy(gcm ? out + len - MKI_LEN : out + j->tx_tag_off - MKI_LEN, mki, MKI_LEN);
	if (session) {
		err = p->rtcp ? r->o->unprotect_rtcp(session, out, &len, p->tx_mki)
			      : r->o->unprotect(session, out, &len, p->tx_mki);
		if (err || len != (int)p->len) {
			print_error("%s: error %d, length %d\n", r->o->name, err, len);
			return false;
		}
	} else if (p->tx != SUITE_PLAIN) {
		struct xc_job back = *j;

		back.in_off = back.out_off = 0;
		back.rx_key = j->tx_key;
		back.ssrc ^= j->ssrc_change;
		back.ssrc_change = 0;
		back.flags = (p->rtcp ? XC_JOB_RTCP : 0) |
			(j->flags & XC_JOB_TX_CLEAR ? XC_JOB_RX_CLEAR : 0);
		back.tx_key = p->rtcp;
		back.rx_tag_off = j->tx_tag_off;
		back.tx_tag_off = p->len;
		if (srtp_ref_job(&back, r->f->a.key, out, r->f->want) != XC_OK)
			return false;
		memcpy(out, r->f->want, p->len);
	}
	put_be32(p->plain + (p->rtcp ? 4 : 8), j->ssrc ^ j->ssrc_change);
	return memcmp(out, p->plain, p->len) == 0;
}

static void budget_run(struct run *r)
{
	struct batch b = {.job = r->f->a.job, .status = r->f->a.status, .n = PAIRS};

	for (uint32_t n = 0; n < PAIRS; n++) {
		job_make(r, n);
		b.status[n] = XC_NOT_DONE;
	}
	assert_int_equal(r->f->ops->run(r->f->q, &b), 0);
	for (uint32_t n = 0; n < PAIRS; n++) {
		const struct packet *p = &r->p[n];

		if (!r->can[n] || (b.status[n] == XC_OK && out_right(r, n)))
			continue;
		fail_msg(
			"%s, XCIPHER_SEED=%llu: %s to %s, %s of %u + %u bytes, MKI %d to %d: status %u, or wrong",
			r->o->name, (unsigned long long)r->seed,
			srtp_suite_get((enum srtp_suite_id)p->rx)->name,
			srtp_suite_get((enum srtp_suite_id)p->tx)->name, p->rtcp ? "RTCP" : "RTP",
			p->hdr_len, p->len - p->hdr_len, p->rx_mki, p->tx_mki, b.status[n]);
	}
}

static void libsrtp_accepts_what_was_recrypted(void **state)
{
	struct run *r = calloc(1, sizeof(*r));
	const char *seed = getenv("XCIPHER_SEED");
	unsigned pairs = 0;

	assert_non_null(r);
	r->f = *state;
	r->o = oracle_now;
	if (seed)
		r->seed = strtoull(seed, NULL, 0);
	else
		assert_int_equal(secmem_random(&r->seed, 4), 0);
	r->rnd = r->seed;
	suites_open(r);
	/* The sequence number wraps, so that ROC 1 is tested, too. */
	for (int n = 0; n < PAIRS; n++)
		for (int k = 0; k < 4; k++)
			r->stream[n][k] = (struct stream){.index = 65533, .srtcp_index = 1};
	for (int round = 0; round < ROUNDS; round++)
		budget_run(r);
	for (int n = 0; n < PAIRS; n++)
		pairs += r->can[n];
	print_message("%s, %u of %d pairs, %d packets each, seed %llu\n", r->o->name, pairs, PAIRS,
		ROUNDS, (unsigned long long)r->seed);
	assert_int_equal(pairs, PAIRS);
	suites_close(r->o);
	free(r);
}

/* --- Engines ---------------------------------------------------------------------------------- */

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
	return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:libnss\nleak:libsrtp\n";
}

static int oracle_run(struct oracle *o)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(libsrtp_accepts_what_was_recrypted),
	};
	int failed;

	oracle_now = o;
	failed = cmocka_run_group_tests_name("serial", tests, setup_serial, engine_teardown);
	failed += cmocka_run_group_tests_name("opencl", tests, setup_opencl, engine_teardown);
	failed +=
		cmocka_run_group_tests_name("portable AES", tests, setup_portable, engine_teardown);
	failed += cmocka_run_group_tests_name("scalar lanes", tests, setup_scalar, engine_teardown);
	failed += cmocka_run_group_tests_name("as on a GPU", tests, setup_gpu, engine_teardown);
	o->shutdown();
	return failed;
}

int main(void)
{
	int failed;

	if (!oracle_load(&debian, "libsrtp2.so.1")) {
		fprintf(stderr, "libsrtp2.so.1 cannot be used: %s\n", dlerror());
		return 1;
	}
	failed = oracle_run(&debian);
	if (openssl_load())
		failed += oracle_run(&openssl);
	else
		fprintf(stderr,
			"SKIPPED: libsrtp2 on OpenSSL (a second oracle) is not there; tools/peer-libsrtp.sh builds it\n");
	return failed;
}
