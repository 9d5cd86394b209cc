/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does what a worker of a packet ring must not do: changes shared memory while the kernel uses it,
 * sends wrong indexes, and shares memory with a child. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nfx_ring.h"

int nfx_ring_fork(struct nfx_worker *w)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		memset(w->memory, 0xee, w->memory_len);
		memset(w->control, 0xee, w->control_len);
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : -ECHILD;
}

struct hostile {
	struct nfx_worker *w;
	atomic_bool over;
	unsigned seed;
	atomic_uint rung; /* bells of ring_too() that were accepted */
};

/* Changes shared memory while the kernel uses it, most often where the kernel reads next. Spares
 * "published", which shows the other thread what the kernel would accept. */
static void *scribble(void *arg)
{
	struct hostile *h = arg;
	struct nfx_worker *w = h->w;
	uint32_t *control = (uint32_t *)w->control, *sends = (uint32_t *)w->send;
	size_t words = w->control_len / 4, send_words = (size_t)w->sends * sizeof(*w->send) / 4;

	while (!atomic_load(&h->over)) {
		uint32_t v = (uint32_t)rand_r(&h->seed) * 2654435761u;

		if (v & 3)
			((volatile uint32_t *)sends)[v % send_words] = (uint32_t)rand_r(&h->seed)
				<< (v & 16);
		else
			((volatile uint32_t *)control)[1 + v % (words - 1)] = v;
		w->memory[v % w->memory_len] ^= (uint8_t)v;
	}
	return NULL;
}

/* A second thread with the same doorbell, at whatever the shared memory says at the time. It also
 * tries all other options near, and values where none is read. */
static void *ring_too(void *arg)
{
	struct hostile *h = arg;
	unsigned seed = h->seed + 2;
	uint8_t text[64] = {0};

	while (!atomic_load(&h->over)) {
		unsigned v = (unsigned)rand_r(&seed);
		int option = NFX_SO_BELL + (v % 4 ? (int)h->w->number : (int)(v >> 8) % 70 - 3);

		if (setsockopt(h->w->bell, v % 8 ? IPPROTO_IP : IPPROTO_IPV6, option, text,
			    v % sizeof(text)) == 0)
			atomic_fetch_add(&h->rung, 1);
	}
	return NULL;
}

/* Changes mappings of the pages that the kernel uses. Most of it loses pages for this process only:
 * the ring keeps its own. Ends with the areas mapped, and perhaps other pages in them. */
static void *remap(void *arg)
{
	static const int ADVICE[] = {MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
		MADV_COLD, MADV_PAGEOUT, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE};
	struct hostile *h = arg;
	struct nfx_worker *w = h->w;
	unsigned seed = h->seed + 3;
	uint64_t full = UINT64_MAX - 1;

	while (!atomic_load(&h->over)) {
		unsigned v = (unsigned)rand_r(&seed);
		size_t pages = w->memory_len / 4096, at = v / 16 % pages * 4096;
		uint8_t *p = w->memory + at;

		if (v % 16 < sizeof(ADVICE) / sizeof(ADVICE[0])) {
			madvise(p, 4096, ADVICE[v % 16]);
		} else if (v % 16 < 11) {
			mlock(p, 4096);
			munlock(p, 4096);
		} else if (v % 16 < 13) { /* the last page only, which the other threads spare */
			p = w->memory + w->memory_len - 4096;
			mmap(p, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		} else { /* the kernel's signal then finds the counter full */
			if (write(w->wake, &full, sizeof(full)) < 0 && read(w->wake, &full, 8) < 0)
				continue;
			full = UINT64_MAX - 1;
		}
	}
	return NULL;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int nfx_ring_hostile(struct nfx_worker *w, char *rest)
{
	uint64_t ms = strtoull(rest, &rest, 0), end = now_ms() + ms;
	struct hostile h = {.w = w, .seed = (unsigned)strtoul(rest, &rest, 0)};
	unsigned seed = h.seed + 1, good = 0, bad = 0;
	void *(*const parts[])(void *) = {scribble, ring_too, remap};
	struct nfx_send ends;
	pthread_t thread[3];
	bool ended = false;
	uint64_t one;

	if (!nfx_ring_ends(&ends, rest))
		return -EINVAL;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, parts[i], &h))
			return -EAGAIN;
	while (now_ms() < end || (!ended && (good < 20 || bad < 20))) {
		struct nfx_bell b = {
			.flags = NFX_BELL_ARM | (rand_r(&seed) % 4 ? 0 : NFX_BELL_WAIT),
			.sends = (uint32_t)rand_r(&seed) % (w->sends + 1),
			.released = w->taken,
			.taken = rand_r(&seed) % 2 ? nfx_published(w) : w->taken,
			.wake_packets = 1,
			.window_ns = (uint32_t)rand_r(&seed) % 100000};
		int err;

		for (uint32_t i = 0; i < b.sends; i++) { /* nearly right ones go furthest */
			w->send[i] = ends;
			w->send[i].off = (uint32_t)rand_r(&seed) % (uint32_t)w->memory_len;
			w->send[i].len = 1 + (uint32_t)rand_r(&seed) % 300;
		}
		if (rand_r(&seed) % 4 == 0)
			((uint32_t *)&b)[rand_r(&seed) % 8] = (uint32_t)rand_r(&seed);
		err = nfx_ring_bell(w, &b);
		ended = err == -ENOENT || err == -ENOPROTOOPT;
		good += !err;
		bad += err != 0;
		w->taken = err ? nfx_published(w) : b.taken;
	}
	atomic_store(&h.over, true);
	pthread_join(thread[0], NULL);
	pthread_join(thread[2], NULL);
	/* ring_too() may wait in a bell. */
	if (read(w->wake, &one, sizeof(one)) < 0)
		one = 1;
	one = 1;
	(void)!write(w->wake, &one, sizeof(one));
	pthread_join(thread[1], NULL);
	printf("good=%u bad=%u rung=%u\n", good, bad, h.rung);
	return 0;
}
