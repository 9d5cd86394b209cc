/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl: speaks ng to a running xcipherd (or to anything else that speaks it). Exit status: 0
 * the daemon said ok, 1 it said error, 2 wrong usage, 3 no usable answer. One table says what each
 * command needs, sends and shows. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/secmem.h"
#include "ctl/args.h"
#include "ctl/calls.h"
#include "ctl/client.h"
#include "ctl/codecs.h"
#include "ctl/engine.h"
#include "ctl/explain.h"
#include "ctl/print.h"
#include "ctl/columns.h"
#include "ctl/top.h"
#include "ctl/view.h"

static void add(struct pool *p, struct ngval *req, const char *key, const char *value)
{
	if (value)
		ngval_add_str(p, req, str_from(key), str_from(value));
}

/* --- Requests: 0, or the exit status after an error
 * -------------------------------------------- */

static int fill_limits(struct pool *p, struct ngval *req, const struct args *a)
{
	static const char *const names[] = {"sessions", "cpu", "load", "bandwidth"};

	for (int i = 0; i < a->words; i++) {
		struct str value = str_from(a->word[i]), name = str_cut(&value, '=');
		bool known = false;

		if (str_starts(name, STR("max-"))) {
			name.s += 4;
			name.len -= 4;
		}
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (str_eq(name, str_from(names[k]))) {
				ngval_add_str(p, req, pool_printf(p, "max-%s", names[k]), value);
				known = value.len > 0;
			}
		if (!known)
			return usage(
				"limits are sessions=N, cpu=PERCENT, load=LOAD, bandwidth=BYTES; 0 = no limit",
				a->word[i]);
	}
	return 0;
}

static int fill_drain(struct pool *p, struct ngval *req, const struct args *a)
{
	if (a->words && strcmp(a->word[0], "off") != 0 && strcmp(a->word[0], "on") != 0)
		return usage("drain takes on or off", a->word[0]);
	add(p, req, "state", a->words ? a->word[0] : "on");
	return 0;
}

static int fill_level(struct pool *p, struct ngval *req, const struct args *a)
{
	static const char *const names[] = {
		"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"};

	if (!a->words)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(a->word[0], names[i]) == 0 ||
			(a->word[0][0] == (char)('0' + i) && !a->word[0][1])) {
			ngval_add_str(p, req, STR("level"), pool_printf(p, "%zu", i));
			return 0;
		}
	return usage("a level is 0 to 7, or error, warning, notice, info, debug", a->word[0]);
}

static int fill_record(struct pool *p, struct ngval *req, const struct args *a)
{
	const char *what = a->words ? a->word[0] : "start";
	bool discard = strcmp(what, "discard") == 0;

	if (!discard && strcmp(what, "start") != 0 && strcmp(what, "pause") != 0 &&
		strcmp(what, "stop") != 0)
		return usage("record takes start, pause, stop or discard", what);
	req->first->str = pool_printf(p, "%s recording", discard ? "stop" : what);
	if (discard || a->from_tag)
		add(p, req, "flags",
			!discard              ? "directional"
				: a->from_tag ? "directional,discard-recording"
					      : "discard-recording");
	return 0;
}

static int fill_verify(struct pool *p, struct ngval *req, const struct args *a)
{
	const char *what = a->words ? a->word[0] : "yes";

	if (strcmp(what, "yes") != 0 && strcmp(what, "no") != 0)
		return usage("verify takes yes or no", what);
	req->first->str = pool_printf(p, "%s SAS", what[0] == 'y' ? "verify" : "unverify");
	return 0;
}

/* "call CALL-ID debug on" */
static int fill_call(struct pool *p, struct ngval *req, const struct args *a)
{
	const char *state = a->words > 1 ? a->word[1] : "on";

	if (!a->words)
		return 0;
	if (strcmp(a->word[0], "debug") != 0)
		return usage("after the Call-ID, call takes debug on or debug off", a->word[0]);
	if ((strcmp(state, "on") != 0 && strcmp(state, "off") != 0) || a->words > 2)
		return usage("debug takes on or off", state);
	req->first->str = STR("debug");
	add(p, req, "state", state);
	return 0;
}

static int fill_end(struct pool *p, struct ngval *req, const struct args *a)
{
	(void)a;
	ngval_add_int(p, req, STR("delete delay"), 0);
	add(p, req, "flags", "fatal");
	return 0;
}

static int fill_sdp(struct pool *p, struct ngval *req, const struct args *a)
{
	FILE *f = strcmp(a->sdp, "-") == 0 ? stdin : fopen(a->sdp, "re");
	char buf[65536];
	size_t len;

	if (!f)
		return usage("cannot read the SDP file", a->sdp);
	len = fread(buf, 1, sizeof(buf), f);
	if (f != stdin)
		fclose(f);
	ngval_add_str(p, req, STR("sdp"), pool_strdup(p, (struct str){buf, len}));
	return 0;
}

/* --- Output ---------------------------------------------------------------------------------- */

static void show_tree(const struct view *v, const struct ngval *reply)
{
	print_tree(v->to, reply);
}

static void show_list(const struct view *v, const struct ngval *reply)
{
	const struct ngval *calls = ngval_get(reply, STR("calls"));

	for (const struct ngval *c = calls ? calls->first : NULL; c; c = c->next)
		print_tree(v->to, c);
}

static void show_sdp(const struct view *v, const struct ngval *reply)
{
	fprintf(v->to, STR_FMT, STR_ARG(ngval_str(v->p, ngval_get(reply, STR("sdp")))));
}

static void show_drain(const struct view *v, const struct ngval *reply)
{
	long long n = ngval_int(ngval_get(reply, STR("sessions")), 0);

	if (str_eq(ngval_str(v->p, ngval_get(reply, STR("draining"))), STR("on")))
		fprintf(v->to,
			"draining: no new calls; it ends with the last of %lld. \"drain off\" ends this\n",
			n);
	else
		fprintf(v->to,
			"not draining: new calls are accepted in addition to the present %lld\n",
			n);
}

static void show_level(const struct view *v, const struct ngval *reply)
{
	fprintf(v->to, "log level %lld\n", (long long)ngval_int(ngval_get(reply, STR("level")), 0));
}

static void show_reload(const struct view *v, const struct ngval *reply)
{
	const struct ngval *stay = ngval_get(reply, STR("needs restart"));
	long long n = ngval_int(ngval_get(reply, STR("changed")), 0);

	fprintf(v->to, "%lld option%s changed\n", n, n == 1 ? "" : "s");
	for (const struct ngval *s = stay ? stay->first : NULL; s; s = s->next) {
		print_text(v->to, ngval_str(v->p, s));
		fputs(" has changed, but needs a restart\n", v->to);
	}
}

static void show_end(const struct view *v, const struct ngval *reply)
{
	(void)reply;
	fputs("call ended\n", v->to);
}

static void show_active(const struct view *v, const struct ngval *reply)
{
	(void)reply;
	fputs("active: this node takes over the calls that it followed\n", v->to);
}

static void show_standby(const struct view *v, const struct ngval *reply)
{
	(void)reply;
	fputs("standby: this node leaves its calls to another one and follows them\n", v->to);
}

/* --- Commands --------------------------------------------------------------------------------- */

struct command {
	const char *name, *operand, *help;
	/* letters: c call-id, C perhaps, f from-tag, t to-tag, s SDP; w: a word more, W: any number
	 */
	const char *needs;
	const char *ng;                                                       /* its name in ng */
	int (*fill)(struct pool *p, struct ngval *req, const struct args *a); /* or NULL */
	void (*show)(const struct view *v, const struct ngval *reply); /* ping, engine: NULL */
};

static const struct command commands[] = {
	{"top", "[PART]", "live view of the daemon and its calls", "w", "statistics", NULL, NULL},
	{"calls", "[PART]", "table of calls, or of those with PART in their Call-ID or a tag", "w",
		"calls", NULL, NULL},
	{"call", "CALL-ID", "one call: its streams, addresses, suites, counters", "cW", "query",
		fill_call, view_call},
	{"call", "ID debug on|off", "log all events of this call", "cW", "query", fill_call,
		view_call},
	{"explain", "CALL-ID",
		"suites of a call and the reason for each, likely faults, and events", "c",
		"explain", NULL, view_explain},
	{"stats", "", "statistics of the daemon on one screen", "", "statistics", NULL, view_stats},
	{"engine", "", "engines and devices, their state, and measured times", "", "statistics",
		NULL, NULL},
	{"limits", "[NAME=N]...", "limits for new calls: sessions, cpu, load, bandwidth", "W",
		"limits", fill_limits, view_limits},
	{"drain", "[off]", "refuse new calls, end with the last one", "w", "drain", fill_drain,
		show_drain},
	{"active", "", "take over the calls that this standby node follows", "", "active", NULL,
		show_active},
	{"standby", "", "leave all calls to another node, and follow them", "", "standby", NULL,
		show_standby},
	{"loglevel", "[N]",
		"log level: 3 errors, 4 warnings, 5 notices, 6 information, 7 debugging", "w",
		"log level", fill_level, show_level},
	{"reload", "", "read the options again; the log names those that need a restart", "",
		"reload", NULL, show_reload},
	{"codecs", "", "codecs of the daemon, its plug-ins, and why some were refused", "",
		"codecs", NULL, view_codecs},
	{"record", "CALL-ID [WHAT]", "start, pause, stop or discard its recording", "cw",
		"start recording", fill_record, show_tree},
	{"verify", "CALL-ID [yes|no]",
		"mark the ZRTP SAS as compared with the terminal's (no: take it back)", "cw",
		"verify SAS", fill_verify, show_tree},
	{"terminate", "[CALL-ID]", "end a call at once, or all calls that the filters select", "C",
		"delete", fill_end, show_end},
	{"kill", "CALL-ID", "end a call at once", "c", "delete", fill_end, show_end},
	{"ping", "", "check that the daemon replies", "", "ping", NULL, NULL},
	{"list", "", "Call-IDs of all calls", "", "list", NULL, show_list},
	{"query", "CALL-ID", "all data of a call except its keys", "c", "query", NULL, show_tree},
	{"statistics", "", "all counters", "", "statistics", NULL, show_tree},
	{"offer", "", "send an offer: prints the rewritten SDP", "cfs", "offer", fill_sdp,
		show_sdp},
	{"answer", "", "send an answer: prints the rewritten SDP", "cfts", "answer", fill_sdp,
		show_sdp},
	{"delete", "CALL-ID", "end a call at once, and print its data", "c", "delete", fill_end,
		show_tree},
};

static void help(void)
{
	printf("xcipherctl " XCIPHER_VERSION
	       ": watches and controls xcipherd\n\nUsage: xcipherctl [OPTION]... COMMAND [OPERAND]...\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		printf("  %-10s %-15s  %s\n", commands[i].name, commands[i].operand,
			commands[i].help);
	printf("  %-10s %-15s  print this text, or the usage of a command\n", "help", "[COMMAND]");
	args_help();
}

/* 0, or the exit status after a complaint. */
static int build(struct ngval **out, struct pool *p, const struct command *c, const struct args *a)
{
	struct ngval *req = ngval_dict(p);
	const char *needs = c->needs;

	if (strchr(needs, 'c') && !a->call_id)
		return usage("this command needs a Call-ID, as \"xcipherctl calls\" shows them",
			c->name);
	if ((strchr(needs, 'f') && !a->from_tag) || (strchr(needs, 't') && !a->to_tag) ||
		(strchr(needs, 's') && !a->sdp))
		return usage(
			"offer and answer need --call-id, --from-tag and --sdp, answer --to-tag",
			c->name);
	add(p, req, "command", c->ng);
	add(p, req, "call-id", a->call_id);
	add(p, req, "from-tag", a->from_tag);
	add(p, req, "to-tag", a->to_tag);
	add(p, req, "via-branch", a->via_branch);
	add(p, req, "rtpp-flags", a->flags);
	add(p, req, "limit", a->limit);
	*out = req;
	return c->fill ? c->fill(p, req, a) : 0;
}

static void advise(const struct command *c, struct str reason)
{
	if (str_eq(reason, STR("Unknown call-id")) || str_starts(reason, STR("Call-ID not found")))
		fprintf(stderr,
			"\"xcipherctl calls PART\" finds a call by a part of its Call-ID\n");
	else if (str_starts(reason, STR("Unrecognized command")))
		fprintf(stderr,
			"this daemon does not know %s: does xcipherd have the same version?\n",
			c->name);
	else if (str_starts(reason, STR("There is no Redis")))
		fprintf(stderr, "start xcipherd with --redis and --redis-key-file\n");
	else if (str_starts(reason, STR("Reply is too long")))
		fprintf(stderr,
			"it is too long for a datagram; set --listen-tcp-ng to the address of --listen-ng to get it over TCP\n");
}

static int show(const struct command *c, const struct args *a, struct ngval *reply, struct pool *p,
	uint64_t elapsed_ns)
{
	struct view v = {.to = stdout, .p = p};
	struct str result = ngval_str(p, ngval_get(reply, STR("result")));
	struct str reason = ngval_str(p, ngval_get(reply, STR("error-reason")));
	struct str warning = ngval_str(p, ngval_get(reply, STR("warning")));
	bool ok = str_eq(result, STR("ok")) || str_eq(result, STR("pong"));
	uint32_t height;

	if (ok && strcmp(c->name, "engine") == 0)
		return engine_show(p, reply, a->json) ? 0 : EXIT_ANSWER;
	if (a->json) {
		print_json(stdout, reply);
		return ok ? 0 : EXIT_DAEMON;
	}
	if (!ok) {
		print_refusal(c->name, result, reason);
		advise(c, reason);
		return EXIT_DAEMON;
	}
	if (warning.len) {
		fputs("xcipherctl: warning: ", stderr);
		print_text(stderr, warning);
		fputc('\n', stderr);
	}
	table_terminal(stdout, &v.width, &height);
	if (c->show)
		c->show(&v, reply);
	else
		printf("pong in %.2f ms\n", (double)elapsed_ns / 1e6);
	return 0;
}

static int run(const struct command *c, const struct args *a)
{
	struct ngval *request = NULL, *reply = NULL;
	struct pool *p;
	uint64_t elapsed;
	int status, err;

	if (pool_create(&p, 32u << 20))
		return EXIT_ANSWER;
	status = build(&request, p, c, a);
	if (!status) {
		const struct client client = {
			.server = a->server, .keys = a->keys, .timeout_s = a->timeout};

		err = client_call(&reply, p, &client, request, &elapsed);
		status = err ? no_answer(a, err) : show(c, a, reply, p, elapsed);
	}
	pool_destroy(p);
	return status;
}

static int once(const struct command *c, const struct args *a)
{
	if (strcmp(c->name, "calls") == 0)
		return calls_run(a);
	if (strcmp(c->name, "terminate") == 0 && !a->call_id)
		return calls_terminate(a);
	return run(c, a);
}

/* Until it fails, or somebody interrupts. */
static int watch(const struct command *c, const struct args *a)
{
	bool terminal = isatty(STDOUT_FILENO);
	int status;

	for (;;) {
		if (terminal)
			fputs("\033[H\033[2J", stdout);
		status = once(c, a);
		if (!terminal && !a->json)
			putchar('\n');
		if (status || fflush(stdout))
			return status;
		usleep(a->watch_ms * 1000);
	}
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static const char *command_name(const void *arg, size_t i)
{
	return ((const struct command *)arg)[i].name;
}

static int unknown(const char *name)
{
	const char *near = nearest(name, command_name, commands, ARRAY_LEN(commands));

	fprintf(stderr, "xcipherctl: there is no command %s. %s%s%s\"xcipherctl help\" lists all\n",
		name, near ? "Did you mean " : "", near ? near : "", near ? "? " : "");
	return EXIT_USAGE;
}

/* "help", or "help COMMAND". */
static int help_on(int words, char **word)
{
	const struct command *c = words ? find(word[0]) : NULL;

	if (words > 1)
		return usage("one word too many", word[1]);
	if (words && !c)
		return unknown(word[0]);
	if (c)
		printf("xcipherctl [OPTION]... %s %s\n  %s. More: man xcipherctl\n", c->name,
			c->operand, c->help);
	else
		help();
	return 0;
}

int main(int argc, char **argv)
{
	struct args a = {.timeout = 5, .help = help};
	const struct command *c;
	int status;

	endpoint_parse(&a.server, STR("127.0.0.1:22222"));
	status = args_read(&a, argc, argv);
	if (status)
		return status;
	if (optind == argc)
		return usage("no command given", NULL);
	if (strcmp(argv[optind], "help") == 0)
		return help_on(argc - optind - 1, argv + optind + 1);
	c = find(argv[optind]);
	if (!c)
		return unknown(argv[optind]);
	if (++optind < argc && strpbrk(c->needs, "cC") && !a.call_id)
		a.call_id = argv[optind++];
	a.word = argv + optind;
	a.words = argc - optind;
	if (a.words > (strchr(c->needs, 'W') ? argc : strchr(c->needs, 'w') ? 1 : 0))
		return usage("one word too many", argv[argc - 1]);
	status = strcmp(c->name, "top") == 0 ? top_run(&a)
		: a.watch_ms                 ? watch(c, &a)
					     : once(c, &a);
	if (a.keys)
		secmem_free(a.keys, sizeof(*a.keys));
	return status;
}
