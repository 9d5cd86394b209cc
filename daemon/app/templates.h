/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads named sets of ng flags from a section of the configuration file. */
#ifndef APP_TEMPLATES_H
#define APP_TEMPLATES_H

#include "proto/ng.h"

/* All lines of the section. 0, or -errno with one line in err: the file, the section or a flag is
 * wrong. */
int templates_read(
	struct ng_templates *out, const char *file, const char *section, char *err, size_t err_len);
void templates_free(struct ng_templates *t);
bool templates_differ(const struct ng_templates *a, const struct ng_templates *b);

#endif
