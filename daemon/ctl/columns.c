/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables (ctl/columns.h). One character per column suffices for Call-IDs and numbers. */
#include "ctl/columns.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CUT_MIN 8u
#define GAP     2u

struct table_row {
	struct table_row *next;
	struct str cell[TABLE_COLUMNS];
};

void table_init(struct table *t, struct pool *p, const char *spec)
{
	struct str rest = pool_strdup(p, str_from(spec));

	*t = (struct table){.p = p};
	while (rest.s && t->columns < TABLE_COLUMNS) {
		struct str title = str_cut(&rest, '|');

		for (; title.len && strchr(">~", title.s[0]); title.s++, title.len--) {
			t->right[t->columns] |= title.s[0] == '>';
			t->cut[t->columns] |= title.s[0] == '~';
		}
		t->title[t->columns++] = pool_strdup(p, title).s;
	}
}

struct str *table_row(struct table *t)
{
	struct table_row *r = pool_alloc(t->p, sizeof(*r));

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	if (t->last)
		t->last->next = r;
	else
		t->first = r;
	t->last = r;
	return r->cell;
}

void table_terminal(FILE *to, uint32_t *width, uint32_t *height)
{
	const char *columns = getenv("COLUMNS");
	struct winsize w = {0};
	uint64_t n;

	if (isatty(fileno(to)))
		(void)ioctl(fileno(to), TIOCGWINSZ, &w);
	*width = w.ws_col;
	*height = w.ws_row;
	if (columns && str_to_u64(&n, str_from(columns), 10000) == 0)
		*width = (uint32_t)n;
}

struct layout {
	uint32_t width[TABLE_COLUMNS];
	uint32_t columns; /* that are shown */
};

static uint32_t total(const struct layout *l)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < l->columns; i++)
		sum += l->width[i] + (i ? GAP : 0);
	return sum;
}

/* Narrows the widest columns that may be cut; then removes columns. */
static void squeeze(const struct table *t, struct layout *l, uint32_t width)
{
	while (total(l) > width) {
		uint32_t widest = TABLE_COLUMNS;

		for (uint32_t i = 0; i < l->columns; i++)
			if (t->cut[i] && l->width[i] > CUT_MIN &&
				(widest == TABLE_COLUMNS || l->width[i] > l->width[widest]))
				widest = i;
		if (widest < TABLE_COLUMNS)
			l->width[widest]--;
		else if (l->columns > 1)
			l->columns--;
		else
			return;
	}
}

/* Control characters of a Call-ID must not reach the terminal. */
static void put(FILE *to, struct str s, uint32_t width, bool right, bool last)
{
	uint32_t shown = s.len > width ? width - 1 : (uint32_t)s.len, pad = width - shown;

	if (s.len > width)
		pad = 0;
	if (right)
		fprintf(to, "%*s", (int)pad, "");
	for (uint32_t i = 0; i < shown; i++)
		fputc(s.s[i] >= 0x20 && s.s[i] < 0x7f ? s.s[i] : '?', to);
	if (s.len > width)
		fputc('~', to);
	if (!right && !last)
		fprintf(to, "%*s", (int)pad, "");
	fputs(last ? "\n" : "  ", to);
}

void table_print(FILE *to, const struct table *t, uint32_t width, uint32_t rows)
{
	struct layout l = {.columns = t->columns};

	for (uint32_t i = 0; i < t->columns; i++)
		l.width[i] = (uint32_t)strlen(t->title[i]);
	for (const struct table_row *r = t->first; r; r = r->next)
		for (uint32_t i = 0; i < t->columns; i++)
			if (r->cell[i].len > l.width[i])
				l.width[i] = (uint32_t)r->cell[i].len;
	if (width)
		squeeze(t, &l, width);
	for (uint32_t i = 0; i < l.columns; i++)
		put(to, str_from(t->title[i]), l.width[i], t->right[i], i + 1 == l.columns);
	for (const struct table_row *r = t->first; r; r = r->next) {
		for (uint32_t i = 0; i < l.columns; i++)
			put(to, r->cell[i], l.width[i], t->right[i], i + 1 == l.columns);
		if (rows && --rows == 0)
			break;
	}
}
