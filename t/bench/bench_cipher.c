/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench cipher: nanoseconds per packet of re-encrypting, by implementation, batch size and number of streams, all
 * on one core in one run. A variant counts only if one batch of it was the same as the reference's, byte by byte, and
 * every packet that was timed authenticated. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "batch/sample.h"
#include "bench.h"

enum { LIST_MAX = 16, REPS_MIN = 5, REPS_MAX = 10001, REP_PACKETS = 512 };

struct options {
	struct bench_case c;
	uint32_t batch[LIST_MAX], streams[LIST_MAX];
	unsigned n_batch, n_streams;
	const char *impls; /* names between commas, or NULL for all */
	uint64_t budget_ns;
	bool json;
};

struct result {
	double ns, best, spread; /* median, 10th percentile, 10th to 90th as a part of the median */
	bool checked;
};

static const struct bench_impl *const impls[] = {
	&bench_impl_serial, &bench_impl_opencl, &bench_impl_ipsecmb, &bench_impl_srtp2};

/* --- One variant ------------------------------------------------------------------------------------------------- */

static bool results_right(const struct bench_impl *im, const struct load *l)
{
	for (uint32_t i = 0; i < l->c.batch; i++) {
		struct xc_job j = l->a.job[i];
		const uint8_t *got = l->a.out;

		if (im->in_place) /* in_off and out_off of a loaded packet may differ by its skew */
			got = l->a.in + j.in_off - j.out_off;
		if (!sample_equal(&j, &l->a, got, l->want))
			return false;
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The same call twice in a row: what measuring itself costs. */
static uint64_t clock_cost(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t start = clock_mono_ns(), took = clock_mono_ns() - start;

		if (took < best)
			best = took;
	}
	return best;
}

/* Nanoseconds per packet over some batches; negative when a packet failed. */
static double rep(const struct bench_impl *im, void *p, struct load *l, uint64_t clock_ns)
{
	uint64_t sum = 0;
	uint32_t packets = 0;

	while (packets < REP_PACKETS) {
		uint64_t start, took;

		load_next(l, im->fresh);
		start = clock_mono_ns();
		if (im->run(p, l))
			return -1;
		took = clock_mono_ns() - start;
		sum += took > clock_ns ? took - clock_ns : 0;
		packets += l->c.batch;
	}
	return (double)sum / packets;
}

static int measure(
	struct result *r, const struct bench_impl *im, void *p, struct load *l, uint64_t budget_ns)
{
	static double ns[REPS_MAX];
	uint64_t clock_ns = clock_cost(), start;
	int n = 0;

	load_next(l, im->fresh);
	load_want(l);
	if (im->run(p, l))
		return -EBADMSG;
	r->checked = results_right(im, l);
	if (!r->checked || rep(im, p, l, clock_ns) < 0) /* and warm */
		return -EBADMSG;
	start = clock_mono_ns();
	while (n < REPS_MAX && (n < REPS_MIN || clock_mono_ns() - start < budget_ns)) {
		ns[n] = rep(im, p, l, clock_ns);
		if (ns[n++] < 0)
			return -EBADMSG;
	}
	qsort(ns, (size_t)n, sizeof(*ns), by_value);
	r->ns = ns[n / 2];
	r->best = ns[n / 10];
	r->spread = (ns[n * 9 / 10] - ns[n / 10]) / r->ns;
	return 0;
}

static void json_string(const char *s)
{
	putchar('"');
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s >= 0x20)
			putchar(*s);
	putchar('"');
}

static void result_print(const struct options *o, const struct bench_impl *im, const void *p,
	const struct load *l, const struct result *r)
{
	if (!o->json) {
		printf("%-12s %6u %7u %11.1f %9.1f %12.0f %7.1f %%  %s\n", im->name, l->c.batch,
			l->c.streams, r->ns, r->best, 1e9 / r->ns, 100 * r->spread,
			r->checked ? "yes" : "NO");
	} else {
		printf("{\"impl\":\"%s\",\"device\":", im->name);
		json_string(im->device(p));
		printf(",\"rx\":\"%s\",\"tx\":\"%s\",\"payload\":%u,\"batch\":%u,\"streams\":%u,"
		       "\"ns_per_packet\":%.1f,\"best\":%.1f,\"spread\":%.3f,\"checked\":%s}\n",
			l->c.rx->name, l->c.tx->name, l->c.payload, l->c.batch, l->c.streams, r->ns,
			r->best, r->spread, r->checked ? "true" : "false");
	}
	fflush(stdout);
}

/* 0 also when this implementation is not here; -EBADMSG when it is wrong. */
static int variant(const struct options *o, const struct bench_impl *im, struct load *l)
{
	char err[512] = "";
	struct result r = {0};
	void *p;
	int res;

	if (!im->can(&l->c))
		return 0;
	fprintf(stderr, "%s, batch %u, %u streams ...\n", im->name, l->c.batch, l->c.streams);
	res = im->open(&p, l, err, sizeof(err));
	if (res) {
		fprintf(stderr, "%s: left out: %s\n", im->name, err[0] ? err : strerror(-res));
		return 0;
	}
	res = measure(&r, im, p, l, o->budget_ns);
	if (res)
		fprintf(stderr, "%s: wrong results\n", im->name);
	else
		result_print(o, im, p, l, &r);
	im->close(p);
	return res;
}

static bool wanted(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, len) == 0 && (p[len] == ',' || !p[len]))
			return true;
	}
	return !list;
}

static int run_all(const struct options *o)
{
	int failed = 0;

	if (!o->json)
		printf("%s to %s, %s%u bytes of payload, one core\n%-12s %6s %7s %11s %9s %12s %9s  %s\n",
			o->c.rx->name, o->c.tx->name, o->c.mixed ? "1 to " : "", o->c.payload,
			"impl", "batch", "streams", "ns/packet", "best 10%", "packets/s", "spread",
			"right");
	for (unsigned s = 0; s < o->n_streams; s++)
		for (unsigned b = 0; b < o->n_batch; b++) {
			struct bench_case c = o->c;
			struct load l;

			c.batch = o->batch[b];
			c.streams = o->streams[s];
			if (load_create(&l, &c)) {
				fprintf(stderr, "no memory for batch %u, %u streams\n", c.batch,
					c.streams);
				return 1;
			}
			for (size_t i = 0; i < ARRAY_LEN(impls); i++)
				if (wanted(o->impls, impls[i]->name))
					failed |= variant(o, impls[i], &l) != 0;
			load_destroy(&l);
		}
	return failed;
}

/* --- Options ----------------------------------------------------------------------------------------------------- */

static const char help[] =
	"usage: xcipher-bench cipher [OPTION...]\n"
	"  --rx=SUITE --tx=SUITE   SDP names (AES_CM_128_HMAC_SHA1_80)\n"
	"  --payload=BYTES         of each packet, 1 to 1400 (160), or \"mixed\"\n"
	"  --batch=N,...           packets in a batch, 1 to 16384 (1,16,64,256,4096)\n"
	"  --streams=N,...         1 to 100000 (100,1000,10000)\n"
	"  --impl=NAME,...         serial, opencl, ipsec-mb, libsrtp-nss (all that can)\n"
	"  --device=NAME           of OpenCL, as xcipherd's opencl-device\n"
	"  --kernel-dir=DIR        kernels from files instead of those built in\n"
	"  --portable-aes          OpenCL without the processor's AES instructions\n"
	"  --scalar-lanes          OpenCL with one packet per work-item\n"
	"  --one-group             OpenCL with 16 packets per work-item instead of 32\n"
	"  --time=MS               for each figure (200)\n"
	"  --cpu=N                 the core to stay on (where it happens to be)\n"
	"  --json                  a JSON object per line instead of a table\n";

static int number(uint32_t *out, const char *text, uint32_t min, uint32_t max, const char *what)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || (*end && *end != ',') || n < min || n > max) {
		fprintf(stderr, "--%s=%s: numbers from %u to %u\n", what, text, min, max);
		return -EINVAL;
	}
	*out = (uint32_t)n;
	return 0;
}

static int list(uint32_t *out, unsigned *n, const char *text, uint32_t max, const char *what)
{
	*n = 0;
	do {
		if (*n == LIST_MAX || number(&out[*n], text, 1, max, what))
			return -EINVAL;
		(*n)++;
		text = strchr(text, ',');
	} while (text++);
	return 0;
}

static int suite(const struct srtp_suite **out, const char *name)
{
	*out = srtp_suite_find((struct str){name, strlen(name)});
	if (*out)
		return 0;
	fprintf(stderr, "no suite \"%s\"; there is", name);
	for (int i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++)
		fprintf(stderr, " %s", srtp_suite_get((enum srtp_suite_id)i)->name);
	fputc('\n', stderr);
	return -EINVAL;
}

static int pin(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		return 0;
	fprintf(stderr, "--cpu=%u: %s\n", cpu, strerror(errno));
	return -errno;
}

static int option(struct options *o, int c, const char *arg, uint32_t *cpu)
{
	uint32_t n;

	switch (c) {
	case 'r':
		return suite(&o->c.rx, arg);
	case 't':
		return suite(&o->c.tx, arg);
	case 'p':
		o->c.mixed = strcmp(arg, "mixed") == 0;
		if (o->c.mixed) {
			o->c.payload = 1200;
			return 0;
		}
		return number(&o->c.payload, arg, 1, 1400, "payload");
	case 'b':
		return list(o->batch, &o->n_batch, arg, 16384, "batch");
	case 's':
		return list(o->streams, &o->n_streams, arg, 100000, "streams");
	case 'i':
		o->impls = arg;
		return 0;
	case 'd':
		o->c.device = arg;
		return 0;
	case 'k':
		o->c.kernel_dir = arg;
		return 0;
	case 'P':
		o->c.flags |= ENGINE_PORTABLE_AES;
		return 0;
	case 'S':
		o->c.flags |= ENGINE_SCALAR_LANES;
		return 0;
	case 'G':
		o->c.flags |= ENGINE_ONE_GROUP;
		return 0;
	case 'T':
		if (number(&n, arg, 1, 60000, "time"))
			return -EINVAL;
		o->budget_ns = n * 1000000ull;
		return 0;
	case 'c':
		return number(cpu, arg, 0, CPU_SETSIZE - 1, "cpu");
	case 'j':
		o->json = true;
		return 0;
	default:
		return -EINVAL;
	}
}

int bench_cipher(int argc, char **argv)
{
	static const struct option longs[] = {{"rx", 1, NULL, 'r'}, {"tx", 1, NULL, 't'},
		{"payload", 1, NULL, 'p'}, {"batch", 1, NULL, 'b'}, {"streams", 1, NULL, 's'},
		{"impl", 1, NULL, 'i'}, {"device", 1, NULL, 'd'}, {"kernel-dir", 1, NULL, 'k'},
		{"portable-aes", 0, NULL, 'P'}, {"scalar-lanes", 0, NULL, 'S'},
		{"one-group", 0, NULL, 'G'}, {"time", 1, NULL, 'T'}, {"cpu", 1, NULL, 'c'},
		{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
	struct options o = {
		.c = {.rx = srtp_suite_get(SUITE_AES_CM_128_80),
			.tx = srtp_suite_get(SUITE_AES_CM_128_80),
			.payload = 160,
			.device = ""},
		.batch = {1, 16, 64, 256, 4096},
		.streams = {100, 1000, 10000},
		.n_batch = 5,
		.n_streams = 3,
		.budget_ns = 200000000,
	};
	uint32_t cpu = (uint32_t)sched_getcpu();
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (option(&o, c, optarg, &cpu)) {
			fputs("try: xcipher-bench cipher --help\n", stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "unexpected \"%s\"; try: xcipher-bench cipher --help\n",
			argv[optind]);
		return 2;
	}
	if (pin(cpu))
		return 2;
	return run_all(&o);
}
