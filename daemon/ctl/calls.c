/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See calls.h. */
#include "ctl/calls.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/print.h"
#include "ctl/columns.h"
#include "ctl/view.h"

#define LIMIT      100u
#define PAGE       1000u      /* calls asked for at once; the daemon sends fewer if they are long */
#define POOL_BYTES (2u << 30) /* of all pages, at most */

static int ask(struct ngval **reply, struct pool *p, const struct args *a, struct ngval *request)
{
	const struct client client = {
		.server = a->server, .keys = a->keys, .timeout_s = a->timeout};

	return client_call(reply, p, &client, request, NULL);
}

static int ask_page(struct ngval **reply, struct pool *p, const struct args *a, uint32_t limit,
	struct str after)
{
	struct ngval *req = ngval_dict(p);

	ngval_add_str(p, req, STR("command"), STR("calls"));
	ngval_add_int(p, req, STR("limit"), limit < PAGE ? limit : PAGE);
	if (a->words)
		ngval_add_str(p, req, STR("part"), str_from(a->word[0]));
	if (a->filter[0])
		ngval_add_str(p, req, STR("filter"), str_from(a->filter));
	if (a->sort)
		ngval_add_str(p, req, STR("sort"), str_from(a->sort));
	if (after.len)
		ngval_add_str(p, req, STR("after"), after);
	return ask(reply, p, a, req);
}

static struct ngval *list_of(const struct ngval *reply)
{
	return (struct ngval *)ngval_get(reply, STR("calls"));
}

static uint32_t length(const struct ngval *list)
{
	uint32_t n = 0;

	for (const struct ngval *c = list ? list->first : NULL; c; c = c->next)
		n++;
	return n;
}

int calls_fetch(struct ngval **reply, struct pool *p, const struct args *a, uint32_t limit)
{
	int err = ask_page(reply, p, a, limit, STR_NONE);
	const struct ngval *page = *reply;
	struct ngval *all, *more;
	struct str next;
	uint32_t n;

	if (err)
		return err;
	all = list_of(page);
	n = length(all);
	next = ngval_str(p, ngval_get(page, STR("next")));
	while (all && n < limit && next.len) {
		struct ngval *answer;

		err = ask_page(&answer, p, a, limit - n, next);
		if (err)
			return err;
		more = list_of(answer);
		if (!more || !more->first)
			break;
		all->last->next = more->first;
		all->last = more->last;
		n += length(more);
		next = ngval_str(p, ngval_get(answer, STR("next")));
	}
	return pool_failed(p) ? -ENOMEM : 0;
}

/* Ok, or complains. */
static bool is_ok(const char *command, struct pool *p, const struct ngval *reply)
{
	struct str result = ngval_str(p, ngval_get(reply, STR("result")));

	if (str_eq(result, STR("ok")))
		return true;
	print_refusal(command, result, ngval_str(p, ngval_get(reply, STR("error-reason"))));
	return false;
}

static uint32_t limit_of(const struct args *a)
{
	uint64_t n = LIMIT;

	if (a->limit)
		str_to_u64(&n, str_from(a->limit), UINT32_MAX);
	return a->all ? UINT32_MAX : (uint32_t)n;
}

int calls_run(const struct args *a)
{
	struct view v = {.to = stdout};
	struct ngval *reply = NULL;
	uint32_t height;
	int err, status = 0;

	if (pool_create(&v.p, POOL_BYTES))
		return EXIT_ANSWER;
	err = calls_fetch(&reply, v.p, a, limit_of(a));
	if (err) {
		status = no_answer(a, err);
	} else if (!is_ok("calls", v.p, reply)) {
		status = EXIT_DAEMON;
	} else if (a->json) {
		print_json(stdout, reply);
	} else {
		table_terminal(stdout, &v.width, &height);
		view_calls(&v, reply);
	}
	pool_destroy(v.p);
	return status;
}

/* --- Ending ----------------------------------------------------------------------------------- */

/* True for "y" or "yes". */
static bool confirm(uint32_t n)
{
	char line[16] = "";

	printf("Terminate %u call%s? [y/N] ", n, n == 1 ? "" : "s");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return false;
	return line[0] == 'y' || line[0] == 'Y';
}

/* Number of calls that this command ended. Calls that ended by themselves meanwhile are not
 * counted. */
static int end_all(uint32_t *ended, const struct args *a, const struct ngval *list)
{
	int err = 0;

	*ended = 0;
	for (const struct ngval *c = list->first; c && !err; c = c->next) {
		struct ngval *req, *reply = NULL;
		struct pool *p;

		if (pool_create(&p, 1u << 20))
			return -ENOMEM;
		req = ngval_dict(p);
		ngval_add_str(p, req, STR("command"), STR("delete"));
		ngval_add_str(p, req, STR("call-id"), ngval_str(p, ngval_get(c, STR("id"))));
		ngval_add_int(p, req, STR("delete delay"), 0);
		ngval_add_str(p, req, STR("flags"), STR("fatal,fast"));
		err = ask(&reply, p, a, req);
		*ended += !err && str_eq(ngval_str(p, ngval_get(reply, STR("result"))), STR("ok"));
		pool_destroy(p);
	}
	return err;
}

static int end_matching(const struct args *a, struct view *v)
{
	struct ngval *reply = NULL, *list;
	uint32_t n, ended, height;
	int err = calls_fetch(&reply, v->p, a, limit_of(a));

	if (err)
		return no_answer(a, err);
	if (!is_ok("terminate", v->p, reply))
		return EXIT_DAEMON;
	list = list_of(reply);
	n = length(list);
	table_terminal(stdout, &v->width, &height);
	if (!a->yes || !n)
		view_calls(v, reply);
	if (!n)
		return 0;
	if (!a->yes && !confirm(n)) {
		printf("no call is terminated\n");
		return 0;
	}
	err = end_all(&ended, a, list);
	printf("%u call%s terminated\n", ended, ended == 1 ? "" : "s");
	return err ? no_answer(a, err) : 0;
}

int calls_terminate(const struct args *a)
{
	struct args all = *a;
	struct view v = {.to = stdout};
	int status;

	if (!a->filter[0] && !a->all)
		return usage(
			"terminate needs a Call-ID, a filter as --one-way, or --all for all calls",
			NULL);
	if (!a->yes && !isatty(STDIN_FILENO))
		return usage(
			"terminate asks before it ends calls; without a terminal it needs --yes",
			NULL);
	all.all = !a->limit;
	if (pool_create(&v.p, POOL_BYTES))
		return EXIT_ANSWER;
	status = end_matching(&all, &v);
	pool_destroy(v.p);
	return status;
}
