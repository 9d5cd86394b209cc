/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes packets between workers. Only a descriptor is passed: the consumer copies the payload to
 * its own arena and returns the slot. The ring length bounds lent slots; if the ring is full, the
 * producer drops and counts the packet. Only the first of several waiting packets wakes the
 * consumer. */
#include "steer/xdp/xdp_hand.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/ring.h"
#include "packet/arena.h"

#define WORKERS_MAX 64u
#define RING_MAX    1024u
#define RING_MIN    64u

struct lane {                /* from one worker to another */
	struct ring packets; /* struct packet_in */
	struct ring back;    /* uint32_t: slots */
};

struct end { /* one worker's */
	_Alignas(64) _Atomic uint64_t
		waiting;            /* bit n: worker n has put packets into its lane to us */
	_Alignas(64) uint64_t seen; /* bits taken from waiting, not served yet; consumer only */
	const uint8_t *in;          /* the worker's arena */
	int fd;
	bool producer;
	uint32_t lent; /* producer: number of slots lent to others */
	uint32_t look; /* producer: lane to check next for returned slots */
};

struct hand {
	uint32_t workers, ring_len;
	struct end *end;
	struct lane *lane; /* [from * workers + to] */
};

static struct lane *lane_of(const struct hand *h, uint32_t from, uint32_t to)
{
	return &h->lane[from * h->workers + to];
}

int hand_create(struct hand **out, uint32_t workers)
{
	struct hand *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	if (workers == 0 || workers > WORKERS_MAX) {
		free(h);
		return -ERANGE;
	}
	h->ring_len = min_u32(RING_MAX, 4096u / workers < RING_MIN ? RING_MIN : 4096u / workers);
	h->end = aligned_alloc(64, workers * sizeof(*h->end));
	h->lane = aligned_alloc(64, (size_t)workers * workers * sizeof(*h->lane));
	if (!h->end || !h->lane)
		goto fail;
	memset(h->end, 0, workers * sizeof(*h->end));
	memset(h->lane, 0, (size_t)workers * workers * sizeof(*h->lane));
	for (; h->workers < workers; h->workers++) {
		h->end[h->workers].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (h->end[h->workers].fd < 0)
			goto fail;
	}
	*out = h;
	return 0;
fail:
	hand_destroy(h);
	return -ENOMEM;
}

void hand_destroy(struct hand *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; h->lane && i < h->workers * h->workers; i++) {
		if (h->lane[i].packets.mem)
			ring_fini(&h->lane[i].packets);
		if (h->lane[i].back.mem)
			ring_fini(&h->lane[i].back);
	}
	for (uint32_t i = 0; h->end && i < h->workers; i++)
		close(h->end[i].fd);
	free(h->end);
	free(h->lane);
	free(h);
}

int hand_producer(struct hand *h, uint32_t worker, const struct arena *a)
{
	h->end[worker].in = a->in;
	for (uint32_t to = 0; to < h->workers; to++) {
		struct lane *l = lane_of(h, worker, to);

		if (to != worker &&
			(ring_init(&l->packets, h->ring_len, sizeof(struct packet_in)) ||
				ring_init(&l->back, h->ring_len, sizeof(uint32_t))))
			return -ENOMEM;
	}
	h->end[worker].producer = true;
	return 0;
}

int hand_fd(const struct hand *h, uint32_t worker)
{
	return h->end[worker].fd;
}

bool hand_push(struct hand *h, uint32_t from, uint32_t to, const struct packet_in *d)
{
	struct end *mine = &h->end[from], *other = &h->end[to];
	uint64_t one = 1;

	/* Guarantees room in the ring of returned slots. */
	if (mine->lent >= h->ring_len || ring_push(&lane_of(h, from, to)->packets, d, 1))
		return false;
	mine->lent++;
	/* Only the worker that finds the mask empty wakes the consumer; later packets are found
	 * with the first. */
	if (atomic_fetch_or_explicit(&other->waiting, 1ull << from, memory_order_acq_rel) == 0)
		(void)!write(other->fd, &one, sizeof(one));
	return true;
}

bool hand_returned(struct hand *h, uint32_t from, uint32_t *slot)
{
	struct end *mine = &h->end[from];

	if (mine->lent == 0)
		return false;
	for (uint32_t i = 0; i < h->workers; i++) {
		uint32_t to = (mine->look + i) % h->workers;

		if (to == from || !ring_pop(&lane_of(h, from, to)->back, slot))
			continue;
		mine->look = to;
		mine->lent--;
		return true;
	}
	return false;
}

static void forget(struct end *mine)
{
	uint64_t count;

	(void)!read(mine->fd, &count, sizeof(count));
}

bool hand_pop(
	struct hand *h, uint32_t me, struct packet_in *d, const uint8_t **payload, uint32_t *from)
{
	struct end *mine = &h->end[me];

	if (atomic_load_explicit(&mine->waiting, memory_order_relaxed)) {
		/* Order matters: after this, whoever finds the mask empty makes the descriptor
		 * readable again. */
		forget(mine);
		mine->seen |= atomic_exchange_explicit(&mine->waiting, 0, memory_order_acq_rel);
	}
	while (mine->seen) {
		*from = (uint32_t)__builtin_ctzll(mine->seen);
		if (ring_pop(&lane_of(h, *from, me)->packets, d)) {
			*payload = h->end[*from].in + d->in_off;
			return true;
		}
		mine->seen &= mine->seen - 1;
	}
	return false;
}

void hand_return(struct hand *h, uint32_t me, uint32_t from, uint32_t slot)
{
	/* Never full: at most its length is lent. */
	(void)ring_push(&lane_of(h, from, me)->back, &slot, 1);
}

void hand_wake(struct hand *h, uint32_t worker)
{
	uint64_t one = 1;

	(void)!write(h->end[worker].fd, &one, sizeof(one));
}

void hand_clear(struct hand *h, uint32_t me)
{
	struct end *mine = &h->end[me];
	uint64_t one = 1;

	forget(mine);
	/* Another packet arrived meanwhile: its wake-up was cleared here, so repeat it. */
	if (atomic_load_explicit(&mine->waiting, memory_order_acquire) || mine->seen)
		(void)!write(mine->fd, &one, sizeof(one));
}
