/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libsrtp2 in the benchmark, twice: Debian's binary, which uses NSS, and the same source built on
 * OpenSSL (tools/peer-libsrtp.sh). Unprotects and protects in place, with two sessions per stream
 * as in a relay. Both are loaded here with separate symbols, which is checked. */
#include <srtp2/srtp.h>
#include <srtp2/crypto_types.h>
/* Rename symbols that clash with ours. */
#undef SRTP_MAX_KEY_LEN
#undef SRTP_MAX_MKI_LEN

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

/* The library's functions, with the types of its header. */
#define SRTP2_CALLS(X)    \
	X(srtp_init)      \
	X(srtp_create)    \
	X(srtp_dealloc)   \
	X(srtp_protect)   \
	X(srtp_unprotect) \
	X(srtp_get_version_string)

/* NSS takes minutes to close this many sessions. So they stay open, and NSS is not measured
 * again. */
enum { NSS_CLOSES = 2000, NSS_OPENS = 10000 };

struct peer {
	void *lib;
	bool started; /* opened by an earlier load */
#define X(f) __typeof__(&f) f;
	SRTP2_CALLS(X)
#undef X
	uint32_t streams;
	srtp_t *rx, *tx; /* [streams], NULL for a plain side */
	bool stays;      /* sessions are not closed */
	char name[128];
};

static void aes_cm(srtp_crypto_policy_t *p, int cipher, const struct srtp_suite *s)
{
	p->cipher_type = (srtp_cipher_type_id_t)cipher;
	p->cipher_key_len = s->key_len + SRTP_SALT_LEN;
	p->auth_type = SRTP_HMAC_SHA1;
	p->auth_key_len = 20;
	p->auth_tag_len = s->rtp_tag_len;
	p->sec_serv = cipher == SRTP_NULL_CIPHER ? sec_serv_auth : sec_serv_conf_and_auth;
}

static bool policy_of(srtp_crypto_policy_t *p, const struct srtp_suite *s)
{
	static const int cm[] = {SRTP_AES_ICM_128, SRTP_AES_ICM_192, SRTP_AES_ICM_256};

	memset(p, 0, sizeof(*p));
	switch (s->cipher) {
	case XC_CIPHER_AES_CM:
		aes_cm(p, cm[(s->key_len - 16) / 8], s);
		return true;
	case XC_CIPHER_NULL:
		aes_cm(p, SRTP_NULL_CIPHER, s);
		return s->auth == XC_AUTH_HMAC_SHA1;
	case XC_CIPHER_GCM:
		p->cipher_type = s->key_len == 16 ? SRTP_AES_GCM_128 : SRTP_AES_GCM_256;
		p->cipher_key_len = s->key_len + s->salt_len;
		p->auth_type = SRTP_NULL_AUTH;
		p->auth_tag_len = s->rtp_tag_len;
		p->sec_serv = sec_serv_conf_and_auth;
		return true;
	default:
		return false; /* F8 */
	}
}

/* libsrtp2 gets AES-192 wrong on either library: results differ from RFC 6188's. */
static bool srtp2_can(const struct srtp_suite *s)
{
	srtp_crypto_policy_t p;
	bool wrong = s->cipher == XC_CIPHER_AES_CM && s->key_len == 24;

	return !wrong && (s->id == SUITE_PLAIN || policy_of(&p, s));
}

static bool session(struct peer *p, srtp_t *out, const struct srtp_master *m, uint32_t stream)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	uint8_t key[SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN];
	srtp_policy_t policy = {.key = key, .window_size = 128, .allow_repeat_tx = 1};

	if (s->id == SUITE_PLAIN)
		return true;
	if (!policy_of(&policy.rtp, s))
		return false;
	policy.rtcp = policy.rtp;
	memcpy(key, m->key, s->key_len);
	memcpy(key + s->key_len, m->salt, s->salt_len);
	policy.ssrc = (srtp_ssrc_t){.type = ssrc_specific, .value = load_ssrc(stream)};
	return p->srtp_create(out, &policy) == srtp_err_status_ok;
}

static void srtp2_close(void *ptr)
{
	struct peer *p = ptr;

	for (uint32_t i = 0; i < p->streams && !p->stays; i++) {
		if (p->rx[i])
			p->srtp_dealloc(p->rx[i]);
		if (p->tx[i])
			p->srtp_dealloc(p->tx[i]);
	}
	free(p->rx);
	free(p->tx);
	free(p);
	/* The library stays loaded: other loads may use it, and NSS must not be unloaded. */
}

static bool calls_find(struct peer *p, const char *file)
{
	p->started = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != NULL;
	p->lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!p->lib)
		return false;
#define X(f)                                 \
	*(void **)&p->f = dlsym(p->lib, #f); \
	if (!p->f)                           \
		return false;
	SRTP2_CALLS(X)
#undef X
	return true;
}

/* Whether the called code comes from this file, not from a libsrtp2 loaded earlier. */
static bool is_own(const struct peer *p, const char *part)
{
	Dl_info at;

	return dladdr(*(void *const *)&p->srtp_protect, &at) && at.dli_fname &&
		strstr(at.dli_fname, part);
}

static int srtp2_open(struct peer *p, const struct load *l, char *err, size_t err_len)
{
	Dl_info at;

	if (!p->started && p->srtp_init() != srtp_err_status_ok) {
		snprintf(err, err_len, "libsrtp2 does not start");
		return -EIO;
	}
	p->rx = calloc(l->c.streams, sizeof(srtp_t));
	p->tx = calloc(l->c.streams, sizeof(srtp_t));
	if (!p->rx || !p->tx)
		return -ENOMEM;
	p->streams = l->c.streams;
	for (uint32_t i = 0; i < l->c.streams; i++) {
		if (session(p, &p->rx[i], &l->master[2 * i], i) &&
			session(p, &p->tx[i], &l->master[2 * i + 1], i))
			continue;
		snprintf(err, err_len, "libsrtp2 gives no session for stream %u", i);
		return -EIO;
	}
	dladdr(*(void **)&p->srtp_protect, &at);
	snprintf(p->name, sizeof(p->name), "%s (%s)", p->srtp_get_version_string(),
		strrchr(at.dli_fname, '/') ? strrchr(at.dli_fname, '/') + 1 : at.dli_fname);
	return 0;
}

/* A libsrtp2. part: of the path of the file that is loaded then. */
struct library {
	const char *file, *part, *help;
};

static int open_from(
	const struct library *lib, void **out, const struct load *l, char *err, size_t err_len)
{
	struct peer *p = calloc(1, sizeof(*p));
	int res = -ENOENT;

	if (!p)
		return -ENOMEM;
	if (!calls_find(p, lib->file) || !is_own(p, lib->part))
		snprintf(err, err_len, "%s", lib->help);
	else
		res = srtp2_open(p, l, err, err_len);
	if (res) {
		srtp2_close(p);
		return res;
	}
	*out = p;
	return 0;
}

static int nss_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	static const struct library lib = {"libsrtp2.so.1", "libsrtp2.so.1",
		"Debian's libsrtp2 is not installed (package libsrtp2-1)"};
	int res;

	if (l->c.streams > NSS_OPENS) {
		snprintf(err, err_len,
			"with more than %d streams it takes minutes to open, and milliseconds for a packet",
			NSS_OPENS);
		return -EBUSY;
	}
	if (env->nss_full) {
		snprintf(err, err_len,
			"its sessions for more streams are still open; ask for fewer first");
		return -EBUSY;
	}
	res = open_from(&lib, out, l, err, err_len);
	if (!res && l->c.streams > NSS_CLOSES) {
		env->nss_full = ((struct peer *)*out)->stays = true;
		fprintf(stderr,
			"libsrtp-nss: its %u sessions are left open, which would take minutes to close; "
			"loads after this one go without it\n",
			2 * l->c.streams);
	}
	return res;
}

static int openssl_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	char file[600];
	const struct library lib = {
		file, "libsrtp2-openssl.so", "not built yet (make peer-libsrtp)"};

	snprintf(file, sizeof(file), "%s/libsrtp2-openssl.so", env->peers);
	return open_from(&lib, out, l, err, err_len);
}

static const char *srtp2_device(const void *p)
{
	return ((const struct peer *)p)->name;
}

static int srtp2_run(void *ptr, struct load *l, uint32_t n)
{
	struct peer *p = ptr;
	int err = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct xc_job *j = &l->a.job[i];
		uint32_t stream = load_stream(j);
		uint8_t *pkt = l->a.in + j->in_off;
		int len = (int)(j->rx_tag_off + l->a.key[j->rx_key].tag_len);

		if (p->rx[stream])
			err |= (int)p->srtp_unprotect(p->rx[stream], pkt, &len);
		if (p->tx[stream])
			err |= (int)p->srtp_protect(p->tx[stream], pkt, &len);
	}
	return err ? -EBADMSG : 0;
}

const struct bench_impl bench_impl_srtp_nss = {.name = "libsrtp-nss", /* Debian builds it on NSS */
	.in_place = true,
	.fresh = true,
	.per_packet = true,
	.can = srtp2_can,
	.open = nss_open,
	.close = srtp2_close,
	.device = srtp2_device,
	.run = srtp2_run};

const struct bench_impl bench_impl_srtp_openssl = {.name = "libsrtp-openssl",
	.in_place = true,
	.fresh = true,
	.per_packet = true,
	.can = srtp2_can,
	.open = openssl_open,
	.close = srtp2_close,
	.device = srtp2_device,
	.run = srtp2_run};
