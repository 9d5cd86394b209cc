/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reason why getopt_long() refused a word of the command line. */
#ifndef BASE_REFUSED_H
#define BASE_REFUSED_H

#include <getopt.h>
#include <stddef.h>

/* Writes one cause and its remedy to out, truncated to len bytes: the option is unknown (with the
 * nearest name), ambiguous, lacks a value, or takes none. longs has n options without the final
 * empty one. form(i) returns the form of the value of longs[i], "" if unknown. */
void option_refused(char *out, size_t len, const char *word, const struct option *longs, size_t n,
	const char *(*form)(size_t i));

#endif
