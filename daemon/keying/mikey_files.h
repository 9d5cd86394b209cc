/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the certificates and pre-shared keys that the file of identities names. Only regular files
 * are read, so a reload cannot block. Error texts name files and sections, never keys. */
#ifndef KEYING_MIKEY_FILES_H
#define KEYING_MIKEY_FILES_H

#include <stdio.h>

#include "keying/mikey.h"

#define MIKEY_PATH 1024u

struct mikey_files {
	const char *path; /* of the file of identities */
	char *err;        /* one error text */
	size_t err_len;
};

/* Writes the error text. Returns false. */
bool mikey_complain(const struct mikey_files *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Makes a path of a name. Relative names start at the folder of the file of identities. */
bool mikey_file_place(const struct mikey_files *r, char out[MIKEY_PATH], const char *name);
/* NULL on an error, with errno. EINVAL: not a regular file. */
FILE *mikey_file_open(const char *path);
/* Reads a whole file without secrets. The caller frees *text. */
bool mikey_file_read(const struct mikey_files *r, const char *path, struct str *text);
/* Replaces *out. key: the file also has the private key. */
bool mikey_file_cert(
	const struct mikey_files *r, struct mikey_cert **out, const char *name, bool key);
bool mikey_file_psk(const struct mikey_files *r, struct mikey_psk *out, const char *name);

#endif
