/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One worker's memory: the slots of packets, and the jobs, statuses and keys of its batches. */
#ifndef PACKET_ARENA_H
#define PACKET_ARENA_H

#include "base/bytes.h"
#include "layout.h"

/* Length of every packet slot in both buffers. A packet starts at least ARENA_HEADROOM into its
 * slot, and ends at least XC_SLACK before the slot's end. The length is an odd number of cache
 * lines (47): with a power of two, the same bytes of all packets would compete for a few cache
 * sets. */
#define ARENA_SLOT_LEN 3008u

#define ARENA_HEADROOM \
	128u /* for the headers before a result: Ethernet, two VLAN tags, IPv6, UDP */

#define ARENA_MAX_PACKET 2048u /* bytes of RTP or RTCP; longer datagrams are dropped and counted */

/* Memory that the engine provides for its worker. Page-aligned, so that the device can use it as
 * its own buffer. */
struct arena {
	uint8_t *in;        /* slots * ARENA_SLOT_LEN */
	uint8_t *out;       /* slots * ARENA_SLOT_LEN; follows in, in the same mapping */
	struct xc_job *job; /* slots */
	uint32_t *status;   /* slots */
	uint32_t slots;
	uint32_t batch_max; /* maximum jobs per batch; 0 = slots */
	/* key_slots, secure memory; 0 and 1 are plain. The control thread writes a slot that no
	 * flow uses yet. The worker wipes it after the last flow has ended. */
	struct xc_key *key;
	uint32_t key_slots;
};

/* Allocates the memory of one worker, shared by all engines that may run its batches. 0 or -ENOMEM.
 */
int arena_create(struct arena *out, uint32_t slots, uint32_t key_slots);
void arena_destroy(struct arena *a);
/* Bytes of in and out together: whole pages, from in on. */
size_t arena_packets_len(const struct arena *a);

#endif
