/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a lost roll-over counter. An estimate covers half a cycle of sequence numbers (RFC 3711
 * 3.3.1). A terminal may be further ahead: after a restart or take-over, after an outage of its
 * network, after jumps within one burst. Its packets then fail authentication, or look old, for the
 * rest of the call. So such a packet is tested under the next MEDIA_ROC_TRIES counters. An
 * authentic one proves its index without any clock. The index never moves back, so no packet is
 * accepted twice.
 *
 * A test costs one authentication. Only packets from the address that media are sent to are tested,
 * at most STREAM_PER_SECOND per stream. When many streams test, each has an equal share of
 * WORKER_PER_SECOND, and at least one test a second: junk in any number of streams leaves every
 * other stream its tests. A search that runs out of tests goes on with the next counter, so that
 * junk between the packets delays it, but does not end it. Keys with a derivation rate are not
 * tested, because each epoch would have to be derived first. */
#include "media/roc.h"
#include "media/ssrc.h"
#include "media/state.h"
#include "packet/arena.h"
#include "srtp/ref.h"

#define STREAM_PER_SECOND 16u
#define STREAM_AT_ONCE    (2 * MEDIA_ROC_TRIES)
#define WORKER_PER_SECOND 1024u

static void fill(struct roc_bucket *b, uint32_t per_second, uint32_t at_once, uint64_t now_ns)
{
	const uint64_t per_ns = 1000000000u / per_second;
	uint64_t add;

	if (b->ns == 0)
		b->tokens = at_once;
	if (now_ns < b->ns || b->ns == 0) /* the first one, or the clock was set */
		b->ns = now_ns;
	add = (now_ns - b->ns) / per_ns;
	b->ns += add * per_ns;
	b->tokens = add > at_once - b->tokens ? at_once : b->tokens + (uint32_t)add;
}

/* Tests that each stream may make in this second. Stamps come from several sockets, so one may be
 * of the second before. When the clock is set, a stream may not be counted, so there may be none.
 */
static uint32_t share_of(struct media *m, struct media_trial *t, uint64_t now_ns)
{
	uint64_t second = now_ns / 1000000000u + 1;
	uint32_t streams;

	if (second + 1 == m->roc_second)
		second++;
	if (m->roc_second != second) {
		m->roc_streams[1] = m->roc_second + 1 == second ? m->roc_streams[0] : 0;
		m->roc_streams[0] = 0;
		m->roc_second = second;
	}
	if (t->roc_second != second) {
		t->roc_second = second;
		t->roc_used = 0;
		m->roc_streams[0]++;
	}
	streams = m->roc_streams[m->roc_streams[1] > m->roc_streams[0]];
	if (streams == 0)
		return WORKER_PER_SECOND;
	return streams < WORKER_PER_SECOND ? WORKER_PER_SECOND / streams : 1;
}

static bool may_try(struct media *m, struct media_trial *t, uint64_t now_ns)
{
	fill(&t->roc, STREAM_PER_SECOND, STREAM_AT_ONCE, now_ns);
	if (t->roc.tokens == 0 || t->roc_used >= share_of(m, t, now_ns))
		return false;
	t->roc.tokens--;
	t->roc_used++;
	return true;
}

/* Whether this is RTP of an SSRC with a known index, under a key that authenticates it. */
static bool is_candidate(const struct media *m, const struct note *n, const struct packet_in *in,
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
	const struct packet_in *in, struct xc_job *j)
{
	struct media_trial *t = &m->trial[n->stream];
	struct xc_job trial = *j;

	if (!is_candidate(m, n, in, j))
		return false;
	trial.rx_key = n->rx_key;
	for (uint32_t i = 0; i < MEDIA_ROC_TRIES; i++) {
		uint32_t ahead = t->roc_at % MEDIA_ROC_TRIES + 1;

		trial.rx_index = j->rx_index + ((uint64_t)ahead << 16);
		if (trial.rx_index <= SRTP_INDEX_MAX) {
			if (!may_try(m, t, in->t_ns))
				return false;
			if (srtp_ref_job(&trial, a->key, a->in, a->out) == XC_OK) {
				t->roc_at = 0;
				*j = trial;
				return true;
			}
		}
		t->roc_at = (uint8_t)ahead;
	}
	return false;
}
