/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Called by prepare.c: decides which gates block or silence a packet. Creates the jobs for silence
 * and for listeners, and assigns their output slots. */
#include "media/copies.h"

#include "media/bundle.h"
#include "media/draft.h"
#include "media/keys.h"
#include "media/leave.h"
#include "packet/arena.h"

/* --- Gates ------------------------------------------------------------------------------------ */

/* The byte that means silence in the packet's codec, 0 = none. For G.722 it is a zero difference in
 * both bands, so the decoder's predictors decay. */
static uint8_t silence_of(const struct draft *d, const struct media_stream_cfg *cfg)
{
	uint8_t type = d->p[1] & 0x7f;

	return type == 0 && cfg->quiet & MEDIA_QUIET_PCMU    ? 0xff
		: type == 8 && cfg->quiet & MEDIA_QUIET_PCMA ? 0xd5
		: type == 9 && cfg->quiet & MEDIA_QUIET_G722 ? 0xfd
							     : 0;
}

enum gate media_gate_of(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t gate)
{
	uint8_t type = d->p[1] & 0x7f; /* classified as RTP, so it has at least two bytes */

	if (d->rtcp || !(gate & MEDIA_GATE_ALL))
		return OPEN;
	if (gate & MEDIA_GATE_DROP)
		return SHUT;
	if (cfg->events[type / 64] >> type % 64 & 1)
		return gate & MEDIA_GATE_DTMF ? SHUT : OPEN;
	if (gate & MEDIA_GATE_MEDIA)
		return SHUT;
	if (gate & MEDIA_GATE_QUIET)
		return silence_of(d, cfg) ? QUIET : SHUT;
	return OPEN;
}

enum gate media_gate_to(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t to)
{
	return media_gate_of(d, cfg, cfg->gate | to >> 4);
}

/* --- Silence and listeners -------------------------------------------------------------------- */

uint32_t media_burst_max(const struct media *m)
{
	return m->doublers && m->cfg.burst_max > 1 ? m->cfg.burst_max / 2 : m->cfg.burst_max;
}

uint32_t media_first_slot(const struct media *m)
{
	return (uint32_t)((m->burst + 1) % m->bursts) * m->cfg.burst_max;
}

static uint32_t first_slot(const struct media *m)
{
	return (uint32_t)(m->burst % m->bursts) * m->cfg.burst_max;
}

void media_slots_begin(struct media *m, const struct packet_in *in, uint32_t n)
{
	uint32_t first = first_slot(m);

	m->slot_next = 0;
	if (!m->doublers && !m->bundlers)
		return;
	memset(m->slot_used, 0, m->cfg.burst_max);
	for (uint32_t i = 0; i < n; i++)
		if (in[i].slot >= first && in[i].slot - first < m->cfg.burst_max)
			m->slot_used[in[i].slot - first] = 1;
}

static bool slot_take(struct media *m, uint32_t *slot)
{
	while (m->slot_next < m->cfg.burst_max && m->slot_used[m->slot_next])
		m->slot_next++;
	*slot = first_slot(m) + m->slot_next;
	return m->slot_next++ < m->cfg.burst_max;
}

/* Writes a silent copy of the plain packet after it in the same input slot. Keeps the header, so
 * sequence number, timestamp and SSRC continue; padding becomes silence too. False: no room. */
static bool silence(struct draft *d)
{
	const struct media_stream_cfg *cfg = &d->m->stream[d->note->stream].cfg;
	const struct packet_in *in = &d->in[d->at];
	const struct xc_job *j = d->job;
	uint32_t off = in->in_off + in->len, len = j->hdr_len + j->body_len;
	uint8_t *p = d->a->in + off;

	if (d->quiet_off)
		return true;
	if (off % ARENA_SLOT_LEN + len + XC_SLACK > ARENA_SLOT_LEN)
		return false;
	memcpy(p, d->p, j->hdr_len);
	p[0] &= (uint8_t)~0x20;
	memset(p + j->hdr_len, silence_of(d, cfg), j->body_len);
	d->quiet_off = off;
	return true;
}

/* Makes the job read the silent copy, which is unencrypted. */
static void take_silence(const struct draft *from, struct xc_job *job)
{
	job->in_off = from->quiet_off;
	job->ssrc = be32(from->a->in + from->quiet_off + 8);
	job->rx_key = 0;
	job->rx_index = 0;
	job->rx_tag_off = job->hdr_len + job->body_len;
	job->flags &= ~(uint32_t)XC_JOB_RX_CLEAR;
}

/* Adds a copy of the packet, or of its silence, for the stream "to". Input state is shared, output
 * state is its own. */
static bool copy(struct draft *from, uint32_t to, bool quiet, struct note *note, struct xc_job *job)
{
	struct media *m = from->m;
	const struct xc_job *what = from->note->passed ? media_open(m, from->note) : from->job;
	struct draft d = *from;
	uint32_t slot;

	d.tx = &m->ctx[m->stream[to].cfg.ctx];
	if (!d.tx->tx.set || what->rx_key == MEDIA_NONE)
		return false;
	d.note = note;
	d.job = job;
	*note = *from->note;
	*job = *what;
	note->passed = false;
	note->bundle = from->shared;
	note->to = to;
	note->why = PACKET_SENT;
	note->stream = to; /* later failures count at this stream */
	note->tx_key = d.tx->tx.srtp ? d.tx->tx.slot : 0;
	note->tx = &m->ctx[m->stream[to].cfg.ctx];
	if (media_key_spent(m, &d.tx->tx, note->tx_key))
		return draft_drop(&d, PACKET_DROP_LIFETIME), false;
	if ((quiet && !silence(from)) || !slot_take(m, &slot))
		return draft_drop(&d, PACKET_DROP_COPY_ROOM), false;
	if (quiet)
		take_silence(from, job);
	/* Listeners were offered what the source sends. */
	note->convert = 0;
	job->convert = quiet && to == from->quiet_to
		? media_convert(m->stream[from->note->stream].cfg.convert, from->p[1] & 0x7f)
		: 0;
	job->out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	job->flags &= ~(uint32_t)XC_JOB_TX_CLEAR;
	return media_leave(&d) == PACKET_JOB;
}

uint32_t media_copies(struct draft *d, struct xc_job *job, uint32_t at, uint32_t end)
{
	struct media *m = d->m;
	const struct media_stream_cfg *cfg = &m->stream[d->note->stream].cfg;
	uint32_t next = d->copies, n = 0;

	if (d->quiet_to != MEDIA_NONE && at < end &&
		copy(d, d->quiet_to, true, &m->note[at], &job[at]))
		m->note[at + n++].copy_of = at - 1;
	for (uint32_t i = 0; next && i < MEDIA_COPIES_MAX && at + n < end; i++) {
		uint32_t to = next - 1;
		enum gate gate;

		if (to >= m->cfg.max_stream || !m->stream[to].set || !m->stream[to].cfg.listener)
			break;
		next = m->stream[to].cfg.copy[d->rtcp];
		gate = cfg->gate || m->stream[to].cfg.gate
			? media_gate_to(d, cfg, m->stream[to].cfg.gate)
			: OPEN;
		if (gate == SHUT || !copy(d, to, gate == QUIET, &m->note[at + n], &job[at + n]))
			continue;
		m->note[at + n].copy_of = at - 1;
		n++;
	}
	return n;
}

/* Best effort: the burst reserves no room for these copies, as RTCP may be lost. */
uint32_t media_bundle_copies(
	struct draft *d, struct xc_job *job, uint32_t own, uint32_t at, uint32_t end)
{
	struct media *m = d->m;
	struct draft from = *d;
	uint32_t n = 0, line = m->in_stream[d->at], looked = 0;

	from.shared = true;
	for (; line != MEDIA_NONE && looked++ < MEDIA_BUNDLE_MAX && at + n < end;
		line = media_bundle_next(m, line)) {
		uint32_t to = m->stream[line].cfg.rtcp_to;

		if (line == d->note->stream || to == MEDIA_NONE || !m->stream[to].set ||
			m->stream[line].cfg.audio || d->note->passed ||
			!copy(&from, to, false, &m->note[at + n], &job[at + n]))
			continue;
		m->note[at + n].stream = line;
		m->note[at + n].copy_of = own;
		n++;
	}
	return n;
}
