/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet while prepare.c and copies.c make its jobs. */
#ifndef MEDIA_DRAFT_H
#define MEDIA_DRAFT_H

#include "layout.h"
#include "media/state.h"
#include "packet/arena.h"

/* One packet on its way to becoming a job. */
struct draft {
	struct media *m;
	const struct arena *a;
	const struct packet_in *in; /* the burst */
	uint32_t at;                /* which of it */
	const uint8_t *p;           /* the packet */
	uint32_t len;
	const struct media_ctx *rx, *tx; /* tx: NULL = it does not leave */
	bool rtcp;
	uint32_t copies;    /* see media_stream_cfg.copy */
	uint32_t quiet_to;  /* stream that silence goes to in place of the packet, or MEDIA_NONE */
	uint32_t quiet_off; /* where that silence lies in arena.in; 0 = nowhere yet */
	uint16_t seq;
	struct note *note;
	struct xc_job *job;
};

static inline uint8_t draft_drop(struct draft *d, enum packet_verdict why)
{
	return media_drop(d->m, d->note->stream, why);
}

enum gate { OPEN, QUIET, SHUT };

/* --- copies.c --------------------------------------------------------------------------------- */

/* What these MEDIA_GATE_* mean for the packet, that came to a stream with cfg. */
enum gate media_gate_of(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t gate);
/* Both of a stream's gates: of all that comes to it, and of what goes to one place. */
enum gate media_gate_to(const struct draft *d, const struct media_stream_cfg *cfg, uint8_t to);
/* Before the first packet of a burst: which output slots are free for copies. */
void media_slots_begin(struct media *m, const struct packet_in *in, uint32_t n);
/* Jobs for silence, and for all that listen, behind that of the packet itself: at job[at], before
 * end. Returns how many. */
uint32_t media_copies(struct draft *d, struct xc_job *job, uint32_t at, uint32_t end);

/* --- prepare.c -------------------------------------------------------------------------------- */

/* What leaves: index, key and place of the tag, for d.tx. PACKET_JOB, or why not. */
uint8_t media_leave(struct draft *d);

#endif
