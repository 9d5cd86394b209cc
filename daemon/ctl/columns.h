/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables that fit the terminal. The longest texts are cut first, then columns are left out from the
 * right. */
#ifndef CTL_COLUMNS_H
#define CTL_COLUMNS_H

#include <stdio.h>

#include "proto/ngval.h"

#define TABLE_COLUMNS 12

struct table_row;

struct table {
	struct pool *p;
	uint32_t columns;
	const char *title[TABLE_COLUMNS];
	bool right[TABLE_COLUMNS]; /* numbers */
	bool cut[TABLE_COLUMNS];   /* may be cut, down to 8 */
	struct table_row *first, *last;
};

/* spec: titles with '|' between; '>' before one: a number, '~': may be cut. Constant. */
void table_init(struct table *t, struct pool *p, const char *spec);
/* The next row, [columns] cells, empty. NULL without memory. */
struct str *table_row(struct table *t);
/* width: columns of the terminal, 0 = unlimited. rows: at most, 0 = all. */
void table_print(FILE *to, const struct table *t, uint32_t width, uint32_t rows);
/* Size of the terminal of this stream; 0: not a terminal. $COLUMNS overrides the width. */
void table_terminal(FILE *to, uint32_t *width, uint32_t *height);

#endif
