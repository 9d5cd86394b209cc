/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of a packet for subscribers, for other m-lines of a bundle, and as silence. */
#ifndef MEDIA_COPIES_H
#define MEDIA_COPIES_H

#include "media/draft.h"

enum gate { OPEN, QUIET, SHUT };

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

#endif
