/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench codec: how many streams of each codec one core encodes and decodes, in batches of
 * as many streams, each with a state of its own; G.722 also on an OpenCL device. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "batch/engine.h"
#include "batch/g722_device.h"
#include "bench.h"
#include "codec/loader.h"
#include "codec/stream.h"

enum {
	PAYLOAD = 4096,
	ROUND = 64 /* packets at least between two looks at the clock */,
	MOST_BATCHES = 8
};

struct options {
	struct codec_loader_cfg loader;
	const char *only;   /* a codec's name, or NULL */
	const char *device; /* of OpenCL; "none": only plug-ins; NULL: the CPU, if OpenCL has it */
	uint32_t batch[MOST_BATCHES], batches;
	double seconds; /* of CPU per measurement */
	bool json;
};

/* Streams of a batch, and the packet that each handles next. */
struct group {
	struct codec_stream **stream;
	struct xcipher_codec_job *job;
	uint8_t (*payload)[PAYLOAD];
	int *len;
	int16_t *pcm, *heard, *one; /* heard: of all streams */
	uint32_t n, channels;
	size_t packet; /* samples */
	/* On a device: */
	struct g722_device *device;
	struct g722_lane *lane;
	struct g722 *coder; /* n encoders, then n decoders */
};

static double cpu(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void close_group(struct group *b)
{
	for (uint32_t i = 0; b->stream && i < b->n; i++)
		codec_stream_close(b->stream[i]);
	free(b->stream);
	free(b->job);
	free(b->payload);
	free(b->len);
	free(b->pcm);
	free(b->heard);
	free(b->one);
	free(b->lane);
	free(b->coder);
}

static int open_group(struct group *b, const struct codec_entry *e, uint32_t n)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES | CODEC_ENCODES};
	int rc = 0;

	*b = (struct group){.n = n,
		.channels = e->about.channels,
		.packet = (size_t)e->about.ptime * e->about.rate / 1000};
	b->stream = calloc(n, sizeof(struct codec_stream *));
	b->job = calloc(n, sizeof(*b->job));
	b->payload = calloc(n, sizeof(*b->payload));
	b->len = calloc(n, sizeof(*b->len));
	b->pcm = calloc(b->packet * e->about.channels, sizeof(*b->pcm));
	b->heard = calloc(n * b->packet * e->about.channels, sizeof(*b->heard));
	b->one = calloc(b->packet * e->about.channels, sizeof(*b->one));
	if (!b->stream || !b->job || !b->payload || !b->len || !b->pcm || !b->heard || !b->one)
		return -1;
	for (size_t i = 0; i < b->packet * e->about.channels; i++)
		b->pcm[i] =
			(int16_t)lrint(6000 * sin((double)i * 0.08) + 3000 * sin((double)i * 0.31));
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = codec_stream_open(&b->stream[i], e, &cfg);
	return rc;
}

/* One packet of each stream. Returns false after an error. */
static bool encode_all(struct group *b)
{
	bool ok = true;

	for (uint32_t i = 0; i < b->n; i++)
		b->job[i] = (struct xcipher_codec_job){.in = (const uint8_t *)b->pcm,
			.in_len = b->packet,
			.out = b->payload[i],
			.out_cap = PAYLOAD};
	codec_streams_encode(b->stream, b->job, b->n, NULL);
	for (uint32_t i = 0; i < b->n; i++) {
		b->len[i] = b->job[i].result;
		ok = ok && b->len[i] > 0;
	}
	return ok;
}

static bool decode_all(struct group *b)
{
	size_t room = b->packet * b->channels;
	bool ok = true;

	if (codec_stream_foresees(b->stream[0])) {
		for (uint32_t i = 0; i < b->n; i++)
			b->job[i] = (struct xcipher_codec_job){.in = b->payload[i],
				.in_len = (size_t)b->len[i],
				.out = (uint8_t *)(b->heard + i * room),
				.out_cap = b->packet};
		codec_streams_foresee(b->stream, b->job, b->n, NULL);
	}
	for (uint32_t i = 0; i < b->n; i++)
		ok = codec_stream_decode(b->stream[i], b->payload[i], (size_t)b->len[i], b->one,
			     b->packet) == (int)b->packet &&
			ok;
	return ok;
}

/* Seconds per packet, or a negative number. */
static double measure(
	struct group *b, bool (*run)(struct group *b), double seconds, clockid_t clock)
{
	uint64_t packets = 0;
	double start = 0, end = 0;

	if (!run(b)) /* warm, and without it nothing could be decoded */
		return -1;
	start = cpu(clock);
	do {
		for (uint32_t done = 0; done < ROUND; done += b->n, packets += b->n)
			if (!run(b))
				return -1;
		end = cpu(clock);
	} while (end - start < seconds);
	return (end - start) / (double)packets;
}

static void print_row(const struct options *o, const struct codec_entry *e, const char *where,
	uint32_t n, const double s[2])
{
	double ptime = e->about.ptime / 1000.0;

	if (o->json)
		printf("{\"codec\": \"%s\", \"clock\": %u, \"rate\": %u, \"channels\": %u, \"where\": \"%s\", \"batch\": %u, \"encode_ns\": %.0f, \"decode_ns\": %.0f}\n",
			e->about.name, e->about.clock, e->about.rate, e->about.channels, where, n,
			s[0] * 1e9, s[1] * 1e9);
	else
		printf("%-14s %6u %6u %u  %-8s %5u  %9.2f %9.2f  %8.0f %8.0f\n", e->about.name,
			e->about.clock, e->about.rate, e->about.channels, where, n, s[0] * 1e6,
			s[1] * 1e6, ptime / s[0], ptime / s[1]);
	fflush(stdout);
}

static const char *where_of(const struct codec_entry *e)
{
	return e->home ? "isolated" : e->plugin == UINT32_MAX ? "built in" : "plug-in";
}

static int one_codec(const struct options *o, const struct codec_entry *e)
{
	/* processes of streams do the work of isolated ones: only the wall clock sees it */
	clockid_t clock = e->home ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;

	for (uint32_t i = 0; i < o->batches; i++) {
		struct group b;
		double s[2] = {-1, -1};
		int rc = open_group(&b, e, o->batch[i]);

		if (rc == 0) {
			s[0] = measure(&b, encode_all, o->seconds, clock);
			s[1] = s[0] < 0 ? -1 : measure(&b, decode_all, o->seconds, clock);
		}
		close_group(&b);
		if (s[1] < 0) {
			fprintf(stderr, "%s: batch of %u fails\n", e->about.name, o->batch[i]);
			return 1;
		}
		print_row(o, e, where_of(e), o->batch[i], s);
	}
	return 0;
}

/* --- G.722 on a device ------------------------------------------------------------------------ */

static bool device_encode_all(struct group *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		b->lane[i] =
			(struct g722_lane){&b->coder[i], (const uint8_t *)b->pcm, b->payload[i]};
	return g722_device_encode(b->device, b->lane, b->n, b->packet) == 0;
}

static bool device_decode_all(struct group *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		b->lane[i] = (struct g722_lane){
			&b->coder[b->n + i], b->payload[i], (uint8_t *)(b->heard + i * b->packet)};
	return g722_device_decode(b->device, b->lane, b->n, b->packet) == 0;
}

static int open_coders(struct group *b)
{
	b->lane = calloc(b->n, sizeof(*b->lane));
	b->coder = calloc(2 * (size_t)b->n, sizeof(*b->coder));
	for (uint32_t i = 0; b->coder && i < 2 * b->n; i++)
		(void)g722_init(&b->coder[i], 64000);
	return b->lane && b->coder ? 0 : -1;
}

/* The rows of a codec that the device has. */
static int on_device(const struct options *o, const struct codec_entry *e, struct g722_device *d)
{
	clockid_t clock = g722_device_is_cpu(d) ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < o->batches; i++) {
		struct group b;
		double s[2] = {-1, -1};

		rc = open_group(&b, e, o->batch[i]);
		b.device = d;
		rc = rc ? rc : open_coders(&b);
		if (rc == 0) {
			s[0] = measure(&b, device_encode_all, o->seconds, clock);
			s[1] = measure(&b, device_decode_all, o->seconds, clock);
		}
		close_group(&b);
		rc = rc || s[0] < 0 || s[1] < 0;
		if (rc == 0)
			print_row(o, e, "device", o->batch[i], s);
	}
	if (rc)
		fprintf(stderr, "%s: %s fails\n", e->about.name, g722_device_name(d));
	return rc != 0;
}

/* NULL: without. */
static struct g722_device *open_device(const struct options *o)
{
	struct engine_config cfg = {.device = o->device ? o->device : "cpu"};
	struct g722_device *d = NULL;
	char err[256] = "";

	if (strcmp(cfg.device, "none") == 0)
		return NULL;
	if (g722_device_open(&d, &cfg, G722_DEVICE_STREAMS, err, sizeof(err)))
		fprintf(stderr, "%s\n", err);
	else if (!o->json)
		printf("device: %s\n", g722_device_name(d));
	return d;
}

static bool is_on_device(const struct codec_entry *e)
{
	return e->plugin == UINT32_MAX && strcmp(e->about.name, "G722") == 0 &&
		e->about.rate == 8000;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: xcipher-bench codec [OPTION...]\n"
		"Microseconds per packet of each codec, and streams per core.\n"
		"  --codec=NAME             only codecs of this name\n"
		"  --codec-dir=DIR          folder of plug-ins (default: only built-in codecs)\n"
		"  --codec-worker=FILE      xcipher-codec-worker (default in /usr/lib/xcipher)\n"
		"  --codec-isolation=WHICH  none or all plug-ins run in processes of their own (default none)\n"
		"  --device=NAME            of OpenCL, as xcipherd's opencl-device; none: without (default cpu)\n"
		"  --batch=N,...            streams in a batch, 1 to 4096, at most 8 sizes (default 1,4,16,64,256,1024,4096)\n"
		"  --seconds=S              per measurement (default 0.2)\n"
		"  --json                   one object per line\n"
		"  --help                   print this\n");
}

static int parse_batches(struct options *o, const char *s)
{
	for (o->batches = 0; *s && o->batches < MOST_BATCHES; o->batches++) {
		char *end = NULL;
		unsigned long n = strtoul(s, &end, 10);

		if (end == s || n == 0 || n > 4096 || (*end && *end != ','))
			return -1;
		o->batch[o->batches] = (uint32_t)n;
		s = *end ? end + 1 : end;
	}
	return o->batches && !*s ? 0 : -1;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {{"codec", required_argument, NULL, 'c'},
		{"codec-dir", required_argument, NULL, 'd'},
		{"codec-worker", required_argument, NULL, 'w'},
		{"codec-isolation", required_argument, NULL, 'i'},
		{"device", required_argument, NULL, 'D'}, {"batch", required_argument, NULL, 'b'},
		{"seconds", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c = 0, which = 0;

	while ((c = getopt_long(argc, argv, "", options, &which)) != -1) {
		if (c == 'c')
			o->only = optarg;
		else if (c == 'd')
			o->loader.folder = optarg;
		else if (c == 'w')
			o->loader.home.program = optarg;
		else if (c == 'i' && (strcmp(optarg, "all") == 0 || strcmp(optarg, "none") == 0))
			o->loader.isolation =
				optarg[0] == 'a' ? CODEC_ISOLATE_ALL : CODEC_ISOLATE_NONE;
		else if (c == 'D')
			o->device = optarg;
		else if (c == 'b' && parse_batches(o, optarg) == 0)
			;
		else if (c == 's' && atof(optarg) > 0)
			o->seconds = atof(optarg);
		else if (c == 'j')
			o->json = true;
		else if (c == 'h')
			return usage(stdout), 1;
		else {
			if (optarg)
				fprintf(stderr, "xcipher-bench codec: --%s cannot be \"%s\"\n",
					options[which].name, optarg);
			return usage(stderr), 2;
		}
	}
	if (optind < argc)
		return usage(stderr), 2;
	return 0;
}

int bench_codec(int argc, char **argv)
{
	struct options o = {.batch = {1, 4, 16, 64, 256, 1024, 4096}, .batches = 7, .seconds = 0.2};
	struct codec_registry *r = NULL;
	struct g722_device *d = NULL;
	bool any = false;
	int rc = 0;

	codec_home_defaults(&o.loader.home);
	o.loader.home.program = "/usr/lib/xcipher/xcipher-codec-worker";
	o.loader.isolation = CODEC_ISOLATE_NONE;
	rc = parse(&o, argc, argv);
	if (rc)
		return rc - 1;
	if (codec_registry_create(&r))
		return 1;
	if (o.loader.folder && (rc = codec_loader_run(r, &o.loader)) < 0)
		fprintf(stderr, "%s: %s\n", o.loader.folder, strerror(-rc));
	for (uint32_t i = 0; i < r->plugins; i++)
		if (r->loaded[i].refused[0])
			fprintf(stderr, "%s: %s\n", r->loaded[i].file, r->loaded[i].refused);
	if (o.loader.folder && access(o.loader.home.program, X_OK) != 0)
		fprintf(stderr,
			"--codec-worker=FILE names the program, in a clone build/xcipher-codec-worker\n");
	d = open_device(&o);
	if (!d && o.device && strcmp(o.device, "none") != 0) {
		codec_registry_destroy(r);
		return 1;
	}
	if (!o.json)
		printf("codec           clock    PCM ch where    batch  encode us decode us  streams per core\n");
	rc = rc < 0;
	for (uint32_t i = 0; i < r->entries; i++)
		if (!o.only || strcasecmp(o.only, r->entry[i].about.name) == 0) {
			any = true;
			rc |= one_codec(&o, &r->entry[i]);
			if (d && is_on_device(&r->entry[i]))
				rc |= on_device(&o, &r->entry[i], d);
		}
	if (o.only && !any) {
		fprintf(stderr, "there is no codec %s%s\n", o.only,
			o.loader.folder ? "" : " without a folder of plug-ins (--codec-dir)");
		rc = 1;
	}
	g722_device_close(d);
	codec_registry_destroy(r);
	return rc;
}
