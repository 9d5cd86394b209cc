/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of ended calls (CDR): one JSON object per line. A separate thread appends them to a file,
 * so that a slow disk delays no call. Control thread only. */
#ifndef OBSERVE_CDR_H
#define OBSERVE_CDR_H

#include "proto/ngval.h"

struct cdr;

/* Opens the file, which is created with mode 0640 if it is not there. 0 or -errno, with one line in
 * err. path must outlive it. */
int cdr_create(struct cdr **out, const char *path, char *err, size_t err_len);
/* Queues a record. If too many wait, it is dropped, and this is logged. NULL is fine. */
void cdr_write(struct cdr *c, const struct ngval *record);
/* Opens the path again before the next record: for log rotation. NULL is fine. */
void cdr_reopen(struct cdr *c);
/* Writes all queued records and ends the thread. NULL is fine. */
void cdr_destroy(struct cdr *c);

#endif
