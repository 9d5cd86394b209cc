/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes and encryption of decrypted packets (media/rewrite.h). */
#include "media/rewrite.h"

#include "batch/law.h"
#include "media/bundle.h"
#include "media/rename.h"
#include "media/tags.h"
#include "proto/rtcp.h"
#include "srtp/ref.h"

/* Encrypts n plain packets in arena.out. A status other than XC_OK: encryption failed. */
static void encrypt(const struct media *m, const struct arena *a, struct xc_job *job,
	uint32_t *status, uint32_t n)
{
	if (m->cfg.encrypt) {
		m->cfg.encrypt(m->cfg.encrypt_arg, job, status, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		job[i].in_off = job[i].out_off;
		status[i] = srtp_ref_job(&job[i], a->key, a->out, a->out);
	}
}

static bool encrypt_one(const struct media *m, const struct arena *a, struct xc_job *job)
{
	uint32_t status = XC_NOT_DONE;

	encrypt(m, a, job, &status, 1);
	return status == XC_OK;
}

void media_rewrite_rtcp(const struct media *m, const struct arena *a, const struct note *n,
	const struct xc_job *j, bool is_copy)
{
	uint8_t *p = a->out + j->out_off;
	uint64_t key = n->tx->cfg->rename;
	size_t len = (size_t)j->hdr_len + j->body_len;
	struct xc_job job = {.tx_index = j->tx_index,
		.out_off = j->out_off,
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
	(void)encrypt_one(m, a, &job); /* input is plain: authentication cannot fail */
}

/* Converts the decrypted packet without its padding (RFC 3550 5.1). */
static void convert(const struct note *n, uint8_t *p, const struct xc_job *j)
{
	uint32_t len = j->body_len, padding = p[0] & RTP_P_BIT && len ? p[j->hdr_len + len - 1] : 0;

	p[1] ^= (uint8_t)XC_FLIP(n->convert);
	if (padding <= len)
		law_bytes(p + j->hdr_len, len - padding, XC_LAW(n->convert));
}

/* Changes the packet, and makes the job that encrypts it. */
static void change(const struct media *m, const struct arena *a, const struct note *n,
	struct xc_job *j, struct xc_job *late)
{
	uint8_t *p = a->out + j->out_off;

	if (n->block)
		media_tag_cut(n, j);
	if (n->convert)
		convert(n, p, j);
	if (n->block)
		media_tag_append(m, a, n, j);
	if (n->mid)
		j->hdr_len += (uint32_t)media_bundle_write_mid(m, n, p, j->hdr_len + j->body_len);
	j->tx_tag_off = j->hdr_len + j->body_len + n->tx->tx.tail.tag;
	*late = (struct xc_job){.tx_index = j->tx_index,
		.out_off = j->out_off,
		.tx_key = n->late_key, /* from plain */
		.hdr_len = j->hdr_len,
		.body_len = j->body_len,
		.rx_tag_off = j->hdr_len + j->body_len,
		.tx_tag_off = j->tx_tag_off,
		.ssrc = media_sent_ssrc(j),
		.flags = j->flags & XC_JOB_TX_CLEAR};
	if (n->late_key)
		put_be32(p + 8, late->ssrc);
}

bool media_rewrite_rtp(
	const struct media *m, const struct arena *a, const struct note *n, struct xc_job *j)
{
	struct xc_job late;

	change(m, a, n, j, &late);
	return !n->late_key || encrypt_one(m, a, &late);
}

void media_rewrite_later(struct media *m, const struct arena *a, const struct note *n,
	const struct xc_job *j, struct packet_out *out)
{
	struct xc_job changed = *j, *late = &m->late.job[m->late.n];

	change(m, a, n, &changed, late);
	out->len = changed.hdr_len + changed.body_len + n->tx->tx.tail.len;
	if (!n->late_key)
		return;
	m->late.of[m->late.n].tx = n->tx;
	m->late.of[m->late.n++].out = out;
}

bool media_rewrite_all(struct media *m, const struct arena *a)
{
	uint32_t n = m->late.n;
	bool all = true;

	m->late.n = 0;
	encrypt(m, a, m->late.job, m->late.status, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct media_ctx *tx = m->late.of[i].tx;
		struct packet_out *out = m->late.of[i].out;

		if (m->late.status[i] != XC_OK) {
			out->len = 0;
			all = false;
		} else if (tx->tx.tagged) {
			/* Encryption may write into the slack, where the tag is. */
			media_tag_write(m, a, tx, &m->late.job[i], out->len);
		}
	}
	return all;
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
