/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Generated packets for engines: self-test, calibration, tests and benchmarks. srtp/ref protects
 * them, so they authenticate. Not for the packet path. */
#ifndef BATCH_SAMPLE_H
#define BATCH_SAMPLE_H

#include "batch/engine.h"
#include "packet/arena.h"
#include "srtp/kdf.h"

struct sample {
	uint32_t rx_key, tx_key; /* slots of the arena's key table (odd ones for RTCP) */
	uint32_t hdr_len;        /* at least 12 for RTP, 8 for RTCP */
	uint32_t body_len;
	uint32_t flags; /* XC_JOB_* */
	uint32_t ssrc_change;
	uint32_t convert; /* ignored where xc_job excludes it */
	uint32_t in_skew; /* bytes beyond ARENA_HEADROOM at which the packet starts */
	uint8_t rx_mki_len, tx_mki_len;
	uint64_t rx_index, tx_index;
	uint64_t seed; /* determines everything else */
};

/* Keys for samples only, generated from the seed. */
void sample_master(struct srtp_master *m, enum srtp_suite_id suite, uint64_t seed);
/* Writes the job for packet slot `slot`, and its packet into the arena's input. */
void sample_make(struct xc_job *job, const struct arena *a, uint32_t slot, const struct sample *s);
/* Whether two results of a job are equal where the layout defines them: ignores the MKI's gap. */
bool sample_equal(
	const struct xc_job *job, const struct arena *a, const uint8_t *x, const uint8_t *y);
/* Bytes of the packet on the wire on one side of the job. */
uint32_t sample_len(
	const struct xc_job *job, const struct xc_key *k, uint32_t tag_off, uint32_t mki_len);
/* splitmix64 */
uint64_t sample_random(uint64_t *state);

#endif
