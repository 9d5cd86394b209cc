/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of sections and lines of the form name = value. */
#ifndef BASE_INI_H
#define BASE_INI_H

#include <stdbool.h>

/* One line, with those that go on with it: they begin with a blank, and a blank stands between. False: it is wrong. */
typedef bool ini_entry(void *arg, const char *section, const char *name, const char *value);

/* 0, the number of the first line that is wrong (or that entry refused), or -errno. */
int ini_read(const char *path, ini_entry *entry, void *arg);

#endif
