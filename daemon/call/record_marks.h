/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks the parties of a call that are recorded, and writes the text file of a recording. */
#ifndef CALL_RECORD_MARKS_H
#define CALL_RECORD_MARKS_H

#include "call/model.h"
#include "call/recording.h"

/* Marks the sides to record; the caller opens and closes recordings. NULL, or the error-reason.
 * STOP becomes PAUSE while another side is still recorded. */
const char *record_mark(struct call *c, const struct ng_request *r, enum call_record *what);

/* Lines about sides and media, for the recording's text file. In the pool. */
struct str record_about(struct pool *p, const struct call *c);

#endif
