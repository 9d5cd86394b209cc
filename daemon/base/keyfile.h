/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading files that hold a secret: keys, tokens, passwords. One rule for all of them about who may read such a file. */
#ifndef BASE_KEYFILE_H
#define BASE_KEYFILE_H

#include "base/bytes.h"

/* Reads at most size bytes of the file at path into buf. option names the file in *err, for example "--ng-key-file". The file is refused
 * (-EPERM) unless it is a regular file that others can neither read nor write and its group cannot write; its group may read it, so that
 * a daemon and a proxy under different users can share one. Returns the length; -EFBIG: longer than size; another -errno. *err then says
 * in one line what is wrong and what to do. The caller wipes buf. */
int keyfile_read(
	char *buf, size_t size, const char *option, const char *path, char *err, size_t err_len);

#endif
