/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that the file of identities names: certificates, pre-shared keys. Only regular files are
 * read, so no reload blocks. Complaints name files and sections, never keys. */
#ifndef KEYING_MIKEY_FILES_H
#define KEYING_MIKEY_FILES_H

#include <stdio.h>

#include "keying/mikey.h"

#define MIKEY_PATH 1024u

struct mikey_files {
	const char *path; /* of the file of identities */
	char *err;        /* one complaint */
	size_t err_len;
};

/* Writes the complaint. Returns false. */
bool mikey_complain(const struct mikey_files *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Relative names are relative to the folder of the file of identities. */
bool mikey_file_place(const struct mikey_files *r, char out[MIKEY_PATH], const char *name);
/* NULL with errno: absent, or EINVAL: not a regular file. */
FILE *mikey_file_open(const char *path);
/* A file without secrets, whole. free() *text. */
bool mikey_file_read(const struct mikey_files *r, const char *path, struct str *text);
/* Replaces *out. key: the file has the private key, too. */
bool mikey_file_cert(
	const struct mikey_files *r, struct mikey_cert **out, const char *name, bool key);
bool mikey_file_psk(const struct mikey_files *r, struct mikey_psk *out, const char *name);

#endif
