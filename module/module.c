/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher.so: its interface to Kamailio: functions, KEMI, parameters, variables, start and stop.
 * Kamailio's return values (1, 0, -1, ...) exist here and in call.c only. module/README.md lists
 * the files in reading order. */
#include <stdio.h>

#include <core/dprint.h>
#include <core/dset.h>
#include <core/kemi.h>
#include <core/mod_fix.h>
#include <core/pvar.h>
#include <core/route.h>
#include <core/rpc_lookup.h>
#include <core/sr_module.h>
#include <modules/tm/tm_load.h>

#include "call.h"
#include "health.h"
#include "reject.h"
#include "rpc.h"
#include "settings.h"
#include "sip.h"

/* Longest time during which a request is repeated, ms. The daemon drops requests signed more than
 * 30 s ago, and clocks may differ. */
#define SIGNED_MS 25000

MODULE_VERSION

struct tm_binds tmb;
struct counters counters;
struct settings settings = {
	.timeout_ms = 500,
	.retries = 2,
	.max_nodes = 3,
	.ping_interval = 5,
	.down_time = 30,
	.affinity_timeout = 43200,
	.receivers = 2,
	.slots = 1024,
	.db_table = "rtpengine",
	.names = 1,
};

/* --- Functions -------------------------------------------------------------------------------- */

static struct text text_of(const str *s)
{
	return s && s->s && s->len > 0 ? (struct text){s->s, (size_t)s->len} : (struct text){"", 0};
}

static int param(str *out, struct sip_msg *msg, char *p)
{
	*out = (str){"", 0};
	return p ? fixup_get_svalue(msg, (gparam_t *)p, out) : 0;
}

static int script(struct sip_msg *msg, enum op op, char *a, char *b)
{
	str flags, route;

	if (param(&flags, msg, a) || param(&route, msg, b))
		return V_INTERNAL;
	if (op == OP_COUNT)
		return call_manage(msg, text_of(&flags), text_of(&route));
	return call_run(msg, op, text_of(&flags), text_of(&route));
}

/* X(id, name, operation); OP_COUNT stands for manage */
#define FUNCTIONS(X)                                              \
	X(offer, "offer", OP_OFFER)                               \
	X(answer, "answer", OP_ANSWER)                            \
	X(delete, "delete", OP_DELETE)                            \
	X(manage, "manage", OP_COUNT)                             \
	X(query, "query", OP_QUERY)                               \
	X(start_recording, "start_recording", OP_START_RECORDING) \
	X(stop_recording, "stop_recording", OP_STOP_RECORDING)    \
	X(publish, "publish", OP_PUBLISH)

#define X(id, name, op)                                                                      \
	static int w_##id(struct sip_msg *msg, char *a, char *b)                             \
	{                                                                                    \
		return script(msg, op, a, b);                                                \
	}                                                                                    \
	static int k_##id(struct sip_msg *msg, str *flags)                                   \
	{                                                                                    \
		return (op) == OP_COUNT ? call_manage(msg, text_of(flags), TEXT(""))         \
					: call_run(msg, op, text_of(flags), TEXT(""));       \
	}                                                                                    \
	static int k_##id##_async(struct sip_msg *msg, str *flags, str *route)               \
	{                                                                                    \
		return (op) == OP_COUNT ? call_manage(msg, text_of(flags), text_of(route))   \
					: call_run(msg, op, text_of(flags), text_of(route)); \
	}
FUNCTIONS(X)
#undef X

/* Without a code, uses that of the last function; without a reason, the code's usual one. The
 * daemon's own reason names addresses and limits, so it only goes to the log, unless it says why
 * keys could not be agreed on. */
static int k_reject(struct sip_msg *msg, int code, str *reason)
{
	char text[WIRE_REASON];

	if (code <= 0)
		code = last.code >= 300 ? last.code : 488;
	snprintf(text, sizeof(text), "%.*s", reason->len, reason->len ? reason->s : "");
	if (!text[0])
		snprintf(text, sizeof(text), "%s", call_phrase(code));
	return reject_reply(msg, code, text, call_sip_warning());
}

static int w_reject(struct sip_msg *msg, char *a, char *b)
{
	int code = 0;
	str reason;

	if ((a && fixup_get_ivalue(msg, (gparam_t *)a, &code)) || param(&reason, msg, b))
		return V_INTERNAL;
	return k_reject(msg, code, &reason);
}

static int k_strip(struct sip_msg *msg)
{
	return reject_sdp(msg);
}

static int w_strip(struct sip_msg *msg, char *a, char *b)
{
	(void)a;
	(void)b;
	return reject_sdp(msg);
}

static int k_retry(struct sip_msg *msg, str *flags)
{
	int verdict;

	if (!is_route_type(FAILURE_ROUTE)) {
		LM_ERR("xcipher_retry_rtp is for failure routes\n");
		return V_INTERNAL;
	}
	verdict = call_retry(msg, text_of(flags));
	if (verdict == V_OK)
		ruri_mark_new(); /* t_relay() then makes a branch of the same URI */
	return verdict;
}

static int w_retry(struct sip_msg *msg, char *a, char *b)
{
	str flags;

	(void)b;
	return param(&flags, msg, a) ? V_INTERNAL : k_retry(msg, &flags);
}

static cmd_export_t cmds[] = {{"xcipher_retry_rtp", (cmd_function)w_retry, 0, 0, 0, ANY_ROUTE},
	{"xcipher_retry_rtp", (cmd_function)w_retry, 1, fixup_spve_null, fixup_free_spve_null,
		ANY_ROUTE},
	{"xcipher_reject", (cmd_function)w_reject, 0, 0, 0, ANY_ROUTE},
	{"xcipher_reject", (cmd_function)w_reject, 1, fixup_igp_null, fixup_free_igp_null,
		ANY_ROUTE},
	{"xcipher_reject", (cmd_function)w_reject, 2, fixup_igp_spve, fixup_free_igp_spve,
		ANY_ROUTE},
	{"xcipher_strip", (cmd_function)w_strip, 0, 0, 0, ANY_ROUTE},
#define X(id, name, op)                                                                           \
	{"xcipher_" name, (cmd_function)w_##id, 0, 0, 0, ANY_ROUTE},                              \
		{"xcipher_" name, (cmd_function)w_##id, 1, fixup_spve_null, fixup_free_spve_null, \
			ANY_ROUTE},                                                               \
		{"xcipher_" name, (cmd_function)w_##id, 2, fixup_spve_spve, fixup_free_spve_spve, \
			ANY_ROUTE},
	FUNCTIONS(X)
#undef X
		{0, 0, 0, 0, 0, 0}};

/* clang-format off */
static sr_kemi_t kemi_exports[] = {
#define X(id, name, op) \
	{str_init("xcipher"), str_init(name), SR_KEMIP_INT, k_##id, \
		{SR_KEMIP_STR, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE}}, \
	{str_init("xcipher"), str_init(name "_async"), SR_KEMIP_INT, k_##id##_async, \
		{SR_KEMIP_STR, SR_KEMIP_STR, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE}},
	FUNCTIONS(X)
#undef X
	{str_init("xcipher"), str_init("reject"), SR_KEMIP_INT, k_reject,
		{SR_KEMIP_INT, SR_KEMIP_STR, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE}},
	{str_init("xcipher"), str_init("strip"), SR_KEMIP_INT, k_strip,
		{SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE}},
	{str_init("xcipher"), str_init("retry_rtp"), SR_KEMIP_INT, k_retry,
		{SR_KEMIP_STR, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE, SR_KEMIP_NONE}},
	{{0, 0}, {0, 0}, 0, NULL, {0, 0, 0, 0, 0, 0}}
};
/* clang-format on */

/* --- Parameters ------------------------------------------------------------------------------- */

static int param_node(modparam_t type, void *val)
{
	(void)type;
	if (settings.node_lines ==
		(int)(sizeof(settings.node_line) / sizeof(*settings.node_line))) {
		LM_ERR("more than %d node parameters\n", settings.node_lines);
		return -1;
	}
	settings.node_line[settings.node_lines++] = val;
	return 0;
}

static param_export_t params[] = {
	{"node", PARAM_STRING | PARAM_USE_FUNC, (void *)param_node},
	{"nodes_file", PARAM_STRING, &settings.nodes_file},
	{"ng_key_file", PARAM_STRING, &settings.ng_key_file},
	{"db_url", PARAM_STRING, &settings.db_url},
	{"table_name", PARAM_STRING, &settings.db_table},
	{"timeout", PARAM_INT, &settings.timeout_ms},
	{"retries", PARAM_INT, &settings.retries},
	{"max_nodes", PARAM_INT, &settings.max_nodes},
	{"ping_interval", PARAM_INT, &settings.ping_interval},
	{"down_time", PARAM_INT, &settings.down_time},
	{"affinity_timeout", PARAM_INT, &settings.affinity_timeout},
	{"receivers", PARAM_INT, &settings.receivers},
	{"slots", PARAM_INT, &settings.slots},
	{"names", PARAM_INT, &settings.names},
	{"emergency_fallback", PARAM_STRING, &settings.emergency_fallback},
	{"emergency_numbers", PARAM_STRING, &settings.emergency_numbers},
	{"emergency_peers", PARAM_STRING, &settings.emergency_peers},
	{"emergency_flags", PARAM_STRING, &settings.emergency_flags},
	{"emergency_offer", PARAM_STRING, &settings.emergency_offer},
	{0, 0, 0},
};

static int settings_check(void)
{
	const struct settings *s = &settings;

	if (s->timeout_ms < 10 || s->retries < 0 || s->max_nodes < 1 || s->down_time < 1 ||
		s->affinity_timeout < 1) {
		LM_ERR("timeout, retries, max_nodes, down_time or affinity_timeout is out of range\n");
		return -1;
	}
	if (s->receivers < 1 || s->receivers > 16 || s->slots < s->receivers || s->slots > 65536) {
		LM_ERR("receivers must be 1 to 16, slots from receivers to 65536\n");
		return -1;
	}
	if (s->ng_key_file && (long long)s->timeout_ms * (1 + s->retries) * TRIES_MAX > SIGNED_MS) {
		LM_ERR("with ng_key_file, timeout * (1 + retries) * 4 nodes must not exceed %d ms: the daemon drops requests older than 30 s\n",
			SIGNED_MS);
		return -1;
	}
	settings.slots -= s->slots % s->receivers;
	return 0;
}

/* --- Variables -------------------------------------------------------------------------------- */

enum pv {
	PV_RESULT,
	PV_CODE,
	PV_REASON,
	PV_PHRASE,
	PV_SIP_WARNING,
	PV_WARNING,
	PV_NODE,
	PV_SUITE_FROM,
	PV_SUITE_TO,
	PV_SAS_FROM,
	PV_SAS_TO,
	PV_VERIFIED_FROM,
	PV_VERIFIED_TO,
	PV_MIKEY_FROM,
	PV_MIKEY_TO,
	PV_EMERGENCY,
	PV_FALLBACK,
	PV_REPLY,
	PV_SDP,
	PV_COUNT
};
static const char *const PV_NAMES[PV_COUNT] = {"result", "code", "reason", "phrase", "sip_warning",
	"warning", "node", "suite_from", "suite_to", "sas_from", "sas_to", "verified_from",
	"verified_to", "mikey_from", "mikey_to", "emergency", "fallback", "reply", "sdp"};

static int pv_name(pv_spec_t *sp, str *in)
{
	for (int i = 0; i < PV_COUNT; i++)
		if (text_is(text_of(in), PV_NAMES[i])) {
			sp->pvp.pvn.type = PV_NAME_INTSTR;
			sp->pvp.pvn.u.isname.type = 0;
			sp->pvp.pvn.u.isname.name.n = i;
			return 0;
		}
	LM_ERR("$xcipher(%.*s) is not known\n", in->len, in->s);
	return -1;
}

static int pv_get(struct sip_msg *msg, pv_param_t *p, pv_value_t *res)
{
	const char *const texts[PV_COUNT] = {[PV_REASON] = last.reason,
		[PV_PHRASE] = call_phrase(last.code),
		[PV_SIP_WARNING] = call_sip_warning(),
		[PV_WARNING] = last.warning,
		[PV_NODE] = last.node,
		[PV_SUITE_FROM] = last.suite_from,
		[PV_SUITE_TO] = last.suite_to,
		[PV_SAS_FROM] = last.sas_from.text,
		[PV_SAS_TO] = last.sas_to.text,
		[PV_VERIFIED_FROM] = last.sas_from.verified,
		[PV_VERIFIED_TO] = last.sas_to.verified,
		[PV_MIKEY_FROM] = last.mikey_from,
		[PV_MIKEY_TO] = last.mikey_to,
		[PV_FALLBACK] = last.fallback};
	int i = p->pvn.u.isname.name.n;
	str s;

	switch (i) {
	case PV_RESULT:
		return pv_get_sintval(msg, p, res, last.verdict);
	case PV_CODE:
		return pv_get_sintval(msg, p, res, last.code);
	case PV_EMERGENCY:
		return pv_get_sintval(msg, p, res, last.emergency);
	case PV_REPLY:
		s = (str){last.json.s, (int)last.json.len};
		break;
	case PV_SDP:
		s = (str){last.sdp.s, (int)last.sdp.len};
		break;
	default:
		s = (str){(char *)texts[i], (int)strlen(texts[i])};
	}
	return s.len ? pv_get_strval(msg, p, res, &s) : pv_get_null(msg, p, res);
}

static pv_export_t pvs[] = {
	{{"xcipher", sizeof("xcipher") - 1}, PVT_OTHER, pv_get, 0, pv_name, 0, 0, 0},
	{{0, 0}, 0, 0, 0, 0, 0, 0, 0},
};

/* --- Start and stop --------------------------------------------------------------------------- */

static counter_def_t counter_defs[] = {
#define X(id, text) {&counters.id, #id, 0, 0, 0, text},
	COUNTERS(X)
#undef X
		{0, 0, 0, 0, 0, 0}};

static int load_nodes(void)
{
	int n = nodes_load_all(false);

	if (!n)
		LM_WARN("no node is configured: every function will fail\n");
	return n < 0 ? -1 : 0;
}

/* Registers it before the fork, so that each process has it. */
static int load_keys(void)
{
	char err[WIRE_ERR] = "no memory";

	if (!settings.ng_key_file)
		return 0;
	if (wire_keys_read(&settings.keys, "ng_key_file", settings.ng_key_file, err)) {
		LM_ERR("%s\n", err);
		return -1;
	}
	return 0;
}

static int mod_init(void)
{
	if (settings_check() || load_keys() || sip_emergency_init() || load_tm_api(&tmb) < 0)
		return -1;
	if (nodes_init() || load_nodes() || async_init() || health_init())
		return -1;
	if (counter_register_array("xcipher", counter_defs) < 0 ||
		rpc_register_array(rpc_exports) != 0) {
		LM_ERR("counters or RPC commands cannot be registered\n");
		return -1;
	}
	return 0;
}

static int child_init(int rank)
{
	if (rank == PROC_INIT)
		return async_sockets();
	if (rank == PROC_MAIN)
		return async_fork() || health_fork() ? -1 : 0;
	return 0;
}

static void mod_destroy(void)
{
	async_destroy();
	nodes_destroy();
	sip_emergency_destroy();
	wire_keys_free(settings.keys);
	settings.keys = NULL;
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
	"xcipher",
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
