/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the benchmark's parts share: sub-commands; for "cipher" the case, the packets, and what can be measured. */
#ifndef BENCH_H
#define BENCH_H

#include "batch/engine.h"
#include "srtp/kdf.h"

/* Exit status of the program. */
int bench_cipher(int argc, char **argv);
int bench_path(int argc, char **argv);

struct bench_case {
	const struct srtp_suite *rx, *tx;
	uint32_t payload, batch, streams; /* payload: of the longest packet if mixed */
	bool mixed;
	const char *device, *kernel_dir; /* of the OpenCL engine */
	uint32_t flags;                  /* ENGINE_* */
};

/* Packets in the arena as steering would have put them there: the next batch's, of streams taken in a scattered order. */
struct load {
	struct bench_case c;
	struct arena a; /* [batch] slots; stream s has the key pairs 2 + 4s (rx) and 4 + 4s (tx) */
	struct srtp_master *master; /* [2 * streams]: rx, tx */
	uint32_t *index;            /* [streams], the last one used */
	struct xc_job *job;         /* [packets], made beforehand */
	uint8_t *bytes;             /* [packets * stride] */
	uint32_t packets, stride, at;
	uint8_t *want; /* the reference's results of the batch, laid out as a.out */
};
int load_create(struct load *l, const struct bench_case *c);
void load_destroy(struct load *l);
/* The next batch. fresh: indices never seen before, for implementations that have a replay window; else packets
 * made beforehand, which is much quicker. */
void load_next(struct load *l, bool fresh);
/* The reference's results of the batch that is loaded. */
void load_want(struct load *l);

/* Something that re-encrypts the loaded batch. */
struct bench_impl {
	const char *name;
	bool in_place; /* results are where the packets were, in a.in */
	bool fresh;    /* has a replay window */
	bool (*can)(const struct bench_case *c);
	/* 0, or -errno with a line in err */
	int (*open)(void **out, const struct load *l, char *err, size_t err_len);
	void (*close)(void *p);
	const char *(*device)(const void *p);
	/* The timed part. 0 if all packets authenticated. */
	int (*run)(void *p, struct load *l);
};
extern const struct bench_impl bench_impl_serial, bench_impl_opencl, bench_impl_srtp2,
	bench_impl_ipsecmb;

#endif
