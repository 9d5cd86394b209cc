/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prefetches the memory that the packets of a burst will need. */
#ifndef MEDIA_PREFETCH_H
#define MEDIA_PREFETCH_H

#include "media/state.h"

#define MEDIA_PREFETCH 8 /* packets from one look-up of a packet to its next one */

#define MEDIA_PREFETCH_JOBS 8 /* jobs that complete asks ahead */

/* Before the first packet of the burst is prepared, and before each. They find in_stream, and ask
 * for what later packets need. */
void media_prefetch_begin(struct media *m, const struct packet_in *in, uint32_t n);
void media_prefetch(struct media *m, const struct packet_in *in, uint32_t n, uint32_t at);

/* The same for what complete needs of a job: a large burst's tables do not stay in the nearest
 * cache. */
void media_prefetch_jobs(const struct media *m, const struct note *n);

#endif
