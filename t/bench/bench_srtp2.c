/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libsrtp2 in the benchmark: unprotect and protect in place, two sessions per stream as a relay has them. */
#include <srtp2/srtp.h>
/* libsrtp's names for other things */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

struct peer {
	uint32_t streams;
	srtp_t *rx, *tx; /* [streams] */
};

/* AES-192 is left out: Debian's build of libsrtp2 gets it wrong. */
static bool policy_of(srtp_policy_t *p, const struct srtp_suite *s)
{
	memset(p, 0, sizeof(*p));
	switch (s->id) {
	case SUITE_AES_CM_128_80:
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&p->rtp);
		break;
	case SUITE_AES_CM_128_32:
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&p->rtp);
		break;
	case SUITE_AES_256_CM_80:
		srtp_crypto_policy_set_aes_cm_256_hmac_sha1_80(&p->rtp);
		break;
	case SUITE_AES_256_CM_32:
		srtp_crypto_policy_set_aes_cm_256_hmac_sha1_32(&p->rtp);
		break;
	case SUITE_AEAD_AES_128_GCM:
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&p->rtp);
		break;
	case SUITE_AEAD_AES_256_GCM:
		srtp_crypto_policy_set_aes_gcm_256_16_auth(&p->rtp);
		break;
	default:
		return false;
	}
	p->rtcp = p->rtp;
	return true;
}

static bool srtp2_can(const struct bench_case *c)
{
	srtp_policy_t p;

	return policy_of(&p, c->rx) && policy_of(&p, c->tx);
}

static srtp_t session(const struct srtp_master *m, bool inbound)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	uint8_t key[64];
	srtp_policy_t p;
	srtp_t out = NULL;

	if (!policy_of(&p, s))
		return NULL;
	memcpy(key, m->key, s->key_len);
	memcpy(key + s->key_len, m->salt, s->salt_len);
	p.key = key;
	p.ssrc.type = inbound ? ssrc_any_inbound : ssrc_any_outbound;
	p.window_size = 128;
	p.allow_repeat_tx = 1;
	return srtp_create(&out, &p) == srtp_err_status_ok ? out : NULL;
}

static void srtp2_close(void *ptr)
{
	struct peer *p = ptr;

	for (uint32_t i = 0; i < p->streams; i++) {
		if (p->rx && p->rx[i])
			srtp_dealloc(p->rx[i]);
		if (p->tx && p->tx[i])
			srtp_dealloc(p->tx[i]);
	}
	free(p->rx);
	free(p->tx);
	free(p);
	srtp_shutdown();
}

static int srtp2_open(void **out, const struct load *l, char *err, size_t err_len)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	srtp_init();
	p->rx = calloc(l->c.streams, sizeof(*p->rx));
	p->tx = calloc(l->c.streams, sizeof(*p->tx));
	for (; p->rx && p->tx && p->streams < l->c.streams; p->streams++) {
		uint32_t i = p->streams;

		p->rx[i] = session(&l->master[2 * i], true);
		p->tx[i] = session(&l->master[2 * i + 1], false);
		if (!p->rx[i] || !p->tx[i])
			break;
	}
	if (p->streams < l->c.streams) {
		snprintf(err, err_len, "libsrtp2 gives no session for stream %u", p->streams);
		srtp2_close(p);
		return -EIO;
	}
	*out = p;
	return 0;
}

static const char *srtp2_device(const void *p)
{
	(void)p;
	return srtp_get_version_string();
}

static int srtp2_run(void *ptr, struct load *l)
{
	struct peer *p = ptr;
	int err = 0;

	for (uint32_t i = 0; i < l->c.batch; i++) {
		const struct xc_job *j = &l->a.job[i];
		uint32_t stream = (j->rx_key - 2) / 4;
		uint8_t *pkt = l->a.in + j->in_off;
		int len = (int)(j->rx_tag_off + l->c.rx->rtp_tag_len);

		err |= (int)srtp_unprotect(p->rx[stream], pkt, &len);
		err |= (int)srtp_protect(p->tx[stream], pkt, &len);
	}
	return err ? -EBADMSG : 0;
}

const struct bench_impl bench_impl_srtp2 = {.name = "libsrtp-nss", /* Debian builds it on NSS */
	.in_place = true,
	.fresh = true,
	.can = srtp2_can,
	.open = srtp2_open,
	.close = srtp2_close,
	.device = srtp2_device,
	.run = srtp2_run};
