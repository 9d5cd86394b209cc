/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of options: one function per kind parses the value, from any source, and describes valid
 * values. */
#include "app/options_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "batch/engine.h"
#include "call/call.h"
#include "control/teardown.h"
#include "keying/dtls.h"
#include "layout.h"

static const char *set_string(const char **field, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return "out of memory";
	free((char *)*field);
	*field = copy;
	return NULL;
}

/* Each of the following returns NULL, or a description of valid values. */

/* ALIAS=NAME: another name of all addresses of an interface. */
static const char *set_alias(struct options *o, struct str text)
{
	struct str name = text, alias = str_trim(str_cut(&name, '='));
	bool found = false;

	name = str_trim(name);
	if (!alias.len || alias.len > 31 || memchr(alias.s, ' ', alias.len) ||
		memchr(alias.s, '/', alias.len))
		return "ALIAS=NAME with an alias of 1 to 31 letters";
	for (uint32_t i = 0; i < o->locals; i++) {
		struct relay_local *l = &o->local[i];
		size_t len = strlen(l->alias);

		if (relay_local_has_name(l, alias))
			return "ALIAS=NAME with an alias that no interface has";
		if (!str_eq(str_from(l->name), name))
			continue;
		if (len + alias.len + 2 > sizeof(l->alias))
			return "fewer or shorter aliases: 127 letters for an interface";
		memcpy(l->alias + len, alias.s, alias.len);
		memcpy(l->alias + len + alias.len, " ", 2);
		found = true;
	}
	return found ? NULL : "ALIAS=NAME with the name of an interface that comes before";
}

static const char *set_interface(struct options *o, struct str text)
{
	struct relay_local l = {.name = "default"};
	struct str addr = text, advertised = STR_NONE;
	const char *slash = memchr(text.s, '/', text.len);

	if (memchr(text.s, '=', text.len))
		return set_alias(o, text);
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
		return "an IPv4 or IPv6 address after the '!'";
	if (l.advertised.family != l.addr.family)
		return "an advertised address of the same family";
	o->local[o->locals++] = l;
	return NULL;
}

static const char *set_interfaces(struct options *o, const char *value)
{
	struct str rest = str_from(value);

	memset(o->local, 0, sizeof(o->local));
	o->locals = 0;
	while (rest.s) {
		struct str one = str_trim(str_cut(&rest, ';'));
		const char *right = one.len ? set_interface(o, one) : NULL;

		if (right)
			return right;
	}
	return o->locals ? NULL : "[NAME/]ADDR[!ADVERTISED], with ';' between several";
}

struct range {
	const char *name; /* NULL: named by the kind */
	uint64_t min, max;
	uint64_t step; /* 0: decimals, too */
	const char *right;
};

_Static_assert(ENGINE_DEPTH_MAX == 8 && SDP_MAX_MEDIA == 64, "texts of range_of()");

static const struct range *range_of(const struct option_row *row)
{
	static const struct range kinds[] = {[UINT8] = {NULL, 0, 255, 1, "a number from 0 to 255"},
		[UINT16] = {NULL, 0, 65535, 1, "a number from 0 to 65535"},
		[UINT32] = {NULL, 0, UINT32_MAX / 1000, 1, "a number from 0 to 4294967"},
		[UINT64] = {NULL, 0, INT64_MAX, 1, "a number"},
		[PORT] = {NULL, 1024, 65535, 1, "a port from 1024 to 65535"},
		[LEVEL] = {NULL, 0, 7, 1, "a level from 0 to 7"},
		[DECIMAL] = {NULL, 0, 100000, 0, "a number from 0 to 100000, as 80 or 7.5"}};
	static const struct range named[] = {
		{"workers", 0, 64, 1, "a number from 1 to 64, or 0: one per processor"},
		{"batch-max", 1, 16384, 1, "1 to 16384 packets"},
		{"batches-in-flight", 0, ENGINE_DEPTH_MAX, 1, "a number from 0 to 8"},
		{"max-medias", 1, SDP_MAX_MEDIA, 1, "1 to 64 m-lines"},
		{"emergency-ports", 0, 50, 1, "0 to 50 percent"},
		/* of all processors together */
		{"max-cpu", 0, 100, 0, "a number from 0 to 100, as 80 or 7.5"},
		{"worker-priority", 0, 99, 1, "0 to 99"},
		{"keying-threads", 0, 16, 1, "0 to 16"},
		{"codec-threads", 0, 16, 1, "0 to 16"},
		{"resample-to", 8000, 48000, 8000, "a multiple of 8000 from 8000 to 48000 Hz"},
		{"replay-window", 64, 32768, 64, "a multiple of 64 from 64 to 32768"},
		{"xmlrpc-format", 0, TEARDOWN_FORMATS - 1, 1, "0, 1 or 2"},
		{"redis-expires", 1, UINT32_MAX / 1000, 1,
			"1 to 4294967 seconds; with 0 calls would not be stored"},
	};

	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strcmp(named[i].name, row->name) == 0)
			return &named[i];
	return &kinds[row->kind];
}

static const char *set_number(void *field, const char *value, const struct option_row *row)
{
	const struct range *r = range_of(row);
	enum kind kind = row->kind;
	uint64_t v;

	if (str_to_u64(&v, str_from(value), r->max) || v < r->min || v % r->step)
		return r->right;
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

static const char *set_decimal(double *field, const char *value, const struct option_row *row)
{
	const struct range *r = range_of(row);
	char *end;
	double v;

	if (value[0] < '0' || value[0] > '9')
		return r->right;
	v = strtod(value, &end);
	if (*end || !(v >= (double)r->min && v <= (double)r->max))
		return r->right;
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

static const char *set_zrtp(enum zrtp_policy *field, const char *value)
{
	static const char *const names[] = {
#define X(id, name) name,
		ZRTP_POLICIES(X)
#undef X
	};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "passthrough, terminate or off";
	*field = (enum zrtp_policy)at;
	return NULL;
}

static const char *set_preauth(struct preauth_policy *field, const char *value)
{
	static const char *const names[] = {"off", "accept", "offer"};
	static const char *const right = "off, accept, offer, or offer:SCHEME with SCHEME one of:"
#define X(id, name, bits) " " name
		PREAUTH_SCHEMES(X)
#undef X
			" chain/WIDTH/NEXT/WINDOW";
	struct str scheme = str_from(value), use = str_cut(&scheme, ':');
	enum preauth_scheme s = PREAUTH_SEQUENCE_AES;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!str_eq(use, str_from(names[i])))
			continue;
		if (scheme.s && i != PREAUTH_USE_OFFER)
			return right;
		if (scheme.s && !preauth_find(&s, scheme))
			return preauth_why_not(scheme);
		*field = (struct preauth_policy){.use = (enum preauth_use)i, .scheme = s};
		return NULL;
	}
	return right;
}

static const char *set_isolation(enum codec_isolation *field, const char *value)
{
	static const char *const names[] = {"foreign", "all", "none"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "foreign, all or none";
	*field = (enum codec_isolation)at;
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

static const char *set_mix(bool *channels, const char *value)
{
	static const char *const names[] = {"direct", "channels"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "direct or channels";
	*channels = at;
	return NULL;
}

static const char *set_format(bool *opus, const char *value)
{
	static const char *const names[] = {"wav", "opus"};
	int at = choice(value, names, ARRAY_LEN(names));

	if (at < 0)
		return "wav or opus";
	*opus = at;
	return NULL;
}

/* Next element of a list separated by ',', ';' or blanks; empty at its end. */
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

struct sdes_list {                  /* target of a list */
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

static const char *set_profiles(uint8_t out[SUITE_COUNT], const char *value)
{
	struct str rest = str_from(value);
	struct sdes_list l = {0};
	bool known = true;

	for (struct str name = next_name(&rest); known && name.len; name = next_name(&rest)) {
		bool strong = str_eq_nocase(name, STR("strong"));
		enum srtp_suite_id one = dtls_profile_find(name);

		known = strong || one != SUITE_PLAIN;
		if (one != SUITE_PLAIN)
			list_suite(&l, srtp_suite_get(one));
		for (uint32_t i = SUITE_PLAIN + 1; i < SUITE_COUNT && strong; i++)
			if (dtls_profile_known(i))
				list_suite(&l, srtp_suite_get(i));
	}
	if (!known || !l.n)
		return "one or more of SRTP_AEAD_AES_256_GCM, SRTP_AEAD_AES_128_GCM, SRTP_AES128_CM_HMAC_SHA1_80 and SRTP_AES128_CM_HMAC_SHA1_32, best first, with ',' between; or strong. NULL profiles do not encrypt and are refused";
	memcpy(out, l.suite, sizeof(l.suite));
	return NULL;
}

/* all: whether a list may name all addresses. */
static const char *set_nets(struct call_nets *out, const char *value, bool all)
{
	const char *right = all
		? "networks as 192.0.2.0/24 or 2001:db8::/32, up to 16, with ',' between; or any, or none"
		: "networks as 192.0.2.0/24 or 2001:db8::/32, not all addresses, up to 16, with ',' between; or none";
	bool any = all && str_eq_nocase(str_from(value), STR("any"));
	struct str rest = str_from(any ? "0.0.0.0/0,::/0" : value);
	struct call_nets nets = {0};

	if (str_eq_nocase(rest, STR("none"))) {
		*out = nets;
		return NULL;
	}
	for (struct str name = next_name(&rest); name.len; name = next_name(&rest)) {
		if (nets.n == CALL_NETS_MAX ||
			endpoint_parse_net(&nets.net[nets.n], &nets.bits[nets.n], name) ||
			(!all && nets.bits[nets.n] == 0))
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

/* One value for all devices, or one per device in their order. The last one applies to all further
 * devices. */
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

const char *option_set(struct options *o, const struct option_row *row, const char *value)
{
	void *field = (uint8_t *)o + row->offset;

	switch (row->kind) {
	case INTERFACE:
		return set_interfaces(o, value);
	case CONFIG:
	case STRING:
	case NAMES:
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
			? "[PW@]ADDR:PORT[/DB], as 127.0.0.1:6379/1, or rediss://[USER@]HOST[:PORT][/DB], or off"
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
	case MIX:
		return set_mix(field, value);
	case FORMAT:
		return set_format(field, value);
	case ISOLATION:
		return set_isolation(field, value);
	case PREAUTH:
		return set_preauth(field, value);
	case ZRTP:
		return set_zrtp(field, value);
	case LEARNING:
		return set_learning(field, value);
	case SDES_OFFER:
		return set_sdes_offer(field, value);
	case SDES_ACCEPT:
		return set_sdes_accept(field, value);
	case PROFILES:
		return set_profiles(field, value);
	case NETS:
	case SOME_NETS:
		return set_nets(field, value, row->kind == NETS);
	case DECIMAL:
		return set_decimal(field, value, row);
	case BOOL:
	case FLAG:
		return set_bool(field, value);
	case PORT:
	case UINT8:
	case UINT16:
	case UINT32:
	case UINT64:
	case LEVEL:
		return set_number(field, value, row);
	}
	return "nothing";
}
