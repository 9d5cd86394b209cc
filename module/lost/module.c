/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher_lost.so: its interface to Kamailio: functions, KEMI, parameters, variables, start and
 * stop. README.md lists the files in reading order. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <core/cfg/cfg_struct.h>
#include <core/dprint.h>
#include <core/kemi.h>
#include <core/mem/shm.h>
#include <core/mod_fix.h>
#include <core/pvar.h>
#include <core/rpc_lookup.h>
#include <core/sr_module.h>
#include <modules/tm/tm_load.h>

#include "job.h"
#include "rpc.h"
#include "settings.h"
#include "source.h"
#include "xml.h"

#include <libxml/parser.h>

MODULE_VERSION

struct tm_binds tmb;
struct counters counters;
struct shared *shared;
struct settings settings = {
	.timeout = 1000,
	.connect_timeout = 500,
	.deadline = 3000,
	.down_time = 10000,
	.verify = 1,
	.recursive = 1,
	.max_redirects = 3,
	.discover = 1,
	.max_response = 1024 * 1024,
	.cache_entries = 1000,
	.cache_size = 16384,
	.cache_max_age = 86400,
	.clients = 1,
	.queries = 1024,
	.boundary_name = "reference",
	.prefer_name = "geodetic",
};

/* --- Functions -------------------------------------------------------------------------------- */

static const str NO_TEXT = {"", 0};

static char *copy_of(const str *s)
{
	return s && s->len > 0 ? strndup(s->s, (size_t)s->len) : strdup("");
}

/* The request URI, if it names a service. */
static char *service_of(struct sip_msg *msg, const str *service)
{
	str uri = {NULL, 0};

	if (service && service->len > 0)
		return copy_of(service);
	if (msg->first_line.type == SIP_REQUEST)
		uri = *GET_RURI(msg);
	return copy_of(uri.len > 4 && !strncasecmp(uri.s, "urn:", 4) ? &uri : NULL);
}

/* findService and listServicesByLocation. */
static int by_location(
	struct sip_msg *msg, enum ask_op op, const str *service, const str *route, const str *pidf)
{
	struct ask a = {.op = op, .service = service_of(msg, service)};

	if (!a.service)
		return job_result(msg, RESULT_INTERNAL);
	if (op == ASK_FIND && !*a.service) {
		LM_ERR("no service: neither a parameter nor the request URI names one\n");
		ask_clear(&a);
		return job_result(msg, RESULT_INTERNAL);
	}
	if (pidf && pidf->len > 0)
		ask_add_pidf(&a, pidf->s, (size_t)pidf->len, METHOD_argument, settings.prefer);
	else if (source_is_emergency(a.service) || !source_routing_denied(msg))
		source_collect(&a, msg, settings.prefer);
	return job_run(msg, &a, route ? *route : NO_TEXT);
}

/* Functions of a key, an identity, or a URI. */
static int by_argument(struct sip_msg *msg, enum ask_op op, const str *argument, const str *route)
{
	struct ask a = {.op = op, .service = strdup(""), .argument = copy_of(argument)};

	if (!a.service || !a.argument || (op == ASK_HELD && !settings.lises) ||
		(op != ASK_HELD && !*a.argument)) {
		LM_ERR("no argument, no LIS, or no memory\n");
		ask_clear(&a);
		return job_result(msg, RESULT_INTERNAL);
	}
	return job_run(msg, &a, route ? *route : NO_TEXT);
}

static int has_location(struct sip_msg *msg)
{
	struct ask a = {.op = ASK_FIND};
	int n = source_collect(&a, msg, settings.prefer);

	ask_clear(&a);
	return n > 0 ? RESULT_OK : RESULT_NO_LOCATION;
}

/* A variable without a value, inside of a string, is "<null>": here it is the empty text. */
static int param(str *out, struct sip_msg *msg, char *p)
{
	int err = 0;

	*out = NO_TEXT;
	if (p)
		err = fixup_get_svalue(msg, (gparam_t *)p, out);
	if (out->len == 6 && !memcmp(out->s, "<null>", 6))
		*out = NO_TEXT;
	return err;
}

/* X(name, operation): by location, with a service; then by argument */
#define BY_LOCATION(X)            \
	X(find_service, ASK_FIND) \
	X(list_services, ASK_LIST)
#define BY_ARGUMENT(X)                \
	X(get_boundary, ASK_BOUNDARY) \
	X(held_request, ASK_HELD)     \
	X(held_dereference, ASK_DEREFERENCE)

#define X(id, op)                                                                             \
	static int w_##id(struct sip_msg *msg, char *a, char *b, char *c)                     \
	{                                                                                     \
		str service, route, pidf;                                                     \
                                                                                              \
		if (param(&service, msg, a) || param(&route, msg, b) || param(&pidf, msg, c)) \
			return job_result(msg, RESULT_INTERNAL);                              \
		return by_location(msg, op, &service, &route, &pidf);                         \
	}                                                                                     \
	static int w_##id##_2(struct sip_msg *msg, char *a, char *b)                          \
	{                                                                                     \
		return w_##id(msg, a, b, NULL);                                               \
	}                                                                                     \
	static int k_##id(struct sip_msg *msg, str *service)                                  \
	{                                                                                     \
		return by_location(msg, op, service, NULL, NULL);                             \
	}                                                                                     \
	static int k_##id##_async(struct sip_msg *msg, str *service, str *route)              \
	{                                                                                     \
		return by_location(msg, op, service, route, NULL);                            \
	}                                                                                     \
	static int k_##id##_pidf(struct sip_msg *msg, str *service, str *route, str *pidf)    \
	{                                                                                     \
		return by_location(msg, op, service, route, pidf);                            \
	}
BY_LOCATION(X)
#undef X

#define X(id, op)                                                                 \
	static int w_##id(struct sip_msg *msg, char *a, char *b)                  \
	{                                                                         \
		str argument, route;                                              \
                                                                                  \
		if (param(&argument, msg, a) || param(&route, msg, b))            \
			return job_result(msg, RESULT_INTERNAL);                  \
		return by_argument(msg, op, &argument, &route);                   \
	}                                                                         \
	static int k_##id(struct sip_msg *msg, str *argument)                     \
	{                                                                         \
		return by_argument(msg, op, argument, NULL);                      \
	}                                                                         \
	static int k_##id##_async(struct sip_msg *msg, str *argument, str *route) \
	{                                                                         \
		return by_argument(msg, op, argument, route);                     \
	}
BY_ARGUMENT(X)
#undef X

static int w_has_location(struct sip_msg *msg, char *a, char *b)
{
	(void)a;
	(void)b;
	return has_location(msg);
}

/* clang-format off */
static cmd_export_t cmds[] = {
#define X(id, op) \
	{"xlost_" #id, (cmd_function)w_##id##_2, 0, 0, 0, ANY_ROUTE}, \
	{"xlost_" #id, (cmd_function)w_##id##_2, 1, fixup_spve_null, fixup_free_spve_null, ANY_ROUTE}, \
	{"xlost_" #id, (cmd_function)w_##id##_2, 2, fixup_spve_spve, fixup_free_spve_spve, ANY_ROUTE}, \
	{"xlost_" #id, (cmd_function)(void *)w_##id, 3, fixup_spve_all, fixup_free_spve_all, ANY_ROUTE},
	BY_LOCATION(X)
#undef X
#define X(id, op) \
	{"xlost_" #id, (cmd_function)w_##id, 1, fixup_spve_null, fixup_free_spve_null, ANY_ROUTE}, \
	{"xlost_" #id, (cmd_function)w_##id, 2, fixup_spve_spve, fixup_free_spve_spve, ANY_ROUTE},
	BY_ARGUMENT(X)
#undef X
	{"xlost_has_location", (cmd_function)w_has_location, 0, 0, 0, ANY_ROUTE},
	{0, 0, 0, 0, 0, 0}
};

#define NONE SR_KEMIP_NONE
#define STR  SR_KEMIP_STR
static sr_kemi_t kemi_exports[] = {
#define X(id, op) \
	{str_init("xlost"), str_init(#id), SR_KEMIP_INT, k_##id, {STR, NONE, NONE, NONE, NONE, NONE}}, \
	{str_init("xlost"), str_init(#id "_async"), SR_KEMIP_INT, k_##id##_async, {STR, STR, NONE, NONE, NONE, NONE}},
	BY_LOCATION(X)
	BY_ARGUMENT(X)
#undef X
#define X(id, op) \
	{str_init("xlost"), str_init(#id "_pidf"), SR_KEMIP_INT, k_##id##_pidf, {STR, STR, STR, NONE, NONE, NONE}},
	BY_LOCATION(X)
#undef X
	{str_init("xlost"), str_init("has_location"), SR_KEMIP_INT, has_location, {NONE, NONE, NONE, NONE, NONE, NONE}},
	{{0, 0}, {0, 0}, 0, NULL, {0, 0, 0, 0, 0, 0}}
};
/* clang-format on */

/* --- Parameters ------------------------------------------------------------------------------- */

static int add_line(char **lines, int *n, char *value, const char *what)
{
	if (*n == SERVERS_MAX) {
		LM_ERR("more than %d parameters %s\n", SERVERS_MAX, what);
		return -1;
	}
	lines[(*n)++] = value;
	return 0;
}

static bool is_url(const char *s)
{
	return !strncasecmp(s, "https://", 8) || !strncasecmp(s, "http://", 7);
}

static int param_server(modparam_t type, void *val)
{
	(void)type;
	if (!is_url(val) && (strncmp(val, "lost:", 5) || !((char *)val)[5])) {
		LM_ERR("server must be an http: or https: URL, or lost:NAME\n");
		return -1;
	}
	return add_line(settings.server_url, &settings.servers, val, "server");
}

static int param_lis(modparam_t type, void *val)
{
	(void)type;
	if (!is_url(val)) {
		LM_ERR("lis must be an http: or https: URL\n");
		return -1;
	}
	return add_line(settings.lis_url, &settings.lises, val, "lis");
}

static int param_redirect(modparam_t type, void *val)
{
	const char *url = strchr(val, '=');

	(void)type;
	if (!url || !is_url(url + 1)) {
		LM_ERR("redirect must be NAME=URL\n");
		return -1;
	}
	return add_line(settings.redirect, &settings.redirects, val, "redirect");
}

static param_export_t params[] = {
	{"server", PARAM_STRING | PARAM_USE_FUNC, (void *)param_server},
	{"lis", PARAM_STRING | PARAM_USE_FUNC, (void *)param_lis},
	{"redirect", PARAM_STRING | PARAM_USE_FUNC, (void *)param_redirect},
	{"timeout", PARAM_INT, &settings.timeout},
	{"connect_timeout", PARAM_INT, &settings.connect_timeout},
	{"deadline", PARAM_INT, &settings.deadline},
	{"down_time", PARAM_INT, &settings.down_time},
	{"ca_file", PARAM_STRING, &settings.ca_file},
	{"cert_file", PARAM_STRING, &settings.cert_file},
	{"key_file", PARAM_STRING, &settings.key_file},
	{"verify", PARAM_INT, &settings.verify},
	{"allow_http_reference", PARAM_INT, &settings.allow_http_reference},
	{"reference_hosts", PARAM_STRING, &settings.reference_hosts},
	{"boundary", PARAM_STRING, &settings.boundary_name},
	{"prefer", PARAM_STRING, &settings.prefer_name},
	{"recursive", PARAM_INT, &settings.recursive},
	{"discover", PARAM_INT, &settings.discover},
	{"max_redirects", PARAM_INT, &settings.max_redirects},
	{"max_response", PARAM_INT, &settings.max_response},
	{"cache_entries", PARAM_INT, &settings.cache_entries},
	{"cache_size", PARAM_INT, &settings.cache_size},
	{"cache_max_age", PARAM_INT, &settings.cache_max_age},
	{"clients", PARAM_INT, &settings.clients},
	{"queries", PARAM_INT, &settings.queries},
	{"log_location", PARAM_INT, &settings.log_location},
	{"keep_exchanges", PARAM_INT, &settings.keep_exchanges},
	{0, 0, 0},
};

/* --- Variables -------------------------------------------------------------------------------- */

enum { PV_RESULT = ANSWER_TEXT_COUNT, PV_CACHED, PV_TRIES, PV_COUNT };
static const char *const PV_NAMES[PV_COUNT] = {
#define X(id) [A_##id] = #id,
	ANSWER_TEXTS(X)
#undef X
		[PV_RESULT] = "result",
	[PV_CACHED] = "cached", [PV_TRIES] = "tries"};

static int pv_name(pv_spec_t *sp, str *in)
{
	for (int i = 0; i < PV_COUNT; i++)
		if ((size_t)in->len == strlen(PV_NAMES[i]) &&
			!memcmp(in->s, PV_NAMES[i], (size_t)in->len)) {
			sp->pvp.pvn.type = PV_NAME_INTSTR;
			sp->pvp.pvn.u.isname.type = 0;
			sp->pvp.pvn.u.isname.name.n = i;
			return 0;
		}
	LM_ERR("$xlost(%.*s) is not known\n", in->len, in->s);
	return -1;
}

static int pv_get(struct sip_msg *msg, pv_param_t *p, pv_value_t *res)
{
	const struct answer *a = last_answer(msg);
	int i = p->pvn.u.isname.name.n;
	str s;

	if (!a)
		return pv_get_null(msg, p, res);
	if (i >= ANSWER_TEXT_COUNT)
		return pv_get_sintval(msg, p, res,
			i == PV_RESULT          ? a->result
				: i == PV_TRIES ? a->tries
						: a->cached);
	if (!a->text[i])
		return pv_get_null(msg, p, res);
	s = (str){a->text[i], (int)strlen(a->text[i])};
	return pv_get_strval(msg, p, res, &s);
}

static pv_export_t pvs[] = {
	{{"xlost", sizeof("xlost") - 1}, PVT_OTHER, pv_get, 0, pv_name, 0, 0, 0},
	{{0, 0}, 0, 0, 0, 0, 0, 0, 0},
};

/* --- Start and stop --------------------------------------------------------------------------- */

static counter_def_t counter_defs[] = {
#define X(id, text) {&counters.id, #id, 0, 0, 0, text},
	COUNTERS(X)
#undef X
		{0, 0, 0, 0, 0, 0}};

static void *cache_alloc(size_t size)
{
	return shm_malloc(size);
}

static void cache_release(void *block)
{
	shm_free(block);
}

static int shared_init(void)
{
	shared = shm_malloc(sizeof(*shared));
	if (!shared)
		return -1;
	memset(shared, 0, sizeof(*shared));
	if (!lock_init(&shared->lock))
		return -1;
	for (int i = 0; i < settings.servers; i++)
		shared->server[i].url = settings.server_url[i];
	for (int i = 0; i < settings.lises; i++)
		shared->lis[i].url = settings.lis_url[i];
	cache_init(&shared->cache, (uint32_t)settings.cache_entries,
		(uint64_t)settings.cache_size * 1024, cache_alloc, cache_release);
	return 0;
}

static int mod_init(void)
{
	if (settings_check() || load_tm_api(&tmb) < 0 || shared_init() || job_init())
		return -1;
	xmlInitParser();
	if (counter_register_array("xlost", counter_defs) < 0 ||
		rpc_register_array(rpc_exports) != 0) {
		LM_ERR("counters or RPC commands cannot be registered\n");
		return -1;
	}
	register_procs(settings.clients);
	cfg_register_child(settings.clients);
	return 0;
}

static int child_init(int rank)
{
	if (rank == PROC_INIT)
		return client_pipes();
	if (rank == PROC_MAIN)
		return client_fork();
	return 0;
}

static void mod_destroy(void)
{
	job_destroy();
	if (!shared)
		return;
	cache_clear(&shared->cache, NULL);
	shm_free(shared);
	shared = NULL;
}

int mod_register(char *path, int *dlflags, void *p1, void *p2);
int mod_register(char *path, int *dlflags, void *p1, void *p2)
{
	(void)path;
	(void)dlflags;
	(void)p1;
	(void)p2;
	sr_kemi_modules_add(kemi_exports);
	return 0;
}

struct module_exports exports = {
	"xcipher_lost",
	DEFAULT_DLFLAGS,
	cmds,
	params,
	0, /* RPC: registered by mod_init */
	pvs,
	0,
	mod_init,
	child_init,
	mod_destroy,
};
