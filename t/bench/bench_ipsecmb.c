/* SPDX-License-Identifier: GPL-2.0-or-later */
/* intel-ipsec-mb in the benchmark: hand-written multi-buffer assembly. One job verifies and decrypts, one encrypts and
 * tags, both in place, all of a batch submitted before it is flushed. The library is loaded when it is there. */
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
};

static bool ipsecmb_can(const struct bench_case *c)
{
	return c->rx->cipher == XC_CIPHER_AES_CM && c->tx->cipher == XC_CIPHER_AES_CM;
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
	free(p);
}

static int ipsecmb_open(void **out, const struct load *l, char *err, size_t err_len)
{
	struct peer *p = calloc(1, sizeof(*p));
	IMB_MGR *(*mgr_alloc)(uint64_t) = NULL;
	void (*mgr_init)(IMB_MGR *, IMB_ARCH *) = NULL;
	const char *(*version)(void) = NULL;
	IMB_ARCH arch;

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
	p->mac = calloc(l->c.batch, sizeof(*p->mac));
	p->iv = calloc(l->c.batch, sizeof(*p->iv));
	p->got = calloc(l->c.batch, sizeof(*p->got));
	if (!p->mgr || !p->mac || !p->iv || !p->got) {
		snprintf(err, err_len, "intel-ipsec-mb is not installed (package libipsec-mb1)");
		ipsecmb_close(p);
		return -ENOENT;
	}
	mgr_init(p->mgr, &arch);
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

/* RFC 3711 4.1.1 */
static void iv_make(uint8_t iv[16], const struct xc_key *k, uint32_t ssrc, uint64_t index)
{
	memcpy(iv, k->salt, 16);
	put_be32(iv + 4, be32(iv + 4) ^ ssrc);
	put_be32(iv + 8, be32(iv + 8) ^ (uint32_t)(index >> 16));
	put_be16(iv + 12, (uint16_t)(be16(iv + 12) ^ (uint16_t)index));
}

static void submit(struct peer *p, struct load *l, uint32_t i, bool rx)
{
	const struct xc_job *j = &l->a.job[i];
	const struct xc_key *k = &l->a.key[rx ? j->rx_key : j->tx_key];
	uint8_t *pkt = l->a.in + j->in_off;
	uint64_t index = rx ? j->rx_index : j->tx_index;
	IMB_JOB *job = IMB_GET_NEXT_JOB(p->mgr);

	iv_make(p->iv[i], k, j->ssrc, index);
	put_be32(pkt + j->hdr_len + j->body_len, (uint32_t)(index >> 16));
	job->cipher_direction = rx ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
	job->chain_order = rx ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
	job->cipher_mode = IMB_CIPHER_CNTR;
	job->hash_alg = IMB_AUTH_HMAC_SHA_1;
	job->enc_keys = job->dec_keys = k->rk;
	job->key_len_in_bytes = 16 + (k->rounds - 10) * 4;
	job->iv = p->iv[i];
	job->iv_len_in_bytes = 16;
	job->src = pkt;
	job->dst = pkt + j->hdr_len;
	job->cipher_start_src_offset_in_bytes = j->hdr_len;
	job->msg_len_to_cipher_in_bytes = j->body_len;
	job->hash_start_src_offset_in_bytes = 0;
	job->msg_len_to_hash_in_bytes = j->hdr_len + j->body_len + 4;
	job->auth_tag_output = p->mac[i];
	job->auth_tag_output_len_in_bytes = MAC_LEN;
	job->u.HMAC._hashed_auth_key_xor_ipad = (const uint8_t *)k->inner;
	job->u.HMAC._hashed_auth_key_xor_opad = (const uint8_t *)k->outer;
	IMB_SUBMIT_JOB(p->mgr);
}

static int pass(struct peer *p, struct load *l, bool rx)
{
	for (uint32_t i = 0; i < l->c.batch; i++)
		submit(p, l, i, rx);
	while (IMB_FLUSH_JOB(p->mgr))
		;
	return p->mgr->imb_errno;
}

static int ipsecmb_run(void *ptr, struct load *l)
{
	struct peer *p = ptr;
	bool good = true;
	int err;

	for (uint32_t i = 0; i < l->c.batch; i++)
		memcpy(p->got[i], l->a.in + l->a.job[i].in_off + l->a.job[i].rx_tag_off, 16);
	err = pass(p, l, true);
	for (uint32_t i = 0; i < l->c.batch; i++)
		good &= secmem_equal(p->mac[i], p->got[i], l->c.rx->rtp_tag_len);
	err |= pass(p, l, false);
	for (uint32_t i = 0; i < l->c.batch; i++)
		memcpy(l->a.in + l->a.job[i].in_off + l->a.job[i].tx_tag_off, p->mac[i],
			l->c.tx->rtp_tag_len);
	return err || !good ? -EBADMSG : 0;
}
#else
static bool ipsecmb_can(const struct bench_case *c)
{
	(void)c;
	return false; /* built without its header (package libipsec-mb-dev) */
}
#define ipsecmb_open   NULL
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
