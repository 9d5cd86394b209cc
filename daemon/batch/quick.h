/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serial engine's quick way for AES-CM and HMAC-SHA1: several packets at once, by the
 * processor's own instructions. Part of the serial engine. */
#ifndef BATCH_QUICK_H
#define BATCH_QUICK_H

#include "packet/arena.h"

struct sha1_ways;

#define QUICK_JOBS 16u

/* Jobs that are done together. */
struct quick {
	const struct arena *arena;
	const struct sha1_ways *ways;
	const struct xc_job *job[QUICK_JOBS];
	uint32_t *status[QUICK_JOBS];
	uint32_t n;
};

/* Whether a key can be used: AES-CM or no cipher, HMAC-SHA1 or no authentication. */
bool quick_can(const struct xc_key *k);
/* Processes the jobs, whose keys and packets the caller has checked, and writes their statuses.
 * Ciphers first and hashes then: the output of a packet with XC_BAD_TAG is undefined. */
void quick_run(struct quick *g);

#endif
