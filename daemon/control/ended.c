/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See ended.h. Each entry has one block of memory for its texts. */
#include "call/closing.h"
#include "control/ended.h"

#include <errno.h>
#include <stdlib.h>

struct one {
	uint64_t ended_ms, created_ms, answered_ms;
	const char *reason;            /* a constant */
	struct str id, from, to, text; /* slices of block */
	bool one_way;
	char *block;
};

struct ended {
	struct one ring[ENDED_CALLS];
	uint64_t count;  /* calls ever added; the newest is at (count - 1) % ENDED_CALLS */
	uint64_t cut_ms; /* end time of the latest replaced call */
	uint64_t cut;    /* calls replaced before ten minutes, since the ring was last long
			  * enough */
};

int ended_create(struct ended **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void ended_destroy(struct ended *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < ENDED_CALLS; i++)
		free(e->ring[i].block);
	free(e);
}

static struct str cut(struct str s)
{
	return (struct str){s.s, s.len < ENDED_TEXT ? s.len : ENDED_TEXT};
}

static struct str keep(char **at, struct str s)
{
	struct str kept = {*at, s.len};

	if (s.len)
		memcpy(*at, s.s, s.len);
	*at += s.len;
	return kept;
}

static bool recent(const struct one *o, uint64_t now_ms)
{
	return o->block && o->ended_ms + ENDED_MS > now_ms;
}

void ended_add(struct ended *e, const struct call_closing *c, uint64_t now_ms)
{
	struct str id = cut(c->call_id), from = cut(c->from), to = cut(c->to);
	struct one *o;
	char *at;

	if (!e)
		return;
	o = &e->ring[e->count++ % ENDED_CALLS];
	if (e->cut_ms + ENDED_MS <= now_ms)
		e->cut = 0;
	if (recent(o, now_ms)) {
		e->cut++;
		e->cut_ms = o->ended_ms;
	}
	free(o->block);
	*o = (struct one){.ended_ms = c->ended_ns / 1000000,
		.created_ms = c->created_ns / 1000000,
		.answered_ms = c->answered_ns / 1000000,
		.reason = c->reason,
		.one_way = c->one_way};
	o->block = at = malloc(id.len + from.len + to.len + c->text.len + 1);
	if (!at)
		return;
	o->id = keep(&at, id);
	o->from = keep(&at, from);
	o->to = keep(&at, to);
	o->text = keep(&at, c->text);
}

static bool contains(struct str s, struct str part)
{
	return !part.len || (s.len && memmem(s.s, s.len, part.s, part.len));
}

static void add_one(struct pool *p, struct ngval *d, const struct one *o)
{
	ngval_add_str(p, d, STR("id"), o->id);
	ngval_add_str(p, d, STR("from"), o->from);
	ngval_add_str(p, d, STR("to"), o->to);
	ngval_add_str(p, d, STR("reason"), str_from(o->reason));
	ngval_add_int(p, d, STR("created"), (int64_t)o->created_ms);
	ngval_add_int(p, d, STR("answered"), (int64_t)o->answered_ms);
	ngval_add_int(p, d, STR("ended"), (int64_t)o->ended_ms);
	ngval_add_int(p, d, STR("one-way"), o->one_way);
}

void ended_view(const struct ended *e, struct pool *p, const struct ended_page *page,
	uint64_t now_ms, struct ngval *dict)
{
	uint64_t n = e ? e->count : 0, matched = 0;
	struct ngval *list;

	if (!e)
		return;
	list = ngval_add_list(p, dict, STR("ended calls"));
	for (uint32_t i = 0; i < ENDED_CALLS && n; i++) {
		const struct one *o = &e->ring[--n % ENDED_CALLS];

		if (!recent(o, now_ms) ||
			!(contains(o->id, page->part) || contains(o->from, page->part) ||
				contains(o->to, page->part)))
			continue;
		if (matched >= page->skip && matched < (uint64_t)page->skip + page->limit)
			add_one(p, ngval_add_dict(p, list, STR_NONE), o);
		matched++;
	}
	ngval_add_int(p, dict, STR("ended matched"), (int64_t)matched);
	ngval_add_int(p, dict, STR("ended not kept"),
		e->cut_ms + ENDED_MS > now_ms ? (int64_t)e->cut : 0);
}

bool ended_detail(const struct ended *e, struct pool *p, struct str call_id, uint64_t now_ms,
	struct ngval *dict)
{
	uint64_t n = e ? e->count : 0;

	for (uint32_t i = 0; i < ENDED_CALLS && n; i++) {
		const struct one *o = &e->ring[--n % ENDED_CALLS];
		struct ngval *d;

		if (!recent(o, now_ms) || !str_eq(o->id, cut(call_id)))
			continue;
		d = ngval_add_dict(p, dict, STR("closing"));
		add_one(p, d, o);
		ngval_add_str(p, d, STR("text"), o->text);
		return true;
	}
	return false;
}
