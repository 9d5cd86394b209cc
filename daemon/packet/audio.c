/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two rings of an audio channel, and each stream's share of the first. Unlike base/ring.h the
 * rings copy only the bytes that a packet has, and are wiped at their end only: they hold media, no
 * keys. */
#include "packet/audio.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secmem.h"

static int ring_create(struct audio_ring *r)
{
	r->entry = calloc(AUDIO_ENTRIES, sizeof(*r->entry));
	for (r->free_n = 0; r->free_n < AUDIO_ENTRIES; r->free_n++)
		r->free[r->free_n] = (uint16_t)r->free_n;
	return r->entry ? 0 : -ENOMEM;
}

static void ring_destroy(struct audio_ring *r)
{
	if (r->entry)
		secmem_wipe(r->entry, AUDIO_ENTRIES * sizeof(*r->entry));
	free(r->entry);
	r->entry = NULL;
}

int audio_channel_init(struct audio_channel *c)
{
	memset(c, 0, sizeof(*c));
	c->thread_fd = c->worker_fd = -1;
	if (!ring_create(&c->in) && !ring_create(&c->out))
		return 0;
	audio_channel_fini(c);
	return -ENOMEM;
}

void audio_channel_fini(struct audio_channel *c)
{
	ring_destroy(&c->in);
	ring_destroy(&c->out);
}

/* --- A ring ----------------------------------------------------------------------------------- */

static uint32_t own(const _Atomic uint32_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

/* Producer: free entries. */
static uint32_t room(struct audio_ring *r)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	for (; r->freed != tail; r->freed++)
		r->free[r->free_n++] = r->at[r->freed % AUDIO_ENTRIES];
	return r->free_n;
}

/* Producer, if there is room: the entry that publish() gives to the consumer. */
static struct audio_packet *next_free(const struct audio_ring *r)
{
	return &r->entry[r->free[r->free_n - 1]];
}

static void publish(struct audio_ring *r)
{
	r->at[own(&r->head) % AUDIO_ENTRIES] = r->free[--r->free_n];
	atomic_store_explicit(&r->head, own(&r->head) + 1, memory_order_release);
}

/* Consumer. */
static bool is_empty(const struct audio_ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) == own(&r->tail);
}

static const struct audio_packet *first(const struct audio_ring *r)
{
	return is_empty(r) ? NULL : &r->entry[r->at[own(&r->tail) % AUDIO_ENTRIES]];
}

static void pop(struct audio_ring *r)
{
	atomic_store_explicit(&r->tail, own(&r->tail) + 1, memory_order_release);
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

/* --- Worker ----------------------------------------------------------------------------------- */

int audio_take(struct audio_channel *c, struct audio_share *share, const struct audio_packet *head,
	const uint8_t *from)
{
	uint32_t left = room(&c->in), at = own(&c->in.head);
	struct audio_packet *p;

	if (head->len > AUDIO_PACKET_MAX)
		return -EMSGSIZE;
	/* All packets that wait were written after the stream's last one, so none is its own. */
	if (at - share->until >= AUDIO_ENTRIES - left)
		*share = (struct audio_share){0};
	if (share->n >= AUDIO_SHARE || left <= (head->emergency ? 0 : AUDIO_RESERVE))
		return -ENOSPC;
	p = next_free(&c->in);
	memcpy(p, head, offsetof(struct audio_packet, bytes));
	memcpy(p->bytes, from, head->len);
	publish(&c->in);
	share->n++;
	share->until = at + 1;
	c->pushed++;
	return 0;
}

/* The exchanges here and in audio_sleep() order both threads: either this one reads true, or the
 * other one sees the packets. */
void audio_flush(struct audio_channel *c)
{
	if (!c->pushed)
		return;
	c->pushed = 0;
	if (atomic_exchange(&c->asleep, false))
		wake(c->thread_fd);
}

const struct audio_packet *audio_next(const struct audio_channel *c)
{
	return first(&c->out);
}

void audio_sent(struct audio_channel *c)
{
	pop(&c->out);
}

/* --- Codec thread ----------------------------------------------------------------------------- */

const struct audio_packet *audio_read(const struct audio_channel *c)
{
	return first(&c->in);
}

const struct audio_packet *audio_peek(const struct audio_channel *c, uint32_t n)
{
	const struct audio_ring *r = &c->in;
	uint32_t at = own(&r->tail) + n;

	if (atomic_load_explicit(&r->head, memory_order_acquire) - own(&r->tail) <= n)
		return NULL;
	return &r->entry[r->at[at % AUDIO_ENTRIES]];
}

void audio_read_end(struct audio_channel *c)
{
	pop(&c->in);
}

bool audio_sleep(struct audio_channel *c)
{
	(void)atomic_exchange(&c->asleep, true);
	return is_empty(&c->in);
}

struct audio_packet *audio_give(struct audio_channel *c, bool emergency)
{
	if (room(&c->out) > (emergency ? 0 : AUDIO_RESERVE))
		return next_free(&c->out);
	atomic_fetch_add_explicit(&c->back_full, 1, memory_order_relaxed);
	return NULL;
}

void audio_given(struct audio_channel *c)
{
	publish(&c->out);
	c->given++;
}

void audio_give_end(struct audio_channel *c)
{
	if (c->given)
		wake(c->worker_fd);
	c->given = 0;
}
