/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name that a mistyped word probably meant. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* Longest name that is compared, in bytes. */
#define NEAREST_MAX 63

/* The edit distance: the number of insertions, deletions, replacements and swaps of neighbours that
 * turn a into b, at most limit + 1. Both have at most NEAREST_MAX bytes, else limit + 1. */
size_t nearest_distance(const char *a, const char *b, size_t limit);

/* Finds the name nearest to word, or NULL if none is similar: at most a third of its letters may
 * differ. name(arg, i) returns the i-th of n names. The result is one of them. */
const char *nearest(const char *word, const char *(*name)(const void *arg, size_t i),
	const void *arg, size_t n);

#endif
