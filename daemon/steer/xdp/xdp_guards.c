/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "steer/xdp/xdp_guards.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "steer/xdp/bpf/xdp_abi.h"

/* X(member): maps, named as in the program. */
#define MAPS(X) X(ports) X(guarded) X(guards) X(dropped) X(limits) X(sources)

struct place {
	struct local_port local;
	bool used;
	bool second; /* the program reads the second of its two guards */
};

struct xdp_guards {
#define X(name) int name;
	MAPS(X)
#undef X
	uint32_t share; /* places of a worker */
	int cpus;
	uint64_t *each;            /* [cpus] */
	_Atomic uint64_t left_out; /* guards that found no place */
	struct place place[XDP_ABI_GUARDS];
};

int xdp_guards_create(struct xdp_guards **out, const struct bpf_object *obj, uint32_t workers)
{
	struct xdp_guards *g = calloc(1, sizeof(*g));
	int cpus = libbpf_num_possible_cpus();

	if (!g || cpus < 0) {
		free(g);
		return cpus < 0 ? cpus : -ENOMEM;
	}
#define X(name) g->name = bpf_map__fd(bpf_object__find_map_by_name(obj, #name));
	MAPS(X)
#undef X
	g->share = XDP_ABI_GUARDS / (workers ? workers : 1);
	g->cpus = cpus;
	g->each = calloc((size_t)cpus, sizeof(*g->each));
	*out = g;
	return g->each ? 0 : -ENOMEM;
}

/* The program may still be reading one of the two guards: without a port it passes all packets. */
static const struct guard none;

static void wipe(const struct xdp_guards *g, uint32_t place)
{
	for (uint32_t at = 2 * place; at < 2 * place + 2; at++)
		(void)bpf_map_update_elem(g->guards, &at, &none, BPF_ANY);
}

void xdp_guards_destroy(struct xdp_guards *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < XDP_ABI_GUARDS; i++)
		if (g->place[i].used)
			wipe(g, i);
	free(g->each);
	free(g);
}

int xdp_guards_share(const struct xdp_guards *g, const struct bpf_object *obj)
{
	int res = 0;

#define X(name) \
	res = res ? res : bpf_map__reuse_fd(bpf_object__find_map_by_name(obj, #name), g->name);
	MAPS(X)
#undef X
	return res;
}

int xdp_guards_limit(const struct xdp_guards *g, uint32_t source_rate)
{
	const struct xdp_limits l = {.source_rate = source_rate};
	uint32_t key = 0;

	return bpf_map_update_elem(g->limits, &key, &l, BPF_ANY) ? -errno : 0;
}

static bool same_port(struct local_port a, struct local_port b)
{
	return a.port == b.port && a.addr == b.addr;
}

/* The port's place in the worker's share, or else a free one; share: none. */
static uint32_t find(const struct place *p, uint32_t share, struct local_port local)
{
	uint32_t found = share;

	for (uint32_t i = 0; i < share; i++) {
		if (p[i].used && same_port(p[i].local, local))
			return i;
		if (!p[i].used && found == share)
			found = i;
	}
	return found;
}

/* If two local addresses have the same port number, the other may still have a guard. */
static bool port_has_one(const struct place *p, uint32_t share, uint16_t port)
{
	for (uint32_t i = 0; i < share; i++)
		if (p[i].used && p[i].local.port == port)
			return true;
	return false;
}

/* Only the port's worker writes this entry. */
static int mark(const struct xdp_guards *g, uint16_t port, bool on)
{
	uint32_t key = port, used = 0;

	if (bpf_map_lookup_elem(g->ports, &key, &used))
		return -errno;
	used = on ? used | XDP_PORT_GUARDED : used & ~XDP_PORT_GUARDED;
	return bpf_map_update_elem(g->ports, &key, &used, BPF_ANY) ? -errno : 0;
}

/* The log has it once. A stream counts with each report, so the number only shows that it
 * happens. */
static void leave_out(struct xdp_guards *g)
{
	if (atomic_fetch_add_explicit(&g->left_out, 1, memory_order_relaxed) == 0)
		log_warn(
			"%u streams of one worker are under attack: forged packets of further ones reach the daemon",
			g->share);
}

int xdp_guards_put(
	struct xdp_guards *g, uint32_t worker, struct local_port local, const struct guard *guard)
{
	uint32_t first = worker * g->share, i = find(&g->place[first], g->share, local);
	uint32_t key = xdp_guard_key(local.addr, local.port), at;
	struct place *p;

	if (i == g->share) {
		if (guard)
			leave_out(g);
		return 0;
	}
	p = &g->place[first + i];
	if (!guard) {
		if (!p->used)
			return 0;
		p->used = false;
		(void)bpf_map_delete_elem(g->guarded, &key);
		wipe(g, first + i);
		if (!port_has_one(&g->place[first], g->share, local.port))
			(void)mark(g, local.port, false);
		return -1;
	}
	at = 2 * (first + i) + !p->second;
	if (bpf_map_update_elem(g->guards, &at, guard, BPF_ANY) ||
		bpf_map_update_elem(g->guarded, &key, &at, BPF_ANY)) {
		/* The other of the two stays in use, if there is one. */
		(void)bpf_map_update_elem(g->guards, &at, &none, BPF_ANY);
		return 0;
	}
	p->second = !p->second;
	if (!p->used && mark(g, local.port, true)) {
		(void)bpf_map_delete_elem(g->guarded, &key);
		wipe(g, first + i);
		return 0;
	}
	p->local = local;
	if (p->used)
		return 0;
	p->used = true;
	return 1;
}

uint64_t xdp_guards_count(const struct xdp_guards *g, struct steer_counters *c)
{
	uint64_t n[GUARD_RESULTS] = {0};

	for (uint32_t r = 0; r < GUARD_RESULTS; r++) {
		if (bpf_map_lookup_elem(g->dropped, &r, g->each))
			continue;
		for (int cpu = 0; cpu < g->cpus; cpu++)
			n[r] += g->each[cpu];
	}
#define SET(member, which) atomic_store_explicit(&c->member, n[which], memory_order_relaxed)
	SET(guard_source, GUARD_SOURCE);
	SET(guard_kind, GUARD_KIND);
	SET(guard_ssrc, GUARD_SSRC);
	SET(guard_type, GUARD_TYPE);
	SET(guard_index, GUARD_INDEX);
	SET(guard_time, GUARD_TIME);
	SET(guard_tag, GUARD_TAG);
#undef SET
	atomic_store_explicit(&c->guards_left_out,
		atomic_load_explicit(&g->left_out, memory_order_relaxed), memory_order_relaxed);
	return n[GUARD_PASS];
}
