/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One worker's memory: packet slots in and out, jobs, statuses, key slots. Page-aligned and whole pages, so that an
 * OpenCL device on the CPU can use it in place. Allocated once, at start. */
#include "batch/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

#define PAGE 4096u

static void *pages_alloc(size_t len)
{
	size_t whole = (len + PAGE - 1) / PAGE * PAGE;
	void *p = aligned_alloc(PAGE, whole);

	if (p)
		memset(p, 0, whole);
	return p;
}

static size_t packets_len(const struct arena *a)
{
	return (size_t)a->slots * ARENA_SLOT_LEN;
}

static void packets_free(uint8_t *p, size_t len)
{
	if (p)
		secmem_wipe(p, len); /* other people's conversations */
	free(p);
}

int arena_create(struct arena *out, uint32_t slots, uint32_t key_slots)
{
	struct arena a = {.slots = slots, .key_slots = key_slots};

	memset(out, 0, sizeof(*out));
	/* Offsets of jobs are 32 bits. Slots 0 and 1 are the plain pair. */
	if (slots == 0 || slots > UINT32_MAX / ARENA_SLOT_LEN || key_slots < 2)
		return -ENOMEM;
	a.in = pages_alloc(packets_len(&a));
	a.out = pages_alloc(packets_len(&a));
	a.job = pages_alloc(slots * sizeof(*a.job));
	a.status = pages_alloc(slots * sizeof(*a.status));
	a.key = secmem_alloc(key_slots * sizeof(*a.key));
	if (!a.in || !a.out || !a.job || !a.status || !a.key) {
		arena_destroy(&a);
		return -ENOMEM;
	}
	a.key[0].valid = a.key[1].valid = XC_KEY_VALID;
	*out = a;
	return 0;
}

void arena_destroy(struct arena *a)
{
	packets_free(a->in, packets_len(a));
	packets_free(a->out, packets_len(a));
	free(a->job);
	free(a->status);
	secmem_free(a->key, a->key_slots * sizeof(*a->key));
	memset(a, 0, sizeof(*a));
}
