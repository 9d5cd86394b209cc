/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of xcipherctl (ctl/args.h). Options of the filter become words of the daemon's filter. */
#include "ctl/args.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/refused.h"
#include "ctl/client.h"
#include "ctl/view.h"

int usage(const char *what, const char *arg)
{
	fprintf(stderr, "xcipherctl: %s%s%s. See --help\n", what, arg ? ": " : "", arg ? arg : "");
	return EXIT_USAGE;
}

int no_answer(const struct args *a, int err)
{
	char where[ENDPOINT_STRLEN];

	fprintf(stderr,
		"xcipherctl: no answer from %s: %s. Does xcipherd run there (--server=ADDR:PORT)?%s\n",
		endpoint_fmt(&a->server, where), strerror(-err),
		err == -ETIMEDOUT ? " Does it need --ng-key-file?" : "");
	return EXIT_ANSWER;
}

/* --- Filters ---------------------------------------------------------------------------------- */

/* X(name, argument or "", help) */
#define FILTERS(X)                                                                       \
	X("one-way", "", "calls in which one terminal sends and the other is silent")    \
	X("bad-tags", "", "calls with many packets that fail authentication")            \
	X("trouble", "", "calls with any trouble, such as the two above or low quality") \
	X("plain", "", "calls with media in the clear")                                  \
	X("early", "", "calls that are not answered yet")                                \
	X("hold", "", "calls on hold")                                                   \
	X("emergency", "", "emergency calls")                                            \
	X("mos-below", "SCORE", "calls with a lower mean opinion score, e.g. 3.5")       \
	X("loss-above", "PERCENT", "calls with a higher loss in percent, e.g. 1.5")      \
	X("suite", "NAME", "calls with this suite (or part of its name), or plain")      \
	X("codec", "NAME", "calls with this codec (or part of its name)")                \
	X("ip", "ADDR", "calls with a terminal at this address")                         \
	X("since", "TIME", "calls that began within this time: 90s, 10m, 2h, 1d")

static const struct filter {
	const char *name, *arg, *help;
} filters[] = {
#define X(name, arg, help) {name, arg, help},
	FILTERS(X)
#undef X
};

/* 0, or the exit status after a complaint. */
static int add_filter(struct args *a, const struct filter *f, const char *value)
{
	size_t at = strlen(a->filter), room = sizeof(a->filter) - at;
	char suite[64];
	int n;

	if (value && (!*value || strpbrk(value, " \t")))
		return usage("a filter's value is one word", f->name);
	if (value && strcmp(f->name, "suite") == 0)
		value = suite_long(value, suite, sizeof(suite));
	n = snprintf(a->filter + at, room, "%s%s%s%s", at ? " " : "", f->name, value ? "=" : "",
		value ? value : "");
	return n < 0 || (size_t)n >= room ? usage("the filter is too long", f->name) : 0;
}

/* --- Options ---------------------------------------------------------------------------------- */

void args_help(void)
{
	char left[32];

	printf("\n  --server=ADDR:PORT   ng address of the daemon (127.0.0.1:22222)\n"
	       "  --ng-key-file=FILE   sign requests with the first key of xcipherd's --ng-key-file\n"
	       "  --timeout=SECONDS    how long to wait for the reply (5)\n"
	       "  --json               print the reply as JSON, for scripts\n"
	       "  --watch[=SECONDS]    repeat the command (every 2)\n"
	       "  --call-id=TEXT       for offer, answer, delete, query\n"
	       "  --from-tag=TEXT      for offer, answer, delete, query, record, verify\n"
	       "  --to-tag=TEXT        for answer, delete, query\n"
	       "  --via-branch=TEXT    for offer, answer, delete, query\n"
	       "  --sdp=FILE           body for offer and answer, - for standard input\n"
	       "  --flags=TEXT         flags as in a Kamailio script, sent as rtpp-flags\n"
	       "  --limit=N            for list (32) and calls (100)\n"
	       "  --all                for calls and terminate: all calls\n"
	       "  --sort=ORDER         for calls and top: new, age, mos, loss, rtt, jitter, errors, packets, silence\n"
	       "  --yes                for terminate: do not ask\n"
	       "  --version, --help\n\n"
	       "Filters for calls, top and terminate; a call must meet all that are given:\n");
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		snprintf(left, sizeof(left), "--%s%s%s", filters[i].name,
			filters[i].arg[0] ? "=" : "", filters[i].arg);
		printf("  %-20s %s\n", left, filters[i].help);
	}
	printf("\nExit status: 0 ok, 1 the daemon reported an error, 2 wrong usage, 3 no answer. See xcipherctl(1).\n");
}

static unsigned watch_time(const char *text)
{
	char *end;
	double s = text ? strtod(text, &end) : 2;

	return (text && (*end || end == text)) || !(s >= 0.1 && s <= 3600) ? 0
									   : (unsigned)(s * 1000);
}

enum { TEXT = 1, BOOL, SERVER, KEYS, TIMEOUT, WATCH, LIMIT, VERSION, HELP, FILTER };

/* The value that getopt_long() returns: the kind in the high half, an index or an offset in struct
 * args in the low half. */
#define CODE(kind, value) ((int)((kind) << 16 | (value)))
#define AT(kind, field)   CODE(kind, offsetof(struct args, field))

static const struct option longs[] = {{"server", required_argument, NULL, CODE(SERVER, 0)},
	{"ng-key-file", required_argument, NULL, CODE(KEYS, 0)},
	{"timeout", required_argument, NULL, CODE(TIMEOUT, 0)},
	{"json", no_argument, NULL, AT(BOOL, json)},
	{"watch", optional_argument, NULL, CODE(WATCH, 0)},
	{"call-id", required_argument, NULL, AT(TEXT, call_id)},
	{"from-tag", required_argument, NULL, AT(TEXT, from_tag)},
	{"to-tag", required_argument, NULL, AT(TEXT, to_tag)},
	{"via-branch", required_argument, NULL, AT(TEXT, via_branch)},
	{"sdp", required_argument, NULL, AT(TEXT, sdp)},
	{"flags", required_argument, NULL, AT(TEXT, flags)},
	{"limit", required_argument, NULL, CODE(LIMIT, 0)},
	{"sort", required_argument, NULL, AT(TEXT, sort)},
	{"all", no_argument, NULL, AT(BOOL, all)}, {"yes", no_argument, NULL, AT(BOOL, yes)},
	{"version", no_argument, NULL, CODE(VERSION, 0)},
	{"help", no_argument, NULL, CODE(HELP, 0)}};

/* One option. 0, or the exit status after a complaint. */
static int take(struct args *a, int code, const char *value)
{
	uint32_t at = (uint32_t)code & 0xffff;
	char err[512];
	uint64_t n;

	switch (code >> 16) {
	case TEXT:
		*(const char **)((char *)a + at) = value;
		return 0;
	case BOOL:
		*(bool *)((char *)a + at) = true;
		return 0;
	case FILTER:
		return add_filter(a, &filters[at], value);
	case SERVER:
		return endpoint_parse(&a->server, str_from(value))
			? usage("--server needs ADDR:PORT, as 127.0.0.1:22222", value)
			: 0;
	case KEYS:
		return client_keys(&a->keys, value, err, sizeof(err)) ? usage(err, NULL) : 0;
	case TIMEOUT:
		if (str_to_u64(&n, str_from(value), 3600) || n == 0)
			return usage("--timeout needs seconds, 1 to 3600", value);
		a->timeout = (unsigned)n;
		return 0;
	case WATCH:
		a->watch_ms = watch_time(value);
		return a->watch_ms ? 0 : usage("--watch needs seconds, 0.1 to 3600", value);
	case LIMIT:
		if (str_to_u64(&n, str_from(value), UINT32_MAX) || n == 0)
			return usage("--limit needs a number from 1", value);
		a->limit = value;
		return 0;
	case VERSION:
		printf("xcipherctl %s\n", XCIPHER_VERSION);
		exit(0);
	default:
		a->help();
		exit(0);
	}
}

static const char *no_form(size_t i)
{
	(void)i;
	return "";
}

static int refused(const char *word, const struct option *all, size_t n)
{
	char why[256];

	option_refused(why, sizeof(why), word, all, n, no_form);
	fprintf(stderr, "xcipherctl: %s\n", why);
	return EXIT_USAGE;
}

int args_read(struct args *a, int argc, char **argv)
{
	struct option all[ARRAY_LEN(longs) + ARRAY_LEN(filters) + 1] = {0};
	int status = 0;

	memcpy(all, longs, sizeof(longs));
	for (size_t i = 0; i < ARRAY_LEN(filters); i++)
		all[ARRAY_LEN(longs) + i] = (struct option){filters[i].name,
			filters[i].arg[0] ? required_argument : no_argument, NULL, CODE(FILTER, i)};
	opterr = 0;
	while (!status) {
		int c = getopt_long(argc, argv, "hj", all, NULL);

		if (c == -1)
			return 0;
		status = c == 'h'  ? take(a, CODE(HELP, 0), NULL)
			: c == 'j' ? take(a, AT(BOOL, json), NULL)
			: c == '?' ? refused(argv[optind - 1], all, ARRAY_LEN(all) - 1)
				   : take(a, c, optarg);
	}
	return status;
}
