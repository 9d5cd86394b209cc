/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that the engine only decrypted: complete.c changes them in arena.out and encrypts them
 * here. note.late_key is the key; 0: the packet leaves in clear. Packets of the fast path are
 * encrypted together at the end of the burst: several lanes hash in the time of one. */
#ifndef MEDIA_REWRITE_H
#define MEDIA_REWRITE_H

#include "layout.h"
#include "media/state.h"
#include "packet/arena.h"

/* SRTCP after a restart: renames SSRCs in the decrypted packet in arena.out, then encrypts it.
 * Senders get new SSRCs. Reports to a source name the SSRCs it sends; copies to listeners keep the
 * new ones. The SRTCP ceiling limits how often this happens. */
void media_rewrite_rtcp(const struct media *m, const struct arena *a, const struct note *n,
	const struct xc_job *j, bool is_copy);
/* Changes the decrypted packet in arena.out: converts it, writes the MID into it, or changes the
 * block at its end. Adapts the job, and encrypts the packet. False: encryption failed. */
bool media_rewrite_rtp(
	const struct media *m, const struct arena *a, const struct note *n, struct xc_job *j);
/* The same for the fast path: writes out->len. media_rewrite_all() encrypts the packet. */
void media_rewrite_later(struct media *m, const struct arena *a, const struct note *n,
	const struct xc_job *j, struct packet_out *out);
/* Encrypts these packets, and writes their SRTP+ tags. False: some failed; their out->len is 0. */
bool media_rewrite_all(struct media *m, const struct arena *a);
/* Removes feedback from the decrypted packet in arena.out, and writes the matching job. False: the
 * packet is empty now. */
bool media_cut_feedback(const struct arena *a, const struct note *n, struct xc_job *j);

#endif
