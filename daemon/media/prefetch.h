/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prefetches the memory that the packets of a burst will need. */
#ifndef MEDIA_PREFETCH_H
#define MEDIA_PREFETCH_H

#include "media/state.h"
#include "packet/arena.h"

#define MEDIA_PREFETCH 8 /* packets between two look-up steps of a packet */

#define MEDIA_PREFETCH_JOBS 8 /* how many jobs ahead complete prefetches */

/* Call begin before the first packet of a burst, and the other before each packet. They set
 * in_stream, and prefetch memory for later packets. */
void media_prefetch_begin(struct media *m, const struct packet_in *in, uint32_t n);
void media_prefetch(struct media *m, const struct packet_in *in, uint32_t n, uint32_t at);

/* Prefetches what complete needs of a job: the tables of a large burst exceed the L1 cache. */
void media_prefetch_jobs(const struct media *m, const struct note *n);

/* The lines of SRTP+ tags, in workers that have contexts with tags. Call the first before each of
 * the n packets of a burst, and the others before each job. "more" reads what "job" prefetched. */
void media_prefetch_tags(const struct media *m, uint32_t n, uint32_t at);
void media_prefetch_tags_job(const struct media *m, const struct note *n, const struct xc_job *j);
void media_prefetch_tags_more(
	const struct media *m, const struct arena *a, const struct note *n, const struct xc_job *j);

#endif
