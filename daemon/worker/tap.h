/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes packets to record from a worker to the recording thread: authentic packets as received,
 * each with its key. So the packet path only copies recorded packets. The recording can decrypt
 * them whatever happens to the keys later (re-INVITE, MKI, key derivation rate). Bounded: packets
 * that find no room are counted as lost to the recording. */
#ifndef WORKER_TAP_H
#define WORKER_TAP_H

#include "base/ring.h"
#include "media/media.h"
#include "packet/arena.h"

#define TAP_ENTRIES 1024u
#define TAP_SHARES  1024u /* recordings are counted in so many groups, by number */

struct tap_entry {
	uint32_t tap;    /* which recording */
	uint32_t lost;   /* recordings' packets lost by this worker so far, */
	uint32_t missed; /* and those of this recording's group since the entry before */
	uint64_t t_ns;   /* CLOCK_REALTIME */
	struct endpoint from;
	struct local_port to;
	struct xc_job job; /* offsets are into bytes */
	struct xc_key key;
	uint32_t len;
	uint8_t bytes[ARENA_MAX_PACKET + XC_SLACK];
};

struct tap {
	struct ring ring;
	struct tap_entry *entry; /* worker only: buffer to assemble an entry */
	_Atomic uint32_t lost;
	/* Entries of each group: put and missed are the worker's, got is the recording thread's. A
	 * group has no more entries than the ring has free ones, so that a call with very many
	 * packets takes no room from others. */
	uint32_t put[TAP_SHARES], missed[TAP_SHARES];
	_Atomic uint32_t got[TAP_SHARES];
};

/* 0 or -ENOMEM. */
int tap_init(struct tap *t);
void tap_fini(struct tap *t);
/* The function for media_config.tap; arg is the tap. Worker thread. */
void tap_packet(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j);

/* Takes the oldest entry out of the ring. False: it is empty. Recording thread. */
bool tap_next(struct tap *t, struct tap_entry *out);
/* Number of entries in the ring. Any thread. */
uint32_t tap_waiting(const struct tap *t);

#endif
