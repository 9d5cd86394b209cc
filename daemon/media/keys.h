/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lifetimes of master keys, and the session keys of key derivation rates (RFC 3711 4.3,
 * 9.2). */
#ifndef MEDIA_KEYS_H
#define MEDIA_KEYS_H

#include "media/state.h"
#include "packet/arena.h"

int media_key_set(struct media *m, const struct media_cmd *cmd);
int media_key_del(struct media *m, uint32_t slot);

/* Number of packets under this key, including those before a restart. */
int media_key_resume(struct media *m, uint32_t slot, const struct media_key_resume *r);

static inline uint64_t media_key_load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

/* Whether the key has credit for a packet of RTP: its lifetime is not used up, and it has no
 * epochs. */
static inline uint32_t media_key_credit(const struct media_way *w, uint32_t key)
{
	return key == w->slot ? atomic_load_explicit(&w->credit, memory_order_relaxed) : 0;
}
bool media_key_used_up(const struct media *m, uint32_t key);

/* Whether the lifetime is used up, for RTP or RTCP: then nothing is sent under this key. Never for
 * 0 = plain. */
static inline bool media_key_spent(const struct media *m, const struct media_way *w, uint32_t key)
{
	return !media_key_credit(w, key) && media_key_used_up(m, key);
}
void media_key_count_one(struct media *m, struct media_way *w, uint32_t key, bool rtcp);

/* Counts a packet under this key. */
static inline void media_key_count(struct media *m, struct media_way *w, uint32_t key, bool rtcp)
{
	uint32_t credit = media_key_credit(w, key);

	if (credit && !rtcp)
		atomic_store_explicit(&w->credit, credit - 1, memory_order_relaxed);
	else
		media_key_count_one(m, w, key, rtcp);
}

/* Call it before a way changes: returns its unused credit to its key. */
void media_key_settle(struct media *m, struct media_way *w);

uint32_t media_key_epoch(struct media *m, const struct arena *a, uint32_t key, bool rtcp,
	uint64_t index, uint64_t now_ns);

/* The slot with the session keys for this index; called by prepare.c. MEDIA_NONE: they would have
 * to be derived, and the limit of derivations is reached. now_ns: the packet's time. */
struct media_key_use {
	uint64_t index, now_ns;
	bool rtcp;
};
static inline uint32_t media_key_slot(struct media *m, const struct arena *a,
	const struct media_way *w, uint32_t key, struct media_key_use u)
{
	return !key || media_key_credit(w, key) || !m->key[key / 2].kdr
		? key + u.rtcp
		: media_key_epoch(m, a, key, u.rtcp, u.index, u.now_ns);
}

void media_key_advance(
	struct media *m, const struct arena *a, uint32_t key, bool rtcp, uint64_t index);

/* Called by complete.c when a packet with this index was authentic, or was sent. Keeps the keys of
 * its epoch, and derives the next ones in time. */
static inline void media_key_reached(struct media *m, const struct arena *a,
	const struct media_way *w, uint32_t key, bool rtcp, uint64_t index)
{
	if (key && !media_key_credit(w, key) && m->key[key / 2].kdr)
		media_key_advance(m, a, key, rtcp, index);
}

#endif
