/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's end of the audio channels. Packets of a terminal go to the session only after
 * authentication and commit. Packets of a session enter at the stream that sends them, as if they
 * had arrived there in plaintext: they get jobs, and are encrypted under the leg's keys. Their
 * indexes are committed like all that are sent, so a faulty codec thread cannot make one repeat. */
#include "media/audio.h"

#include <errno.h>

#include "base/clock.h"
#include "media/draft.h"
#include "media/keys.h"
#include "media/lane.h"
#include "media/leave.h"
#include "media/rtcp_stats.h"
#include "media/ssrc.h"
#include "packet/arena.h"

/* --- From the terminal ------------------------------------------------------------------------ */

uint8_t media_audio_give(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	const struct media_stream *s = &m->stream[n->stream];
	const struct audio_packet head = {.t_ns = in->t_ns,
		.stream = n->stream,
		.serial = s->cfg.audio,
		.len = (uint16_t)(j->hdr_len + j->body_len),
		.rtcp = j->flags & XC_JOB_RTCP,
		.emergency = s->cfg.emergency};
	int err;

	if (!m->cfg.audio_threads)
		return media_drop(m, n->stream, PACKET_DROP_INACTIVE);
	if (head.rtcp)
		media_rtcp_ended(m, n->stream, in, a->out + j->out_off, head.len);
	err = audio_take(m->cfg.audio[head.serial % m->cfg.audio_threads],
		&m->trial[n->stream].audio, &head, a->out + j->out_off);
	return err ? media_drop(m, n->stream,
			     err == -EMSGSIZE ? PACKET_DROP_TOO_LONG : PACKET_DROP_AUDIO_FULL)
		   : PACKET_AUDIO;
}

void media_audio_flush(struct media *m)
{
	for (uint32_t i = 0; i < m->cfg.audio_threads; i++)
		audio_flush(m->cfg.audio[i]);
}

/* --- To the terminal -------------------------------------------------------------------------- */

bool media_audio_waits(const struct media *m)
{
	for (uint32_t i = 0; i < m->cfg.audio_threads; i++)
		if (audio_next(m->cfg.audio[i]))
			return true;
	return false;
}

/* Counts a packet whose session or stream has ended. */
static void stale(struct audio_channel *c)
{
	atomic_fetch_add_explicit(&c->stale, 1, memory_order_relaxed);
}

/* The next packet whose session still has its stream; others are dropped. NULL: none. */
static const struct audio_packet *next(const struct media *m, struct audio_channel *c)
{
	const struct audio_packet *p;

	while ((p = audio_next(c))) {
		if (p->stream < m->cfg.max_stream && m->stream[p->stream].set &&
			m->stream[p->stream].cfg.audio == p->serial && p->len <= AUDIO_PACKET_MAX)
			return p;
		stale(c);
		audio_sent(c);
	}
	return NULL;
}

uint32_t media_audio_take(
	struct media *m, const struct arena *a, uint32_t first, struct packet_in *in, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->cfg.audio_threads && n < max; i++) {
		struct audio_channel *c = m->cfg.audio[i];
		const struct audio_packet *p;

		while (n < max && (p = next(m, c))) {
			const struct media_stream *s = &m->stream[p->stream];

			/* The source address is the terminal's, for media_ssrc_may_turn(). */
			in[n] = (struct packet_in){.src = s->learn.remote,
				.local = s->cfg.local,
				.in_off = (first + n) * ARENA_SLOT_LEN + ARENA_HEADROOM,
				.len = p->len,
				.slot = first + n,
				.token = p->stream,
				.t_ns = p->t_ns,
				.dev = p->rtcp};
			memcpy(a->in + in[n].in_off, p->bytes, p->len);
			if (p->rtcp)
				media_rtcp_said(m, p->stream, p->bytes, p->len, p->t_ns);
			audio_sent(c);
			n++;
		}
	}
	return n;
}

static uint8_t measure(struct draft *d)
{
	struct xc_job *j = d->job;
	struct rtcp_hdr rtcp;
	struct rtp_hdr rtp;
	int hdr = d->rtcp ? rtcp_parse(&rtcp, d->p, d->len) : rtp_parse(&rtp, d->p, d->len);

	if (hdr < 0)
		return draft_drop(d, PACKET_DROP_MALFORMED);
	*j = (struct xc_job){.in_off = d->in[d->at].in_off,
		.out_off = d->in[d->at].slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.flags = d->rtcp ? XC_JOB_RTCP : 0,
		.rx_key = d->rtcp, /* plain */
		.hdr_len = (uint32_t)hdr,
		.body_len = d->len - (uint32_t)hdr,
		.rx_tag_off = d->len,
		.ssrc = d->rtcp ? rtcp.ssrc : rtp.ssrc};
	d->seq = d->rtcp ? 0 : rtp.seq;
	return PACKET_JOB;
}

/* Does for a packet of a session what route() of prepare.c does for others. */
static uint8_t enter(struct draft *d)
{
	struct media *m = d->m;
	struct note *n = d->note;
	uint8_t v;

	d->rx = n->rx = m->ours;
	d->tx = n->tx = &m->ctx[m->stream[n->to].cfg.ctx];
	if (!d->tx->tx.set || d->tx->tx.pass)
		return draft_drop(d, PACKET_DROP_INACTIVE);
	if (d->tx->tx.srtp) {
		n->tx_key = d->tx->tx.slot;
		if (media_key_spent(m, &d->tx->tx, n->tx_key))
			return draft_drop(d, PACKET_DROP_LIFETIME);
	}
	v = measure(d);
	return v == PACKET_JOB ? media_leave(d) : v;
}

uint32_t media_audio_prepare(struct media *m, const struct arena *a, struct packet_in *in,
	uint32_t n, struct xc_job *job)
{
	uint32_t jobs = 0;

	m->now_ns = clock_mono_ns();
	media_lane_use(m, ++m->burst);
	for (uint32_t i = 0; i < n; i++) {
		struct draft d = {.m = m,
			.a = a,
			.in = in,
			.at = i,
			.p = a->in + in[i].in_off,
			.len = in[i].len,
			.rtcp = in[i].dev,
			.quiet_to = MEDIA_NONE,
			.note = &m->note[jobs],
			.job = &job[jobs]};

		m->in_stream[i] = in[i].token;
		*d.note = (struct note){.in = i,
			.stream = in[i].token,
			.to = in[i].token,
			.why = PACKET_SENT,
			.ours = true,
			.copy_of = MEDIA_NONE};
		in[i].verdict = enter(&d);
		jobs += in[i].verdict == PACKET_JOB;
	}
	return jobs;
}
