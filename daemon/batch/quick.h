/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of the serial engine: AES-CM with HMAC-SHA1 for several packets at once, by the processor's
 * AES and SHA-1 instructions. */
#ifndef BATCH_QUICK_H
#define BATCH_QUICK_H

#include "packet/arena.h"

struct sha1_ways;

#define QUICK_JOBS 16u

/* Jobs that are processed together. */
struct quick {
	const struct arena *arena;
	const struct sha1_ways *ways;
	const struct xc_job *job[QUICK_JOBS];
	uint32_t *status[QUICK_JOBS];
	uint32_t n;
};

/* Whether the quick way supports a key: AES-CM or no cipher, HMAC-SHA1 or no authentication. */
bool quick_can(const struct xc_key *k);
/* Processes the jobs, whose keys and packets the caller has checked, and writes their statuses. It
 * deciphers before it authenticates, so the output of a packet with XC_BAD_TAG is undefined. */
void quick_run(struct quick *g);
/* Adds a job, and runs all when the list is full. */
static inline void quick_add(struct quick *g, const struct xc_job *j, uint32_t *status)
{
	g->job[g->n] = j;
	g->status[g->n++] = status;
	if (g->n == QUICK_JOBS)
		quick_run(g);
}
/* Authenticates the jobs of d, which are probably forged, and adds the authentic ones to g, which
 * authenticates them again. All their keys must have authentication. */
void quick_doubt(struct quick *d, struct quick *g);

#endif
