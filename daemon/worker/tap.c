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

void tap_packet(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
	const struct xc_job *j)
{
	struct tap *t = arg;
	struct tap_entry *e = t->entry;

	e->tap = tap;
	e->lost = atomic_load_explicit(&t->lost, memory_order_relaxed);
	e->t_ns = in->t_ns;
	e->from = in->src;
	e->to = in->local;
	e->job = *j;
	e->key = a->key[j->rx_key];
	e->len = in->len;
	memcpy(e->bytes, a->in + in->in_off, in->len);
	if (ring_push(&t->ring, e, 1))
		atomic_store_explicit(&t->lost, e->lost + 1, memory_order_relaxed);
}
