/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl top: the screen is rewritten every second and after each key. The terminal's settings
 * are restored on every exit. */
#include "ctl/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/calls.h"
#include "ctl/client.h"
#include "ctl/explain.h"
#include "ctl/print.h"
#include "ctl/columns.h"
#include "ctl/view.h"

#define SCREEN_ON  "\033[?1049h\033[?25l"
#define SCREEN_OFF "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define LINE_END   "\033[K\n"
#define REST_CLEAR "\033[J"

static volatile sig_atomic_t ended;

static void on_end(int signo)
{
	(void)signo;
	ended = 1;
}

struct top {
	struct args a; /* filter and sort change by keys */
	struct view_before before;
	uint32_t order;    /* of orders[] */
	uint32_t selected; /* row, from 0 */
	uint32_t rows;     /* rows shown last */
	uint32_t scroll;   /* lines of an opened call to skip */
	char *ids[100];    /* of the rows */
	char *open;        /* Call-ID of the opened call; NULL: the list is shown */
	bool typing;       /* a filter */
	char typed[sizeof(((struct args *)0)->filter)];
};

static const char *const orders[] = {
	"new", "age", "mos", "loss", "rtt", "jitter", "errors", "packets", "silence"};

static int ask(const struct args *a, struct pool *p, const char *command, const char *call_id,
	struct ngval **reply)
{
	struct ngval *req = ngval_dict(p);

	ngval_add_str(p, req, STR("command"), str_from(command));
	if (call_id)
		ngval_add_str(p, req, STR("call-id"), str_from(call_id));
	return client_call(reply, p,
		&(struct client){.server = a->server, .keys = a->keys, .timeout_s = a->timeout},
		req, NULL);
}

/* Every line is cleared to its end, instead of the whole screen before: that would flicker. */
static void show(const char *text, uint32_t width)
{
	uint32_t at = 0;

	fputs(HOME, stdout);
	for (; *text; text++) {
		if (*text == '\n')
			fputs(LINE_END, stdout);
		else if (!width || at < width)
			fputc(*text, stdout);
		at = *text == '\n' ? 0 : at + 1;
	}
	fputs(REST_CLEAR, stdout);
	fflush(stdout);
}

/* --- Screens ---------------------------------------------------------------------------------- */

static void keep_ids(struct top *t, struct pool *p, const struct ngval *calls)
{
	const struct ngval *list = ngval_get(calls, STR("calls"));

	for (uint32_t i = 0; i < t->rows; i++)
		free(t->ids[i]);
	t->rows = 0;
	for (const struct ngval *c = list ? list->first : NULL; c && t->rows < ARRAY_LEN(t->ids);
		c = c->next) {
		struct str id = ngval_str(p, ngval_get(c, STR("id")));
		char *copy = strndup(id.len ? id.s : "", id.len);

		if (!copy)
			break;
		t->ids[t->rows++] = copy;
	}
	if (t->selected >= t->rows)
		t->selected = t->rows ? t->rows - 1 : 0;
}

static void prompt(const struct top *t, FILE *to)
{
	const char *part = t->a.words ? t->a.word[0] : "";

	if (t->typing) {
		fprintf(to, "filter: %s_  (as in --help: one-way mos-below=3.5; Enter)\n\n",
			t->typed);
		return;
	}
	fprintf(to, "%s first", orders[t->order]);
	if (t->a.filter[0] || part[0]) {
		fputs(", filter: ", to);
		print_text(to, str_from(t->a.filter));
		fputs(t->a.filter[0] && part[0] ? " " : "", to);
		print_text(to, str_from(part));
	}
	fprintf(to, ".  s sorts, / filters, arrows and Enter open a call, q ends\n\n");
}

/* 0, or -errno: there was no answer. */
static int list_screen(struct top *t, struct view *v, uint32_t height)
{
	struct ngval *stats = NULL, *calls = NULL;
	struct str reason;
	uint32_t used;
	int err = ask(&t->a, v->p, "statistics", NULL, &stats);

	if (!err)
		err = calls_fetch(&calls, v->p, &t->a, height > 100 ? 100 : height);
	if (err)
		return err;
	used = view_head(v, stats, &t->before);
	prompt(t, v->to);
	reason = ngval_str(v->p, ngval_get(calls, STR("error-reason")));
	if (reason.len) { /* for example an invalid filter: differs from an empty list */
		fputs("error: ", v->to);
		print_text(v->to, reason);
		fputc('\n', v->to);
		return 0;
	}
	v->rows = height > used + 6 ? height - used - 6 : 1;
	keep_ids(t, v->p, calls);
	if (t->selected >= v->rows)
		t->selected = v->rows - 1;
	v->selected = t->selected + 1;
	view_calls(v, calls);
	return 0;
}

static int call_screen(struct top *t, struct view *v)
{
	struct ngval *reply = NULL;
	struct str reason;
	int err = ask(&t->a, v->p, "explain", t->open, &reply);

	if (err)
		return err;
	fprintf(v->to, "Esc goes back, arrows scroll, q ends\n\n");
	reason = ngval_str(v->p, ngval_get(reply, STR("error-reason")));
	if (reason.len) {
		print_text(v->to, str_from(t->open));
		fputs(": ", v->to);
		print_text(v->to, reason);
		fputs(". The call has ended\n", v->to);
	} else {
		view_explain(v, reply);
	}
	return 0;
}

/* Lines from scroll on, as many as fit. Never scrolls beyond the last one. */
static const char *window(struct top *t, char *text, uint32_t height)
{
	uint32_t lines = 0, skip;
	char *at = text;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	skip = lines > height ? lines - height : 0;
	t->scroll = t->scroll < skip ? t->scroll : skip;
	for (skip = t->scroll; skip && *at; at++)
		skip -= *at == '\n';
	for (char *end = at; *end; end++)
		if (*end == '\n' && --height == 0) {
			end[1] = 0;
			break;
		}
	return at;
}

static int screen(struct top *t)
{
	char *text = NULL, where[ENDPOINT_STRLEN];
	size_t len;
	uint32_t height;
	struct view v = {.to = open_memstream(&text, &len)};
	int err = v.to ? pool_create(&v.p, 32u << 20) : -ENOMEM;

	if (err)
		return err;
	table_terminal(stdout, &v.width, &height);
	height = height > 1 ? height : 24;
	err = t->open ? call_screen(t, &v) : list_screen(t, &v, height);
	if (err)
		fprintf(v.to, "no reply from %s: %s. Retrying; q ends\n",
			endpoint_fmt(&t->a.server, where), strerror(-err));
	fclose(v.to);
	show(t->open ? window(t, text, height - 1) : text, v.width);
	free(text);
	pool_destroy(v.p);
	return 0;
}

/* --- Keys ------------------------------------------------------------------------------------- */

enum key { KEY_NONE = 256, KEY_UP, KEY_DOWN, KEY_ESCAPE, KEY_END };

/* A key, or KEY_NONE when the time is over. */
static int read_key(uint32_t wait_ms)
{
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
	char c[8];
	ssize_t n;

	if (ended || poll(&pfd, 1, (int)wait_ms) <= 0)
		return ended ? KEY_END : KEY_NONE;
	n = read(STDIN_FILENO, c, 1);
	if (n != 1 || c[0] == 3)
		return KEY_END;
	if (c[0] != '\033')
		return (unsigned char)c[0];
	/* The rest of a key sequence follows at once; after a single Esc, nothing does. */
	if (poll(&pfd, 1, 20) <= 0)
		return KEY_ESCAPE;
	n = read(STDIN_FILENO, c, 2);
	return n == 2 && c[1] == 'A' ? KEY_UP : n == 2 && c[1] == 'B' ? KEY_DOWN : KEY_NONE;
}

static void type(struct top *t, int key)
{
	size_t len = strlen(t->typed);

	if (key == '\n' || key == '\r') {
		memcpy(t->a.filter, t->typed, sizeof(t->a.filter));
		t->typing = false;
	} else if (key == KEY_ESCAPE) {
		t->typing = false;
	} else if ((key == 127 || key == 8) && len) {
		t->typed[len - 1] = 0;
	} else if (key >= 0x20 && key < 0x7f && len + 1 < sizeof(t->typed)) {
		t->typed[len] = (char)key;
		t->typed[len + 1] = 0;
	}
}

static void move(struct top *t, int by)
{
	uint32_t *at = t->open ? &t->scroll : &t->selected;

	if (by > 0)
		++*at;
	else if (*at)
		--*at;
}

static void leave(struct top *t)
{
	free(t->open);
	t->open = NULL;
	t->scroll = 0;
}

/* False: quit. */
static bool press(struct top *t, int key)
{
	if (key == KEY_END)
		return false;
	if (t->typing) {
		type(t, key);
		return true;
	}
	switch (key) {
	case 'q':
	case 'Q':
		return false;
	case KEY_UP:
	case 'k':
		move(t, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move(t, 1);
		break;
	case KEY_ESCAPE:
	case 127:
		leave(t);
		break;
	case '\n':
	case '\r':
		if (!t->open && t->selected < t->rows)
			t->open = strdup(t->ids[t->selected]);
		break;
	case 's':
		t->order = (t->order + 1) % ARRAY_LEN(orders);
		t->a.sort = orders[t->order];
		break;
	case '/':
		t->typing = !t->open;
		t->typed[0] = 0; /* a new filter; Esc keeps the old one */
		break;
	}
	return true;
}

static int loop(struct top *t)
{
	uint32_t wait_ms = t->a.watch_ms ? t->a.watch_ms : 1000;
	int err;

	do
		err = screen(t);
	while (!err && press(t, read_key(wait_ms)));
	return err;
}

int top_run(const struct args *a)
{
	struct sigaction end = {.sa_handler = on_end};
	struct top t = {.a = *a};
	struct termios was, raw;
	int err;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &was))
		return usage(
			"top needs a terminal; elsewhere use \"xcipherctl --watch calls\"", NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(SCREEN_ON, stdout);
	for (uint32_t i = 0; a->sort && i < ARRAY_LEN(orders); i++)
		if (strcmp(a->sort, orders[i]) == 0)
			t.order = i;
	err = loop(&t);
	fputs(SCREEN_OFF, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
	leave(&t);
	for (uint32_t i = 0; i < t.rows; i++)
		free(t.ids[i]);
	return err ? EXIT_ANSWER : 0;
}
