/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_LEN 200

void trace_add(struct buf *b, size_t most, const struct traced *t)
{
	const char *request = t->request ? t->request : "";
	size_t url = strlen(t->url), asked = strlen(request);
	size_t need = b->len + LINE_MAX_LEN + url + asked;
	size_t kept = t->reply ? strnlen(t->reply, t->len) : 0;
	char line[LINE_MAX_LEN];
	int n;

	if (need > most)
		return;
	if (kept > most - need)
		kept = most - need;
	n = snprintf(line, sizeof(line), "%s %" PRId64 " %" PRId64 " %s %d %zu %zu %zu %zu\n",
		t->kind, t->begin, t->end, *t->error ? t->error : "-", t->status, url, asked, kept,
		t->reply ? t->len : 0);
	if (n < 0 || n >= (int)sizeof(line))
		return;
	buf_add(b, line, (size_t)n);
	buf_add(b, t->url, url);
	buf_add(b, request, asked);
	if (kept)
		buf_add(b, t->reply, kept);
}
