/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench path: the whole worker loop (look up, prepare, batch, cipher, complete) on packets fed from memory, without
 * system calls: what is left when the network is no longer the limit. Where the time goes is told by the histograms that
 * the daemon always keeps. A case counts only if every packet of a check left, under the right key, to the right place. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "path_load.h"

enum { LIST_MAX = 16, REPS_MIN = 5, REPS_MAX = 1001 };

struct options {
	struct path_case c;
	uint32_t calls[LIST_MAX], batch[LIST_MAX];
	unsigned n_calls, n_batch;
	uint64_t budget_ns;
	bool json;
};

struct figure {
	/* ns per packet: medians, and the best tenth of each by itself. */
	double total, best, feed, stage[WORKER_STAGES], stage_best[WORKER_STAGES];
	double spread; /* of total: 10th to 90th percentile as a part of the median */
	uint32_t device_min;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void stage_sums(const struct worker *w, uint64_t sum[WORKER_STAGES])
{
	for (int s = 0; s < WORKER_STAGES; s++)
		sum[s] = atomic_load(&w->stage[s].sum);
}

/* One fill through the loop, in nanoseconds per packet; negative when a packet was lost. */
static double drain(struct path *p)
{
	uint64_t start = clock_mono_ns(), took;

	while (worker_round(p->w))
		;
	took = clock_mono_ns() - start;
	return p->sent == p->fill ? (double)took / p->fill : -1;
}

static int check(struct path *p)
{
	double ns;

	p->check = true;
	ns = path_fill(p) ? -1 : drain(p);
	p->check = false;
	if (ns < 0 || p->wrong) {
		fprintf(stderr, "xcipher-bench: %u of %u packets left, %u of them wrong\n", p->sent,
			p->fill, p->wrong);
		return -EBADMSG;
	}
	return 0;
}

static int measure(struct figure *f, struct path *p, uint64_t budget_ns)
{
	static double total[REPS_MAX], feed[REPS_MAX], stage[WORKER_STAGES][REPS_MAX];
	uint64_t before[WORKER_STAGES], after[WORKER_STAGES], start, begin;
	int n = 0, err = check(p);

	if (err)
		return err;
	begin = clock_mono_ns();
	for (; n < REPS_MAX && (n < REPS_MIN || clock_mono_ns() - begin < budget_ns); n++) {
		if (path_fill(p))
			return -EIO;
		start = clock_mono_ns();
		path_feed_only(p);
		feed[n] = (double)(clock_mono_ns() - start) / p->fill;
		stage_sums(p->w, before);
		total[n] = drain(p);
		stage_sums(p->w, after);
		if (total[n] < 0)
			return -EBADMSG;
		for (int s = 0; s < WORKER_STAGES; s++)
			stage[s][n] = (double)(after[s] - before[s]) / p->fill;
	}
	qsort(total, (size_t)n, sizeof(*total), by_value);
	qsort(feed, (size_t)n, sizeof(*feed), by_value);
	f->total = total[n / 2];
	f->best = total[n / 10];
	f->spread = (total[n * 9 / 10] - total[n / 10]) / f->total;
	f->feed = feed[n / 10];
	for (int s = 0; s < WORKER_STAGES; s++) {
		qsort(stage[s], (size_t)n, sizeof(*stage[s]), by_value);
		f->stage[s] = stage[s][n / 2];
		f->stage_best[s] = stage[s][n / 10];
	}
	f->device_min = p->c.opencl ? p->device.min[BATCH_CM] : BATCH_NEVER;
	return check(p);
}

static void print(const struct options *o, const struct path *p, const struct figure *f)
{
	double loop = f->total - f->feed;

	if (o->json) {
		printf("{\"bench\":\"path\",\"engine\":\"%s\",\"a\":\"%s\",\"b\":\"%s\",\"payload\":%u,"
		       "\"calls\":%u,\"batch\":%u,\"ns_per_packet\":%.1f,\"best\":%.1f,\"spread\":%.3f,\"feed\":%.1f,"
		       "\"prepare\":%.1f,\"cipher\":%.1f,\"complete\":%.1f,"
		       "\"best_prepare\":%.1f,\"best_cipher\":%.1f,\"best_complete\":%.1f,\"checked\":true}\n",
			p->c.opencl ? "opencl" : "serial", p->c.a->name, p->c.b->name, p->c.payload,
			p->c.calls, p->c.batch, loop, f->best - f->feed, f->spread, f->feed,
			f->stage[WORKER_STAGE_PREPARE], f->stage[WORKER_STAGE_ENGINE],
			f->stage[WORKER_STAGE_COMPLETE], f->stage_best[WORKER_STAGE_PREPARE],
			f->stage_best[WORKER_STAGE_ENGINE], f->stage_best[WORKER_STAGE_COMPLETE]);
	} else {
		printf("%7u %6u %9.0f %9.0f %5.0f%% %9.0f %9.0f %9.0f %7.0f\n", p->c.calls,
			p->c.batch, loop, f->best - f->feed, 100 * f->spread,
			f->stage[WORKER_STAGE_PREPARE], f->stage[WORKER_STAGE_ENGINE],
			f->stage[WORKER_STAGE_COMPLETE], f->feed);
	}
	fflush(stdout);
}

static int run_case(const struct options *o, uint32_t calls, uint32_t batch)
{
	struct path_case c = o->c;
	struct figure f;
	struct path p;
	int err;

	c.calls = calls;
	c.batch = batch;
	err = path_create(&p, &c);
	if (err)
		fprintf(stderr, "xcipher-bench: %s\n", p.err);
	else
		err = measure(&f, &p, o->budget_ns);
	if (!err)
		print(o, &p, &f);
	path_destroy(&p);
	return err;
}

/* --- Options -------------------------------------------------------------------------------------------------------- */

static const char HELP[] =
	"usage: xcipher-bench path [OPTION...]\n"
	"The worker loop on packets from memory, one core, no system calls: nanoseconds per packet.\n"
	"  --calls=N,...     calls, each with a packet in both directions per round (100,1000,10000)\n"
	"  --batch=N,...     most packets in a burst (256)\n"
	"  --a=SUITE --b=SUITE  what the two sides speak, plain = RTP (AES_CM_128_HMAC_SHA1_80 and _32)\n"
	"  --payload=BYTES   of each packet (160)\n"
	"  --engine=opencl|serial   (opencl)\n"
	"  --device=NAME     OpenCL device, as xcipherd's opencl-device\n"
	"  --opencl-min=N    smallest batch for the device; 0 = measured (0)\n"
	"  --seconds=S       time for each case, making packets included (3)\n"
	"  --cpu=N           the core to stay on (the current one)\n"
	"  --json            one JSON object per line\n"
	"  --help            this\n"
	"Columns: loop is everything but feed, the copy into memory that stands for the network card's; median and\n"
	"best tenth. Of it,\n"
	"prepare looks up the stream, its index and replay window and writes the job; cipher is the engine;\n"
	"complete commits replay window and index, learns the source, writes the header. The rest of the loop\n"
	"is its clocks, histograms and counters.\n";

static unsigned read_list(uint32_t *out, const char *text, uint32_t max)
{
	unsigned n = 0;
	char *end;

	while (n < LIST_MAX) {
		unsigned long v = strtoul(text, &end, 10);

		if (end == text || v == 0 || v > max)
			return 0;
		out[n++] = (uint32_t)v;
		if (!*end)
			return n;
		if (*end != ',')
			return 0;
		text = end + 1;
	}
	return 0;
}

static const struct srtp_suite *read_suite(const char *name)
{
	return strcmp(name, "plain") == 0 ? srtp_suite_get(SUITE_PLAIN)
					  : srtp_suite_find(str_from(name));
}

static int pin(const char *text)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)strtoul(text, NULL, 10), &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static int read_option(struct options *o, int c)
{
	uint32_t one;

	switch (c) {
	case 'c':
		o->n_calls = read_list(o->calls, optarg, 30000);
		return o->n_calls ? 0 : -1;
	case 'b':
		o->n_batch = read_list(o->batch, optarg, 16384);
		return o->n_batch ? 0 : -1;
	case 'A':
		o->c.a = read_suite(optarg);
		return o->c.a ? 0 : -1;
	case 'B':
		o->c.b = read_suite(optarg);
		return o->c.b ? 0 : -1;
	case 'p':
		return read_list(&o->c.payload, optarg, 1500) == 1 ? 0 : -1;
	case 'e':
		o->c.opencl = strcmp(optarg, "opencl") == 0;
		return o->c.opencl || strcmp(optarg, "serial") == 0 ? 0 : -1;
	case 'd':
		o->c.device = optarg;
		return 0;
	case 'm':
		o->c.device_min = (uint32_t)strtoul(optarg, NULL, 10);
		return 0;
	case 's':
		if (read_list(&one, optarg, 3600) != 1)
			return -1;
		o->budget_ns = one * NS_PER_SEC;
		return 0;
	case 'C':
		return pin(optarg);
	case 'j':
		o->json = true;
		return 0;
	}
	return -1;
}

int bench_path(int argc, char **argv)
{
	static const struct option longs[] = {{"calls", 1, 0, 'c'}, {"batch", 1, 0, 'b'},
		{"a", 1, 0, 'A'}, {"b", 1, 0, 'B'}, {"payload", 1, 0, 'p'}, {"engine", 1, 0, 'e'},
		{"device", 1, 0, 'd'}, {"opencl-min", 1, 0, 'm'}, {"seconds", 1, 0, 's'},
		{"cpu", 1, 0, 'C'}, {"json", 0, 0, 'j'}, {"help", 0, 0, 'h'}, {0}};
	struct options o = {.calls = {100, 1000, 10000},
		.n_calls = 3,
		.batch = {256},
		.n_batch = 1,
		.budget_ns = 3 * NS_PER_SEC,
		.c = {.a = srtp_suite_get(SUITE_AES_CM_128_80),
			.b = srtp_suite_get(SUITE_AES_CM_128_32),
			.payload = 160,
			.device = "",
			.opencl = true}};
	int c, at = 0;

	while ((c = getopt_long(argc, argv, "", longs, &at)) != -1) {
		if (c == 'h')
			return fputs(HELP, stdout) < 0;
		if (c == '?' || read_option(&o, c)) {
			if (c != '?')
				fprintf(stderr, "xcipher-bench: --%s=%s makes no sense here\n",
					longs[at].name, optarg ? optarg : "");
			fputs("Try xcipher-bench path --help.\n", stderr);
			return 2;
		}
	}
	/* In-thread devices where the platform has them, as the daemon chooses. */
	if (!o.json)
		printf("%s to %s and back, %u bytes, %s; ns per packet\n%7s %6s %9s %9s %6s %9s %9s %9s %7s\n",
			o.c.a->id ? o.c.a->name : "RTP", o.c.b->id ? o.c.b->name : "RTP",
			o.c.payload, o.c.opencl ? "opencl" : "serial", "calls", "batch", "loop",
			"best 10%", "spread", "prepare", "cipher", "complete", "feed");
	for (unsigned i = 0; i < o.n_calls; i++)
		for (unsigned k = 0; k < o.n_batch; k++)
			if (run_case(&o, o.calls[i], o.batch[k]))
				return 1;
	return 0;
}
