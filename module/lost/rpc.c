/* SPDX-License-Identifier: GPL-2.0-or-later */
/* They run in Kamailio's RPC processes, never in a SIP worker. The cache's lock is held only while
 * entries are copied. */
#include "rpc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"
#include "settings.h"

#define ROWS_MAX 5000

static void show_servers(rpc_t *rpc, void *ctx, const struct server *s, int n, char *what)
{
	void *h;

	for (int i = 0; i < n; i++) {
		if (rpc->add(ctx, "{", &h) < 0)
			return;
		rpc->struct_add(h, "ssdd", what, (char *)s[i].url, "state",
			s[i].down_until > now_ms() ? "down" : "up", "asked", (int)s[i].asked,
			"failed", (int)s[i].failed);
	}
}

static void show(rpc_t *rpc, void *ctx)
{
	void *h;
	struct cache copy;

	show_servers(rpc, ctx, shared->server, settings.servers, "server");
	show_servers(rpc, ctx, shared->lis, settings.lises, "lis");
	lock_get(&shared->lock);
	copy = shared->cache;
	lock_release(&shared->lock);
	if (rpc->add(ctx, "{", &h) == 0)
		rpc->struct_add(h, "ddddd", "in_flight",
			__atomic_load_n(&shared->in_flight, __ATOMIC_RELAXED), "cache_entries",
			(int)copy.entries, "cache_entries_max", (int)copy.entries_max, "cache_kib",
			(int)(copy.bytes / 1024), "cache_evicted", (int)copy.evicted);
}

/* A row of xlost.cache. */
struct row {
	char service[128], uri[192], source[96], source_id[96];
	struct cache_view v;
};

struct rows {
	struct row *row;
	int n, max;
};

static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = 0;
}

static bool collect(void *arg, const struct cache_view *v)
{
	struct rows *r = arg;
	struct row *row;

	if (r->n == r->max)
		return false;
	row = &r->row[r->n++];
	row->v = *v;
	copy_text(row->service, sizeof(row->service), v->service);
	copy_text(row->uri, sizeof(row->uri), v->uri);
	copy_text(row->source, sizeof(row->source), v->source);
	copy_text(row->source_id, sizeof(row->source_id), v->source_id);
	return true;
}

static void cache(rpc_t *rpc, void *ctx)
{
	struct rows r = {
		.max = settings.cache_entries < ROWS_MAX ? settings.cache_entries : ROWS_MAX};
	int64_t now = time(NULL);
	void *h;

	r.row = calloc((size_t)r.max + 1, sizeof(*r.row));
	if (!r.row) {
		rpc->fault(ctx, 500, "out of memory");
		return;
	}
	lock_get(&shared->lock);
	cache_each(&shared->cache, collect, &r);
	lock_release(&shared->lock);
	for (int i = 0; i < r.n; i++) {
		const struct row *w = &r.row[i];

		if (rpc->add(ctx, "{", &h) < 0)
			break;
		rpc->struct_add(h, "ssssdddd", "service", w->service, "uri", w->uri, "source",
			w->source, "source_id", w->source_id, "corners", (int)w->v.points, "age",
			(int)(now - w->v.inserted), "expires_in", (int)(w->v.expires - now), "hits",
			(int)w->v.hits);
	}
	free(r.row);
}

static void clear(rpc_t *rpc, void *ctx)
{
	char name[128] = "";
	str service;
	uint32_t n;
	void *h;

	if (rpc->scan(ctx, "*S", &service) >= 1) {
		if (service.len >= (int)sizeof(name)) {
			rpc->fault(ctx, 400, "the name of the service is too long");
			return;
		}
		memcpy(name, service.s, (size_t)service.len);
		name[service.len] = 0;
	}
	lock_get(&shared->lock);
	n = cache_clear(&shared->cache, name[0] ? name : NULL);
	lock_release(&shared->lock);
	if (rpc->add(ctx, "{", &h) == 0)
		rpc->struct_add(h, "d", "removed", (int)n);
}

static const char *show_doc[] = {"servers, their state and requests; the cache's size", 0};
static const char *cache_doc[] = {"mappings in the cache, without coordinates", 0};
static const char *clear_doc[] = {"removes all mappings, or those of a service", 0};

rpc_export_t rpc_exports[] = {{"xlost.show", show, show_doc, RET_ARRAY},
	{"xlost.cache", cache, cache_doc, RET_ARRAY}, {"xlost.clear", clear, clear_doc, 0},
	{0, 0, 0, 0}};
