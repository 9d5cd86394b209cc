/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that the engine only decrypted: complete.c changes them in arena.out and encrypts them
 * here, one at a time. note.late_key is the key; 0: the packet leaves in clear. */
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
/* Removes feedback from the decrypted packet in arena.out, and writes the matching job. False: the
 * packet is empty now. */
bool media_cut_feedback(const struct arena *a, const struct note *n, struct xc_job *j);

#endif
