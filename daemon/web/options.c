/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See options.h. */
#include "web/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ini.h"
#include "base/refused.h"

#define ME "xcipher-web: "

static const struct row {
	const char *name;
	size_t offset;
	const char *def, *arg, *help;
} rows[] = {
#define X(name, field, def, arg, help) {name, offsetof(struct web_options, field), def, arg, help},
	WEB_OPTIONS(X)
#undef X
};

static const struct row *row_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* The new value. If the same source has set a list before, value is appended to it. */
static bool set(struct web_options *o, const struct row *row, const char *value, bool more)
{
	char **field = (char **)((char *)o + row->offset), *copy;

	if (asprintf(&copy, "%s%s%s", more ? *field : "", more ? "," : "", value) < 0)
		return false;
	free(*field);
	*field = copy;
	return true;
}

static void help(void)
{
	printf("xcipher-web " XCIPHER_VERSION
	       ": serves the page, metrics and ng over HTTP for xcipherd\n\n"
	       "Usage: xcipher-web [--OPTION=VALUE]...\n\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s=%s", rows[i].name, rows[i].arg);
		printf("  %-42s %s", left, rows[i].help);
		printf(rows[i].def[0] ? " (%s)\n" : "\n", rows[i].def);
	}
	printf("  %-42s %s\n  %-42s %s\n\n", "--version", "print the version and exit", "--help",
		"print this and exit");
	printf("All but the last two are also keys of the ini file, section [xcipher-web]. See xcipher-web(8).\n");
}

static const char *form(size_t i)
{
	return i < ARRAY_LEN(rows) ? rows[i].arg : "";
}

static bool file_line(void *arg, const char *section, const char *name, const char *value)
{
	const struct row *row = row_find(name);

	if (section[0] && strcmp(section, "xcipher-web") != 0)
		return true; /* other sections may belong to other programs */
	if (!section[0])
		return false;
	return row && strcmp(name, "config-file") != 0 && value[0] && set(arg, row, value, false);
}

/* A missing file is an error only if the command line names it. */
static bool read_file(struct web_options *o, bool asked)
{
	int line;

	if (strcmp(o->config_file, "none") == 0 || (!asked && access(o->config_file, F_OK) != 0))
		return true;
	line = ini_read(o->config_file, file_line, o);
	if (line < 0)
		fprintf(stderr, ME "cannot read %s: %s\n", o->config_file, strerror(-line));
	else if (line > 0)
		fprintf(stderr,
			ME
			"%s, line %d: not an option with a value, as --help lists them, in section [xcipher-web]\n",
			o->config_file, line);
	return line == 0;
}

/* only_file: reads only --config-file, and whether it was given. */
static enum web_options_result read_args(
	struct web_options *o, int argc, char **argv, bool *only_file)
{
	enum { LONG = 256, ROWS = ARRAY_LEN(rows) };
	struct option longs[ROWS + 3] = {0};
	bool hosts = false;
	char why[256];
	int c, at;

	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){rows[i].name, required_argument, NULL, LONG + (int)i};
	longs[ROWS] = (struct option){"version", no_argument, NULL, LONG + ROWS};
	longs[ROWS + 1] = (struct option){"help", no_argument, NULL, LONG + ROWS + 1};
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+h", longs, &at)) != -1) {
		if (c == 'h' || c == LONG + ROWS + 1) {
			help();
			return WEB_OPTIONS_EXIT_OK;
		}
		if (c == LONG + ROWS) {
			printf("xcipher-web %s\n", XCIPHER_VERSION);
			return WEB_OPTIONS_EXIT_OK;
		}
		if (c < LONG) {
			option_refused(why, sizeof(why), argv[optind - 1], longs, ROWS + 2, form);
			fprintf(stderr, ME "%s\n", why);
			return WEB_OPTIONS_EXIT_ERROR;
		}
		if (only_file && strcmp(rows[at].name, "config-file") != 0)
			continue;
		if (only_file)
			*only_file = true;
		if (!optarg[0]) {
			fprintf(stderr, ME "--%s needs a value; for none leave the option out\n",
				rows[at].name);
			return WEB_OPTIONS_EXIT_ERROR;
		}
		if (!set(o, &rows[at], optarg, hosts && strcmp(rows[at].name, "http-host") == 0))
			return WEB_OPTIONS_EXIT_ERROR;
		hosts |= strcmp(rows[at].name, "http-host") == 0;
	}
	if (optind == argc)
		return WEB_OPTIONS_RUN;
	fprintf(stderr, ME "\"%s\" is not an option: options are written --name=value\n",
		argv[optind]);
	return WEB_OPTIONS_EXIT_ERROR;
}

static bool wrong(const char *name, const char *value, const char *right)
{
	fprintf(stderr, ME "--%s=%s is wrong, expected: %s\n", name, value, right);
	return false;
}

static bool check(struct web_options *o)
{
	uint64_t level;

	if (endpoint_parse(&o->listen, str_from(o->listen_http)) || o->listen.port == 0)
		return wrong("listen-http", o->listen_http, "ADDR:PORT, as 127.0.0.1:2226");
	if (o->daemon[0] != '/')
		return wrong("daemon", o->daemon, "the path of a socket, from /");
	if (str_to_u64(&level, str_from(o->log_level), 7))
		return wrong("log-level", o->log_level, "a level from 0 to 7");
	o->level = (int)level;
	o->to_stderr = strcmp(o->log_stderr, "yes") == 0;
	if (!o->to_stderr && strcmp(o->log_stderr, "no") != 0)
		return wrong("log-stderr", o->log_stderr, "yes or no");
	return true;
}

enum web_options_result web_options_read(struct web_options *o, int argc, char **argv)
{
	enum web_options_result res;
	bool asked = false;

	*o = (struct web_options){0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!set(o, &rows[i], rows[i].def, false))
			return WEB_OPTIONS_EXIT_ERROR;
	res = read_args(o, argc, argv, &asked);
	if (res == WEB_OPTIONS_RUN && !read_file(o, asked))
		res = WEB_OPTIONS_EXIT_ERROR;
	if (res == WEB_OPTIONS_RUN)
		res = read_args(o, argc, argv, NULL);
	return res == WEB_OPTIONS_RUN && !check(o) ? WEB_OPTIONS_EXIT_ERROR : res;
}

void web_options_free(struct web_options *o)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		free(*(char **)((char *)o + rows[i].offset));
}
