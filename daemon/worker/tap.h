/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a worker to the recording thread: what was received, was authentic and is to be recorded, as
 * it came, with the key that it is under. So the packet path pays a copy for a recorded packet and
 * nothing for another, and whatever keys do meanwhile (re-INVITE, MKI, key derivation rate) the
 * recording can read it. Bounded: what finds no room is lost to the recording and counted. */
#ifndef WORKER_TAP_H
#define WORKER_TAP_H

#include "base/ring.h"
#include "media/media.h"
#include "packet/arena.h"

#define TAP_ENTRIES 1024u

struct tap_entry {
	uint32_t tap;  /* which recording */
	uint32_t lost; /* by this worker so far, of all recordings */
	uint64_t t_ns; /* CLOCK_REALTIME */
	struct endpoint from;
	struct local_port to;
	struct xc_job job; /* offsets are into bytes */
	struct xc_key key;
	uint32_t len;
	uint8_t bytes[ARENA_MAX_PACKET + XC_SLACK];
};

struct tap {
	struct ring ring;
	struct tap_entry *entry; /* the worker's: where one is put together */
	_Atomic uint32_t lost;
};

/* 0 or -ENOMEM. */
int tap_init(struct tap *t);
void tap_fini(struct tap *t);
/* media_config's function; arg is the tap. Worker thread. */
void tap_packet(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j);

#endif
