/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots for the web page. All texts are ours, or strings that the page shows as text. Calls use
 * the trees of ng's query, so they contain no key. */
#include "call/browse.h"
#include "call/call.h"
#include "call/explain.h"
#include "control/page.h"

/* Text that is not a filter is part of a Call-ID, tag or name, including blanks. Unknown orders
 * mean newest first. */
static void add_calls(const struct page_source *s, const struct page_look *look, struct pool *p,
	uint64_t now_ns, struct ngval *d)
{
	struct calls_look list = {.filter = pool_printf(p, STR_FMT " " STR_FMT, STR_ARG(look->show),
					  STR_ARG(look->filter)),
		.sort = look->sort,
		.after = look->after,
		.count = true,
		.limit = PAGE_CALLS};

	if (!calls_view(s->calls, p, &list, now_ns, d))
		return;
	list.filter = look->show;
	list.part = look->filter;
	ngval_add_int(p, d, STR("by text"), 1);
	if (!calls_view(s->calls, p, &list, now_ns, d))
		return;
	list.filter = list.sort = STR_NONE;
	(void)calls_view(s->calls, p, &list, now_ns, d);
}

static void add_detail(const struct page_source *s, struct str call_id, struct pool *p,
	uint64_t now_ns, struct ngval *d)
{
	struct ng_request r = {.command = NG_QUERY, .call_id = call_id};
	struct ngval *detail = ngval_add_dict(p, d, STR("detail"));
	struct call_reply reply = {0};

	ngval_add_str(p, detail, STR("id"), call_id);
	calls_query(s->calls, p, &r, now_ns, &reply, detail);
	ngval_add_int(p, detail, STR("gone"), reply.error != NULL);
	if (!reply.error)
		(void)calls_explain(
			s->calls, p, call_id, now_ns, ngval_add_dict(p, detail, STR("explain")));
	else
		(void)ended_detail(s->ended, p, call_id, now_ns / 1000000, detail);
}

void page_snapshot(const struct page_source *s, const struct page_look *look, struct pool *p,
	uint64_t now_ns, struct ngval *d)
{
	uint64_t skip = 0;

	ngval_add_int(p, d, STR("now"), (int64_t)(now_ns / 1000000));
	if (s->fill)
		s->fill(s->arg, p, d);
	add_calls(s, look, p, now_ns, d);
	if (look->ended.len)
		(void)str_to_u64(&skip, look->ended, ENDED_CALLS);
	ended_view(s->ended, p, &(struct ended_page){look->filter, (uint32_t)skip, PAGE_ENDED},
		now_ns / 1000000, d);
	if (look->call.len)
		add_detail(s, look->call, p, now_ns, d);
}

void page_history(const struct page_source *s, struct pool *p, struct ngval *d)
{
	if (s->history)
		s->history(s->arg, p, ngval_add_dict(p, d, STR("history")));
}
