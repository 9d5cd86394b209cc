/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of one request: chunks that are wiped and freed together. */
#include "base/pool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"

#define CHUNK_LEN 16384u
#define ALIGN     16u

struct chunk {
	struct chunk *next;
	size_t cap, used;
	_Alignas(ALIGN) uint8_t mem[];
};

struct pool {
	struct chunk *chunk; /* newest first */
	size_t left;         /* of the limit */
	bool failed;
};

int pool_create(struct pool **out, size_t limit)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->left = limit;
	*out = p;
	return 0;
}

void pool_destroy(struct pool *p)
{
	struct chunk *next;

	if (!p)
		return;
	for (struct chunk *c = p->chunk; c; c = next) {
		next = c->next;
		secmem_wipe(c->mem, c->used);
		free(c);
	}
	free(p);
}

static struct chunk *add_chunk(struct pool *p, size_t len)
{
	size_t cap = len > CHUNK_LEN ? len : CHUNK_LEN;
	struct chunk *c = malloc(sizeof(*c) + cap);

	if (!c)
		return NULL;
	c->cap = cap;
	c->used = 0;
	c->next = p->chunk;
	p->chunk = c;
	return c;
}

void *pool_alloc(struct pool *p, size_t len)
{
	struct chunk *c = p->chunk;
	size_t need = (len + ALIGN - 1) / ALIGN * ALIGN;
	void *at;

	if (need < len || need > p->left)
		goto fail;
	if (!c || need > c->cap - c->used)
		c = add_chunk(p, need);
	if (!c)
		goto fail;
	at = c->mem + c->used;
	c->used += need;
	p->left -= need;
	memset(at, 0, need);
	return at;
fail:
	p->failed = true;
	return NULL;
}

bool pool_failed(const struct pool *p)
{
	return p->failed;
}

struct str pool_strdup(struct pool *p, struct str a)
{
	char *s = pool_alloc(p, a.len + 1);

	if (!s)
		return STR_NONE;
	if (a.len)
		memcpy(s, a.s, a.len);
	return (struct str){s, a.len};
}

struct str pool_printf(struct pool *p, const char *fmt, ...)
{
	va_list ap;
	int len;
	char *s;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = len < 0 ? NULL : pool_alloc(p, (size_t)len + 1);
	if (!s)
		return STR_NONE;
	va_start(ap, fmt);
	vsnprintf(s, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return (struct str){s, (size_t)len};
}
