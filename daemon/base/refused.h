/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why getopt_long() refused a word of the command line. */
#ifndef BASE_REFUSED_H
#define BASE_REFUSED_H

#include <getopt.h>
#include <stddef.h>

/* Writes one cause and its remedy into out, cut off at len bytes: the option is unknown (with the nearest name), is ambiguous, needs
 * a value, or takes none. longs has n options, without the last empty one. form(i) is how the value of longs[i] is written, "" if that
 * is unknown. */
void option_refused(char *out, size_t len, const char *word, const struct option *longs, size_t n,
	const char *(*form)(size_t i));

#endif
