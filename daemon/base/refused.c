/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/refused.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

static const char *name_of(const void *arg, size_t i)
{
	return ((const struct option *)arg)[i].name;
}

/* Finds the option with this name, or with this abbreviation. *similar: number of options that
 * begin with it. */
static const struct option *meant(
	const char *name, const struct option *longs, size_t n, size_t *similar)
{
	const struct option *first = NULL;

	*similar = 0;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(longs[i].name, name) == 0) {
			*similar = 1;
			return &longs[i];
		}
		if (strncmp(longs[i].name, name, strlen(name)) == 0 && !(*similar)++)
			first = &longs[i];
	}
	return first;
}

void option_refused(char *out, size_t len, const char *word, const struct option *longs, size_t n,
	const char *(*form)(size_t i))
{
	const struct option *o;
	const char *near, *value;
	char name[NEAREST_MAX + 1];
	size_t similar;

	if (strncmp(word, "--", 2) != 0) {
		snprintf(out, len, "%s is not an option. --help lists them", word);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	o = meant(name, longs, n, &similar);
	near = nearest(name, name_of, longs, n);
	if (!o || !name[0]) {
		snprintf(out, len, "unknown option --%s. %s%s%s--help lists all", name,
			near ? "Did you mean --" : "", near ? near : "", near ? "? " : "");
	} else if (similar > 1) {
		snprintf(out, len, "--%s is ambiguous: --%s is one of %zu options that begin so",
			name, o->name, similar);
	} else if (o->has_arg == no_argument) {
		snprintf(out, len, "--%s takes no value", o->name);
	} else {
		value = form(o - longs);
		snprintf(out, len, "--%s needs a value%s%s%s%s", o->name, *value ? ": --" : "",
			*value ? o->name : "", *value ? "=" : "", value);
	}
}
