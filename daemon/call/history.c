/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See history.h. */
#include "call/history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL (HISTORY_FIRST + HISTORY_LATEST)

struct event {
	uint64_t ns;
	uint8_t kind;
	uint8_t tag_len; /* the text begins with this many bytes of a tag */
	uint16_t len;    /* of both */
	char text[];
};

struct history {
	uint64_t count; /* ever added */
	struct event *event[ALL];
};

/* Place of the n-th event: the first ones are kept, later ones share a ring. */
static uint32_t place(uint64_t n)
{
	return n < HISTORY_FIRST ? (uint32_t)n
				 : HISTORY_FIRST + (uint32_t)((n - HISTORY_FIRST) % HISTORY_LATEST);
}

void history_add(struct history **h, uint64_t now_ns, enum history_kind kind, struct str tag,
	const char *fmt, ...)
{
	char text[HISTORY_TEXT + 1];
	size_t tag_len = tag.len < UINT8_MAX ? tag.len : UINT8_MAX, len;
	struct event *e, **at;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = n < 0 ? 0 : (size_t)n < HISTORY_TEXT ? (size_t)n : HISTORY_TEXT;
	if (!*h)
		*h = calloc(1, sizeof(**h));
	e = *h ? malloc(sizeof(*e) + tag_len + len) : NULL;
	if (!e)
		return;
	*e = (struct event){.ns = now_ns,
		.kind = (uint8_t)kind,
		.tag_len = (uint8_t)tag_len,
		.len = (uint16_t)(tag_len + len)};
	if (tag_len)
		memcpy(e->text, tag.s, tag_len);
	memcpy(e->text + tag_len, text, len);
	for (size_t i = 0; i < e->len; i++)
		if ((unsigned char)e->text[i] < 0x20 || e->text[i] == 0x7f)
			e->text[i] = '?';
	at = &(*h)->event[place((*h)->count++)];
	free(*at);
	*at = e;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < ALL; i++)
		free(h->event[i]);
	free(h);
}

struct str history_name(struct pool *p, struct str name)
{
	struct str head = {name.s, HISTORY_NAME_MAX - 32};

	if (name.len <= HISTORY_NAME_MAX)
		return name;
	while (head.len && ((unsigned char)name.s[head.len] & 0xc0) == 0x80) /* UTF-8 */
		head.len--;
	return pool_printf(p, STR_FMT "... (%zu bytes)", STR_ARG(head), name.len);
}

static void add_event(struct pool *p, struct ngval *list, const struct event *e)
{
	static const char *const names[HISTORY_KIND_COUNT] = {
#define X(id, name) name,
		HISTORY_KINDS(X)
#undef X
	};
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);

	ngval_add_int(p, d, STR("time"), (int64_t)(e->ns / 1000000));
	ngval_add_str(p, d, STR("event"), str_from(names[e->kind]));
	if (e->tag_len)
		ngval_add_str(p, d, STR("tag"),
			pool_strdup(p, history_name(p, (struct str){e->text, e->tag_len})));
	ngval_add_str(p, d, STR("text"),
		pool_strdup(p, (struct str){e->text + e->tag_len, (size_t)e->len - e->tag_len}));
}

void history_tree(const struct history *h, struct pool *p, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("events"));
	uint64_t left_out = h && h->count > ALL ? h->count - ALL : 0;

	for (uint64_t n = 0; h && n < h->count; n++) {
		if (n == HISTORY_FIRST)
			n += left_out;
		add_event(p, list, h->event[place(n)]);
	}
	ngval_add_int(p, dict, STR("events left out"), (int64_t)left_out);
}
