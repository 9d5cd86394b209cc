/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name that a mistyped word probably meant. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* Longest name that is compared, in bytes. */
#define NEAREST_MAX 63

/* How many single letters must be inserted, removed, replaced, or swapped with their neighbour to
 * turn a into b; more than limit counts as limit + 1. Both at most NEAREST_MAX bytes, else limit + 1. */
size_t nearest_distance(const char *a, const char *b, size_t limit);

/* The name that is nearest to word, or NULL if none is similar: a third of its letters may differ.
 * name(arg, i) returns the i-th of n names. The result is one of them. */
const char *nearest(const char *word, const char *(*name)(const void *arg, size_t i),
	const void *arg, size_t n);

#endif
