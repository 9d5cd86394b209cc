/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the kernel announces a change, the whole table is read again. Addresses change rarely, and a
 * table that is read as a whole cannot drift. A minimum interval between readings keeps a busy
 * routing daemon from occupying the thread.
 *
 * Readers take no lock: the table is replaced as a whole. A reader counts itself in before it takes
 * the pointer. The writer frees replaced tables when it sees no reader counted in, because later
 * readers can only find the new table. */
#include "host/host.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/rtnl.h"

#define CALM_NS    (20 * 1000000ull)
#define RETIRED    16u /* replaced tables that a reader may still use */
#define NETS_FIRST 64u

/* Accessed by other threads. */
struct shared {
	_Alignas(64) _Atomic(struct host_table *) table;
	_Atomic uint32_t generation;
	_Alignas(64) _Atomic uint32_t readers;
};

struct host {
	struct shared *shared;
	struct mnl_socket *ask, *news; /* NULL: a fixed one */
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *timer;   /* a reading is due */
	uint64_t read_ns;           /* the last one, monotonic */
	void (*changed)(void *arg); /* NULL: no notification */
	void *changed_arg;
	struct host_table *retired[RETIRED];
	uint32_t retireds;
};

/* --- Any thread ------------------------------------------------------------------------------- */

/* The table is not freed between begin and end. */
static const struct host_table *begin(const struct host *h)
{
	atomic_fetch_add_explicit(&h->shared->readers, 1, memory_order_seq_cst);
	return atomic_load_explicit(&h->shared->table, memory_order_seq_cst);
}

static void end(const struct host *h)
{
	atomic_fetch_sub_explicit(&h->shared->readers, 1, memory_order_release);
}

static bool ask(const struct host *h, const struct endpoint *e, enum host_kind kind)
{
	bool yes = host_table_has(begin(h), e, kind);

	end(h);
	return yes;
}

int host_dev(const struct host *h, const struct endpoint *e)
{
	int dev = host_table_dev(begin(h), e);

	end(h);
	return dev;
}

bool host_any_address(const struct host *h, uint8_t family, struct endpoint *out)
{
	const struct host_table *t = begin(h);
	bool found = false;

	for (uint32_t i = 0; i < t->singles && !found; i++) {
		const struct host_net *n = &t->net[i];

		found = n->kind == HOST_LOCAL && n->addr.family == family &&
			(family == AF_INET ? n->addr.addr[0] != 127 : n->addr.addr[0] != 0);
		if (found)
			*out = n->addr;
	}
	end(h);
	return found;
}

bool host_owns(const struct host *h, const struct endpoint *e)
{
	return ask(h, e, HOST_LOCAL);
}

bool host_broadcasts(const struct host *h, const struct endpoint *e)
{
	struct endpoint plain = host_plain(e);

	return (plain.family == AF_INET && be32(plain.addr) == 0xffffffff) ||
		ask(h, e, HOST_BROADCAST);
}

uint32_t host_generation(const struct host *h)
{
	return atomic_load_explicit(&h->shared->generation, memory_order_acquire);
}

/* --- Control thread --------------------------------------------------------------------------- */

struct gathered {
	struct host_net *net;
	uint32_t n, max;
	int err;
};

static void gather(void *arg, const struct host_net *net)
{
	struct gathered *g = arg;
	struct host_net *more;

	if (g->n == g->max) {
		g->max = g->max ? 2 * g->max : NETS_FIRST;
		more = realloc(g->net, g->max * sizeof(*more));
		if (!more) {
			g->max = g->n;
			g->err = -ENOMEM;
			return;
		}
		g->net = more;
	}
	g->net[g->n++] = *net;
}

static bool nobody_reads(struct host *h)
{
	return atomic_load_explicit(&h->shared->readers, memory_order_seq_cst) == 0;
}

static void publish(struct host *h, struct host_table *t)
{
	struct host_table *old =
		atomic_exchange_explicit(&h->shared->table, t, memory_order_seq_cst);

	if (old)
		h->retired[h->retireds++] = old;
	/* A reader needs less than a microsecond. */
	while (h->retireds == RETIRED && !nobody_reads(h))
		;
	if (!nobody_reads(h))
		return;
	while (h->retireds)
		free(h->retired[--h->retireds]);
}

static int read_all(struct host *h)
{
	struct gathered g = {0};
	struct host_table *t = NULL;
	int err = rtnl_locals(h->ask, gather, &g);

	err = err ? err : g.err;
	if (!err)
		t = host_table_make(g.net, g.n);
	free(g.net);
	h->read_ns = clock_mono_ns();
	if (!t)
		return err ? err : -ENOMEM;
	publish(h, t);
	if (h->changed)
		h->changed(h->changed_arg);
	return 0;
}

void host_on_change(struct host *h, void (*fn)(void *arg), void *arg)
{
	h->changed = fn;
	h->changed_arg = arg;
}

static void on_due(void *arg);

static void read_later(struct host *h)
{
	if (!h->timer && loop_timer_add(h->loop, &h->timer, CALM_NS, 0, on_due, h))
		log_err("host addresses: out of memory; missed a change of addresses");
}

static void on_due(void *arg)
{
	struct host *h = arg;
	int err;

	h->timer = NULL;
	err = read_all(h);
	if (!err)
		return;
	log_warn("host addresses: cannot read them (%s); will retry", strerror(-err));
	read_later(h);
}

struct seen {
	bool any, local;
};

static void look(void *arg, const struct rtnl_event *e)
{
	struct seen *seen = arg;

	seen->any = seen->any || e->what != RTNL_NEIGH;
	seen->local = seen->local || e->what == RTNL_LOCAL;
}

static void on_news(void *arg, uint32_t events)
{
	struct host *h = arg;
	struct seen seen = {0};

	(void)events;
	/* After an overrun everything may have changed. */
	if (rtnl_read(h->news, look, &seen))
		seen = (struct seen){true, true};
	if (seen.local && clock_mono_ns() - h->read_ns > CALM_NS && !h->timer)
		seen.local = read_all(h) != 0;
	if (seen.local)
		read_later(h);
	if (seen.any)
		atomic_fetch_add_explicit(&h->shared->generation, 1, memory_order_release);
}

static int host_alloc(struct host **out)
{
	struct host *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->shared = aligned_alloc(64, sizeof(*h->shared));
	if (!h->shared) {
		free(h);
		return -ENOMEM;
	}
	atomic_init(&h->shared->table, NULL);
	atomic_init(&h->shared->generation, 1);
	atomic_init(&h->shared->readers, 0);
	*out = h;
	return 0;
}

int host_create(struct host **out, struct loop *loop)
{
	struct host *h;
	int err = host_alloc(&h);

	if (err)
		return err;
	h->loop = loop;
	/* Subscribe before the first reading, so that no change is missed. */
	err = rtnl_open(&h->news, RTNL_HEAR_HOST);
	err = err ? err : rtnl_open(&h->ask, RTNL_ASK);
	err = err ? err : read_all(h);
	err = err ? err
		  : loop_io_add(loop, &h->io, mnl_socket_get_fd(h->news), EPOLLIN, on_news, h);
	if (err) {
		host_stop(h);
		host_destroy(h);
		return err;
	}
	*out = h;
	return 0;
}

int host_create_fixed(struct host **out, const struct host_net *net, uint32_t n)
{
	struct host_table *t = host_table_make(net, n);
	int err = t ? host_alloc(out) : -ENOMEM;

	if (err)
		free(t);
	else
		publish(*out, t);
	return err;
}

void host_stop(struct host *h)
{
	if (!h)
		return;
	loop_timer_remove(h->timer);
	loop_io_remove(h->io);
	h->timer = NULL;
	h->io = NULL;
}

void host_destroy(struct host *h)
{
	if (!h)
		return;
	if (h->ask)
		mnl_socket_close(h->ask);
	if (h->news)
		mnl_socket_close(h->news);
	while (h->retireds)
		free(h->retired[--h->retireds]);
	free(atomic_load(&h->shared->table));
	free(h->shared);
	free(h);
}
