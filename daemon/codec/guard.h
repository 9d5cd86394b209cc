/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Buffers that end at a page without access, and start after known bytes. Code that reads or writes
 * past the end gets SIGSEGV. guard_intact() finds writes before the start. */
#ifndef CODEC_GUARD_H
#define CODEC_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guard {
	uint8_t *map;
	size_t map_len, room; /* room: bytes with access, from map + a page */
};

/* Room for len bytes. 0 or -ENOMEM. */
int guard_create(struct guard *g, size_t len);
void guard_destroy(struct guard *g);
/* The last len bytes, len at most what guard_create() got, aligned down to align (a power of two).
 * Fills up to 512 bytes before them, and the few after them, with a known value. Does not touch
 * the bytes themselves. */
void *guard_tail(struct guard *g, size_t len, size_t align);
/* True if the bytes filled by the last guard_tail(len, align) are unchanged. */
bool guard_intact(const struct guard *g, size_t len, size_t align);

#endif
