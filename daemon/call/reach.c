/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where media may go (call/reach.h). Pure. */
#include "call/reach.h"

const char *reach_text(enum reach_verdict v)
{
	static const char *const text[] = {
#define X(id, text) [REACH_##id] = text,
		REACH_VERDICTS(X)
#undef X
	};

	return v < REACH_VERDICT_COUNT ? text[v] : "";
}

/* IPv6 addresses that contain an IPv4 address: a prefix identifies them, and four bytes are the
 * address. */
struct embedding {
	uint8_t told[12];
	uint8_t at, len; /* of what tells */
	uint8_t v4[4];   /* indexes of the address's bytes */
	bool inverted;   /* its bits are inverted */
	bool maybe;      /* no prefix proves that it is there */
};

/* clang-format off */
#define LAST 12, 13, 14, 15
static const struct embedding embeddings[] = {
	/* NAT64, 64:ff9b::/96 */
	{{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 12, {LAST}, false, false},
	{{0x00, 0x00, 0x5e, 0xfe}, 8, 4, {LAST}, false, false},   /* ISATAP */
	{{0x02, 0x00, 0x5e, 0xfe}, 8, 4, {LAST}, false, false},
	{{0x20, 0x01, 0, 0}, 0, 4, {LAST}, true, false},          /* Teredo */
	{{0x20, 0x02}, 0, 2, {2, 3, 4, 5}, false, false},         /* 6to4 */
	/* a NAT64 prefix of the operator, a /96 in 64:ff9b:1::/48 */
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 0, 6, {LAST}, false, true},
	/* or the /48, a /56 or a /64 (RFC 6052 2.2) */
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 0, 6, {6, 7, 9, 10}, false, true},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 0, 6, {7, 9, 10, 11}, false, true},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 0, 6, {9, 10, 11, 12}, false, true},
	{{[10] = 0xff, 0xff}, 0, 12, {LAST}, false, false},       /* mapped, ::ffff:0:0/96 */
	{{[8] = 0xff, 0xff}, 0, 12, {LAST}, false, false},        /* translated, ::ffff:0:0:0/96 */
	{{0}, 0, 12, {LAST}, false, false}, /* IPv4-compatible, ::/96; except :: and ::1 */
};
/* clang-format on */

static bool is_loopback6(const struct endpoint *e)
{
	return e->family == AF_INET6 && memcmp(e->addr, &in6addr_loopback, 16) == 0;
}

static bool embeds(const struct embedding *m, const struct endpoint *e, struct endpoint *out)
{
	if (e->family != AF_INET6 || is_loopback6(e) || endpoint_is_unspecified(e) ||
		memcmp(e->addr + m->at, m->told, m->len) != 0)
		return false;
	*out = (struct endpoint){.family = AF_INET, .port = e->port};
	for (int i = 0; i < 4; i++)
		out->addr[i] = e->addr[m->v4[i]] ^ (m->inverted ? 0xff : 0);
	return true;
}

/* The IPv4 address inside an IPv6 address, or the address itself. */
static struct endpoint inner(const struct endpoint *e)
{
	struct endpoint out;

	for (size_t i = 0; i < ARRAY_LEN(embeddings); i++)
		if (!embeddings[i].maybe && embeds(&embeddings[i], e, &out))
			return out;
	return *e;
}

/* Whether a network with at least `bits` prefix bits contains e. */
static bool is_in(const struct call_nets *nets, const struct endpoint *e, uint8_t bits)
{
	for (uint32_t i = 0; i < nets->n; i++)
		if (nets->bits[i] >= bits && endpoint_in_net(e, &nets->net[i], nets->bits[i]))
			return true;
	return false;
}

/* The address itself, or any reading of it. */
static bool is_denied(const struct reach *r, const struct endpoint *e)
{
	struct endpoint in;
	bool denied = is_in(&r->deny, e, 0);

	for (size_t i = 0; i < ARRAY_LEN(embeddings) && !denied; i++)
		denied = embeds(&embeddings[i], e, &in) && is_in(&r->deny, &in, 0);
	return denied;
}

bool reach_is_named(const struct call_nets *nets, const struct endpoint *e)
{
	return is_in(nets, e, 1);
}

static bool is_link_local(const struct endpoint *e)
{
	if (e->family == AF_INET)
		return e->addr[0] == 169 && e->addr[1] == 254;
	return e->addr[0] == 0xfe && (e->addr[1] & 0xc0) == 0x80;
}

static bool has_link_local(const struct reach *r, int family)
{
	for (uint32_t i = 0; i < r->locals; i++)
		if (r->local[i].addr.family == family && is_link_local(&r->local[i].addr))
			return true;
	return false;
}

bool reach_is_media_address(const struct reach *r, const struct endpoint *e)
{
	for (uint32_t i = 0; i < r->locals; i++)
		if (endpoint_addr_eq(e, &r->local[i].addr) ||
			endpoint_addr_eq(e, &r->local[i].advertised))
			return true;
	return false;
}

static bool is_own(const struct reach *r, const struct endpoint *e)
{
	return reach_is_media_address(r, e) || (r->own && r->own(r->arg, e));
}

/* Classifies an address by itself, without the operator's lists and this host's addresses. */
static enum reach_verdict kind(const struct endpoint *e)
{
	if (is_loopback6(e) || (e->family == AF_INET && e->addr[0] == 127))
		return REACH_LOOPBACK;
	if (endpoint_is_multicast(e))
		return REACH_MULTICAST;
	if (e->family == AF_INET && e->addr[0] == 0)
		return REACH_THIS_NET;
	if (e->family == AF_INET && e->addr[0] >= 240)
		return REACH_RESERVED;
	return REACH_OK;
}

/* Checks all readings of an address with several embedded IPv4 addresses: none may be this host.
 * Other verdicts would be guesses, because one reading's suffix is another's address. */
static enum reach_verdict check_readings(const struct reach *r, const struct endpoint *e)
{
	struct endpoint in;

	for (size_t i = 0; i < ARRAY_LEN(embeddings); i++) {
		if (!embeddings[i].maybe || !embeds(&embeddings[i], e, &in))
			continue;
		if (in.addr[0] == 127)
			return REACH_LOOPBACK;
		if (is_own(r, &in))
			return REACH_OWN;
		if (r->broadcast && r->broadcast(r->arg, &in))
			return REACH_BROADCAST;
	}
	return REACH_OK;
}

enum reach_verdict reach_check(const struct reach *r, const struct endpoint *e)
{
	struct endpoint in;
	enum reach_verdict v;

	if (endpoint_is_unspecified(e) || e->port == 0)
		return REACH_NOWHERE;
	in = inner(e);
	if (is_denied(r, e))
		return REACH_DENIED;
	if (reach_is_named(&r->allow, e) || reach_is_named(&r->allow, &in))
		return REACH_OK;
	v = kind(&in);
	v = v == REACH_OK ? check_readings(r, e) : v;
	if (v != REACH_OK)
		return v;
	if (is_link_local(&in) && !has_link_local(r, in.family))
		return REACH_LINK_LOCAL;
	if (is_own(r, &in) || is_own(r, e))
		return REACH_OWN;
	return r->broadcast && r->broadcast(r->arg, &in) ? REACH_BROADCAST : REACH_OK;
}

int reach_local(const struct reach *r, const struct endpoint *e, int after)
{
	struct endpoint in = inner(e);

	if (e->port < r->port_min || e->port > r->port_max)
		return -1;
	for (uint32_t i = (uint32_t)(after + 1); i < r->locals; i++)
		if (endpoint_addr_eq(&in, &r->local[i].addr) ||
			endpoint_addr_eq(&in, &r->local[i].advertised))
			return (int)i;
	return -1;
}

/* Whether both name the same media port of this relay. */
static bool same_port(const struct reach *r, const struct endpoint *a, const struct endpoint *b)
{
	for (int i = reach_local(r, a, -1); a->port == b->port && i >= 0; i = reach_local(r, a, i))
		if (reach_local(r, b, i - 1) == i)
			return true;
	return false;
}

bool reach_may_learn(
	const struct reach *r, const struct endpoint *signalled, const struct endpoint *src)
{
	if (endpoint_eq(signalled, src))
		return true;
	return reach_local(r, src, -1) < 0 ? reach_check(r, src) == REACH_OK
					   : same_port(r, signalled, src);
}

static bool is_taken(const struct reach *r, const struct endpoint *e)
{
	for (int i = reach_local(r, e, -1); i >= 0; i = reach_local(r, e, i)) {
		struct local_port port = {.port = e->port, .addr = (uint8_t)i};

		if (!r->taken || r->taken(r->taken_arg, port))
			return true;
	}
	return false;
}

bool reach_may_check(const struct reach *r, const struct endpoint *e)
{
	enum reach_verdict v = reach_check(r, e);

	return v == REACH_OK || (v == REACH_OWN && is_taken(r, e));
}
