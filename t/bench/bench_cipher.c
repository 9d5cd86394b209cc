/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench cipher: nanoseconds to re-encrypt a packet, by implementation, suites, payload,
 * batch size and number of streams, on one core. The variants take turns (bench_measure.c). */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch/engine.h"
#include "bench.h"

enum { LIST_MAX = 16, IMPLS = 11, LOADS_MAX = 16, PAYLOAD_MAX = 1400, STREAMS_MAX = 100000 };

struct list {
	uint32_t v[LIST_MAX];
	unsigned n;
};

struct options {
	struct bench_env env;
	const struct srtp_suite *rx, *tx;
	struct list payload, batch, streams;
	const char *impls; /* names between commas, or NULL for all */
	uint64_t budget_ns;
	bool json, together, no_auth, mix;
	uint32_t hdr_len;
};

static const struct bench_impl *const impls[IMPLS] = {&bench_impl_serial, &bench_impl_opencl,
	&bench_impl_ipsecmb, &bench_impl_evp, &bench_impl_srtp_openssl, &bench_impl_srtp_nss,
	&bench_impl_massive, &bench_impl_persistent, &bench_impl_calibrated,
	&bench_impl_runner_serial, &bench_impl_runner_again};

/* An invented mixture for --mix: G.711 with and without header extensions, G.729, comfort noise,
 * wide-band audio, video; most suites. It is compared with uniform batches of the same classes. */
#define S(id) SUITE_##id
static const struct {
	enum srtp_suite_id rx, tx;
	uint32_t hdr_len, payload, weight;
} mixture[] = {
	{S(AES_CM_128_80), S(AES_CM_128_32), 12, 160, 5},
	{S(AES_CM_128_32), S(AES_CM_128_80), 20, 160, 3},
	{S(AES_CM_128_80), S(AES_CM_128_80), 12, 20, 2},
	{S(AES_CM_128_80), S(AES_256_CM_80), 20, 80, 1},
	{S(AES_CM_128_80), S(AES_CM_128_80), 24, 1200, 2},
	{S(AES_CM_128_80), S(AES_CM_128_80), 20, 640, 1},
	{S(AEAD_AES_128_GCM), S(AES_CM_128_80), 20, 160, 1},
	{S(AES_CM_128_80), S(AEAD_AES_128_GCM), 20, 160, 1},
};
#undef S

static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, name, len) == 0 && (p[len] == ',' || !p[len]))
			return true;
	}
	return false;
}

static bool wanted(const struct options *o, const struct bench_impl *im)
{
	/* The daemon's own choice of engine runs only on request. */
	return o->impls ? listed(o->impls, im->name)
			: im != &bench_impl_calibrated && im != &bench_impl_runner_serial &&
			im != &bench_impl_runner_again;
}

static const struct srtp_suite *unknown_suite(const struct bench_impl *im, const struct load *l)
{
	for (unsigned i = 0; i < l->c.n_cls; i++) {
		if (!im->can(l->c.cls[i].rx))
			return l->c.cls[i].rx;
		if (!im->can(l->c.cls[i].tx))
			return l->c.cls[i].tx;
	}
	return NULL;
}

/* Reports on one line why a variant is left out. */
static bool contender_open(struct contender *c, struct options *o)
{
	const struct srtp_suite *s = unknown_suite(c->im, c->l);
	char err[512] = "";
	int res;

	if (s) {
		fprintf(stderr, "%s: left out: does not know %s, or does it wrong\n", c->im->name,
			s->name);
		return false;
	}
	res = c->im->open(&c->p, &o->env, c->l, err, sizeof(err));
	if (res)
		fprintf(stderr, "%s: left out: %s\n", c->im->name, err[0] ? err : strerror(-res));
	return res == 0;
}

/* Runs all wanted implementations on all these loads, in turn. */
struct group {
	struct contender c[IMPLS * LOADS_MAX];
	unsigned n;
};

static void group_open(struct group *g, struct options *o, struct load *l, unsigned loads)
{
	g->n = 0;
	for (unsigned k = 0; k < loads; k++)
		for (int i = 0; i < IMPLS; i++) {
			if (!wanted(o, impls[i]))
				continue;
			g->c[g->n] = (struct contender){.im = impls[i], .l = &l[k]};
			if (contender_open(&g->c[g->n], o))
				g->n++;
		}
}

static void group_close(struct group *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		g->c[i].im->close(g->c[i].p);
		bench_measure_free(&g->c[i]);
	}
}

static void mix_report(const struct group *g, const struct options *o, unsigned classes)
{
	struct contender part[ARRAY_LEN(mixture)];

	for (unsigned i = 0; i < g->n; i++) {
		unsigned n = 0;

		if (g->c[i].l->c.n_cls == 1)
			continue;
		for (unsigned k = 0; k < g->n && n < classes; k++)
			if (g->c[k].im == g->c[i].im && g->c[k].l->c.n_cls == 1)
				part[n++] = g->c[k];
		if (n == classes)
			report_mix(&g->c[i], part, n, o->json);
	}
}

static int group_run(struct options *o, struct load *l, unsigned loads)
{
	static struct group g;
	int failed = 0;

	group_open(&g, o, l, loads);
	for (unsigned b = 0; b < o->batch.n; b++) {
		for (unsigned k = 0; k < loads; k++) {
			l[k].batch = o->batch.v[b];
			l[k].wanted = 0;
		}
		fprintf(stderr, "batch %u, %u streams%s, %u variants ...\n", o->batch.v[b],
			l->c.streams, loads > 1 ? " and more" : "", g.n);
		bench_measure(g.c, g.n, o->budget_ns);
		for (unsigned i = 0; i < g.n; i++) {
			report(&g.c[i], o->json);
			failed |= g.c[i].failed;
		}
		if (o->mix)
			mix_report(&g, o, ARRAY_LEN(mixture));
	}
	group_close(&g);
	return failed;
}

static uint32_t largest(const struct list *l)
{
	uint32_t most = 0;

	for (unsigned i = 0; i < l->n; i++)
		most = l->v[i] > most ? l->v[i] : most;
	return most;
}

/* Loads for these numbers of streams, or the mixture and its classes. */
static int loads_run(struct options *o, const struct load_config *cfg, unsigned n)
{
	struct load l[LOADS_MAX] = {0};
	int res = 0;

	for (unsigned i = 0; i < n && !res; i++) {
		res = load_create(&l[i], &cfg[i], &o->env);
		if (res)
			fprintf(stderr, "no packets for %u streams: %s\n", cfg[i].streams,
				strerror(-res));
	}
	if (!res)
		report_head(&l[0], o->json);
	res = res ? res : group_run(o, l, n);
	for (unsigned i = 0; i < n; i++)
		load_destroy(&l[i]);
	return res;
}

static int payload_run(struct options *o, uint32_t payload)
{
	struct bench_class cls = {
		.rx = o->rx, .tx = o->tx, .hdr_len = o->hdr_len, .payload = payload, .weight = 1};
	struct load_config cfg[LIST_MAX];
	int res = 0;

	for (unsigned i = 0; i < o->streams.n; i++)
		cfg[i] = (struct load_config){.cls = &cls,
			.n_cls = 1,
			.streams = o->streams.v[i],
			.slots = largest(&o->batch),
			.no_auth = o->no_auth};
	if (o->together)
		return loads_run(o, cfg, o->streams.n);
	for (unsigned i = 0; i < o->streams.n; i++)
		res |= loads_run(o, &cfg[i], 1);
	return res;
}

static int mix_run(struct options *o)
{
	struct bench_class cls[ARRAY_LEN(mixture)];
	struct load_config cfg[1 + ARRAY_LEN(mixture)];
	int res = 0;

	for (size_t i = 0; i < ARRAY_LEN(mixture); i++)
		cls[i] = (struct bench_class){.rx = srtp_suite_get(mixture[i].rx),
			.tx = srtp_suite_get(mixture[i].tx),
			.hdr_len = mixture[i].hdr_len,
			.payload = mixture[i].payload,
			.weight = mixture[i].weight};
	for (unsigned s = 0; s < o->streams.n; s++) {
		for (size_t i = 0; i <= ARRAY_LEN(mixture); i++)
			cfg[i] = (struct load_config){.cls = i ? &cls[i - 1] : cls,
				.n_cls = i ? 1 : ARRAY_LEN(mixture),
				.streams = o->streams.v[s],
				.slots = largest(&o->batch),
				.skewed = true};
		res |= loads_run(o, cfg, 1 + ARRAY_LEN(mixture));
	}
	return res;
}

static int run_all(struct options *o)
{
	int failed = 0;

	if (o->mix)
		failed = mix_run(o);
	else
		for (unsigned i = 0; i < o->payload.n; i++)
			failed |= payload_run(o, o->payload.v[i]);
	if (o->env.opencl)
		engine_opencl.close(o->env.opencl);
	if (o->env.serial)
		engine_serial.close(o->env.serial);
	return failed != 0;
}

/* --- Options ---------------------------------------------------------------------------------- */

static const char help[] =
	"usage: xcipher-bench cipher [OPTION...]\n"
	"  --rx=SUITE --tx=SUITE   SDP names (AES_CM_128_HMAC_SHA1_80), or \"plain\"\n"
	"  --payload=BYTES,...     of each packet, 1 to 1400 (160)\n"
	"  --batch=N,...           packets in a batch, 1 to 16384 (1,16,64,256,4096)\n"
	"  --streams=N,...         1 to 100000 (100,1000,10000)\n"
	"  --impl=NAME,...         opencl, serial, ipsec-mb, openssl-evp, libsrtp-openssl, libsrtp-nss,\n"
	"                          massively-parallel, persistent-thread (all of these); calibrated:\n"
	"                          through the daemon's runner, opencl or serial by batch size;\n"
	"                          runner-serial: the same without a device; runner-again: once\n"
	"                          more, for what the same thing twice differs by\n"
	"  --mix                   lengths, suites and header extensions mixed, compared with uniform batches\n"
	"  --together              all numbers of streams by turns, to compare them\n"
	"  --header=BYTES          12, or more with a header extension\n"
	"  --no-auth               ciphering alone\n"
	"  --device=NAME           of OpenCL, as xcipherd's opencl-device\n"
	"  --kernel-dir=DIR        kernels from files instead of those built in\n"
	"  --portable-aes          OpenCL without the processor's AES instructions\n"
	"  --scalar-lanes          OpenCL with one packet per work-item\n"
	"  --two-groups            OpenCL with a packet's two hashes in parallel\n"
	"  --way=N                 serial: 0 = libcrypto alone; 1, 2, 3 = hash by SHA-NI,\n"
	"                          AVX-512VL, AVX2; otherwise as xcipherd chooses\n"
	"  --peers=DIR             libraries built for comparison (peers/ in the folder of this program)\n"
	"  --time=MS               for each figure (200)\n"
	"  --cpu=N                 the core to stay on (where it happens to be)\n"
	"  --json                  a JSON object per line instead of a table\n"
	"  --help                  this\n";

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

static int list(struct list *out, const char *text, uint32_t max, const char *what)
{
	out->n = 0;
	do {
		if (out->n == LIST_MAX || number(&out->v[out->n], text, 1, max, what))
			return -EINVAL;
		out->n++;
		text = strchr(text, ',');
	} while (text++);
	return 0;
}

static int suite(const struct srtp_suite **out, const char *name)
{
	*out = strcmp(name, "plain") == 0 ? srtp_suite_get(SUITE_PLAIN)
					  : srtp_suite_find((struct str){name, strlen(name)});
	if (*out)
		return 0;
	fprintf(stderr, "no suite \"%s\"; there is plain", name);
	for (int i = SUITE_PLAIN + 1; i < SUITE_COUNT; i++)
		fprintf(stderr, " %s", srtp_suite_get((enum srtp_suite_id)i)->name);
	fputc('\n', stderr);
	return -EINVAL;
}

static int impls_check(const char *text)
{
	char *copy = strdup(text), *save = NULL;
	int res = copy ? 0 : -ENOMEM;

	for (char *p = copy; !res && (p = strtok_r(p, ",", &save)); p = NULL) {
		bool known = false;

		for (int i = 0; i < IMPLS; i++)
			known |= strcmp(p, impls[i]->name) == 0;
		if (known)
			continue;
		fprintf(stderr, "--impl=%s: there is", p);
		for (int i = 0; i < IMPLS; i++)
			fprintf(stderr, " %s", impls[i]->name);
		fputc('\n', stderr);
		res = -EINVAL;
	}
	free(copy);
	return res;
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

static int option_value(struct options *o, int c, const char *arg, uint32_t *cpu)
{
	uint32_t n;

	switch (c) {
	case 'r':
		return suite(&o->rx, arg);
	case 't':
		return suite(&o->tx, arg);
	case 'p':
		return list(&o->payload, arg, PAYLOAD_MAX, "payload");
	case 'b':
		return list(&o->batch, arg, 16384, "batch");
	case 's':
		return list(&o->streams, arg, STREAMS_MAX, "streams");
	case 'i':
		o->impls = arg;
		return impls_check(arg);
	case 'H':
		if (number(&o->hdr_len, arg, 12, 76, "header"))
			return -EINVAL;
		return o->hdr_len % 4 || (o->hdr_len > 12 && o->hdr_len < 16) ? -EINVAL : 0;
	case 'T':
		if (number(&n, arg, 1, 60000, "time"))
			return -EINVAL;
		o->budget_ns = n * 1000000ull;
		return 0;
	case 'c':
		return number(cpu, arg, 0, CPU_SETSIZE - 1, "cpu");
	default:
		return -EINVAL;
	}
}

static int option(struct options *o, int c, const char *arg, uint32_t *cpu)
{
	switch (c) {
	case 'd':
		o->env.device = arg;
		return 0;
	case 'k':
		o->env.kernel_dir = arg;
		return 0;
	case 'q':
		snprintf(o->env.peers, sizeof(o->env.peers), "%s", arg);
		return 0;
	case 'P':
		o->env.flags |= ENGINE_PORTABLE_AES;
		return 0;
	case 'S':
		o->env.flags |= ENGINE_SCALAR_LANES;
		return 0;
	case 'G':
		o->env.flags |= ENGINE_TWO_GROUPS;
		return 0;
	case 'w':
		o->env.flags |= *arg >= '1' && *arg <= '3' ? ENGINE_WAY((uint32_t)(*arg - '1'))
							   : ENGINE_LIBCRYPTO;
		return 0;
	case 'm':
		o->mix = true;
		return 0;
	case 'g':
		o->together = true;
		return 0;
	case 'n':
		o->no_auth = true;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	default:
		return option_value(o, c, arg, cpu);
	}
}

/* The folder peers/ next to the program. */
static void peers_find(char *out, size_t len)
{
	char self[400] = "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	snprintf(out, len, "%s/peers", self);
}

int bench_cipher(int argc, char **argv)
{
	static const struct option longs[] = {{"rx", 1, NULL, 'r'}, {"tx", 1, NULL, 't'},
		{"payload", 1, NULL, 'p'}, {"batch", 1, NULL, 'b'}, {"streams", 1, NULL, 's'},
		{"impl", 1, NULL, 'i'}, {"mix", 0, NULL, 'm'}, {"together", 0, NULL, 'g'},
		{"header", 1, NULL, 'H'}, {"no-auth", 0, NULL, 'n'}, {"device", 1, NULL, 'd'},
		{"kernel-dir", 1, NULL, 'k'}, {"portable-aes", 0, NULL, 'P'},
		{"scalar-lanes", 0, NULL, 'S'}, {"two-groups", 0, NULL, 'G'}, {"way", 1, NULL, 'w'},
		{"peers", 1, NULL, 'q'}, {"time", 1, NULL, 'T'}, {"cpu", 1, NULL, 'c'},
		{"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
	struct options o = {
		.env = {.device = ""},
		.rx = srtp_suite_get(SUITE_AES_CM_128_80),
		.tx = srtp_suite_get(SUITE_AES_CM_128_80),
		.payload = {{160}, 1},
		.batch = {{1, 16, 64, 256, 4096}, 5},
		.streams = {{100, 1000, 10000}, 3},
		.budget_ns = 200000000,
		.hdr_len = 12,
	};
	uint32_t cpu = (uint32_t)sched_getcpu();
	int c;

	peers_find(o.env.peers, sizeof(o.env.peers));
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
