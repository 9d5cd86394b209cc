/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a lost roll-over counter. An estimate covers half a cycle of sequence numbers (RFC 3711 3.3.1). A terminal may be further
 * ahead: after a restart or take-over, after an outage of its network, after jumps within one burst. Its packets then fail
 * authentication, or look old, for the rest of the call. So such a packet is tested under the next MEDIA_ROC_TRIES counters. An
 * authentic one proves its index without any clock. The index never moves back, so no packet is accepted twice.
 *
 * A test costs one authentication. Only packets from the address that media are sent to are tested, at most PER_SECOND per
 * worker. Keys with a derivation rate are not tested, because each epoch would have to be derived first. */
#include "media/int.h"
#include "srtp/ref.h"

#define PER_SECOND 256u
#define AT_ONCE    256u

static bool may_try(struct media *m, uint64_t now_ns)
{
	const uint64_t per_ns = 1000000000u / PER_SECOND;
	uint64_t add;

	if (m->roc_ns == 0)
		m->roc_tokens = AT_ONCE;
	if (now_ns < m->roc_ns || m->roc_ns == 0) /* the first one, or the clock was set */
		m->roc_ns = now_ns;
	add = (now_ns - m->roc_ns) / per_ns;
	m->roc_ns += add * per_ns;
	m->roc_tokens = add > AT_ONCE - m->roc_tokens ? AT_ONCE : m->roc_tokens + (uint32_t)add;
	if (m->roc_tokens == 0)
		return false;
	m->roc_tokens--;
	return true;
}

/* Whether this is RTP of an SSRC with a known index, under a key that authenticates it. */
static bool is_candidate(const struct media *m, const struct note *n, const struct media_in *in,
	const struct xc_job *j)
{
	const struct media_way *rx = &n->rx->rx;
	const struct ssrc_state *s;

	if (j->flags & XC_JOB_RTCP || !rx->srtp || rx->no_rtp_auth || rx->pass || n->passed ||
		n->copy_of != MEDIA_NONE || m->key[n->rx_key / 2].kdr ||
		!endpoint_eq(&in->src, &m->stream[m->in_stream[n->in]].learn.remote))
		return false;
	s = media_ssrc_find(n->rx, RX_RTP, j->ssrc);
	return s && s->seen.started;
}

bool media_roc_find(struct media *m, const struct arena *a, const struct note *n,
	const struct media_in *in, struct xc_job *j)
{
	struct xc_job trial = *j;

	if (!is_candidate(m, n, in, j))
		return false;
	trial.rx_key = n->rx_key;
	for (uint32_t i = 0; i < MEDIA_ROC_TRIES && trial.rx_index + (1u << 16) <= SRTP_INDEX_MAX;
		i++) {
		if (!may_try(m, in->t_ns))
			return false;
		trial.rx_index += 1u << 16;
		if (srtp_ref_job(&trial, a->key, a->in, a->out) != XC_OK)
			continue;
		*j = trial;
		return true;
	}
	return false;
}
