/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See handles.h. */
#include "bridge/handles.h"

#include <errno.h>
#include <stdlib.h>

int handles_init(struct handles *h, uint32_t first, uint32_t end)
{
	h->free = calloc(end ? end : 1, sizeof(*h->free));
	if (!h->free)
		return -ENOMEM;
	for (uint32_t i = end; i > first; i--)
		h->free[h->n++] = i - 1;
	h->all = h->n;
	return 0;
}

void handles_fini(struct handles *h)
{
	free(h->free);
}

bool handles_take(struct handles *h, uint32_t *out)
{
	if (h->n == 0)
		return false;
	*out = h->free[--h->n];
	return true;
}

void handles_put(struct handles *h, uint32_t id)
{
	h->free[h->n++] = id;
}

uint32_t handles_used(const struct handles *h)
{
	return h->all - h->n;
}
