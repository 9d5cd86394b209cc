/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the parts of xcipher-bench: its sub-commands, and for "cipher" the packets, the
 * implementations and the measurement. */
#ifndef BENCH_H
#define BENCH_H

#include "batch/run.h"
#include "packet/arena.h"
#include "srtp/kdf.h"

/* Exit status of the program. */
int bench_cipher(int argc, char **argv);
int bench_codec(int argc, char **argv);
int bench_dtls(int argc, char **argv);
int bench_gpu(int argc, char **argv);
int bench_ice(int argc, char **argv);
int bench_mikey(int argc, char **argv);
int bench_path(int argc, char **argv);
int bench_preauth(int argc, char **argv);
int bench_zrtp(int argc, char **argv);

/* Settings shared by all variants of a run. */
struct bench_env {
	const char *device, *kernel_dir; /* of the OpenCL engine */
	uint32_t flags;                  /* ENGINE_* */
	uint32_t depth;                  /* batches in flight to open it for; 0 = 1 */
	char peers[512];                 /* the folder of libraries built for comparison */
	struct engine *serial, *opencl;  /* opened on first use */
	struct batch_device calibrated;  /* opencl as the daemon's runner uses it: measured once */
	bool nss_full;                   /* NSS sessions were left open */
};

/* Streams of one kind. A load has one kind, or a mixture. */
struct bench_class {
	const struct srtp_suite *rx, *tx;
	uint32_t hdr_len, payload;
	uint32_t weight; /* share of the streams, relative to the sum of weights */
};

/* --- Packets (bench_load.c) ------------------------------------------------------------------- */

struct load_config {
	const struct bench_class *cls;
	unsigned n_cls;
	uint32_t streams, slots; /* slots: of the largest batch */
	bool no_auth;            /* ciphering alone */
	bool skewed;             /* packets begin at any multiple of 4 bytes */
};

/* Packets in the arena as steering would place them: the next batch, from streams in a scattered
 * order. */
struct load {
	struct load_config c;
	uint32_t batch;             /* packets in a batch: at most c.slots */
	struct arena a;             /* stream s has the key pairs 2 + 4s (rx) and 4 + 4s (tx) */
	struct srtp_master *master; /* [2 * streams]: rx, tx */
	uint32_t *index;            /* [streams], the last one used */
	struct xc_job *job;         /* [packets], created beforehand */
	uint8_t *bytes;             /* [packets * stride] */
	uint32_t packets, stride, at;
	uint8_t *want;   /* the reference's results of the batch, laid out as a.out */
	uint32_t wanted; /* number of leading packets with results in want */
	/* Protects packets for a: its output is a.in. */
	struct arena maker, maker_arena; /* a load with a's keys and input */
	struct engine_queue *maker_q;
};
int load_create(struct load *l, const struct load_config *c, struct bench_env *env);
void load_destroy(struct load *l);
const struct bench_class *load_class(const struct load *l, uint32_t stream);
uint32_t load_ssrc(uint32_t stream);
static inline uint32_t load_stream(const struct xc_job *j)
{
	return (j->rx_key - 2) / 4;
}
/* Creates new packets with indexes not used before. 0 or -errno. */
int load_restock(struct load *l);
/* Copies the next n packets into the arena, which touches no keys. fresh: none is repeated since
 * the last restocking, for implementations with a replay window. 0 or -errno. */
int load_next(struct load *l, bool fresh, uint32_t n);
/* Loads the first n packets, fresh or existing ones, and the reference's results for them. */
int load_checked(struct load *l, bool fresh, uint32_t n);

/* --- Implementations -------------------------------------------------------------------------- */

/* An implementation that re-encrypts the loaded packets. */
struct bench_impl {
	const char *name;
	bool in_place;   /* results are where the packets were, in a.in */
	bool fresh;      /* has a replay window */
	bool per_packet; /* its time is proportional to the number of packets */
	bool (*can)(const struct srtp_suite *s);
	/* 0, or -errno with a line in err that names cause and remedy */
	int (*open)(
		void **out, struct bench_env *env, const struct load *l, char *err, size_t err_len);
	void (*close)(void *p);
	const char *(*device)(const void *p);
	/* Optional, not timed: copies the first n loaded packets to its own memory. Returns the
	 * place of its results. */
	void (*take)(void *p, const struct load *l, uint32_t n);
	const uint8_t *(*results)(const void *p);
	/* The timed part: re-encrypts the first n packets. 0 if all were authentic. */
	int (*run)(void *p, struct load *l, uint32_t n);
};
extern const struct bench_impl bench_impl_serial, bench_impl_opencl, bench_impl_calibrated,
	bench_impl_runner_serial, bench_impl_runner_again, bench_impl_srtp_nss,
	bench_impl_srtp_openssl, bench_impl_evp, bench_impl_ipsecmb, bench_impl_massive,
	bench_impl_persistent;

/* For bench_impl_opencl: runs the loaded batch several times, with as many in flight as it was
 * opened for. */
int bench_opencl_flights(void *p, struct load *l, unsigned batches);

/* --- Measuring (bench_measure.c) -------------------------------------------------------------- */

/* One variant: an implementation on a load. */
struct contender {
	const struct bench_impl *im;
	struct load *l;
	void *p;
	double *ns; /* of each repetition; negative: another thread ran on the core meanwhile */
	unsigned n;
	/* the median of each round's turn, for comparisons round by round; 0 = disturbed */
	double *turn;
	unsigned turns;
	uint32_t slice; /* packets in a run: a batch, or less if a batch takes too long */
	uint64_t spent_ns;
	/* The results, in nanoseconds per packet: median, 10th percentile, and the span up to the
	 * 90th relative to the median. */
	double median, best, spread;
	bool checked, failed;
};

/* Runs the contenders in turn, round by round, until each has had its time. Marks failed ones. */
void bench_measure(struct contender *c, unsigned n, uint64_t budget_ns);
/* Sorts v[0..n), n > 0. Returns the quartiles of the values. */
struct quartiles {
	double low, median, high;
};
struct quartiles bench_quartiles(double *v, unsigned n);
void bench_measure_free(struct contender *c);

/* --- Output (bench_report.c) ------------------------------------------------------------------ */

void report_head(const struct load *l, bool json);
void report(const struct contender *c, bool json);
/* Reports a mixture against the sum of its parts: its time, and the weighted times of uniform
 * runs. */
void report_mix(const struct contender *mixed, const struct contender *part, unsigned n, bool json);

#endif
