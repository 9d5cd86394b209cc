/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet while prepare.c, leave.c and copies.c build its jobs. */
#ifndef MEDIA_DRAFT_H
#define MEDIA_DRAFT_H

#include "layout.h"
#include "media/keys.h"
#include "media/state.h"
#include "packet/arena.h"

/* A packet on its way to a job. */
struct draft {
	struct media *m;
	const struct arena *a;
	const struct packet_in *in; /* the burst */
	uint32_t at;                /* its index in the burst */
	const uint8_t *p;           /* the packet */
	uint32_t len;
	const struct media_ctx *rx, *tx; /* tx: NULL = not sent */
	bool rtcp;
	uint32_t copies;    /* see media_stream_cfg.copy */
	uint32_t quiet_to;  /* stream that receives silence instead of the packet, or MEDIA_NONE */
	uint32_t quiet_off; /* offset of that silence in arena.in; 0 = not written yet */
	uint16_t seq;
	bool shared; /* media_bundle_copies(): the copies are for other m-lines, not listeners */
	struct note *note;
	struct xc_job *job;
};

static inline uint8_t draft_drop(struct draft *d, enum packet_verdict why)
{
	return media_drop(d->m, d->note->stream, why);
}

/* Finds the session keys for this index: with a key derivation rate they may be missing. */
static inline uint8_t draft_slot(
	struct draft *d, const struct media_way *w, uint32_t key, uint64_t index, uint32_t *slot)
{
	*slot = media_key_slot(
		d->m, d->a, w, key, (struct media_key_use){index, d->in[d->at].t_ns, d->rtcp});
	return *slot == MEDIA_NONE ? draft_drop(d, PACKET_DROP_KEY_EPOCH) : PACKET_JOB;
}

enum gate { OPEN, QUIET, SHUT };

/* --- copies.c --------------------------------------------------------------------------------- */

/* Effect of these MEDIA_GATE_* on the packet, received at a stream with cfg. */
enum gate media_gate_of(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t gate);
/* Both gates of a stream: the one for all packets, and the one for this destination. */
enum gate media_gate_to(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t to);
/* Call before the first packet of a burst: marks the output slots that copies may use. */
void media_slots_begin(struct media *m, const struct packet_in *in, uint32_t n);
/* Adds jobs for silence and for all listeners after the packet's own: at job[at], before end.
 * Returns their number. */
uint32_t media_copies(struct draft *d, struct xc_job *job, uint32_t at, uint32_t end);
/* Adds jobs for the other m-lines of a bundle after the packet's own job[own]. complete.c sends
 * those that the packet concerns. Returns their number. */
uint32_t media_bundle_copies(
	struct draft *d, struct xc_job *job, uint32_t own, uint32_t at, uint32_t end);

/* --- leave.c ---------------------------------------------------------------------------------- */

/* Fills in index, key and tag offset of the sent packet, for d.tx. Returns PACKET_JOB, or a drop
 * verdict. */
uint8_t media_leave(struct draft *d);
/* Before media_leave(): G.711 for a terminal that has the other law. */
void media_leave_convert(struct draft *d);

#endif
