/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of the calls that match a filter (call/find.h). Without an order a page continues at the
 * serial number of the last call, so calls that begin or end meanwhile move no other. With an order
 * it continues at a position in the list, which is sorted again for each page. */
#include "call/browse.h"

#include <errno.h>
#include <stdlib.h>

#include "call/call_int.h"
#include "call/find.h"
#include "call/summary.h"

struct browse {
	const struct calls *c;
	struct pool *p;
	struct find find;
	uint64_t now_ns, after;
	uint32_t limit, bytes_max;
	bool first; /* the first page */
	bool count;
	struct ngval *list, *dict;
	size_t bytes;
	uint32_t shown;
};

struct ranked {
	double rank;
	const struct call *call;
};

/* False: the page is full. */
static bool show(struct browse *b, const struct call *call)
{
	if (b->shown >= b->limit || b->bytes >= b->bytes_max)
		return false;
	b->bytes += summary_call(b->c->relay, b->p, call, b->now_ns, b->list);
	b->shown++;
	return true;
}

static void add_next(struct browse *b, uint64_t next)
{
	ngval_add_str(
		b->p, b->dict, STR("next"), pool_printf(b->p, "%llu", (unsigned long long)next));
}

static void newest_first(struct browse *b)
{
	const struct call *call = b->c->table.last, *last = NULL;
	uint32_t matched = 0;
	bool more = false;
	struct sight s;

	for (; call; call = call->prev) {
		bool before = !b->first && call->serial >= b->after;

		if ((before && !b->count) ||
			!find_matches(&b->find, b->c->relay, call, b->now_ns, &s))
			continue;
		matched++;
		if (before)
			continue;
		if (!more && show(b, call))
			last = call;
		else
			more = true;
		if (more && !b->count)
			break;
	}
	if (b->count)
		ngval_add_int(b->p, b->dict, STR("matched"), matched);
	if (more)
		add_next(b, last ? last->serial : 0);
}

static int compare(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->call->serial < b->call->serial ? 1 : -1; /* never equal */
}

static const char *in_order(struct browse *b)
{
	struct ranked *r = calloc(b->c->table.count + 1, sizeof(*r));
	const struct call *call = b->c->table.first;
	uint32_t n = 0, at;
	struct sight s;

	if (!r)
		return NGE_NOMEM;
	for (; call; call = call->next)
		if (find_matches(&b->find, b->c->relay, call, b->now_ns, &s))
			r[n++] = (struct ranked){find_rank(b->find.order, call, &s), call};
	qsort(r, n, sizeof(*r), compare);
	at = b->after < n ? (uint32_t)b->after : n;
	while (at < n && show(b, r[at].call))
		at++;
	free(r);
	if (b->count)
		ngval_add_int(b->p, b->dict, STR("matched"), n);
	if (at < n)
		add_next(b, at);
	return NULL;
}

const char *calls_view(struct calls *c, struct pool *p, const struct calls_look *look,
	uint64_t now_ns, struct ngval *dict)
{
	struct browse b = {.c = c,
		.p = p,
		.now_ns = now_ns,
		.limit = look->limit,
		.bytes_max = look->bytes ? look->bytes : UINT32_MAX,
		.first = !look->after.len,
		.count = look->count || !look->after.len,
		.dict = dict};
	const char *wrong = find_parse(&b.find, look->filter);

	if (wrong)
		return wrong;
	if (look->part.len)
		b.find.part = look->part;
	if (!find_order(&b.find.order, look->sort))
		return "sort is one of new, age, mos, loss, rtt, jitter, errors, packets, silence";
	if (!b.first && str_to_u64(&b.after, look->after, UINT64_MAX))
		return "after is the value of \"next\" in the previous page";
	b.list = ngval_add_list(p, dict, STR("calls"));
	if (b.find.order != FIND_BY_NEW)
		return in_order(&b);
	newest_first(&b);
	return NULL;
}
