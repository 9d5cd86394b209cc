/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaching and detaching wait for a grace period of RCU for each interface, so a thread does it.
 * Interfaces that appear during an attack get no program: media check their packets. */
#include "steer/nfqueue/early.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/log.h"
#include "base/thread.h"
#include "steer/xdp/bpf/xdp_abi.h"
#include "steer/xdp/xdp_guards.h"
#include "steer/xdp/xdp_log.h"
#include "steer/xdp/xdp_object.h"

#define TCX_INGRESS  46 /* BPF_TCX_INGRESS: older headers lack it */
#define DEVS_MAX     256u
#define DEV_LOOPBACK 1 /* in every network namespace */

_Static_assert(STEER_MAX_LOCAL <= XDP_ABI_LOCALS, "a number for every local address");

struct early {
	struct bpf_object *obj;
	int prog;
	struct xdp_guards *guards;
	/* An address may be configured more than once: the program knows only the first. */
	uint8_t first[STEER_MAX_LOCAL];
	pthread_mutex_t lock; /* of the following members */
	pthread_cond_t change;
	uint32_t guarded; /* ports with a guard */
	bool stop;
	/* The thread's. */
	pthread_t thread;
	bool running, attached;
	uint32_t links;
	int link[DEVS_MAX];
};

/* --- The thread ------------------------------------------------------------------------------- */

static int attach_one(const struct early *e, unsigned ifindex)
{
	int fd = bpf_link_create(e->prog, (int)ifindex, TCX_INGRESS, NULL);

	return fd < 0 ? -errno : fd;
}

static void attach(struct early *e)
{
	struct if_nameindex *all = if_nameindex();
	uint32_t refused = 0;

	for (const struct if_nameindex *i = all; i && i->if_index && e->links < DEVS_MAX; i++) {
		int fd = attach_one(e, i->if_index);

		if (fd >= 0)
			e->link[e->links++] = fd;
		else
			refused++;
	}
	if_freenameindex(all);
	log_info(
		"nfqueue: streams are under attack: %u interfaces drop forged packets before netfilter",
		e->links);
	if (refused || !e->links)
		log_warn("nfqueue: %u interfaces refuse the program that drops forged packets",
			refused);
}

static void detach(struct early *e)
{
	while (e->links)
		close(e->link[--e->links]);
}

static void *run(void *arg)
{
	struct early *e = arg;

	(void)caps_limit(caps_here(CAPS_NETFILTER));
	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		if (e->attached == (e->guarded != 0)) {
			pthread_cond_wait(&e->change, &e->lock);
			continue;
		}
		e->attached = !e->attached;
		pthread_mutex_unlock(&e->lock);
		if (e->attached)
			attach(e);
		else
			detach(e);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
	detach(e);
	return NULL;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

/* Without the program of xdp, and the maps that only it needs. */
static int load(struct early *e)
{
	static const char *const others[] = {"xsks", "limits", "sources"};
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "xcipher");
	int res = 0;

	e->obj = bpf_object__open_mem(xdp_object, xdp_object_len, &opts);
	if (!e->obj)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(others) && !res; i++)
		res = bpf_map__set_autocreate(
			bpf_object__find_map_by_name(e->obj, others[i]), false);
	res = res ? res
		  : bpf_program__set_autoload(
			    bpf_object__find_program_by_name(e->obj, "xcipher_xdp"), false);
	res = res ? res : bpf_object__load(e->obj);
	if (!res)
		e->prog = bpf_program__fd(bpf_object__find_program_by_name(e->obj, "xcipher_tc"));
	return res;
}

static int put_locals(struct early *e, const struct steer_config *cfg)
{
	int map = bpf_map__fd(bpf_object__find_map_by_name(e->obj, "locals"));

	for (uint32_t i = 0; i < cfg->locals; i++) {
		struct xdp_local key = {.v6 = cfg->local[i].family == AF_INET6};
		uint32_t first = 0;

		while (!endpoint_addr_eq(&cfg->local[first], &cfg->local[i]))
			first++;
		e->first[i] = (uint8_t)first;
		memcpy(key.addr, cfg->local[i].addr, sizeof(key.addr));
		if (bpf_map_update_elem(map, &key, &first, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int probe(const struct early *e)
{
	int fd = attach_one(e, DEV_LOOPBACK);

	if (fd < 0)
		return fd == -EINVAL ? -EOPNOTSUPP : fd;
	close(fd);
	return 0;
}

int early_open(struct early **out, const struct steer_config *cfg)
{
	struct early *e = calloc(1, sizeof(*e));
	int res;

	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->change, NULL);
	libbpf_set_print(xdp_log);
	res = load(e);
	res = res ? res : probe(e);
	res = res ? res : put_locals(e, cfg);
	res = res ? res : xdp_guards_create(&e->guards, e->obj, cfg->workers);
	res = res ? res : thread_start(&e->thread, NULL, "xc-early", run, e);
	e->running = !res;
	if (res)
		early_close(e);
	else
		*out = e;
	return res;
}

void early_close(struct early *e)
{
	if (!e)
		return;
	if (e->running) {
		pthread_mutex_lock(&e->lock);
		e->stop = true;
		pthread_cond_signal(&e->change);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->thread, NULL);
	}
	xdp_guards_destroy(e->guards);
	bpf_object__close(e->obj);
	pthread_cond_destroy(&e->change);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* --- Guards ----------------------------------------------------------------------------------- */

void early_guard(
	struct early *e, uint32_t worker, struct local_port local, const struct guard *guard)
{
	int more;

	local.addr = e->first[local.addr];
	more = xdp_guards_put(e->guards, worker, local, guard);
	if (!more)
		return;
	pthread_mutex_lock(&e->lock);
	e->guarded += (uint32_t)more;
	pthread_cond_signal(&e->change);
	pthread_mutex_unlock(&e->lock);
}

void early_count(const struct early *e, struct steer_counters *c)
{
	(void)xdp_guards_count(e->guards, c);
}
