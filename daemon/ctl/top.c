/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipherctl top: a screen that is written anew every second. The terminal is given back as it was, whatever ends us. */
#include "ctl/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/client.h"
#include "ctl/table.h"
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

static int ask(const struct args *a, struct pool *p, const char *command, uint32_t limit,
	struct ngval **reply)
{
	struct ngval *req = ngval_dict(p);

	ngval_add_str(p, req, STR("command"), str_from(command));
	if (limit)
		ngval_add_int(p, req, STR("limit"), limit);
	if (a->words)
		ngval_add_str(p, req, STR("part"), str_from(a->word[0]));
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

static int screen(const struct args *a, struct view_before *before)
{
	struct ngval *stats = NULL, *calls = NULL;
	char *text = NULL, where[ENDPOINT_STRLEN];
	size_t len;
	uint32_t height, used;
	struct view v = {.to = open_memstream(&text, &len)};
	int err = v.to ? pool_create(&v.p, 32u << 20) : -ENOMEM;

	if (err)
		return err;
	table_terminal(stdout, &v.width, &height);
	height = height ? height : 24;
	err = ask(a, v.p, "statistics", 0, &stats);
	if (!err)
		err = ask(a, v.p, "calls", height > 100 ? 100 : height, &calls);
	if (err) {
		fprintf(v.to, "no answer from %s: %s. Going on trying; q ends\n",
			endpoint_fmt(&a->server, where), strerror(-err));
	} else {
		used = view_head(&v, stats, before);
		fprintf(v.to, "%sq ends\n\n", a->words ? "filtered; " : "");
		v.rows = height > used + 6 ? height - used - 6 : 1;
		view_calls(&v, calls);
	}
	fclose(v.to);
	show(text, v.width);
	free(text);
	pool_destroy(v.p);
	return 0;
}

/* Until the next second, or a key: true for q. */
static bool key_q(uint32_t wait_ms)
{
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t until = clock_mono_ns() + (uint64_t)wait_ms * 1000000, now;

	while (!ended && (now = clock_mono_ns()) < until) {
		char c;

		if (poll(&pfd, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &c, 1) != 1 || c == 'q' || c == 'Q' || c == 3)
			return true;
	}
	return false;
}

int top_run(const struct args *a)
{
	struct sigaction end = {.sa_handler = on_end};
	struct view_before before = {0};
	struct termios was, raw;
	int err = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &was))
		return usage(
			"top needs a terminal; \"xcipherctl --watch calls\" writes to anything",
			NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs(SCREEN_ON, stdout);
	do
		err = screen(a, &before);
	while (!err && !ended && !key_q(a->watch_ms ? a->watch_ms : 1000));
	fputs(SCREEN_OFF, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
	return err ? EXIT_ANSWER : 0;
}
