/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fast_path.c has for others. */
#ifndef MEDIA_FAST_PATH_H
#define MEDIA_FAST_PATH_H

#include "media/state.h"
#include "packet/arena.h"

/* What a stream and a direction must be for packets to take the short way. */
bool media_fast_stream(const struct media_stream_cfg *c);
bool media_fast_way(const struct media_crypto *c);

/* The short way of a burst's packet in[at]: true, and note and job are written; or false, and it is
 * for prepare.c to say. */
bool media_fast(const struct media *m, const struct arena *a, const struct packet_in *in,
	uint32_t at, struct note *note, struct xc_job *job);

#endif
