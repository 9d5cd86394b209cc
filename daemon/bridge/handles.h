/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stack of free numbers. Nothing is checked: a user must return each number exactly once. */
#ifndef BRIDGE_HANDLES_H
#define BRIDGE_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct handles {
	uint32_t *free;
	uint32_t n, all; /* number of free ones, and of all */
};

/* The numbers from first to end - 1. 0 or -ENOMEM. */
int handles_init(struct handles *h, uint32_t first, uint32_t end);
void handles_fini(struct handles *h);
/* False if none is free. */
bool handles_take(struct handles *h, uint32_t *out);
void handles_put(struct handles *h, uint32_t id);
uint32_t handles_used(const struct handles *h);

#endif
