/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fills and moves a window of SRTP+ tags (preauth_window.h). Pure. */
#include "srtp/preauth_window.h"

#include <string.h>

void preauth_window_init(struct preauth_window *w, __u64 index, unsigned bits)
{
	memset(w, 0, sizeof(*w));
	w->first = index;
	w->mask = bits < 32 ? (1u << bits) - 1 : ~0u;
}

__u32 preauth_window_room(const struct preauth_window *w, __u64 *index)
{
	*index = w->first + w->known;
	return PREAUTH_WINDOW - w->known;
}

void preauth_window_add(struct preauth_window *w, const __u32 *tag, __u32 n)
{
	for (__u32 i = 0; i < n && w->known < PREAUTH_WINDOW; i++, w->known++)
		w->tag[(w->first + w->known) % PREAUTH_WINDOW] = tag[i];
}

static __u64 bit_of(__u64 index)
{
	return 1ull << (index % 64);
}

static __u64 *word_of(struct preauth_window *w, __u64 index)
{
	return &w->used[index % PREAUTH_WINDOW / 64];
}

/* Later packets take the places of removed ones, and are marked unused. */
static void drop_before(struct preauth_window *w, __u64 first)
{
	__u64 n = first - w->first, end = n < PREAUTH_WINDOW ? first : w->first + PREAUTH_WINDOW;

	for (__u64 at = w->first, next; at < end; at = next) {
		next = (at | 63) + 1; /* of the next word */
		*word_of(w, at) &= (bit_of(at) - 1) | (next > end ? ~(bit_of(end) - 1) : 0);
	}
	w->known = n < w->known ? w->known - (__u32)n : 0;
	w->first = first;
}

static void move(struct preauth_window *w, __u64 newest)
{
	if (newest >= w->first + PREAUTH_BEHIND)
		drop_before(w, newest - PREAUTH_BEHIND);
}

void preauth_window_take(struct preauth_window *w, __u64 index)
{
	if (index < w->first)
		return; /* older than the window: only SRTP's replay window knows it */
	move(w, index);
	*word_of(w, index) |= bit_of(index);
}

void preauth_window_trim(struct preauth_window *w, __u64 index, __u32 behind)
{
	if (index >= w->first + behind)
		drop_before(w, index - behind);
}

void preauth_window_take_group(struct preauth_window *w, __u64 first, __u32 taken)
{
	if (!taken || first < w->first)
		return;
	move(w, first + 31 - (__u32)__builtin_clz(taken));
	*word_of(w, first) |= (__u64)taken << (first % 64);
}
