/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two rings of a side channel, and each stream's share of the first. */
#include "packet/side.h"

#include <errno.h>
#include <unistd.h>

const char *side_kind_name(enum side_kind k)
{
	static const char *const name[] = {
#define X(id, name) name,
		SIDE_KINDS(X)
#undef X
	};

	return k < SIDE_KINDS_N ? name[k] : "";
}

int side_init(struct side_channel *c)
{
	*c = (struct side_channel){.thread_fd = -1, .worker_fd = -1};
	if (ring_init(&c->in, SIDE_ENTRIES, sizeof(struct side_packet)))
		return -ENOMEM;
	if (ring_init(&c->out, SIDE_ENTRIES, sizeof(struct side_packet))) {
		side_fini(c);
		return -ENOMEM;
	}
	return 0;
}

void side_fini(struct side_channel *c)
{
	if (c->in.mem)
		ring_fini(&c->in);
	if (c->out.mem)
		ring_fini(&c->out);
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

static void count(_Atomic uint64_t *c)
{
	atomic_store_explicit(
		c, atomic_load_explicit(c, memory_order_relaxed) + 1, memory_order_relaxed);
}

static bool take(struct ring *r, struct side_packet *out)
{
	const struct side_packet *p = ring_oldest(r);

	if (!p)
		return false;
	side_packet_copy(out, p);
	ring_release(r, offsetof(struct side_packet, bytes) + p->len);
	return true;
}

/* --- Worker ----------------------------------------------------------------------------------- */

int side_take(struct side_channel *c, struct side_share *share, const struct side_packet *head,
	const uint8_t *bytes, uint32_t len)
{
	uint32_t room = ring_room(&c->in), at,
		 left = (head->emergency ? 0 : SIDE_RESERVE) + (head->believed ? 0 : SIDE_BELIEVED);
	struct side_packet *p;

	if (len > SIDE_PACKET_MAX)
		return -EMSGSIZE;
	at = atomic_load_explicit(&c->in.head, memory_order_relaxed);
	/* As many packets were written since its last as wait now, so none of these is its own. */
	if (at - share->until >= SIDE_ENTRIES - room)
		*share = (struct side_share){0};
	if (share->n[head->believed] >=
			(head->believed ? SIDE_SHARE_BELIEVED : SIDE_SHARE_STRANGER) ||
		room <= left)
		return -ENOSPC;
	p = ring_place(&c->in);
	memcpy(p, head, offsetof(struct side_packet, bytes));
	memcpy(p->bytes, bytes, len);
	p->len = (uint16_t)len;
	ring_publish(&c->in);
	share->n[head->believed]++;
	share->until = at + 1;
	c->pushed++;
	return 0;
}

/* The exchanges here and in side_sleep() order both threads: either this one reads true, or the
 * other one sees the packets. */
void side_flush(struct side_channel *c)
{
	if (!c->pushed)
		return;
	c->pushed = 0;
	if (atomic_exchange(&c->asleep, false))
		wake(c->thread_fd);
}

bool side_next(struct side_channel *c, struct side_packet *out)
{
	return take(&c->out, out);
}

/* --- Keying thread ---------------------------------------------------------------------------- */

bool side_read(struct side_channel *c, struct side_packet *out)
{
	return take(&c->in, out);
}

bool side_sleep(struct side_channel *c)
{
	(void)atomic_exchange(&c->asleep, true);
	return ring_empty(&c->in);
}

int side_give(struct side_channel *c, const struct side_packet *p)
{
	struct side_packet *place = ring_place(&c->out);

	if (p->len > SIDE_PACKET_MAX)
		return -EMSGSIZE;
	if (!place) {
		count(&c->back_full);
		return -ENOSPC;
	}
	side_packet_copy(place, p);
	ring_publish(&c->out);
	c->given++;
	return 0;
}

void side_give_end(struct side_channel *c)
{
	/* The order is that of worker_wake(). */
	if (c->given && !(c->worker_awake && atomic_fetch_or(c->worker_awake, 0)))
		wake(c->worker_fd);
	c->given = 0;
}
