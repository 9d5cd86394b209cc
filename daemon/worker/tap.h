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

struct tap_entry {
	uint32_t tap;  /* which recording */
	uint32_t lost; /* recordings' packets lost by this worker so far */
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
	struct tap_entry *entry; /* worker only: buffer to assemble an entry */
	_Atomic uint32_t lost;
};

/* 0 or -ENOMEM. */
int tap_init(struct tap *t);
void tap_fini(struct tap *t);
/* The function for media_config.tap; arg is the tap. Worker thread. */
void tap_packet(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j);

#endif
