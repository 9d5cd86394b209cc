/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources that no setting can allow are refused here. The kernel decides about all other IPv4
 * sources: RTM_GETROUTE with an interface and a source runs the input path of its routing, with its
 * source checks (fib_validate_source: rp_filter, accept_local, policy routing, VRFs). IPv6 has no
 * such checks; ip6_rcv_core() refuses loopback and multicast sources, and we also refuse this
 * host's own addresses.
 *
 * Answers are cached until the kernel announces a change, and for at most two seconds, because not
 * all settings are announced. Strangers can invent any number of sources, so token buckets limit
 * the look-ups. */
#include "host/judge.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/secmem.h"
#include "host/rtnl.h"

#define ANSWERS_BITS 12u
#define ANSWERS      (1u << ANSWERS_BITS)
#define WAYS         4u /* entries of a cache set */
#define MAX_AGE_NS   (2 * NS_PER_SEC)
/* Minimum life of answers after a change, so that a busy routing daemon does not cause a look-up
 * per packet. */
#define CALM_NS  (50 * 1000000ull)
#define PER_SEC  1000u
#define BURST    500u
#define TOKEN_NS (NS_PER_SEC / PER_SEC)

struct answer {
	struct endpoint src, dst; /* ports 0 */
	uint32_t dev;
	uint32_t generation; /* 0 = empty */
	uint64_t asked_ns;
	bool martian;
};

struct host_judge {
	const struct host *host;
	struct mnl_socket *ask;
	bool strict_local;
	uint32_t heard;      /* the host's generation when ours began */
	uint32_t generation; /* ours */
	uint64_t since_ns;   /* start of the generation */
	uint64_t full_ns[2]; /* [expected]: a bucket is full at this time */
	uint64_t secret[3];
	uint32_t next; /* the entry of a set to replace next */
	struct answer answer[ANSWERS];
};

/* --- Without the kernel ----------------------------------------------------------------------- */

static bool never_v4(const uint8_t *a)
{
	return a[0] == 0 || a[0] == 127 || a[0] >> 4 == 0xe || be32(a) == 0xffffffff;
}

/* Loopback, unspecified, IPv4-compatible, IPv4-mapped (RFC 4291 2.5.5) or multicast. */
static bool never_v6(const uint8_t *a)
{
	static const uint8_t zero[10];

	return a[0] == 0xff ||
		(memcmp(a, zero, sizeof(zero)) == 0 &&
			(be16(a + 10) == 0 || be16(a + 10) == 0xffff));
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* Keyed, because strangers choose the addresses. */
static uint32_t set_of(const struct host_judge *j, const struct host_claim *c)
{
	uint64_t half[2];
	__uint128_t m;

	memcpy(half, c->src.addr, 16);
	m = (__uint128_t)(half[0] ^ j->secret[0]) * (half[1] ^ j->secret[1] ^ c->dev);
	return (uint32_t)((((uint64_t)m ^ (uint64_t)(m >> 64)) * j->secret[2]) >>
		       (64 - ANSWERS_BITS)) &
		~(WAYS - 1);
}

static struct answer *find(struct host_judge *j, const struct host_claim *c, uint64_t now_ns)
{
	struct answer *set = &j->answer[set_of(j, c)];

	for (uint32_t i = 0; i < WAYS; i++)
		if (set[i].generation == j->generation && set[i].dev == c->dev &&
			now_ns - set[i].asked_ns < MAX_AGE_NS &&
			endpoint_addr_eq(&set[i].src, &c->src) &&
			endpoint_addr_eq(&set[i].dst, &c->dst))
			return &set[i];
	return NULL;
}

static void generation_follow(struct host_judge *j, uint64_t now_ns)
{
	uint32_t heard = host_generation(j->host);

	if (heard == j->heard || now_ns - j->since_ns < CALM_NS)
		return;
	j->heard = heard;
	j->since_ns = now_ns;
	if (++j->generation == 0) {
		memset(j->answer, 0, sizeof(j->answer));
		j->generation = 1;
	}
}

static bool may_ask(struct host_judge *j, bool expected, uint64_t now_ns)
{
	uint64_t *full = &j->full_ns[expected];

	if (*full < now_ns)
		*full = now_ns;
	if (*full - now_ns > (BURST - 1) * TOKEN_NS)
		return false;
	*full += TOKEN_NS;
	return true;
}

static bool ask(struct host_judge *j, const struct host_claim *c)
{
	struct endpoint dst = c->dst;

	if (c->src.family == AF_INET6 || j->strict_local)
		if (host_owns(j->host, &c->src))
			return false;
	if (host_broadcasts(j->host, &c->src))
		return false;
	if (c->src.family == AF_INET6)
		return true;
	/* The source checks do not depend on the destination, but the request needs one. */
	if (endpoint_is_unspecified(&dst) && !host_any_address(j->host, AF_INET, &dst))
		return false;
	return rtnl_accepts(j->ask, &c->src, &dst, (int)c->dev) == 0;
}

enum host_belief host_believes(struct host_judge *j, const struct host_claim *c, uint64_t now_ns)
{
	bool v4 = c->src.family == AF_INET;
	struct answer *a;

	if (v4 ? never_v4(c->src.addr) : never_v6(c->src.addr))
		return HOST_MARTIAN;
	generation_follow(j, now_ns);
	a = find(j, c, now_ns);
	if (!a) {
		if (!may_ask(j, c->expected, now_ns))
			return HOST_UNCHECKED;
		a = &j->answer[set_of(j, c) + j->next++ % WAYS];
		*a = (struct answer){.src = c->src,
			.dst = c->dst,
			.dev = c->dev,
			.generation = j->generation,
			.asked_ns = now_ns};
		a->src.port = a->dst.port = 0;
		a->martian = !ask(j, c);
	}
	return a->martian ? HOST_MARTIAN : HOST_BELIEVED;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

int host_judge_create(struct host_judge **out, const struct host *host, bool strict_local)
{
	struct host_judge *j = lines_alloc(1, sizeof(*j));
	int err;

	if (!j)
		return -ENOMEM;
	j->host = host;
	j->strict_local = strict_local;
	j->generation = 1;
	j->heard = host_generation(host);
	err = secmem_random(j->secret, sizeof(j->secret));
	j->secret[2] |= 1;
	err = err ? err : rtnl_open(&j->ask, RTNL_ASK);
	if (err) {
		host_judge_destroy(j);
		return err;
	}
	*out = j;
	return 0;
}

void host_judge_destroy(struct host_judge *j)
{
	if (!j)
		return;
	if (j->ask)
		mnl_socket_close(j->ask);
	free(j);
}
