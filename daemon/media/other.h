/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Relays packets other than RTP and RTCP unchanged. */
#ifndef MEDIA_OTHER_H
#define MEDIA_OTHER_H

#include "media/state.h"
#include "packet/arena.h"

#define MEDIA_BLIND_MAX 500u /* datagrams to a destination that never sent: 10 s of T.38 */

/* The verdict for a packet other than RTP and RTCP, or of a raw stream. With PACKET_JOB, note and
 * job are written. */
uint8_t media_other(struct media *m, const struct packet_in *in, uint32_t stream,
	enum pkt_kind kind, struct note *note, struct xc_job *job);

/* Second half of such a job, whose stream and target still exist. PACKET_SENT: *out is written.
 * Otherwise a drop verdict. */
uint8_t media_other_done(struct media *m, const struct arena *a, struct note *n,
	const struct packet_in *in, const struct xc_job *j, struct packet_out *out);

/* Whether the terminals agree on keys of their own through the relay: their media may be encrypted
 * on plain legs. */
bool media_end_to_end(const struct media *m, uint32_t stream);

#endif
