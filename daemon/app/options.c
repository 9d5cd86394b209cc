/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads options from the built-in defaults, the file and the command line, in this order. Error
 * messages name the source of the value. */
#include "app/options_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/templates.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/refused.h"
#include "base/secmem.h"
#include "base/secret_file.h"
#include "control/teardown.h"

const struct option_row option_rows[OPTION_ROWS] = {
#define LIVE  true
#define START false
#define X(name, when, kind, field, def, arg, help) \
	{name, when, kind, offsetof(struct options, field), def, arg, help},
	OPTIONS(X)
#undef X
#undef LIVE
#undef START
};
static const struct option_row *row_find(const char *name)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		if (strcmp(option_rows[i].name, name) == 0)
			return &option_rows[i];
	return NULL;
}

static const char *row_name(const void *arg, size_t i)
{
	return ((const struct option_row *)arg)[i].name;
}

/* " Did you mean NAME?", or nothing. */
static const char *guess(char *buf, size_t len, const char *dashes, const char *word)
{
	const char *name = nearest(word, row_name, option_rows, OPTION_ROWS);

	snprintf(buf, len, "%s%s%s%s", name ? ". Did you mean " : "", name ? dashes : "",
		name ? name : "", name ? "?" : "");
	return buf;
}

/* NULL, or the new place of an option of earlier versions. name: up to its end or a '='. */
static const char *moved(const char *name)
{
	static const char *const web[] = {"listen-http", "http-token-file", "http-host"};
	size_t len = strcspn(name, "=");

	for (size_t i = 0; i < ARRAY_LEN(web); i++)
		if (strlen(web[i]) == len && memcmp(name, web[i], len) == 0)
			return "is an option of xcipher-web now, which serves HTTP for the daemon: give xcipherd --listen-ng-unix=/run/xcipher/ng, and see xcipher-web(8)";
	return NULL;
}

static const char *row_form(size_t i)
{
	return i < OPTION_ROWS ? option_rows[i].arg : "";
}

static void help(void)
{
	printf("xcipherd " XCIPHER_VERSION
	       ": relays RTP and SRTP between terminals with different security\n\n"
	       "Usage: xcipherd [--OPTION=VALUE]...\n\n");
	for (size_t i = 0; i < OPTION_ROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", option_rows[i].name,
			option_rows[i].arg[0] ? "=" : "", option_rows[i].arg);
		printf("  %-42s %s", left, option_rows[i].help);
		if (option_rows[i].def[0] && option_rows[i].kind != FLAG)
			printf(" (%s)", option_rows[i].def);
		putchar('\n');
	}
	printf("  %-42s %s\n  %-42s %s\n\n", "--version", "print the version and exit", "--help",
		"print this and exit");
	printf("All but the last two are also keys of the ini file, section [xcipher]. See xcipherd(8).\n");
}

static FILE *complaints(const struct options *o)
{
	return o->complaints ? o->complaints : stderr;
}

/* One source of options: the file or the command line. A source replaces the values of the one
 * before; a list grows if the same source names it again. */
struct source {
	char *list[OPTION_ROWS]; /* values so far; NULL: not given */
};

static void source_free(struct source *s)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		free(s->list[i]);
}

/* Adds a value. NULL, or a description of valid values instead of *value, which receives the whole
 * list. */
static const char *give(
	struct options *o, struct source *s, const struct option_row *row, const char **value)
{
	char **list = &s->list[row - option_rows], separator = option_separator(row), *longer;

	if (option_is_text(row) && !(*value)[0])
		return "a value; for none leave the option out";
	if (!separator)
		return option_set(o, row, *value);
	if (!*list) {
		longer = strdup(*value);
	} else if (asprintf(&longer, "%s%c%s", *list, separator, *value) < 0) {
		longer = NULL;
	}
	if (!longer)
		return "out of memory";
	free(*list);
	*value = *list = longer;
	return option_set(o, row, longer);
}

struct file_state {
	struct options *o;
	struct source source;
	char complaint[512];
	bool own; /* an entry of section [xcipher] was read */
};

/* Keeps the first section of others. Always true. */
static bool note_section(struct options *o, const char *section)
{
	if (!o->other_section[0])
		snprintf(o->other_section, sizeof(o->other_section), "%s", section);
	return true;
}

static bool file_line(void *arg, const char *section, const char *name, const char *value)
{
	struct file_state *f = arg;
	const struct option_row *row;
	const char *right;

	if (!section[0]) {
		snprintf(f->complaint, sizeof(f->complaint),
			"\"%.200s\" is in no section: write [xcipher] above it", name);
		return false;
	}
	f->own |= strcmp(section, "xcipher") == 0;
	if (strcmp(section, "xcipher") != 0) /* others may belong to other programs */
		return note_section(f->o, section);
	row = row_find(name);
	if (!row || row->kind == CONFIG) {
		char more[128];

		if (moved(name))
			snprintf(f->complaint, sizeof(f->complaint), "\"%.20s\" %s", name,
				moved(name));
		else
			snprintf(f->complaint, sizeof(f->complaint), "unknown option \"%.200s\"%s",
				name, guess(more, sizeof(more), "", name));
		return false;
	}
	right = give(f->o, &f->source, row, &value);
	if (!right)
		return true;
	snprintf(f->complaint, sizeof(f->complaint), "%s = %.300s is wrong, expected: %s", name,
		value, right);
	return false;
}

/* 0, or 1 after an error message. A missing file is an error only if it was requested. */
static int read_file(struct options *o, bool asked)
{
	struct file_state f = {.o = o};
	int line;

	if (strcmp(o->config_file, "none") == 0 || (!asked && access(o->config_file, F_OK) != 0))
		return 0;
	o->other_section[0] = 0;
	line = ini_read(o->config_file, file_line, &f);
	source_free(&f.source);
	if (f.own)
		o->other_section[0] = 0;
	o->password_in_file = o->redis.password[0] || o->redis_write.password[0];
	if (line == 0)
		return 0;
	if (line < 0)
		fprintf(complaints(o),
			"xcipherd: cannot read %s: %s. Name another with --config-file=FILE, or none\n",
			o->config_file, strerror(-line));
	else
		fprintf(complaints(o), "xcipherd: %s, line %d: %s\n", o->config_file, line,
			f.complaint[0] ? f.complaint : "not of the form name = value");
	return 1;
}

/* Reads the file again, because the section's name is known only now. 0, or 1 after an error
 * message. */
static int read_templates(struct options *o)
{
	char err[256];

	if (!o->templates[0] ||
		!templates_read(&o->ng_templates, o->config_file, o->templates, err, sizeof(err)))
		return 0;
	fprintf(complaints(o), "xcipherd: %s\n", err);
	return 1;
}

/* The option of the command line that getopt_long() found. */
static enum options_result take_arg(
	struct options *o, struct source *s, const struct option_row *row, const char *value)
{
	const char *right = give(o, s, row, &value);

	if (!right)
		return OPTIONS_RUN;
	fprintf(complaints(o), "xcipherd: --%s=%s is wrong, expected: %s\n", row->name, value,
		right);
	return OPTIONS_EXIT_ERROR;
}

static void refused(const struct options *o, const char *word, const struct option *longs)
{
	const char *where = strncmp(word, "--", 2) == 0 ? moved(word + 2) : NULL;
	char why[256];

	if (where) {
		fprintf(complaints(o), "xcipherd: %.*s %s\n", (int)strcspn(word, "="), word, where);
		return;
	}
	option_refused(why, sizeof(why), word, longs, OPTION_ROWS + 2, row_form);
	fprintf(complaints(o), "xcipherd: %s\n", why);
}

/* One pass over the command line. file: reads only --config-file, and whether it was given. */
static enum options_result read_args(
	struct options *o, struct source *s, int argc, char **argv, bool *file)
{
	/* Values must differ: otherwise getopt_long() takes the first of several options that match
	 * an abbreviation. */
	enum { LONG = 256 };
	struct option longs[OPTION_ROWS + 3] = {0};
	int at;

	for (size_t i = 0; i < OPTION_ROWS; i++)
		longs[i] = (struct option){option_rows[i].name,
			option_rows[i].kind == FLAG ? no_argument : required_argument, NULL,
			LONG + (int)i};
	longs[OPTION_ROWS] = (struct option){"version", no_argument, NULL, LONG + OPTION_ROWS};
	longs[OPTION_ROWS + 1] = (struct option){"help", no_argument, NULL, LONG + OPTION_ROWS + 1};
	optind = 0;
	opterr = 0;
	for (;;) {
		int c = getopt_long(argc, argv, "+h", longs, &at);
		const struct option_row *row;

		if (c == -1)
			break;
		if (c == 'h' || (c >= LONG && strcmp(longs[at].name, "help") == 0)) {
			help();
			return OPTIONS_EXIT_OK;
		}
		if (c < LONG) {
			refused(o, argv[optind - 1], longs);
			return OPTIONS_EXIT_ERROR;
		}
		if (strcmp(longs[at].name, "version") == 0) {
			printf("xcipherd %s\n", XCIPHER_VERSION);
			return OPTIONS_EXIT_OK;
		}
		row = &option_rows[at];
		if (file && row->kind != CONFIG)
			continue;
		if (take_arg(o, s, row, row->kind == FLAG ? "yes" : optarg) != OPTIONS_RUN)
			return OPTIONS_EXIT_ERROR;
		o->password_in_args |= row->kind == REDIS &&
			((struct redis_server *)((uint8_t *)o + row->offset))->password[0];
		if (file)
			*file = true;
	}
	if (optind < argc) {
		fprintf(complaints(o),
			"xcipherd: \"%s\" is not an option: options are written --name=value. --help lists all\n",
			argv[optind]);
		return OPTIONS_EXIT_ERROR;
	}
	return OPTIONS_RUN;
}

/* Without --interface: this machine's source address, else loopback. Sends nothing. */
static void default_interface(struct options *o)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	struct relay_local *l = &o->local[0];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*l = (struct relay_local){.name = "default"};
	inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
		getsockname(fd, (struct sockaddr *)&from, &len) ||
		endpoint_from_sockaddr(&l->addr, &from))
		endpoint_parse_addr(&l->addr, STR("127.0.0.1"));
	if (fd >= 0)
		close(fd);
	l->addr.port = 0;
	l->advertised = l->addr;
	o->locals = 1;
}

/* Storing keys in the clear requires an explicit option. */
static int check_redis(const struct options *o)
{
	bool tls = o->redis.tls || o->redis_write.tls, redis = redis_server_is_set(&o->redis);
	const char *wrong = redis && !o->redis_key_file[0]
		? "--redis needs --redis-key-file=FILE, made by: openssl rand -hex 32; or =none, to store keys in the clear"
		: o->standby && !redis
		? "--standby=yes needs --redis, which stores the calls to follow"
		: !o->redis_tls_cert[0] != !o->redis_tls_key[0]
		? "--redis-tls-cert and --redis-tls-key need each other: set both or neither"
		: !tls && (o->redis_tls_ca[0] || o->redis_tls_name[0] || o->redis_tls_cert[0])
		? "--redis-tls-... needs TLS: --redis=rediss://[USER@]HOST[:PORT][/DB]"
		: !o->codec_threads && (o->output_mixed || o->output_single)
		? "--output-mixed and --output-single need --codec-threads=1 or more"
		: o->group[0] && !o->user[0] ? "--group needs --user"
					     : NULL;

	if (wrong)
		fprintf(complaints(o), "xcipherd: %s\n", wrong);
	return wrong != NULL;
}

static int check_b2b(const struct options *o)
{
	const char *right = o->b2b_url[0] ? teardown_url_wrong(o->b2b_url) : NULL;

	if (right)
		fprintf(complaints(o), "xcipherd: --b2b-url is wrong, expected: %s\n", right);
	return right != NULL;
}

static int check_dtls(const struct options *o)
{
	const char *wrong = o->dtls_key[0] && !o->dtls_cert[0]
		? "--dtls-key needs --dtls-cert=FILE, the certificate of this key"
		: o->dtls_cert[0] && !o->keying_threads
		? "--dtls-cert needs --keying-threads=1 or more"
		: NULL;

	if (wrong)
		fprintf(complaints(o), "xcipherd: %s\n", wrong);
	return wrong != NULL;
}

static int check(struct options *o)
{
	uint32_t pairs;

	if (check_redis(o) || check_b2b(o) || check_dtls(o))
		return 1;

	if (o->locals == 0)
		default_interface(o);
	if (o->workers == 0) {
		long n = sysconf(_SC_NPROCESSORS_ONLN);

		o->workers_auto = true;
		o->workers = (uint16_t)(n < 1 ? 1 : n > 64 ? 64 : n);
	}
	pairs = o->port_max > o->port_min ? (uint32_t)(o->port_max - o->port_min + 1) / 2 : 0;
	if (pairs < o->workers) {
		fprintf(complaints(o),
			"xcipherd: port-min=%u to port-max=%u is too small: every worker needs at least a pair of ports\n",
			o->port_min, o->port_max);
		return 1;
	}
	if (o->opencl_start_timeout == 0) {
		fprintf(complaints(o),
			"xcipherd: opencl-start-timeout must be 1 to 65535 seconds\n");
		return 1;
	}
	if (o->nfqueue_num > 65535 - o->workers) {
		fprintf(complaints(o), "xcipherd: nfqueue-num + workers must stay below 65536\n");
		return 1;
	}
	return 0;
}

bool options_defaults(struct options *o)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		if (option_rows[i].kind != INTERFACE &&
			option_set(o, &option_rows[i], option_rows[i].def))
			return false;
	return true;
}

static enum options_result read_all(struct options *o, int argc, char **argv)
{
	struct source command_line = {0};
	enum options_result res;
	bool asked = false;

	if (!options_defaults(o))
		return OPTIONS_EXIT_ERROR;
	res = read_args(o, &command_line, argc, argv, &asked);
	if (res == OPTIONS_RUN && read_file(o, asked))
		res = OPTIONS_EXIT_ERROR;
	if (res == OPTIONS_RUN)
		res = read_args(o, &command_line, argc, argv, NULL);
	source_free(&command_line);
	if (res != OPTIONS_RUN)
		return res;
	return read_templates(o) || check(o) ? OPTIONS_EXIT_ERROR : OPTIONS_RUN;
}

enum options_result options_read(struct options *o, int argc, char **argv)
{
	*o = (struct options){0};
	return read_all(o, argc, argv);
}

static void warn_idle(void *arg, const char *name, const char *needs)
{
	(void)arg;
	log_warn("--%s has no effect: it needs %s", name, needs);
}

void options_warn(const struct options *o)
{
	options_idle(o, warn_idle, NULL);
	if (o->other_section[0] && strcmp(o->other_section, o->templates) != 0)
		log_warn(
			"no option of %s is used: its lines are in section [%s]. xcipherd reads section [xcipher]; for a file of rtpengine see xcipher-migrate",
			o->config_file, o->other_section);
	if (o->password_in_file && secret_file_is_open(o->config_file))
		log_warn(
			"%s holds the password of Redis, and other users can read or change it: use --redis-password-file, or chmod 640 it and chown it to root and xcipherd's group",
			o->config_file);
	if (o->password_in_args)
		log_warn(
			"the password of Redis is on the command line, where every user of this machine can read it: use --redis-password-file");
}

enum options_result options_again(
	struct options *o, int argc, char **argv, char *err, size_t err_len)
{
	static const char who[] = "xcipherd: ";
	enum options_result res = OPTIONS_EXIT_ERROR;

	*o = (struct options){0};
	memset(err, 0, err_len);
	o->complaints = fmemopen(err, err_len - 1, "w");
	if (o->complaints) {
		res = read_all(o, argc, argv);
		fclose(o->complaints);
	}
	o->complaints = NULL;
	err[strcspn(err, "\n")] = 0;
	if (strncmp(err, who, sizeof(who) - 1) == 0)
		memmove(err, err + sizeof(who) - 1, strlen(err) - sizeof(who) + 2);
	return res;
}

/* --- Changes at run time
 * ----------------------------------------------------------------------- */

const char *options_set(struct options *o, const char *name, const char *value)
{
	const struct option_row *row = row_find(name);

	return row ? option_set(o, row, value) : "an option";
}
void options_free(struct options *o)
{
	for (size_t i = 0; i < OPTION_ROWS; i++)
		if (option_is_text(&option_rows[i]))
			free(*(char **)((uint8_t *)o + option_rows[i].offset));
	templates_free(&o->ng_templates);
	secmem_wipe(&o->redis, sizeof(o->redis));
	secmem_wipe(&o->redis_write, sizeof(o->redis_write));
}
