/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stack of free numbers: what is given out for use elsewhere, and comes back. Nothing is checked:
 * who takes a number puts it back once. */
#ifndef BRIDGE_HANDLES_H
#define BRIDGE_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct handles {
	uint32_t *free;
	uint32_t n, all; /* free ones, and all there are */
};

/* The numbers from first up to, and without, end. 0 or -ENOMEM. */
int handles_init(struct handles *h, uint32_t first, uint32_t end);
void handles_fini(struct handles *h);
/* False: none is left. */
bool handles_take(struct handles *h, uint32_t *out);
void handles_put(struct handles *h, uint32_t id);
uint32_t handles_used(const struct handles *h);

#endif
