/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole addresses are found by binary search, as a host may have thousands. Wider networks are few
 * (127.0.0.0/8, AnyIP): they are searched one by one. */
#include "host/addresses.h"

#include <stdlib.h>
#include <string.h>

struct endpoint host_plain(const struct endpoint *e)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct endpoint v4 = {.port = e->port, .family = AF_INET};

	if (e->family != AF_INET6 || memcmp(e->addr, mapped, sizeof(mapped)) != 0)
		return *e;
	memcpy(v4.addr, e->addr + 12, 4);
	return v4;
}

static uint8_t whole(uint8_t family)
{
	return family == AF_INET ? 32 : 128;
}

static bool single(const struct host_net *n)
{
	return n->bits >= whole(n->addr.family);
}

static int order(const void *a, const void *b)
{
	const struct host_net *x = a, *y = b;
	int by_addr = memcmp(x->addr.addr, y->addr.addr, sizeof(x->addr.addr));

	if (single(x) != single(y))
		return single(x) ? -1 : 1;
	if (x->addr.family != y->addr.family)
		return x->addr.family < y->addr.family ? -1 : 1;
	if (by_addr)
		return by_addr;
	return x->kind != y->kind ? x->kind - y->kind : x->bits - y->bits;
}

/* For one network, the entry that names an interface sorts first. Duplicates are removed. */
static int order_to_keep(const void *a, const void *b)
{
	const struct host_net *x = a, *y = b;
	int by_net = order(a, b);

	return by_net ? by_net : (y->dev > x->dev) - (x->dev > y->dev);
}

struct host_table *host_table_make(const struct host_net *net, uint32_t n)
{
	struct host_table *t = malloc(sizeof(*t) + n * sizeof(t->net[0]));

	if (!t)
		return NULL;
	t->n = t->singles = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct host_net *to = &t->net[i];

		*to = net[i];
		to->addr = host_plain(&net[i].addr);
		to->addr.port = 0;
		if (to->addr.family != net[i].addr.family)
			to->bits = net[i].bits > 96 ? (uint8_t)(net[i].bits - 96) : 0;
	}
	if (n)
		qsort(t->net, n, sizeof(t->net[0]), order_to_keep);
	for (uint32_t i = 0; i < n; i++) {
		if (t->n && order(&t->net[t->n - 1], &t->net[i]) == 0)
			continue;
		t->singles += single(&t->net[i]);
		t->net[t->n++] = t->net[i];
	}
	return t;
}

static struct host_net key_of(const struct endpoint *e, enum host_kind kind)
{
	struct host_net key = {.addr = host_plain(e), .kind = (uint8_t)kind};

	key.addr.port = 0;
	key.bits = whole(key.addr.family);
	return key;
}

static const struct host_net *single_find(const struct host_table *t, const struct host_net *key)
{
	return t->singles ? bsearch(key, t->net, t->singles, sizeof(*key), order) : NULL;
}

int host_table_dev(const struct host_table *t, const struct endpoint *e)
{
	const struct host_net key = key_of(e, HOST_LOCAL), *found = single_find(t, &key);

	return found ? found->dev : 0;
}

bool host_table_has(const struct host_table *t, const struct endpoint *e, enum host_kind kind)
{
	const struct host_net key = key_of(e, kind);

	if (key.addr.family != AF_INET && key.addr.family != AF_INET6)
		return false;
	if (single_find(t, &key))
		return true;
	for (uint32_t i = t->singles; i < t->n; i++)
		if (t->net[i].kind == kind &&
			endpoint_in_net(&key.addr, &t->net[i].addr, t->net[i].bits))
			return true;
	return false;
}
