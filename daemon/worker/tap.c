/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worker/tap.h"

#include <errno.h>

#include "base/secmem.h"
#include "packet/arena.h"

int tap_init(struct tap *t)
{
	t->entry = secmem_alloc(sizeof(*t->entry));
	if (!t->entry || ring_init(&t->ring, TAP_ENTRIES, sizeof(*t->entry))) {
		tap_fini(t);
		return -ENOMEM;
	}
	return 0;
}

void tap_fini(struct tap *t)
{
	if (t->ring.mem)
		ring_fini(&t->ring);
	secmem_free(t->entry, sizeof(*t->entry));
	t->entry = NULL;
	t->ring.mem = NULL;
}

static bool has_share(const struct tap *t, uint32_t group)
{
	uint32_t got = atomic_load_explicit(&t->got[group], memory_order_relaxed);

	return t->put[group] - got < ring_room(&t->ring);
}

static void miss(struct tap *t, uint32_t group)
{
	uint32_t lost = atomic_load_explicit(&t->lost, memory_order_relaxed);

	t->missed[group]++;
	atomic_store_explicit(&t->lost, lost + 1, memory_order_relaxed);
}

void tap_packet(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j)
{
	struct tap *t = arg;
	struct tap_entry *e = t->entry;
	uint32_t group = tap % TAP_SHARES;

	if (!has_share(t, group)) {
		miss(t, group);
		return;
	}
	e->missed = t->missed[group];
	e->tap = tap;
	e->lost = atomic_load_explicit(&t->lost, memory_order_relaxed);
	e->t_ns = in->t_ns;
	e->from = in->src;
	e->to = in->local;
	e->job = *j;
	e->key = a->key[j->rx_key];
	e->len = in->len;
	memcpy(e->bytes, a->in + in->in_off, in->len);
	if (ring_push(&t->ring, e, 1)) {
		miss(t, group);
		return;
	}
	t->put[group]++;
	t->missed[group] = 0;
}

bool tap_next(struct tap *t, struct tap_entry *out)
{
	if (!ring_pop(&t->ring, out))
		return false;
	atomic_fetch_add_explicit(&t->got[out->tap % TAP_SHARES], 1, memory_order_relaxed);
	return true;
}

uint32_t tap_waiting(const struct tap *t)
{
	return atomic_load_explicit(&t->ring.head, memory_order_acquire) -
		atomic_load_explicit(&t->ring.tail, memory_order_relaxed);
}
