/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of ended calls (CDR): one JSON object per line, appended to a file by a thread of its own,
 * so that a slow disk holds up no call. Control thread only. */
#ifndef APP_CDR_H
#define APP_CDR_H

#include "proto/ngval.h"

struct cdr;

/* Opens the file, which is created with mode 0640 if it is not there. 0 or -errno, with one line in
 * err. path must live as long. */
int cdr_create(struct cdr **out, const char *path, char *err, size_t err_len);
/* Queues a record. It is lost, and that is logged, if too many wait. NULL is fine. */
void cdr_write(struct cdr *c, const struct ngval *record);
/* Opens the path again before the next record: for log rotation. NULL is fine. */
void cdr_reopen(struct cdr *c);
/* Writes what waits, and ends. NULL is fine. */
void cdr_destroy(struct cdr *c);

#endif
