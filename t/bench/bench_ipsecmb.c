/* SPDX-License-Identifier: GPL-2.0-or-later */
/* intel-ipsec-mb in the benchmark: hand-written multi-buffer assembly. One job verifies and
 * decrypts, another encrypts and tags, both in place. A batch is submitted entirely before it is
 * flushed. The library is loaded if installed. */
#include "bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>

enum { MAC_LEN = 20 };

struct peer {
	void *lib;
	IMB_MGR *mgr;
	void (*mgr_free)(IMB_MGR *);
	char name[64];
	uint8_t (*mac)[MAC_LEN], (*iv)[16], (*got)[16]; /* [batch] */
	struct gcm_key_data *gcm; /* [slots of the key table / 2]; NULL without GCM */
};

static bool ipsecmb_can(const struct srtp_suite *s)
{
	return s->cipher != XC_CIPHER_AES_F8;
}

static void ipsecmb_close(void *ptr)
{
	struct peer *p = ptr;

	if (p->mgr)
		p->mgr_free(p->mgr);
	if (p->lib)
		dlclose(p->lib);
	free(p->mac);
	free(p->iv);
	free(p->got);
	free(p->gcm);
	free(p);
}

/* RFC 7714: the key, and the powers of H that the library needs. */
static int gcm_prepare(struct peer *p, const struct load *l)
{
	for (uint32_t i = 2; i < l->a.key_slots; i += 2) {
		const struct xc_key *k = &l->a.key[i];

		if (k->cipher != XC_CIPHER_GCM)
			continue;
		if (!p->gcm)
			p->gcm = aligned_alloc(64, l->a.key_slots / 2 * sizeof(*p->gcm));
		if (!p->gcm)
			return -ENOMEM;
		if (k->rounds == 10)
			IMB_AES128_GCM_PRE(p->mgr, k->rk, &p->gcm[i / 2]);
		else
			IMB_AES256_GCM_PRE(p->mgr, k->rk, &p->gcm[i / 2]);
	}
	return 0;
}

static int ipsecmb_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	struct peer *p = calloc(1, sizeof(*p));
	IMB_MGR *(*mgr_alloc)(uint64_t) = NULL;
	void (*mgr_init)(IMB_MGR *, IMB_ARCH *) = NULL;
	const char *(*version)(void) = NULL;
	IMB_ARCH arch;

	(void)env;
	if (!p)
		return -ENOMEM;
	p->lib = dlopen("libIPSec_MB.so.1", RTLD_NOW);
	if (p->lib) {
		*(void **)&mgr_alloc = dlsym(p->lib, "alloc_mb_mgr");
		*(void **)&mgr_init = dlsym(p->lib, "init_mb_mgr_auto");
		*(void **)&p->mgr_free = dlsym(p->lib, "free_mb_mgr");
		*(void **)&version = dlsym(p->lib, "imb_get_version_str");
	}
	if (mgr_alloc && mgr_init && p->mgr_free && version)
		p->mgr = mgr_alloc(0);
	p->mac = calloc(l->c.slots, sizeof(*p->mac));
	p->iv = calloc(l->c.slots, sizeof(*p->iv));
	p->got = calloc(l->c.slots, sizeof(*p->got));
	if (!p->mgr || !p->mac || !p->iv || !p->got) {
		snprintf(err, err_len, "intel-ipsec-mb is not installed (package libipsec-mb1)");
		ipsecmb_close(p);
		return -ENOENT;
	}
	mgr_init(p->mgr, &arch);
	if (gcm_prepare(p, l)) {
		ipsecmb_close(p);
		return -ENOMEM;
	}
	snprintf(p->name, sizeof(p->name), "%s%s", version(),
		arch == IMB_ARCH_AVX512         ? " AVX-512"
			: arch == IMB_ARCH_AVX2 ? " AVX2"
						: "");
	*out = p;
	return 0;
}

static const char *ipsecmb_device(const void *p)
{
	return ((const struct peer *)p)->name;
}

/* RFC 3711 4.1.1 (ssrc_at 4) and RFC 7714 8.1 (ssrc_at 2). */
static void iv_make(
	uint8_t iv[16], const struct xc_key *k, uint32_t ssrc, uint64_t index, unsigned ssrc_at)
{
	uint8_t *p = iv + ssrc_at;

	memcpy(iv, k->salt, 16);
	put_be32(p, be32(p) ^ ssrc);
	put_be32(p + 4, be32(p + 4) ^ (uint32_t)(index >> 16));
	put_be16(p + 8, (uint16_t)(be16(p + 8) ^ (uint16_t)index));
}

/* Immediate calls: for one packet they are as fast as the library's jobs. */
static void gcm_run(struct peer *p, struct load *l, uint32_t i, bool rx)
{
	const struct xc_job *j = &l->a.job[i];
	uint32_t slot = rx ? j->rx_key : j->tx_key;
	const struct xc_key *k = &l->a.key[slot];
	uint8_t *pkt = l->a.in + j->in_off, *body = pkt + j->hdr_len;
	struct gcm_context_data ctx;

	iv_make(p->iv[i], k, j->ssrc, rx ? j->rx_index : j->tx_index, 2);
#define GCM_CALL(call)                                                                            \
	call(p->mgr, &p->gcm[slot / 2], &ctx, body, body, j->body_len, p->iv[i], pkt, j->hdr_len, \
		p->mac[i], k->tag_len)
	if (k->rounds == 10 && rx)
		GCM_CALL(IMB_AES128_GCM_DEC);
	else if (k->rounds == 10)
		GCM_CALL(IMB_AES128_GCM_ENC);
	else if (rx)
		GCM_CALL(IMB_AES256_GCM_DEC);
	else
		GCM_CALL(IMB_AES256_GCM_ENC);
#undef GCM_CALL
}

static void submit(struct peer *p, struct load *l, uint32_t i, bool rx)
{
	const struct xc_job *j = &l->a.job[i];
	const struct xc_key *k = &l->a.key[rx ? j->rx_key : j->tx_key];
	uint8_t *pkt = l->a.in + j->in_off;
	uint64_t index = rx ? j->rx_index : j->tx_index;
	IMB_JOB *job;

	if (k->cipher == XC_CIPHER_NULL && k->auth == XC_AUTH_NULL)
		return;
	if (k->cipher == XC_CIPHER_GCM) {
		gcm_run(p, l, i, rx);
		return;
	}
	job = IMB_GET_NEXT_JOB(p->mgr);
	iv_make(p->iv[i], k, j->ssrc, index, 4);
	job->cipher_direction = rx ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
	job->chain_order = rx ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
	job->cipher_mode = k->cipher == XC_CIPHER_NULL ? IMB_CIPHER_NULL : IMB_CIPHER_CNTR;
	job->hash_alg = k->auth == XC_AUTH_NULL ? IMB_AUTH_NULL : IMB_AUTH_HMAC_SHA_1;
	job->enc_keys = job->dec_keys = k->rk;
	job->key_len_in_bytes = 16 + (k->rounds - 10) * 4;
	job->iv = p->iv[i];
	job->iv_len_in_bytes = 16;
	job->src = pkt;
	job->dst = pkt + j->hdr_len;
	job->cipher_start_src_offset_in_bytes = j->hdr_len;
	job->msg_len_to_cipher_in_bytes = j->body_len;
	job->hash_start_src_offset_in_bytes = 0;
	job->auth_tag_output = p->mac[i];
	job->auth_tag_output_len_in_bytes = MAC_LEN;
	if (k->auth == XC_AUTH_HMAC_SHA1) {
		put_be32(pkt + j->hdr_len + j->body_len, (uint32_t)(index >> 16));
		job->msg_len_to_hash_in_bytes = j->hdr_len + j->body_len + 4;
		job->u.HMAC._hashed_auth_key_xor_ipad = (const uint8_t *)k->inner;
		job->u.HMAC._hashed_auth_key_xor_opad = (const uint8_t *)k->outer;
	}
	IMB_SUBMIT_JOB_NOCHECK(p->mgr);
}

static int pass(struct peer *p, struct load *l, uint32_t n, bool rx)
{
	for (uint32_t i = 0; i < n; i++)
		submit(p, l, i, rx);
	while (IMB_FLUSH_JOB(p->mgr))
		;
	return p->mgr->imb_errno;
}

static int ipsecmb_run(void *ptr, struct load *l, uint32_t n)
{
	struct peer *p = ptr;
	bool good = true;
	int err;

	for (uint32_t i = 0; i < n; i++)
		memcpy(p->got[i], l->a.in + l->a.job[i].in_off + l->a.job[i].rx_tag_off, 16);
	err = pass(p, l, n, true);
	for (uint32_t i = 0; i < n; i++)
		good &= secmem_equal(p->mac[i], p->got[i], l->a.key[l->a.job[i].rx_key].tag_len);
	err |= pass(p, l, n, false);
	for (uint32_t i = 0; i < n; i++)
		memcpy(l->a.in + l->a.job[i].in_off + l->a.job[i].tx_tag_off, p->mac[i],
			l->a.key[l->a.job[i].tx_key].tag_len);
	return err || !good ? -EBADMSG : 0;
}
#else
static bool ipsecmb_can(const struct srtp_suite *s)
{
	(void)s;
	return true;
}

static int ipsecmb_open(
	void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len)
{
	(void)out, (void)env, (void)l;
	snprintf(err, err_len,
		"built without its header (package libipsec-mb-dev, then make again)");
	return -ENOENT;
}
#define ipsecmb_close  NULL
#define ipsecmb_device NULL
#define ipsecmb_run    NULL
#endif

const struct bench_impl bench_impl_ipsecmb = {.name = "ipsec-mb",
	.in_place = true,
	.can = ipsecmb_can,
	.open = ipsecmb_open,
	.close = ipsecmb_close,
	.device = ipsecmb_device,
	.run = ipsecmb_run};
