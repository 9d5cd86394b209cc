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

#endif
