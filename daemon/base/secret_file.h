/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that hold a secret: keys, passwords, tokens. A file is refused unless it is a regular file,
 * it belongs to root or to the daemon's user, and its mode is 0640, 0600 or stricter. A symbolic
 * link is followed; the rules apply to its target. */
#ifndef BASE_SECRET_FILE_H
#define BASE_SECRET_FILE_H

#include "base/bytes.h"

/* Reads the whole file into out. option: its option, as "--redis-key-file", for the message.
 * Returns the length, or a negative errno with one line in err that says what to do: -EPERM owner
 * or mode, -EFBIG longer than max, -EINVAL not a regular file. The caller wipes out (secmem_wipe).
 * Blocks, so use it only at start. */
int secret_file_read(
	const char *option, const char *path, char *out, size_t max, char *err, size_t err_len);
/* The first line of such a file, without surrounding blanks. Points into text. */
struct str secret_file_line(const char *text, size_t len);
/* Whether users other than root and the daemon's may read or change this file. False if it cannot
 * be examined. */
bool secret_file_is_open(const char *path);

#endif
