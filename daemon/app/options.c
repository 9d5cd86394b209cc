/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading options. Every value is read by the function of its kind, whether it comes from the built-in default, the file or the
 * command line, and every complaint names where it came from. */
#include "app/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/templates.h"
#include "base/secmem.h"
#include "batch/engine.h"
#include "control/teardown.h"
#include "layout.h"

enum kind {
	CONFIG,
	INTERFACE,
	ENDPOINT,
	LISTEN,
	REDIS,
	PORT,
	STEERING,
	XDP_MODE,
	ENGINE,
	QUEUE_SEND,
	UDP_IO,
	DEVICES,
	MINS,
	STRING,
	UINT8,
	UINT16,
	UINT32,
	UINT64,
	DECIMAL,
	LEARNING,
	RECORDING,
	SDES_OFFER,
	SDES_ACCEPT,
	NETS,
	BOOL,
	FLAG,
	LEVEL,
};

struct option_row {
	const char *name;
	enum kind kind;
	size_t offset;
	const char *def, *arg, *help;
};

static const struct option_row rows[] = {
#define X(name, kind, field, def, arg, help) \
	{name, kind, offsetof(struct options, field), def, arg, help},
	OPTIONS(X)
#undef X
};

static const char *set_string(const char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return "out of memory";
	free((char *)*field);
	*field = copy;
	return NULL;
}

/* Each returns NULL, or what would have been right. */
static const char *set_interface(struct options *o, struct str text)
{
	struct relay_local l = {.name = "default"};
	struct str addr = text, advertised = STR_NONE;
	const char *slash = memchr(text.s, '/', text.len);

	if (o->locals == STEER_MAX_LOCAL)
		return "at most 16 interfaces";
	if (slash) {
		struct str name = str_cut(&addr, '/');

		if (name.len == 0 || name.len >= sizeof(l.name))
			return "[NAME/]ADDR[!ADVERTISED] with a name of 1 to 31 letters";
		memset(l.name, 0, sizeof(l.name));
		memcpy(l.name, name.s, name.len);
	}
	advertised = addr;
	addr = str_cut(&advertised, '!');
	if (endpoint_parse_addr(&l.addr, addr))
		return "[NAME/]ADDR[!ADVERTISED] with an IPv4 or IPv6 address of this machine, as 192.0.2.1";
	if (endpoint_is_unspecified(&l.addr) || endpoint_is_multicast(&l.addr))
		return "one address of this machine (not any, not multicast): it is written into SDP";
	l.advertised = l.addr;
	if (advertised.s && endpoint_parse_addr(&l.advertised, advertised))
		return "an IPv4 or IPv6 address behind the '!'";
	if (l.advertised.family != l.addr.family)
		return "an advertised address of the same family";
	o->local[o->locals++] = l;
	return NULL;
}

static const char *set_interfaces(struct options *o, const char *value)
{
	struct str rest = str_from(value);

	while (rest.s) { /* the file has one line for all of them, with ';' between */
		struct str one = str_trim(str_cut(&rest, ';'));
		const char *right = one.len ? set_interface(o, one) : NULL;

		if (right)
			return right;
	}
	return NULL;
}

static const char *set_number(void *field, const char *value, enum kind kind)
{
	static const uint64_t max[] = {[UINT8] = 255,
		[UINT16] = 65535,
		[UINT32] = UINT32_MAX / 1000,
		[UINT64] = INT64_MAX,
		[PORT] = 65535,
		[LEVEL] = 7};
	static const char *const right[] = {[UINT8] = "a number from 0 to 255",
		[UINT16] = "a number from 0 to 65535",
		[UINT32] = "a number from 0 to 4294967",
		[UINT64] = "a number",
		[PORT] = "a port from 1024 to 65535",
		[LEVEL] = "a level from 0 to 7"};
	uint64_t v;

	if (str_to_u64(&v, str_from(value), max[kind]) || (kind == PORT && v < 1024))
		return right[kind];
	if (kind == UINT8)
		*(uint8_t *)field = (uint8_t)v;
	else if (kind == UINT32)
		*(uint32_t *)field = (uint32_t)v;
	else if (kind == UINT64)
		*(uint64_t *)field = v;
	else if (kind == LEVEL)
		*(int *)field = (int)v;
	else
		*(uint16_t *)field = (uint16_t)v;
	return NULL;
}

static const char *set_decimal(double *field, const char *value)
{
	static const char right[] = "a number from 0 to 100000, as 80 or 7.5";
	char *end;
	double v;

	if (value[0] < '0' || value[0] > '9')
		return right;
	v = strtod(value, &end);
	if (*end || !(v >= 0 && v <= 100000))
		return right;
	*field = v;
	return NULL;
}

static int choice(const char *value, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_eq_nocase(str_from(value), str_from(names[i])))
			return (int)i;
	return -1;
}

static const char *set_bool(bool *field, const char *value)
{
	static const char *const names[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "yes or no";
	*field = at & 1;
	return NULL;
}

static const char *set_learning(enum media_learning *field, const char *value)
{
	static const char *const names[] = {"off", "immediate", "delayed", "heuristic"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "off, immediate, delayed or heuristic";
	*field = (enum media_learning)at;
	return NULL;
}

static const char *set_recording(enum record_format *field, const char *value)
{
	static const char *const names[] = {"raw", "eth"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "raw or eth";
	*field = (enum record_format)at;
	return NULL;
}

/* The next of a list with ',', ';' or blanks between; empty at its end. */
static struct str next_name(struct str *rest)
{
	static const char between[] = ",; \t";
	struct str name;

	while (rest->len && strchr(between, rest->s[0])) {
		rest->s++;
		rest->len--;
	}
	name = (struct str){rest->s, 0};
	while (name.len < rest->len && !strchr(between, rest->s[name.len]))
		name.len++;
	rest->s += name.len;
	rest->len -= name.len;
	return name;
}

struct sdes_list {                  /* what a list names */
	uint8_t suite[SUITE_COUNT]; /* in its order */
	uint32_t n, suites, params;
};

static void list_suite(struct sdes_list *l, const struct srtp_suite *s)
{
	if (!(l->suites >> s->id & 1))
		l->suite[l->n++] = (uint8_t)s->id;
	l->suites |= 1u << s->id;
}

static bool list_name(struct sdes_list *l, struct str name, bool with_params)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} params[] = {
		{"UNENCRYPTED_SRTP", NG_SDES_UNENCRYPTED_SRTP},
		{"UNENCRYPTED_SRTCP", NG_SDES_UNENCRYPTED_SRTCP},
		{"UNAUTHENTICATED_SRTP", NG_SDES_UNAUTHENTICATED_SRTP},
	};
	bool all = str_eq_nocase(name, STR("all")), strong = str_eq_nocase(name, STR("strong"));
	const struct srtp_suite *s = srtp_suite_find(name);
	bool known = s || all || strong;

	if (s)
		list_suite(l, s);
	for (uint32_t i = SUITE_PLAIN + 1; i < SUITE_COUNT && (all || strong); i++)
		if (all || srtp_suite_get(i)->cipher != XC_CIPHER_NULL)
			list_suite(l, srtp_suite_get(i));
	for (size_t i = 0; i < ARRAY_LEN(params) && with_params; i++)
		if (all || str_eq_nocase(name, str_from(params[i].name))) {
			l->params |= params[i].bit;
			known = true;
		}
	return known;
}

static bool read_sdes_list(struct sdes_list *l, const char *value, bool with_params)
{
	struct str rest = str_from(value);

	for (struct str name = next_name(&rest); name.len; name = next_name(&rest))
		if (!list_name(l, name, with_params))
			return false;
	return true;
}

static const char *set_sdes_offer(struct sdes_policy *p, const char *value)
{
	struct sdes_list l = {0};

	if (!read_sdes_list(&l, value, false))
		return "suites as AES_CM_128_HMAC_SHA1_80, best first, with ',' between; or strong, or all";
	memcpy(p->offer, l.suite, sizeof(l.suite));
	return NULL;
}

static const char *set_sdes_accept(struct sdes_policy *p, const char *value)
{
	struct sdes_list l = {0};

	if (!read_sdes_list(&l, value, true))
		return "suites, strong, all, UNENCRYPTED_SRTP, UNENCRYPTED_SRTCP or UNAUTHENTICATED_SRTP, with ',' between";
	p->accept = l.suites;
	p->params = l.params;
	return NULL;
}

static const char *set_nets(struct call_nets *out, const char *value)
{
	static const char right[] =
		"networks as 192.0.2.0/24 or 2001:db8::/32, up to 16, with ',' between; or any, or none";
	struct str rest =
		str_from(str_eq_nocase(str_from(value), STR("any")) ? "0.0.0.0/0,::/0" : value);
	struct call_nets nets = {0};

	if (str_eq_nocase(rest, STR("none"))) {
		*out = nets;
		return NULL;
	}
	for (struct str name = next_name(&rest); name.len; name = next_name(&rest)) {
		if (nets.n == CALL_NETS_MAX ||
			endpoint_parse_net(&nets.net[nets.n], &nets.bits[nets.n], name))
			return right;
		nets.n++;
	}
	*out = nets;
	return nets.n ? NULL : right;
}

static const char *set_engine(enum engine_choice *field, const char *value)
{
	static const char *const names[] = {"auto", "opencl", "serial"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "auto, opencl or serial";
	*field = (enum engine_choice)at;
	return NULL;
}

/* "gpu:3,cpu": a weight is what follows a last colon and is a number. */
static const char *set_devices(struct options *o, const char *value)
{
	static const char right[] =
		"DEVICE[:WEIGHT],... with up to 8 devices, weights from 1 to 1000, as gpu:3,cpu:1";
	struct str rest = str_from(value);
	uint32_t n = 0;

	memset(o->device, 0, sizeof(o->device));
	while (rest.s) {
		struct str name = str_trim(str_cut(&rest, ','));
		const char *colon = name.len ? memrchr(name.s, ':', name.len) : NULL;
		uint64_t weight = 1;

		if (n == OPTION_DEVICES_MAX || (name.len == 0 && (n || rest.s)))
			return right;
		if (colon) {
			struct str number = {colon + 1, (size_t)(name.s + name.len - colon - 1)};

			if (str_to_u64(&weight, number, 1000) || weight == 0)
				return right;
			name.len = (size_t)(colon - name.s);
		}
		if (name.len >= sizeof(o->device[n].name))
			return right;
		memcpy(o->device[n].name, name.s, name.len);
		o->device[n++].weight = (uint32_t)weight;
	}
	o->devices = n;
	return NULL;
}

/* One for all devices, or one for each in their order; the last one is also for those that follow. */
static const char *set_mins(struct options *o, const char *value)
{
	struct str rest = str_from(value);
	uint64_t v = 0;

	for (uint32_t n = 0; n < OPTION_DEVICES_MAX; n++) {
		if (rest.s && str_to_u64(&v, str_trim(str_cut(&rest, ',')), 65535))
			return "PACKETS,... with numbers from 0 to 65535";
		o->opencl_min[n] = (uint32_t)v;
	}
	return rest.s ? "at most 8 numbers" : NULL;
}

static const char *set_steering(const struct steer_ops **field, const char *value)
{
	static const struct steer_ops *const ops[] = {
		&steer_udp, &steer_nfqueue, &steer_kernel, &steer_xdp};

	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (str_eq_nocase(str_from(value), str_from(ops[i]->name))) {
			*field = ops[i];
			return NULL;
		}
	return "udp, nfqueue, kernel or xdp";
}

static const char *set_xdp_mode(enum steer_xdp_mode *field, const char *value)
{
	static const char *const names[] = {"auto", "zerocopy", "copy", "skb"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "auto, zerocopy, copy or skb";
	*field = (enum steer_xdp_mode)at;
	return NULL;
}

static const char *set_queue_send(enum steer_queue_send *field, const char *value)
{
	static const char *const names[] = {"auto", "raw", "verdict"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "auto, raw or verdict";
	*field = (enum steer_queue_send)at;
	return NULL;
}

static const char *set_udp_io(enum steer_udp_io *field, const char *value)
{
	static const char *const names[] = {"auto", "uring", "plain"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "auto, uring or plain";
	*field = (enum steer_udp_io)at;
	return NULL;
}

static const char *set(struct options *o, const struct option_row *row, const char *value)
{
	void *field = (uint8_t *)o + row->offset;

	switch (row->kind) {
	case INTERFACE:
		return set_interfaces(o, value);
	case CONFIG:
	case STRING:
		return set_string(field, value);
	case ENDPOINT:
		return endpoint_parse(field, str_from(value))
			? "ADDR:PORT, as 127.0.0.1:22222 or [::1]:22222"
			: NULL;
	case LISTEN:
		if (str_eq_nocase(str_from(value), STR("off"))) {
			*(struct endpoint *)field = (struct endpoint){0};
			return NULL;
		}
		return endpoint_parse(field, str_from(value))
			? "ADDR:PORT, as 127.0.0.1:9900 or [::1]:9900, or off"
			: NULL;
	case REDIS:
		if (str_eq_nocase(str_from(value), STR("off"))) {
			*(struct redis_server *)field = (struct redis_server){0};
			return NULL;
		}
		return redis_server_parse(field, str_from(value))
			? "[PW@]ADDR:PORT[/DB], as 127.0.0.1:6379/1, or off"
			: NULL;
	case STEERING:
		return set_steering(field, value);
	case XDP_MODE:
		return set_xdp_mode(field, value);
	case QUEUE_SEND:
		return set_queue_send(field, value);
	case UDP_IO:
		return set_udp_io(field, value);
	case ENGINE:
		return set_engine(field, value);
	case DEVICES:
		return set_devices(o, value);
	case MINS:
		return set_mins(o, value);
	case RECORDING:
		return set_recording(field, value);
	case LEARNING:
		return set_learning(field, value);
	case SDES_OFFER:
		return set_sdes_offer(field, value);
	case SDES_ACCEPT:
		return set_sdes_accept(field, value);
	case NETS:
		return set_nets(field, value);
	case DECIMAL:
		return set_decimal(field, value);
	case BOOL:
	case FLAG:
		return set_bool(field, value);
	case PORT:
	case UINT8:
	case UINT16:
	case UINT32:
	case UINT64:
	case LEVEL:
		return set_number(field, value, row->kind);
	}
	return "nothing";
}

static const struct option_row *row_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static void help(void)
{
	printf("xcipherd " XCIPHER_VERSION
	       ": relays RTP and SRTP between terminals with different security\n\n"
	       "Usage: xcipherd [--OPTION=VALUE]...\n\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].arg[0] ? "=" : "",
			rows[i].arg);
		printf("  %-42s %s", left, rows[i].help);
		if (rows[i].def[0] && rows[i].kind != FLAG)
			printf(" (%s)", rows[i].def);
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

struct file_state {
	struct options *o;
	char complaint[256];
	bool interface_seen;
};

static int file_line(void *arg, const char *section, const char *name, const char *value)
{
	struct file_state *f = arg;
	const struct option_row *row;
	const char *right;

	if (strcmp(section, "xcipher") != 0)
		return 1; /* other sections may belong to other programs */
	row = row_find(name);
	if (!row || row->kind == CONFIG) {
		snprintf(f->complaint, sizeof(f->complaint), "there is no option \"%s\"", name);
		return 0;
	}
	right = set(f->o, row, value);
	if (!right)
		return 1;
	snprintf(f->complaint, sizeof(f->complaint), "%s = %s is wrong, expected: %s", name, value,
		right);
	return 0;
}

/* 0, or 1 after a complaint. A missing file is fine only where it was not asked for. */
static int read_file(struct options *o, bool asked)
{
	struct file_state f = {.o = o};
	int line;

	if (strcmp(o->config_file, "none") == 0 || (!asked && access(o->config_file, F_OK) != 0))
		return 0;
	line = ini_parse(o->config_file, file_line, &f);
	if (line == 0)
		return 0;
	if (line < 0)
		fprintf(complaints(o),
			"xcipherd: cannot read %s: %s. Name another with --config-file=FILE, or none\n",
			o->config_file, strerror(errno));
	else
		fprintf(complaints(o), "xcipherd: %s, line %d: %s\n", o->config_file, line,
			f.complaint[0] ? f.complaint : "not of the form name = value");
	return 1;
}

/* The file once more: only now the section's name is known. 0, or 1 after a complaint. */
static int read_templates(struct options *o)
{
	char err[256];

	if (!o->templates[0] ||
		!templates_read(&o->ng_templates, o->config_file, o->templates, err, sizeof(err)))
		return 0;
	fprintf(complaints(o), "xcipherd: %s\n", err);
	return 1;
}

/* One pass over the command line; only: take nothing but this option (NULL = all but --config-file's second time). */
static enum options_result read_args(
	struct options *o, int argc, char **argv, const char *only, bool *seen)
{
	struct option longs[ARRAY_LEN(rows) + 3] = {0};
	int at;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		longs[i] = (struct option){rows[i].name,
			rows[i].kind == FLAG ? no_argument : required_argument, NULL, 0};
	longs[ARRAY_LEN(rows)] = (struct option){"version", no_argument, NULL, 0};
	longs[ARRAY_LEN(rows) + 1] = (struct option){"help", no_argument, NULL, 0};
	optind = 0;
	opterr = 0;
	for (;;) {
		int c = getopt_long(argc, argv, "+h", longs, &at);
		const char *right;

		if (c == -1)
			break;
		if (c == 'h' || (c == 0 && strcmp(longs[at].name, "help") == 0)) {
			help();
			return OPTIONS_EXIT_OK;
		}
		if (c != 0) {
			fprintf(complaints(o),
				"xcipherd: option %s is unknown, ambiguous, or its value is missing or too much. --help lists all\n",
				argv[optind - 1]);
			return OPTIONS_EXIT_ERROR;
		}
		if (strcmp(longs[at].name, "version") == 0) {
			printf("xcipherd %s\n", XCIPHER_VERSION);
			return OPTIONS_EXIT_OK;
		}
		if (only && strcmp(longs[at].name, only) != 0)
			continue;
		if (!only && rows[at].kind == INTERFACE && !*seen) {
			*seen = true;
			o->locals = 0; /* the command line's interfaces replace the file's */
		}
		right = set(o, &rows[at], rows[at].kind == FLAG ? "yes" : optarg);
		if (right) {
			fprintf(complaints(o), "xcipherd: --%s=%s is wrong, expected: %s\n",
				rows[at].name, optarg ? optarg : "", right);
			return OPTIONS_EXIT_ERROR;
		}
		if (only)
			*seen = true;
	}
	if (optind < argc) {
		fprintf(complaints(o),
			"xcipherd: \"%s\" is no option: options are written --name=value. --help lists all\n",
			argv[optind]);
		return OPTIONS_EXIT_ERROR;
	}
	return OPTIONS_RUN;
}

/* Without --interface: the address this machine would speak from, else loopback. Nothing is sent. */
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

/* Nobody shall find out later that keys lay there to be read. */
static int check_redis(const struct options *o)
{
	const char *wrong = o->redis.addr.family && !o->redis_key_file[0]
		? "--redis needs --redis-key-file=FILE, made by: openssl rand -hex 32; or none, to have keys lie there readable"
		: o->standby && !o->redis.addr.family
		? "--standby=yes needs --redis, where the calls to follow are"
		: o->redis_expires == 0 ? "--redis-expires must not be 0: nothing would stay there"
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
	else if (o->xmlrpc_format >= TEARDOWN_FORMATS)
		fprintf(complaints(o), "xcipherd: --xmlrpc-format is 0, 1 or 2\n");
	else
		return 0;
	return 1;
}

static int check(struct options *o)
{
	uint32_t pairs;

	if (check_redis(o) || check_b2b(o))
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
			"xcipherd: port-min=%u to port-max=%u is too small: every worker needs a pair of ports at least\n",
			o->port_min, o->port_max);
		return 1;
	}
	if (o->batches_in_flight > ENGINE_DEPTH_MAX) {
		fprintf(complaints(o), "xcipherd: batches-in-flight: at most %u\n",
			ENGINE_DEPTH_MAX);
		return 1;
	}
	if (o->workers > 64 || o->batch_max == 0 || o->batch_max > 16384) {
		fprintf(complaints(o), "xcipherd: %s\n",
			o->workers > 64 ? "workers: at most 64" : "batch-max: 1 to 16384 packets");
		return 1;
	}
	if (o->replay_window < 64 || o->replay_window > 32768 || o->replay_window % 64) {
		fprintf(complaints(o),
			"xcipherd: replay-window: a multiple of 64 from 64 to 32768\n");
		return 1;
	}
	if (o->nfqueue_num > 65535 - o->workers) {
		fprintf(complaints(o), "xcipherd: nfqueue-num + workers must stay below 65536\n");
		return 1;
	}
	return 0;
}

static enum options_result read_all(struct options *o, int argc, char **argv)
{
	enum options_result res;
	bool asked = false, interfaces = false;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].kind != INTERFACE && set(o, &rows[i], rows[i].def))
			return OPTIONS_EXIT_ERROR;
	res = read_args(o, argc, argv, "config-file", &asked);
	if (res != OPTIONS_RUN)
		return res;
	if (read_file(o, asked))
		return OPTIONS_EXIT_ERROR;
	res = read_args(o, argc, argv, NULL, &interfaces);
	if (res != OPTIONS_RUN)
		return res;
	return read_templates(o) || check(o) ? OPTIONS_EXIT_ERROR : OPTIONS_RUN;
}

enum options_result options_read(struct options *o, int argc, char **argv)
{
	*o = (struct options){0};
	return read_all(o, argc, argv);
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

/* --- Changes while calls go on ---------------------------------------------------------------------------------- */

const char *options_set(struct options *o, const char *name, const char *value)
{
	const struct option_row *row = row_find(name);

	return row ? set(o, row, value) : "an option";
}

/* What can change at any time: it is looked at again for each call, or each second. */
static bool is_live(const struct option_row *row)
{
	static const char *const names[] = {"timeout", "silent-timeout", "offer-timeout",
		"final-timeout", "b2b-allow", "delete-delay", "max-sessions", "max-cpu", "max-load",
		"max-bandwidth", "sdes-offer", "sdes-accept", "endpoint-learning", "strict-source",
		"log-level"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(row->name, names[i]) == 0)
			return true;
	return false;
}

struct span { /* bytes of struct options */
	size_t off, len;
};

/* Where an option's value lies: up to two places. Strings are compared apart. */
static void spans(const struct option_row *row, struct span out[2])
{
#define SPAN(field) \
	((struct span){offsetof(struct options, field), sizeof(((struct options *)0)->field)})
	static const size_t len[] = {[ENDPOINT] = sizeof(struct endpoint),
		[LISTEN] = sizeof(struct endpoint),
		[PORT] = 2,
		[STEERING] = sizeof(void *),
		[XDP_MODE] = sizeof(int),
		[ENGINE] = sizeof(int),
		[QUEUE_SEND] = sizeof(int),
		[UDP_IO] = sizeof(int),
		[UINT8] = 1,
		[UINT16] = 2,
		[UINT32] = 4,
		[UINT64] = 8,
		[DECIMAL] = sizeof(double),
		[LEARNING] = sizeof(int),
		[BOOL] = sizeof(bool),
		[FLAG] = sizeof(bool),
		[LEVEL] = sizeof(int),
		[REDIS] = sizeof(struct redis_server),
		[RECORDING] = sizeof(int),
		[NETS] = sizeof(struct call_nets)};

	out[0] = (struct span){row->offset, row->kind < ARRAY_LEN(len) ? len[row->kind] : 0};
	out[1] = (struct span){0, 0};
	if (row->kind == INTERFACE) {
		out[0] = SPAN(local);
		out[1] = SPAN(locals);
	} else if (row->kind == DEVICES) {
		out[0] = SPAN(device);
		out[1] = SPAN(devices);
	} else if (row->kind == MINS) {
		out[0] = SPAN(opencl_min);
	} else if (row->kind == SDES_OFFER) {
		out[0] = SPAN(sdes.offer);
	} else if (row->kind == SDES_ACCEPT) {
		out[0] = SPAN(sdes.accept);
		out[1] = SPAN(sdes.params);
	}
#undef SPAN
}

static bool is_text(const struct option_row *row)
{
	return row->kind == STRING || row->kind == CONFIG;
}

static bool differs(const struct option_row *row, const struct options *a, const struct options *b)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	struct span at[2];

	if (is_text(row))
		return strcmp(*(const char *const *)(x + row->offset),
			       *(const char *const *)(y + row->offset)) != 0;
	spans(row, at);
	return memcmp(x + at[0].off, y + at[0].off, at[0].len) != 0 ||
		memcmp(x + at[1].off, y + at[1].off, at[1].len) != 0;
}

uint32_t options_take_live(struct options *now, struct options *next,
	void (*other)(void *arg, const char *name), void *arg)
{
	uint32_t changed = 0;

	if (templates_differ(&now->ng_templates, &next->ng_templates)) {
		const struct ng_templates old = now->ng_templates;

		now->ng_templates = next->ng_templates;
		next->ng_templates = old; /* freed with it */
		changed++;
	}

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct span at[2];

		/* The number of workers that was not given is what steering made of it. */
		if (!differs(&rows[i], now, next) ||
			(next->workers_auto && strcmp(rows[i].name, "workers") == 0))
			continue;
		if (!is_live(&rows[i])) {
			other(arg, rows[i].name);
			continue;
		}
		spans(&rows[i], at);
		for (int k = 0; k < 2; k++)
			memcpy((uint8_t *)now + at[k].off, (const uint8_t *)next + at[k].off,
				at[k].len);
		changed++;
	}
	return changed;
}

void options_free(struct options *o)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_text(&rows[i]))
			free(*(char **)((uint8_t *)o + rows[i].offset));
	templates_free(&o->ng_templates);
	secmem_wipe(&o->redis, sizeof(o->redis));
	secmem_wipe(&o->redis_write, sizeof(o->redis_write));
}
