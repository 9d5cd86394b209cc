/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-codec-test: tests a plug-in against the rules of xcipher_codec.h. Each test runs in a
 * process of its own, so that a crash or an endless loop is a result like any other. */
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/abuse.h"
#include "codec/builtin.h"

struct run {
	struct abuse_cfg cfg;
	unsigned seconds; /* a test may take */
	const char *path; /* NULL: the built-in codecs */
	unsigned passed, failed;
};

static const struct xcipher_codec_plugin *load(const struct run *r, char *why)
{
	struct xcipher_codec_plugin *p = NULL;
	void *handle = NULL;

	if (!r->path)
		return codec_builtin();
	return codec_check_open(r->path, &handle, &p, why) ? NULL : p;
}

/* Runs test of codec in this process, which ends. test: the number of tests is the resampler's. */
static void child(const struct run *r, uint32_t codec, size_t test)
{
	char why[CODEC_WHY_MAX] = "";
	const struct xcipher_codec_plugin *p = load(r, why);
	int rc = -1;

	alarm(r->seconds);
	if (p && test < abuse_tests_n)
		rc = abuse_tests[test].run(p->codec[codec], &r->cfg, why);
	else if (p)
		rc = abuse_resampler(p->resampler, why);
	if (rc)
		printf("  %s\n", why);
	fflush(stdout);
	_exit(rc ? 1 : 0);
}

static void one(struct run *r, const char *name, uint32_t codec, size_t test)
{
	const char *text = test < abuse_tests_n ? abuse_tests[test].text : "lengths, small buffers";
	int status = 0;
	pid_t pid = 0;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(r, codec, test);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("xcipher-codec-test: fork");
		exit(2);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("ok %s: %s\n", name, text);
		r->passed++;
		return;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf("  it does not return within %u s\n", r->seconds);
	else if (WIFSIGNALED(status))
		printf("  it crashed: %s%s\n", strsignal(WTERMSIG(status)),
			WTERMSIG(status) == SIGSEGV ? ", for example past the end of a buffer"
						    : "");
	printf("NOT OK %s: %s\n", name, text);
	r->failed++;
}

/* The tables are read here, too. A plug-in whose constructors crash ends the program. */
static int all(struct run *r)
{
	char why[CODEC_WHY_MAX] = "", name[2 * CODEC_NAME_MAX];
	const struct xcipher_codec_plugin *p = load(r, why);

	if (!p) {
		printf("NOT OK tables: %s\n", why);
		return 1;
	}
	printf("%s %s, license %s, %u codecs\n", p->name, p->version, p->license, p->codecs);
	for (uint32_t i = 0; i < p->codecs; i++)
		for (size_t t = 0; t < abuse_tests_n; t++) {
			const struct xcipher_codec *c = p->codec[i];

			snprintf(name, sizeof(name), "%s/%u/%u", c->name, c->clock, c->channels);
			one(r, name, i, t);
		}
	if (p->resampler)
		one(r, "resampler", 0, abuse_tests_n);
	printf("%u passed, %u failed\n", r->passed, r->failed);
	if (r->path)
		free((void *)p);
	return r->failed ? 1 : 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: xcipher-codec-test [OPTION...] PLUGIN.so\n"
		"Tests a codec plug-in against the rules of xcipher_codec.h.\n"
		"  --builtin      test the built-in codecs instead of a plug-in\n"
		"  --rounds=N     random inputs per test (default 2000)\n"
		"  --seed=N       of the random inputs (default 1)\n"
		"  --seconds=N    a test may take (default 60)\n"
		"  --help         print this\n");
}

/* A name without a slash is a file of this folder. dlopen() would search the libraries for it. */
static const char *with_folder(const char *name)
{
	static char path[PATH_MAX];

	if (strchr(name, '/'))
		return name;
	if ((size_t)snprintf(path, sizeof(path), "./%s", name) >= sizeof(path))
		return NULL;
	return path;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"builtin", no_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'}, {"seed", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct run r = {.cfg = {.rounds = 2000, .seed = 1}, .seconds = 60};
	int o = 0, builtin = 0;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 'b':
			builtin = 1;
			break;
		case 'r':
			r.cfg.rounds = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 's':
			r.cfg.seed = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 't':
			r.seconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	if (argc - optind != (builtin ? 0 : 1)) {
		usage(stderr);
		return 2;
	}
	r.path = builtin ? NULL : with_folder(argv[optind]);
	if (!builtin && !r.path)
		return 1;
	return all(&r);
}
