/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory and descriptors of a packet ring (steer/kernel/kernel_ring.h). The kernel pins the arena
 * and the control area, and wakes the worker by the eventfd. */
#include "steer/kernel/kernel_ring.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lines.h"

#define PAGE 4096u

static int ring_bell(void *arg)
{
	const struct kring_home *h = arg;

	return setsockopt(h->bell_fd, IPPROTO_IP, NFX_SO_BELL + (int)h->number, NULL, 0) ? -errno
											 : 0;
}

int kring_home_create(struct kring_home **out, uint32_t sends)
{
	struct kring_home *h = lines_alloc(1, sizeof(*h));
	int res;

	if (!h)
		return -ENOMEM;
	h->sends = sends;
	h->poll_fd = -1;
	h->control_len = (nfx_ring_control_len(KRING_SLOTS, sends) + PAGE - 1) / PAGE * PAGE;
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->bell_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	h->control = mmap(
		NULL, h->control_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h->event_fd < 0 || h->bell_fd < 0 || h->control == MAP_FAILED) {
		res = -errno;
		kring_home_destroy(h);
		return res;
	}
	/* A child of fork() would copy pinned pages at once. */
	(void)madvise(h->control, h->control_len, MADV_DONTFORK);
	*out = h;
	return 0;
}

void kring_home_destroy(struct kring_home *h)
{
	if (!h)
		return;
	if (h->event_fd >= 0)
		close(h->event_fd);
	if (h->bell_fd >= 0)
		close(h->bell_fd);
	if (h->control != MAP_FAILED)
		munmap(h->control, h->control_len);
	free(h);
}

void kring_home_memory(struct kring_home *h, const struct arena *a, uint32_t first)
{
	h->arena = a;
	h->first = first;
	(void)madvise(a->in, arena_packets_len(a), MADV_DONTFORK);
}

int kring_open(struct kring_home *h, struct knl *k, bool waits, uint64_t *lost)
{
	const struct arena *a = h->arena;
	const struct knl_ring ring = {
		.control = h->control,
		.memory = a->in,
		.length = arena_packets_len(a),
		.slots = KRING_SLOTS,
		.sends = h->sends,
		.first = h->first * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.stride = ARENA_SLOT_LEN,
		.room = ARENA_MAX_PACKET,
		.event_fd = h->event_fd,
		.bell_fd = h->bell_fd,
		.poll_fd = waits ? h->poll_fd : -1,
	};
	struct knl_ring_opened opened;
	int err;

	memset(h->control, 0, h->control_len);
	err = knl_ring_open(k, &ring, &opened);
	if (err)
		return err;
	h->number = opened.number;
	*lost = opened.lost;
	kring_init(&h->ring, h->control, KRING_SLOTS, h->sends, a, h->first);
	h->ring.ring = ring_bell;
	h->ring.arg = h;
	h->ring.waits = ring.poll_fd >= 0;
	h->open = true;
	return 0;
}

int kring_close(struct kring_home *h, struct knl *k)
{
	/* A request to a module that is being unloaded might wait until it is. */
	int err = kring_state(&h->ring) == NFX_RING_OPEN ? knl_ring_close(k) : 0;

	h->open = err != 0;
	return err;
}
