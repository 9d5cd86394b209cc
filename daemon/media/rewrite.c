/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes and encryption of decrypted packets (media/rewrite.h). */
#include "media/rewrite.h"

#include "batch/law.h"
#include "media/bundle.h"
#include "media/rename.h"
#include "media/tags.h"
#include "proto/rtcp.h"
#include "srtp/ref.h"

/* Encrypts the plain packet at arena.out. Engines read arena.in, so the packet goes there for the
 * time of this job. False: encryption failed. */
static bool encrypt(
	const struct media *m, const struct arena *a, uint32_t out_off, struct xc_job *job)
{
	size_t len = (size_t)job->hdr_len + job->body_len;
	uint8_t *in = a->in + out_off, *out = a->out + out_off, kept[ARENA_MAX_PACKET];
	bool done;

	if (!m->cfg.encrypt || len > sizeof(kept))
		return srtp_ref_job(job, a->key, out, out) == XC_OK;
	job->in_off = job->out_off = out_off;
	memcpy(kept, in, len);
	memcpy(in, out, len);
	done = m->cfg.encrypt(m->cfg.encrypt_arg, job) == XC_OK;
	memcpy(in, kept, len);
	return done;
}

void media_rewrite_rtcp(const struct media *m, const struct arena *a, const struct note *n,
	const struct xc_job *j, bool is_copy)
{
	uint8_t *p = a->out + j->out_off;
	uint64_t key = n->tx->cfg->rename;
	size_t len = (size_t)j->hdr_len + j->body_len;
	struct xc_job job = {.tx_index = j->tx_index,
		.rx_key = j->tx_key, /* plain */
		.tx_key = n->late_key,
		.hdr_len = j->hdr_len,
		.body_len = j->body_len,
		.rx_tag_off = (uint32_t)len,
		.tx_tag_off = j->tx_tag_off,
		.flags = j->flags & (XC_JOB_RTCP | XC_JOB_TX_CLEAR)};

	if (key && n->rx->rx.srtp)
		media_rename_rtcp(key, p, len, true);
	if (key && n->rx->rx.srtp && !is_copy)
		media_rename_rtcp(key, p, len, false);
	job.ssrc = be32(p + 4);
	(void)encrypt(m, a, j->out_off, &job); /* input is plain: authentication cannot fail */
}

/* Converts the decrypted packet without its padding (RFC 3550 5.1). */
static void convert(const struct note *n, uint8_t *p, const struct xc_job *j)
{
	uint32_t len = j->body_len, padding = p[0] & RTP_P_BIT && len ? p[j->hdr_len + len - 1] : 0;

	p[1] ^= (uint8_t)XC_FLIP(n->convert);
	if (padding <= len)
		law_bytes(p + j->hdr_len, len - padding, XC_LAW(n->convert));
}

bool media_rewrite_rtp(
	const struct media *m, const struct arena *a, const struct note *n, struct xc_job *j)
{
	uint8_t *p = a->out + j->out_off;
	struct xc_job job;

	if (n->block)
		media_tag_cut(n, j);
	if (n->convert)
		convert(n, p, j);
	if (n->block)
		media_tag_append(a, n, j);
	if (n->mid)
		j->hdr_len += (uint32_t)media_bundle_write_mid(m, n, p, j->hdr_len + j->body_len);
	j->tx_tag_off = j->hdr_len + j->body_len + n->tx->tx.tail.tag;
	if (!n->late_key)
		return true;
	job = (struct xc_job){.tx_index = j->tx_index,
		.tx_key = n->late_key, /* from plain */
		.hdr_len = j->hdr_len,
		.body_len = j->body_len,
		.rx_tag_off = j->hdr_len + j->body_len,
		.tx_tag_off = j->tx_tag_off,
		.ssrc = media_sent_ssrc(j),
		.flags = j->flags & XC_JOB_TX_CLEAR};
	put_be32(p + 8, job.ssrc);
	return encrypt(m, a, j->out_off, &job);
}

bool media_cut_feedback(const struct arena *a, const struct note *n, struct xc_job *j)
{
	size_t len = (size_t)j->hdr_len + j->body_len;

	len = rtcp_drop_feedback(a->out + j->out_off, len);
	if (len < j->hdr_len)
		return false;
	j->body_len = (uint32_t)len - j->hdr_len;
	j->tx_tag_off = (uint32_t)len + n->tx->rtcp_tail[true].tag;
	return true;
}
