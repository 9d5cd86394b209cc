/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of sections and lines of the form name = value. */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>
#include <stdio.h>

/* One entry. Lines that begin with a blank continue it, and are joined to it by a blank. Returns
 * false if it is wrong. */
typedef bool ini_entry(void *arg, const char *section, const char *name, const char *value);

/* 0, the number of the first wrong line (by syntax, or because entry() refused it), or -errno. */
int ini_read(const char *path, ini_entry *entry, void *arg);

/* Like ini_read(), from an open stream, which stays open. section (may be NULL) is called for each
 * line [name], so that the caller also sees sections without entries. It returns false if the name
 * is wrong. */
struct ini_reader {
	ini_entry *entry;
	bool (*section)(void *arg, const char *name);
};
int ini_read_stream(FILE *f, const struct ini_reader *how, void *arg);

#endif
