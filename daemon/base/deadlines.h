/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Deadlines of the sessions of a keying or codec thread: a binary heap, the earliest first. */
#ifndef BASE_DEADLINES_H
#define BASE_DEADLINES_H

#include "base/bytes.h"

#define DEADLINE_NEVER UINT64_MAX

struct deadlines {
	uint64_t *at;   /* [max]: by id; DEADLINE_NEVER: not in the heap */
	uint32_t *heap; /* [max]: ids */
	uint32_t *pos;  /* [max]: place in the heap, by id */
	uint32_t n, max;
};

/* 0 or -ENOMEM. */
int deadlines_init(struct deadlines *d, uint32_t max);
void deadlines_fini(struct deadlines *d);
/* id < max. DEADLINE_NEVER takes it out. */
void deadlines_set(struct deadlines *d, uint32_t id, uint64_t at_ns);
/* DEADLINE_NEVER: there is none. */
uint64_t deadlines_first(const struct deadlines *d, uint32_t *id);

#endif
