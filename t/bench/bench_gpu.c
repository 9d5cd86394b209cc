/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench gpu: an OpenCL device with memory of its own. Packets per second with resident
 * data, with transfers in parallel to the kernel, and through the engine, where one core of the
 * host packs and unpacks. They take turns with two floors: the same bytes copied without a kernel,
 * and the kernel's operations at the device's stated rate. Without such a device it prints how to
 * run it; --test accepts any device. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "batch/engine.h"
#include "batch/sample.h"
#include "bench.h"
#include "gpu_run.h"

/* Operations on 32-bit words in kernels/sha1.cl and aes_ct.cl, without loads, stores and addresses.
 * SHA-1, per block: 80 rounds of seven (f as one three-word instruction, two rotations, four
 * additions) and 64 schedule steps of three (a rotation, two for adding four words): 752.
 * AES, for 64 bytes under both keys, in planes of four words. Per round: S-box 115, rows 56,
 * columns 43, slicing the round key 44, adding it 8. The last round has no columns and adds 16 for
 * choosing planes. Slicing and unslicing take 70, adding to the words 16. */
enum { SHA1_BLOCK = 752, AES_ROUND = 4 * (115 + 56 + 43 + 44 + 8), AES_LAST = 4 * (16 - 43) };
enum { AES_ENDS = 4 * 70 + 16, AES_STEP = 64, ROUNDS_MIN = 5, ROUNDS_MAX = 1000 };

enum what { RESIDENT, TRANSFERS, FLIGHT, ENGINE, COPIES, WHATS };

static const struct {
	const char *name, *means;
} told[WHATS] = {
	[RESIDENT] = {"resident", "keys, jobs and packets are there: the kernel alone"},
	[TRANSFERS] = {"transfers", "batches go up and down beside it, packed beforehand"},
	[FLIGHT] = {"engine-flight",
		"as the daemon does it: one core packs, sends and unpacks batches in flight"},
	[ENGINE] = {"engine", "the same with one at a time: packs, sends, waits, unpacks"},
	[COPIES] = {"floor-bus", "the same bytes up and down, no kernel"},
};

struct options {
	struct bench_env env;
	const struct srtp_suite *rx, *tx;
	uint32_t payload, batch, streams, lanes;
	uint64_t budget_ns;
	bool json;
};

struct run {
	struct load l;
	struct gpu *g;
	void *engine;
	double ns[WHATS][ROUNDS_MAX]; /* per packet */
	unsigned rounds;
	unsigned batches; /* at once */
};

/* --- Floors ----------------------------------------------------------------------------------- */

static uint64_t side_hash(const struct srtp_suite *s, uint32_t len)
{
	/* Inner hash of packet, ROC and padding; outer hash. */
	return s->auth == XC_AUTH_HMAC_SHA1 ? ((len + 4 + 9 + 63) / 64 + 1) * SHA1_BLOCK : 0;
}

/* 0: not counted for these suites. */
static uint64_t operations(const struct options *o)
{
	uint32_t key = o->rx->key_len > o->tx->key_len ? o->rx->key_len : o->tx->key_len;
	uint32_t rounds = 6 + key / 4, steps = (o->payload + AES_STEP - 1) / AES_STEP;
	bool cm = o->rx->cipher == XC_CIPHER_AES_CM || o->tx->cipher == XC_CIPHER_AES_CM;
	uint64_t n = side_hash(o->rx, 12 + o->payload) + side_hash(o->tx, 12 + o->payload);

	if (o->rx->cipher > XC_CIPHER_AES_CM || o->tx->cipher > XC_CIPHER_AES_CM)
		return 0;
	return n + (cm ? steps * (rounds * (uint64_t)AES_ROUND + AES_LAST + AES_ENDS) : 0);
}

/* --- Measuring -------------------------------------------------------------------------------- */

static int check(struct run *r)
{
	const struct load *l = &r->l;

	if (!gpu_transfers(r->g, 2 * GPU_SETS))
		return -EIO;
	gpu_results(r->g);
	for (uint32_t i = 0; i < l->batch; i++)
		if (l->a.status[i] != XC_OK ||
			!sample_equal(&l->a.job[i], &l->a, l->a.out, l->want)) {
			fprintf(stderr, "gpu: results differ from the reference's\n");
			return -EBADMSG;
		}
	return 0;
}

/* Measures so many batches. */
static uint64_t once(struct run *r, enum what what)
{
	uint64_t start = clock_mono_ns();

	switch (what) {
	case RESIDENT:
		return gpu_resident(r->g, r->batches);
	case TRANSFERS:
		return gpu_transfers(r->g, r->batches);
	case COPIES:
		return gpu_copies(r->g, r->batches);
	case FLIGHT:
		if (bench_opencl_flights(r->engine, &r->l, r->batches))
			return 0;
		return clock_mono_ns() - start;
	default:
		break;
	}
	for (unsigned i = 0; i < r->batches; i++)
		if (bench_impl_opencl.run(r->engine, &r->l, r->l.batch))
			return 0;
	return clock_mono_ns() - start;
}

static int measure(struct run *r, uint64_t budget_ns)
{
	uint64_t begin = clock_mono_ns();

	for (; r->rounds < ROUNDS_MAX &&
		(r->rounds < ROUNDS_MIN || clock_mono_ns() - begin < budget_ns);
		r->rounds++)
		for (int w = 0; w < WHATS; w++) {
			uint64_t took = once(r, (enum what)w);

			if (!took) {
				fprintf(stderr, "gpu: the device failed at \"%s\"\n", told[w].name);
				return -EIO;
			}
			r->ns[w][r->rounds] = (double)took / r->batches / r->l.batch;
		}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(struct run *r, enum what what)
{
	qsort(r->ns[what], r->rounds, sizeof(double), by_value);
	return r->ns[what][r->rounds / 2];
}

static double spread(const struct run *r, enum what what)
{
	return (r->ns[what][r->rounds * 9 / 10] - r->ns[what][r->rounds / 10]) /
		r->ns[what][r->rounds / 2];
}

/* --- Output ----------------------------------------------------------------------------------- */

static void row(
	const struct options *o, const struct run *r, const char *name, double ns, double part)
{
	if (o->json) {
		printf("{\"bench\":\"gpu\",\"impl\":\"%s\",\"device\":\"%s\",\"rx\":\"%s\",\"tx\":\"%s\","
		       "\"payload\":%u,\"batch\":%u,\"streams\":%u,\"ns_per_packet\":%.3f,"
		       "\"spread\":%.3f,\"checked\":true,\"operations\":%llu,\"bytes_up\":%zu,"
		       "\"bytes_down\":%zu}\n",
			name, gpu_name(r->g), o->rx->name, o->tx->name, o->payload, o->batch,
			o->streams, ns, part, (unsigned long long)operations(o), gpu_bytes_up(r->g),
			gpu_bytes_down(r->g));
		return;
	}
	printf("%-14s %12.3f %16.0f %8.1f %%", name, ns, 1e9 / ns, 100 * part);
	for (int w = 0; w < WHATS; w++)
		if (strcmp(told[w].name, name) == 0)
			printf("  %s", told[w].means);
	printf("\n");
}

static void report_all(const struct options *o, struct run *r)
{
	struct gpu_rate rate = gpu_rate(r->g);
	uint64_t ops = operations(o);
	double per_ns;

	if (o->lanes) {
		rate.lanes = o->lanes;
		rate.how = "as told";
	}
	per_ns = 1e-3 * rate.units * rate.mhz * rate.lanes;
	if (!o->json)
		printf("%s\n%s to %s, %u bytes of payload, batches of %u, %u streams; up %zu bytes, down "
		       "%zu a batch\n%-14s %12s %16s %10s\n",
			gpu_name(r->g), o->rx->name, o->tx->name, o->payload, o->batch, o->streams,
			gpu_bytes_up(r->g), gpu_bytes_down(r->g), "", "ns/packet", "packets/s",
			"spread");
	for (int w = 0; w < WHATS; w++) {
		double ns = median(r, (enum what)w);

		row(o, r, told[w].name, ns, spread(r, (enum what)w));
	}
	if (!ops || per_ns == 0) {
		fprintf(stderr, "floor-integer: not told: %s\n",
			ops ? "the device does not say its clock"
			    : "operations are counted for AES-CM and NULL only");
		return;
	}
	row(o, r, "floor-integer", (double)ops / per_ns, 0);
	if (!o->json)
		printf("floor-integer: %llu operations a packet, %u units x %u MHz x %u lanes (%s)\n",
			(unsigned long long)ops, rate.units, rate.mhz, rate.lanes, rate.how);
}

/* --- All of it -------------------------------------------------------------------------------- */

static int prepare(struct run *r, struct options *o, char *err, size_t err_len)
{
	struct bench_class cls = {
		.rx = o->rx, .tx = o->tx, .hdr_len = 12, .payload = o->payload, .weight = 1};
	struct load_config cfg = {
		.cls = &cls, .n_cls = 1, .streams = o->streams, .slots = o->batch};
	int res = load_create(&r->l, &cfg, &o->env);

	if (res) {
		snprintf(err, err_len, "no packets: %s", strerror(-res));
		return res;
	}
	res = load_checked(&r->l, false, o->batch);
	res = res ? res : bench_impl_opencl.open(&r->engine, &o->env, &r->l, err, err_len);
	res = res ? res : gpu_create(&r->g, &o->env, &r->l, err, err_len);
	return res;
}

static void finish(struct run *r, struct options *o)
{
	if (r->g)
		gpu_destroy(r->g);
	if (r->engine)
		bench_impl_opencl.close(r->engine);
	load_destroy(&r->l);
	if (o->env.opencl)
		engine_opencl.close(o->env.opencl);
	if (o->env.serial)
		engine_serial.close(o->env.serial);
}

static int run(struct options *o)
{
	static struct run r;
	char err[512] = "";
	int res = prepare(&r, o, err, sizeof(err));

	r.batches = o->batch >= 65536 ? 2 * GPU_SETS : 4 * GPU_SETS;
	if (res)
		fprintf(stderr, "gpu: %s\n", err[0] ? err : strerror(-res));
	res = res ? res : check(&r);
	res = res ? res : measure(&r, o->budget_ns);
	if (!res)
		report_all(o, &r);
	finish(&r, o);
	return res ? 1 : 0;
}

/* A device with its own memory, or any device with --test. */
static bool there_is(const struct options *o)
{
	struct engine_config cfg = {.device = o->env.device};
	struct opencl_device dev;
	char err[512];

	if (setenv("POCL_DEVICES", "basic", 0) ||
		opencl_device_choose(&dev, &cfg, err, sizeof(err)))
		return false;
	return !dev.zero_copy || o->env.flags & ENGINE_OWN_MEMORY;
}

static const char help[] =
	"usage: xcipher-bench gpu [OPTION...]\n"
	"A device with memory of its own: nanoseconds per packet with data resident, with transfers beside\n"
	"the kernel, through the engine; floors: the bytes over the bus, the integer operations.\n"
	"  --device=NAME       of OpenCL, as xcipherd's opencl-device (gpu)\n"
	"  --test              any device, treated as if it had its own memory and scalar lanes\n"
	"  --rx=SUITE --tx=SUITE  SDP names (AES_CM_128_HMAC_SHA1_80 and _32)\n"
	"  --payload=BYTES     of each packet, 1 to 1400 (160)\n"
	"  --batch=N           packets in a batch, 64 to 262144 (16384)\n"
	"  --streams=N         1 to 100000 (10000)\n"
	"  --flight=N          batches in flight of engine-flight, 2 to 8 (2)\n"
	"  --int-lanes=N       32-bit integer operations of a unit per clock, where the device does not say\n"
	"  --kernel-dir=DIR    kernels from files instead of those built in\n"
	"  --time=MS           to measure (3000)\n"
	"  --json              a JSON object per line instead of a table\n"
	"  --help              this\n";

static int number(uint32_t *out, const char *text, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*out = (uint32_t)n;
	return end == text || *end || n < min || n > max ? -EINVAL : 0;
}

static int option(struct options *o, int c, const char *arg)
{
	uint32_t ms;

	switch (c) {
	case 'd':
		o->env.device = arg;
		return 0;
	case 'X':
		o->env.flags |= ENGINE_OWN_MEMORY | ENGINE_SCALAR_LANES;
		return 0;
	case 'r':
		o->rx = srtp_suite_find(str_from(arg));
		return o->rx ? 0 : -EINVAL;
	case 't':
		o->tx = srtp_suite_find(str_from(arg));
		return o->tx ? 0 : -EINVAL;
	case 'p':
		return number(&o->payload, arg, 1, 1400);
	case 'b':
		return number(&o->batch, arg, 64, 262144);
	case 's':
		return number(&o->streams, arg, 1, 100000);
	case 'f':
		return number(&o->env.depth, arg, 2, ENGINE_DEPTH_MAX);
	case 'l':
		return number(&o->lanes, arg, 1, 1024);
	case 'k':
		o->env.kernel_dir = arg;
		return 0;
	case 'T':
		if (number(&ms, arg, 1, 600000))
			return -EINVAL;
		o->budget_ns = ms * 1000000ull;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	}
	return -EINVAL;
}

int bench_gpu(int argc, char **argv)
{
	static const struct option longs[] = {{"device", 1, NULL, 'd'}, {"test", 0, NULL, 'X'},
		{"rx", 1, NULL, 'r'}, {"tx", 1, NULL, 't'}, {"payload", 1, NULL, 'p'},
		{"batch", 1, NULL, 'b'}, {"streams", 1, NULL, 's'}, {"flight", 1, NULL, 'f'},
		{"int-lanes", 1, NULL, 'l'}, {"kernel-dir", 1, NULL, 'k'}, {"time", 1, NULL, 'T'},
		{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
	struct options o = {.env = {.device = NULL, .depth = 2},
		.rx = srtp_suite_get(SUITE_AES_CM_128_80),
		.tx = srtp_suite_get(SUITE_AES_CM_128_32),
		.payload = 160,
		.batch = 16384,
		.streams = 10000,
		.budget_ns = 3000000000ull};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			return fputs(help, stdout) < 0;
		if (option(&o, c, optarg)) {
			fputs("try: xcipher-bench gpu --help\n", stderr);
			return 2;
		}
	}
	if (!o.env.device)
		o.env.device = o.env.flags & ENGINE_OWN_MEMORY ? "" : "gpu";
	if (there_is(&o))
		return run(&o);
	/* Not a failure: there is no device to measure. */
	fprintf(o.json ? stderr : stdout,
		"no OpenCL device \"%s\" with memory of its own here; where there is one: "
		"xcipher-bench gpu --batch=65536 --streams=100000\n",
		o.env.device);
	return 0;
}
