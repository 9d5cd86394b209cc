/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of the web page, built into the program: generated from web/ by tools/embed_web.py. */
#ifndef WEB_FILES_H
#define WEB_FILES_H

#include <stddef.h>

struct web_file {
	const char *path, *type;
	const unsigned char *bytes;
	size_t len;
};

extern const struct web_file web_files[]; /* ends with path NULL */

#endif
