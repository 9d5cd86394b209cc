/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench path: the whole worker loop (look up, prepare, batch, cipher, complete) on packets
 * fed from memory, without system calls. It shows the relay's cost when the network is not the
 * limit. The daemon's own histograms show where time goes. A case counts only if every packet of a
 * check left under the right key to the right place. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "path_floor.h"
#include "srtp/preauth.h"

enum { LIST_MAX = 16, REPS_MIN = 5, REPS_MAX = 1001 };

struct options {
	struct path_case c;
	uint32_t calls[LIST_MAX], batch[LIST_MAX];
	unsigned n_calls, n_batch;
	uint64_t budget_ns;
	bool json;
};

/* ns per packet: the median, and the best tenth as a second figure. */
struct quantity {
	double mid, best;
};

struct figure {
	struct quantity total, feed, stage[WORKER_STAGES];
	struct quantity lines, cipher; /* of the floor, without the feed; of the engine alone */
	uint32_t ahead;                /* prefetch distance of the floor, in packets */
	double spread; /* of total: 10th to 90th percentile relative to the median */
	uint32_t device_min;
};

/* How far ahead the floor prefetches lines. The best distance depends on the tables. */
static const uint32_t AHEAD[] = {0, 4, 8, 16, 32};

/* Figures of each repetition. */
static struct {
	double total[REPS_MAX], feed[REPS_MAX], stage[WORKER_STAGES][REPS_MAX];
	double lines[ARRAY_LEN(AHEAD)][REPS_MAX], cipher[REPS_MAX];
} rep;

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

/* Sends one fill through the loop. Nanoseconds per packet; negative if a packet was lost. */
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

/* Sends one fill through the loop, and through its floor. */
static int repeat(struct path *p, int n)
{
	uint64_t before[WORKER_STAGES], after[WORKER_STAGES], start;

	if (path_fill(p))
		return -EIO;
	start = clock_mono_ns();
	path_feed_only(p);
	rep.feed[n] = (double)(clock_mono_ns() - start) / p->fill;
	stage_sums(p->w, before);
	rep.total[n] = drain(p);
	stage_sums(p->w, after);
	for (int s = 0; s < WORKER_STAGES; s++)
		rep.stage[s][n] = (double)(after[s] - before[s]) / p->fill;
	for (size_t k = 0; k < ARRAY_LEN(AHEAD); k++)
		rep.lines[k][n] = path_floor_lines(p, AHEAD[k]);
	rep.cipher[n] = path_floor_cipher(p);
	return rep.total[n] < 0 || rep.cipher[n] < 0 ? -EBADMSG : 0;
}

static struct quantity quantity(double *of, int n)
{
	qsort(of, (size_t)n, sizeof(*of), by_value);
	return (struct quantity){.mid = of[n / 2], .best = of[n / 10]};
}

static void summarise(struct figure *f, int n)
{
	f->total = quantity(rep.total, n);
	f->spread = (rep.total[n * 9 / 10] - rep.total[n / 10]) / f->total.mid;
	f->feed = quantity(rep.feed, n);
	for (int s = 0; s < WORKER_STAGES; s++)
		f->stage[s] = quantity(rep.stage[s], n);
	f->cipher = quantity(rep.cipher, n);
	for (size_t k = 0; k < ARRAY_LEN(AHEAD); k++) {
		struct quantity q = quantity(rep.lines[k], n);

		if (k && q.mid >= f->lines.mid)
			continue;
		f->lines = q;
		f->ahead = AHEAD[k];
	}
	f->lines.mid -= f->feed.best;
	f->lines.best -= f->feed.best;
}

static int measure(struct figure *f, struct path *p, uint64_t budget_ns)
{
	uint64_t begin;
	int n = 0, err = check(p);

	if (err)
		return err;
	err = path_floor_check(p);
	if (err) {
		fprintf(stderr, "xcipher-bench: %s\n", p->err);
		return err;
	}
	begin = clock_mono_ns();
	for (; n < REPS_MAX && (n < REPS_MIN || clock_mono_ns() - begin < budget_ns) && !err; n++)
		err = repeat(p, n);
	if (err)
		return err;
	summarise(f, n);
	f->device_min = p->c.opencl ? p->device.min[BATCH_CM] : BATCH_NEVER;
	return check(p);
}

static void print_json(const struct path *p, const struct figure *f)
{
	const struct quantity *prepare = &f->stage[WORKER_STAGE_PREPARE],
			      *cipher = &f->stage[WORKER_STAGE_ENGINE],
			      *complete = &f->stage[WORKER_STAGE_COMPLETE];

	printf("{\"bench\":\"path\",\"engine\":\"%s\",\"a\":\"%s\",\"b\":\"%s\",\"payload\":%u,\"convert\":%s,"
	       "\"calls\":%u,\"batch\":%u,\"ns_per_packet\":%.1f,\"best\":%.1f,\"spread\":%.3f,\"feed\":%.1f,"
	       "\"prepare\":%.1f,\"cipher\":%.1f,\"complete\":%.1f,"
	       "\"best_prepare\":%.1f,\"best_cipher\":%.1f,\"best_complete\":%.1f,",
		p->c.opencl ? "opencl" : "serial", p->c.a->name, p->c.b->name, p->c.payload,
		p->c.convert ? "true" : "false", p->c.calls, p->c.batch,
		f->total.mid - f->feed.best, f->total.best - f->feed.best, f->spread, f->feed.best,
		prepare->mid, cipher->mid, complete->mid, prepare->best, cipher->best,
		complete->best);
	printf("\"floor\":%.1f,\"floor_lines\":%.1f,\"floor_cipher\":%.1f,"
	       "\"best_floor\":%.1f,\"best_floor_lines\":%.1f,\"best_floor_cipher\":%.1f,"
	       "\"floor_ahead\":%u,\"checked\":true}\n",
		f->lines.mid + f->cipher.mid, f->lines.mid, f->cipher.mid,
		f->lines.best + f->cipher.best, f->lines.best, f->cipher.best, f->ahead);
}

static void print(const struct options *o, const struct path *p, const struct figure *f)
{
	if (o->json)
		print_json(p, f);
	else
		printf("%7u %6u %9.0f %9.0f %5.0f%% %9.0f %9.0f %9.0f %7.0f %8.0f %7.0f %8.0f %8.0f\n",
			p->c.calls, p->c.batch, f->total.mid - f->feed.best,
			f->total.best - f->feed.best, 100 * f->spread,
			f->stage[WORKER_STAGE_PREPARE].mid, f->stage[WORKER_STAGE_ENGINE].mid,
			f->stage[WORKER_STAGE_COMPLETE].mid, f->feed.best,
			f->lines.mid + f->cipher.mid, f->lines.mid, f->cipher.mid,
			f->lines.best + f->cipher.best);
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

/* --- Options ---------------------------------------------------------------------------------- */

static const char HELP[] =
	"usage: xcipher-bench path [OPTION...]\n"
	"The worker loop on packets from memory, one core, no system calls: nanoseconds per packet.\n"
	"  --calls=N,...     calls, each with a packet in both directions per round (100,1000,10000)\n"
	"  --batch=N,...     most packets in a burst (256)\n"
	"  --a=SUITE --b=SUITE  what the two sides speak, plain = RTP (AES_CM_128_HMAC_SHA1_80 and _32)\n"
	"  --preauth=SCHEME  SRTP+ on both sides (none)\n"
	"  --payload=BYTES   of each packet (160)\n"
	"  --convert         PCMU on side a, PCMA on side b, converted by the engine\n"
	"  --engine=opencl|serial   (opencl)\n"
	"  --device=NAME     OpenCL device, as xcipherd's opencl-device\n"
	"  --opencl-min=N    smallest batch for the device; 0 = measured (0)\n"
	"  --packets=N       made at once, and sent through the loop together (65536)\n"
	"  --seconds=S       time for each case, making packets included (3)\n"
	"  --cpu=N           the core to stay on (the current one)\n"
	"  --json            one JSON object per line\n"
	"  --help            this\n"
	"Columns: loop is everything but feed, the copy into memory that stands for the network card's; median and\n"
	"best tenth. Of it,\n"
	"prepare looks up the stream, its index and replay window and writes the job; cipher is the engine;\n"
	"complete commits replay window and index, learns the source, writes the header. The rest of the loop\n"
	"is its clocks, histograms and counters.\n"
	"floor, measured beside it by turns: what no relay with these tables and this engine goes below. lines: a\n"
	"bare loop over the same packets touches the cache lines of tables that each needs and copies its header,\n"
	"without a check or a decision, lines asked for as far ahead as is best; alone: the engine by itself, on the\n"
	"same jobs. Left out: jobs, descriptors, what one part drives out of the other's cache. Medians; then the\n"
	"sum of the best tenths.\n";

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

static int read_preauth(uint8_t *out, const char *name)
{
	enum preauth_scheme s;

	if (!preauth_find(&s, str_from(name)))
		return -1;
	*out = (uint8_t)(1 + s);
	return 0;
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
	case 'P':
		return read_preauth(&o->c.preauth, optarg);
	case 'p':
		return read_list(&o->c.payload, optarg, 1500) == 1 ? 0 : -1;
	case 'u':
		o->c.convert = true;
		return 0;
	case 'e':
		o->c.opencl = strcmp(optarg, "opencl") == 0;
		return o->c.opencl || strcmp(optarg, "serial") == 0 ? 0 : -1;
	case 'd':
		o->c.device = optarg;
		return 0;
	case 'm':
		o->c.device_min = (uint32_t)strtoul(optarg, NULL, 10);
		return 0;
	case 'n':
		return read_list(&o->c.packets, optarg, 1u << 20) == 1 ? 0 : -1;
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
		{"a", 1, 0, 'A'}, {"b", 1, 0, 'B'}, {"payload", 1, 0, 'p'}, {"convert", 0, 0, 'u'},
		{"preauth", 1, 0, 'P'}, {"engine", 1, 0, 'e'}, {"device", 1, 0, 'd'},
		{"opencl-min", 1, 0, 'm'}, {"packets", 1, 0, 'n'}, {"seconds", 1, 0, 's'},
		{"cpu", 1, 0, 'C'}, {"json", 0, 0, 'j'}, {"help", 0, 0, 'h'}, {0}};
	struct options o = {.calls = {100, 1000, 10000},
		.n_calls = 3,
		.batch = {256},
		.n_batch = 1,
		.budget_ns = 3 * NS_PER_SEC,
		.c = {.a = srtp_suite_get(SUITE_AES_CM_128_80),
			.b = srtp_suite_get(SUITE_AES_CM_128_32),
			.payload = 160,
			.packets = 65536,
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
	/* In-thread devices where the platform has them: the daemon's choice. */
	if (!o.json)
		printf("%s to %s and back, %u bytes, %s; ns per packet\n%7s %6s %9s %9s %6s %9s %9s %9s %7s %8s %7s %8s %8s\n",
			o.c.a->id ? o.c.a->name : "RTP", o.c.b->id ? o.c.b->name : "RTP",
			o.c.payload, o.c.opencl ? "opencl" : "serial", "calls", "batch", "loop",
			"best 10%", "spread", "prepare", "cipher", "complete", "feed", "floor",
			"lines", "alone", "best 10%");
	for (unsigned i = 0; i < o.n_calls; i++)
		for (unsigned k = 0; k < o.n_batch; k++)
			if (run_case(&o, o.calls[i], o.batch[k]))
				return 1;
	return 0;
}
