/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does what a worker of a packet ring must not do: changes shared memory while the kernel uses it,
 * sends wrong indexes, and shares memory with a child. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	struct nfx_send ends;
	pthread_t thread;

	if (!nfx_ring_ends(&ends, rest) || pthread_create(&thread, NULL, scribble, &h))
		return -EINVAL;
	while (now_ms() < end) {
		struct nfx_bell b = {.flags = NFX_BELL_ARM,
			.sends = (uint32_t)rand_r(&seed) % (w->sends + 1),
			.released = w->taken,
			.taken = rand_r(&seed) % 2 ? nfx_published(w) : w->taken,
			.wake_packets = 1,
			.window_ns = (uint32_t)rand_r(&seed) % 100000};

		for (uint32_t i = 0; i < b.sends; i++) { /* nearly right ones go furthest */
			w->send[i] = ends;
			w->send[i].off = (uint32_t)rand_r(&seed) % (uint32_t)w->memory_len;
			w->send[i].len = 1 + (uint32_t)rand_r(&seed) % 300;
		}
		if (rand_r(&seed) % 4 == 0)
			((uint32_t *)&b)[rand_r(&seed) % 8] = (uint32_t)rand_r(&seed);
		if (nfx_ring_bell(w, &b) == 0) {
			good++;
			w->taken = b.taken;
		} else {
			bad++;
			w->taken = nfx_published(w);
		}
	}
	atomic_store(&h.over, true);
	pthread_join(thread, NULL);
	printf("good=%u bad=%u\n", good, bad);
	return 0;
}
