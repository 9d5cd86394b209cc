/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints replies for people: calls as a table, one call, statistics, limits. */
#ifndef CTL_VIEW_H
#define CTL_VIEW_H

#include <stdio.h>

#include "proto/ngval.h"

struct view {
	FILE *to;
	struct pool *p;
	uint32_t width, rows; /* of the terminal, 0 = unlimited */
	uint32_t selected;    /* highlighted row of calls, from 1; 0 = none */
};

/* Each shows a reply of its command. */
void view_calls(const struct view *v, const struct ngval *reply);
void view_call(const struct view *v, const struct ngval *reply);
void view_stats(const struct view *v, const struct ngval *reply);
void view_limits(const struct view *v, const struct ngval *reply);

/* The full name of a suite that a table shows as "GCM256", written to buf, or the same name. */
const char *suite_long(const char *name, char *buf, size_t len);

/* The previous counters, for rates. */
struct view_before {
	uint64_t mono_ns;
	int64_t in, out, drops;
};
/* Prints a summary of "statistics" with rates since *before, and updates *before. */
uint32_t view_head(const struct view *v, const struct ngval *reply, struct view_before *before);

#endif
