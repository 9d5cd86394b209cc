/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl: speaks ng to a running xcipherd (or to anything else that speaks it). Exit status: 0 the daemon said ok, 1 it said
 * error, 2 wrong usage, 3 no usable answer. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/client.h"
#include "ctl/engine.h"
#include "ctl/print.h"

enum { EXIT_DAEMON = 1, EXIT_USAGE = 2, EXIT_ANSWER = 3 };

struct args {
	struct endpoint server;
	unsigned timeout;
	bool json;
	const char *call_id, *from_tag, *to_tag, *via_branch, *sdp, *flags, *limit;
};

struct command {
	const char *name, *operand, *help;
	const char *needs; /* letters: c call-id, f from-tag, t to-tag, s SDP */
};

static const struct command commands[] = {
	{"ping", "", "ask whether the daemon answers", ""},
	{"list", "", "Call-IDs of the calls there are", ""},
	{"query", "CALL-ID", "everything about a call but its keys", "c"},
	{"statistics", "", "counters, batches, delays, drops", ""},
	{"engine", "", "devices that cipher, their state, and what was measured", ""},
	{"offer", "", "send an offer: prints the rewritten SDP", "cfs"},
	{"answer", "", "send an answer: prints the rewritten SDP", "cfts"},
	{"delete", "CALL-ID", "end a call at once", "c"},
	{"active", "", "take over the calls that this node follows on standby", ""},
	{"standby", "", "leave all calls to another node, and follow them", ""},
};

static void help(void)
{
	printf("xcipherctl " XCIPHER_VERSION
	       ": speaks ng to xcipherd\n\nUsage: xcipherctl [OPTION]... COMMAND [CALL-ID]\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-10s %-8s  %s\n", commands[i].name, commands[i].operand,
			commands[i].help);
	printf("\n  --server=ADDR:PORT   where the daemon listens (127.0.0.1:22222)\n"
	       "  --timeout=SECONDS    how long to wait for the answer (5)\n"
	       "  --json               print the reply as JSON, for scripts\n"
	       "  --call-id=TEXT       for offer, answer, delete, query\n"
	       "  --from-tag=TEXT      for offer, answer, delete, query\n"
	       "  --to-tag=TEXT        for answer, delete, query\n"
	       "  --via-branch=TEXT    for offer, answer, delete, query\n"
	       "  --sdp=FILE           body for offer and answer, - for standard input\n"
	       "  --flags=TEXT         flags as in a Kamailio script, sent as rtpp-flags\n"
	       "  --limit=N            for list (32)\n"
	       "  --version, --help\n\n"
	       "Exit status: 0 ok, 1 the daemon reported an error, 2 wrong usage, 3 no answer. See xcipherctl(1).\n");
}

static int usage(const char *what, const char *arg)
{
	fprintf(stderr, "xcipherctl: %s%s%s. --help tells more\n", what, arg ? ": " : "",
		arg ? arg : "");
	return EXIT_USAGE;
}

static struct str read_sdp(struct pool *p, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char buf[65536];
	size_t len;

	if (!f)
		return STR_NONE;
	len = fread(buf, 1, sizeof(buf), f);
	if (f != stdin)
		fclose(f);
	return pool_strdup(p, (struct str){buf, len});
}

static void add(struct pool *p, struct ngval *req, const char *key, const char *value)
{
	if (value)
		ngval_add_str(p, req, str_from(key), str_from(value));
}

/* 0, or the exit status after a complaint. */
static int build(struct ngval **out, struct pool *p, const struct command *c, const struct args *a)
{
	struct ngval *req = ngval_dict(p);
	const char *needs = c->needs;

	if ((strchr(needs, 'c') && !a->call_id) || (strchr(needs, 'f') && !a->from_tag) ||
		(strchr(needs, 't') && !a->to_tag) || (strchr(needs, 's') && !a->sdp))
		return usage(
			"this command needs --call-id, and offer and answer also --from-tag, --sdp, answer --to-tag",
			c->name);
	/* The engines are a part of the statistics. */
	add(p, req, "command", strcmp(c->name, "engine") == 0 ? "statistics" : c->name);
	add(p, req, "call-id", a->call_id);
	add(p, req, "from-tag", a->from_tag);
	add(p, req, "to-tag", a->to_tag);
	add(p, req, "via-branch", a->via_branch);
	add(p, req, "rtpp-flags", a->flags);
	add(p, req, "limit", a->limit);
	if (strcmp(c->name, "delete") == 0)
		ngval_add_int(p, req, STR("delete delay"), 0);
	if (strchr(needs, 's')) {
		struct str sdp = read_sdp(p, a->sdp);

		if (!sdp.s)
			return usage("cannot read the SDP file", a->sdp);
		ngval_add_str(p, req, STR("sdp"), sdp);
	}
	*out = req;
	return 0;
}

static int show(const struct command *c, const struct args *a, struct ngval *reply, struct pool *p,
	uint64_t elapsed_ns)
{
	struct str result = ngval_str(p, ngval_get(reply, STR("result")));
	struct str reason = ngval_str(p, ngval_get(reply, STR("error-reason")));
	struct str warning = ngval_str(p, ngval_get(reply, STR("warning")));
	bool ok = str_eq(result, STR("ok")) || str_eq(result, STR("pong"));
	const struct ngval *calls = ngval_get(reply, STR("calls"));

	if (ok && strcmp(c->name, "engine") == 0)
		return engine_show(p, reply, a->json) ? 0 : EXIT_ANSWER;
	if (a->json) {
		print_json(stdout, reply);
		return ok ? 0 : EXIT_DAEMON;
	}
	if (!ok) {
		fprintf(stderr, "xcipherctl: %s: " STR_FMT "%s" STR_FMT "\n", c->name,
			STR_ARG(result), reason.len ? ": " : "", STR_ARG(reason));
		return EXIT_DAEMON;
	}
	if (warning.len)
		fprintf(stderr, "xcipherctl: warning: " STR_FMT "\n", STR_ARG(warning));
	if (strcmp(c->name, "ping") == 0)
		printf("pong in %.2f ms\n", (double)elapsed_ns / 1e6);
	else if (strchr(c->needs, 's'))
		printf(STR_FMT, STR_ARG(ngval_str(p, ngval_get(reply, STR("sdp")))));
	else if (strcmp(c->name, "list") == 0)
		for (const struct ngval *v = calls ? calls->first : NULL; v; v = v->next)
			print_tree(stdout, v);
	else
		print_tree(stdout, reply);
	return 0;
}

static int read_args(struct args *a, int argc, char **argv)
{
	static const struct option longs[] = {{"server", required_argument, NULL, 's'},
		{"timeout", required_argument, NULL, 't'}, {"json", no_argument, NULL, 'j'},
		{"call-id", required_argument, NULL, 'c'},
		{"from-tag", required_argument, NULL, 'f'},
		{"to-tag", required_argument, NULL, 'T'},
		{"via-branch", required_argument, NULL, 'b'}, {"sdp", required_argument, NULL, 'S'},
		{"flags", required_argument, NULL, 'F'}, {"limit", required_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'V'}, {"help", no_argument, NULL, 'h'}, {0}};
	uint64_t n;

	for (;;) {
		int c = getopt_long(argc, argv, "hj", longs, NULL);

		switch (c) {
		case -1:
			return 0;
		case 's':
			if (endpoint_parse(&a->server, str_from(optarg)))
				return usage(
					"--server wants ADDR:PORT, as 127.0.0.1:22222", optarg);
			break;
		case 't':
			if (str_to_u64(&n, str_from(optarg), 3600) || n == 0)
				return usage("--timeout wants seconds, 1 to 3600", optarg);
			a->timeout = (unsigned)n;
			break;
		case 'j':
			a->json = true;
			break;
		case 'c':
			a->call_id = optarg;
			break;
		case 'f':
			a->from_tag = optarg;
			break;
		case 'T':
			a->to_tag = optarg;
			break;
		case 'b':
			a->via_branch = optarg;
			break;
		case 'S':
			a->sdp = optarg;
			break;
		case 'F':
			a->flags = optarg;
			break;
		case 'l':
			a->limit = optarg;
			break;
		case 'V':
			printf("xcipherctl %s\n", XCIPHER_VERSION);
			exit(0);
		case 'h':
			help();
			exit(0);
		default:
			return EXIT_USAGE; /* getopt has said what is wrong */
		}
	}
}

int main(int argc, char **argv)
{
	struct args a = {.timeout = 5};
	const struct command *c = NULL;
	struct ngval *request = NULL, *reply = NULL;
	struct pool *p;
	char where[ENDPOINT_STRLEN];
	uint64_t elapsed;
	int status, err;

	endpoint_parse(&a.server, STR("127.0.0.1:22222"));
	status = read_args(&a, argc, argv);
	if (status)
		return status;
	for (size_t i = 0; optind < argc && i < ARRAY_LEN(commands); i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			c = &commands[i];
	if (!c)
		return usage(optind < argc ? "there is no such command" : "no command given",
			optind < argc ? argv[optind] : NULL);
	if (++optind < argc && c->operand[0] && !a.call_id)
		a.call_id = argv[optind++];
	if (optind < argc)
		return usage("one word too many", argv[optind]);
	if (pool_create(&p, 32u << 20))
		return EXIT_ANSWER;
	status = build(&request, p, c, &a);
	if (!status) {
		err = client_call(&reply, p, &a.server, request, a.timeout, &elapsed);
		if (err) {
			fprintf(stderr,
				"xcipherctl: no answer from %s: %s. Does xcipherd run there (--server=ADDR:PORT)?\n",
				endpoint_fmt(&a.server, where), strerror(-err));
			status = EXIT_ANSWER;
		} else {
			status = show(c, &a, reply, p, elapsed);
		}
	}
	pool_destroy(p);
	return status;
}
