/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of one worker: packet slots for input and output, jobs, statuses, key slots.
 * Page-aligned whole pages, so that an OpenCL device on the CPU can use it in place. Input and
 * output share one mapping, so that AF_XDP can register both at once, on huge pages where the
 * kernel has them. Allocated once, at start. */
#include "packet/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "base/secmem.h"

#define PAGE      4096u
#define HUGE_PAGE (2u << 20)

static size_t round_up(size_t len, size_t to)
{
	return (len + to - 1) / to * to;
}

static void *pages_alloc(size_t len)
{
	size_t whole = round_up(len, PAGE);
	void *p = aligned_alloc(PAGE, whole);

	if (p)
		memset(p, 0, whole);
	return p;
}

/* One of the two packet areas, followed by a page without access. AddressSanitizer knows the page,
 * too. */
static size_t area_len(const struct arena *a)
{
	return round_up((size_t)a->slots * ARENA_SLOT_LEN, PAGE) + PAGE;
}

size_t arena_packets_len(const struct arena *a)
{
	return 2 * area_len(a);
}

static void guard(const struct arena *a, bool on)
{
#ifdef __SANITIZE_ADDRESS__
	size_t used = (size_t)a->slots * ARENA_SLOT_LEN;
	uint8_t *const area[] = {a->in, a->out};

	for (int i = 0; i < 2; i++) {
		if (on)
			__asan_poison_memory_region(area[i] + used, area_len(a) - used);
		else
			__asan_unpoison_memory_region(area[i] + used, area_len(a) - used);
	}
#else
	(void)a;
	(void)on;
#endif
}

static int packets_alloc(struct arena *a)
{
	size_t len = round_up(arena_packets_len(a), HUGE_PAGE), slack;
	uint8_t *p = mmap(
		NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	/* Align to a huge page, and return the parts before and after. */
	slack = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (slack)
		munmap(p, slack);
	if (slack < HUGE_PAGE)
		munmap(p + slack + len, HUGE_PAGE - slack);
	a->in = p + slack;
	a->out = a->in + area_len(a);
	/* Requests only: the kernel may ignore them. */
	(void)madvise(a->in, len, MADV_HUGEPAGE);
	(void)madvise(a->in, len, MADV_DONTDUMP);
	memset(a->in, 0, arena_packets_len(a));
	guard(a, true);
	return 0;
}

static void packets_free(struct arena *a)
{
	if (!a->in)
		return;
	guard(a, false);
	secmem_wipe(a->in, arena_packets_len(a)); /* packets are private conversations: wiped */
	munmap(a->in, round_up(arena_packets_len(a), HUGE_PAGE));
}

int arena_create(struct arena *out, uint32_t slots, uint32_t key_slots)
{
	struct arena a = {.slots = slots, .key_slots = key_slots};

	memset(out, 0, sizeof(*out));
	/* Offsets of jobs are 32 bits. Slots 0 and 1 are the plain pair. */
	if (slots == 0 || slots > UINT32_MAX / ARENA_SLOT_LEN || key_slots < 2)
		return -ENOMEM;
	if (packets_alloc(&a))
		return -ENOMEM;
	a.job = pages_alloc(slots * sizeof(*a.job));
	a.status = pages_alloc(slots * sizeof(*a.status));
	a.key = secmem_alloc(key_slots * sizeof(*a.key));
	if (!a.job || !a.status || !a.key) {
		arena_destroy(&a);
		return -ENOMEM;
	}
	a.key[0].valid = a.key[1].valid = XC_KEY_VALID;
	*out = a;
	return 0;
}

void arena_destroy(struct arena *a)
{
	packets_free(a);
	free(a->job);
	free(a->status);
	secmem_free(a->key, a->key_slots * sizeof(*a->key));
	memset(a, 0, sizeof(*a));
}
