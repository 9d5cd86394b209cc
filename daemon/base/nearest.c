/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: row i of the matrix needs the two rows before it. */
size_t nearest_distance(const char *a, const char *b, size_t limit)
{
	size_t rows[3][NEAREST_MAX + 1], la = strlen(a), lb = strlen(b);

	if (la > NEAREST_MAX || lb > NEAREST_MAX)
		return limit + 1;
	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = least(least(above[j], row[j - 1]) + 1,
				above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], two[j - 2] + 1);
		}
	}
	return least(rows[la % 3][lb], limit + 1);
}

const char *nearest(
	const char *word, const char *(*name)(const void *arg, size_t i), const void *arg, size_t n)
{
	size_t limit = strlen(word) / 3, best = limit + 1;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t d = nearest_distance(word, name(arg, i), limit);

		if (d < best) {
			best = d;
			found = name(arg, i);
		}
	}
	return found;
}
