/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots for the web page. Everything in them is either ours or a string that the page shows as text; never a key: calls
 * come by the same trees as ng's query. */
#include "control/page.h"

#include <errno.h>

#include "base/clock.h"

static int write_and_free(struct pool *p, const struct ngval *tree, struct sbuf *out)
{
	int err = pool_failed(p) ? -ENOMEM : 0;

	if (!err)
		json_write(out, tree, false);
	pool_destroy(p);
	return err ? err : out->err;
}

/* --- What is looked at ------------------------------------------------------------------------------------------ */

void page_look_read(struct page_look *out, struct str text)
{
	out->show = str_cut(&text, '\n');
	out->filter = str_cut(&text, '\n');
	out->sort = str_cut(&text, '\n');
	out->after = str_cut(&text, '\n');
	out->ended = str_cut(&text, '\n');
	out->call = text;
}

size_t page_look_write(char *buf, size_t size, const struct page_look *look)
{
	const struct str field[] = {
		look->show, look->filter, look->sort, look->after, look->ended, look->call};
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		bool last = i + 1 == ARRAY_LEN(field);

		if (len + field[i].len + !last > size)
			return 0;
		if (!last && field[i].len && memchr(field[i].s, '\n', field[i].len))
			return 0;
		if (field[i].len)
			memcpy(buf + len, field[i].s, field[i].len);
		len += field[i].len;
		if (!last)
			buf[len++] = '\n';
	}
	return len;
}

/* --- Snapshots -------------------------------------------------------------------------------------------------- */

/* Words that are no filter are a part of a Call-ID, tag or name, blanks included. An order that does
 * not exist is the newest first. */
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

int page_snapshot(const struct page_source *s, const struct page_look *look, uint64_t now_ns,
	struct sbuf *out)
{
	uint64_t skip = 0;
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	d = ngval_dict(p);
	ngval_add_int(p, d, STR("now"), (int64_t)(now_ns / 1000000));
	if (s->fill)
		s->fill(s->arg, p, d);
	add_calls(s, look, p, now_ns, d);
	if (look->ended.len)
		(void)str_to_u64(&skip, look->ended, ENDED_CALLS);
	ended_view(s->ended, p, look->filter, (uint32_t)skip, PAGE_ENDED, now_ns / 1000000, d);
	if (look->call.len)
		add_detail(s, look->call, p, now_ns, d);
	return write_and_free(p, d, out);
}

int page_history(const struct page_source *s, struct sbuf *out)
{
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	d = ngval_dict(p);
	if (s->history)
		s->history(s->arg, p, ngval_add_dict(p, d, STR("history")));
	return write_and_free(p, d, out);
}

/* --- Ending a call ---------------------------------------------------------------------------------------------- */

int page_end_call(struct ng_front *f, struct str call_id, uint64_t now_ns, struct sbuf *out)
{
	struct sbuf request, reply;
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	sbuf_init(&request, 0);
	sbuf_init(&reply, 0);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("command"), STR("delete"));
	ngval_add_str(p, d, STR("call-id"), call_id);
	ngval_add_int(p, d, STR("delete delay"), 0);
	ngval_add_str(p, d, STR("flags"), STR("fast"));
	/* bencode: Call-IDs need not be UTF-8 */
	bencode_write(&request, d);
	err = request.err ? request.err : ng_front_plain(f, sbuf_view(&request), now_ns, &reply);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("ended"), call_id);
	ngval_add_int(p, d, STR("ok"),
		!err && reply.len && memmem(reply.p, reply.len, "6:result2:ok", 12) &&
			!memmem(reply.p, reply.len, "7:warning", 9));
	sbuf_fini(&request);
	sbuf_fini(&reply);
	return write_and_free(p, d, out);
}
