/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splits the raw flag string of a script ("rtpp-flags"): words, k=v, lists [a b], dictionaries [k=v
 * k=v]. People write it, so nothing is an error: missing brackets close at the end, surplus ones
 * are skipped. ng_keys.c interprets the words. */
#include "proto/ng_int.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct reader {
	struct pool *p;
	const char *at, *end;
};

/* Up to a space, a bracket, or the first '=' (with stop_at_eq). */
static struct str read_word(struct reader *r, bool stop_at_eq)
{
	const char *start = r->at;

	while (r->at < r->end && !is_space(*r->at) && *r->at != '[' && *r->at != ']' &&
		!(stop_at_eq && *r->at == '='))
		r->at++;
	return (struct str){start, (size_t)(r->at - start)};
}

static bool next_is(const struct reader *r, char c)
{
	return r->at < r->end && *r->at == c;
}

static void read_items(struct reader *r, struct ngval *parent, unsigned depth);

static void read_value(struct reader *r, struct ngval *parent, struct str key, unsigned depth)
{
	if (next_is(r, '[')) {
		r->at++;
		/* Nested deeper than any valid value: items go to the list already open. */
		if (depth < NGVAL_MAX_DEPTH)
			read_items(r, ngval_add_list(r->p, parent, key), depth + 1);
		return;
	}
	ngval_add_str(r->p, parent, key, read_word(r, false));
}

static void read_items(struct reader *r, struct ngval *parent, unsigned depth)
{
	struct str word;

	while (parent && r->at < r->end && !pool_failed(r->p)) {
		if (is_space(*r->at)) {
			r->at++;
			continue;
		}
		if (*r->at == ']') {
			r->at++;
			if (depth > 0)
				return;
			continue;
		}
		if (*r->at == '[') {
			read_value(r, parent, STR_NONE, depth);
			continue;
		}
		word = read_word(r, true);
		if (next_is(r, '=')) {
			r->at++;
			read_value(r, parent, word, depth);
		} else {
			ngval_add_str(r->p, parent, STR_NONE, word);
		}
	}
}

struct ngval *ng_flags_split(struct pool *p, struct str text)
{
	struct ngval *list = ngval_list(p);
	struct reader r = {.p = p};

	if (text.len == 0)
		return list;
	r.at = text.s;
	r.end = text.s + text.len;
	read_items(&r, list, 0);
	return pool_failed(p) ? NULL : list;
}
