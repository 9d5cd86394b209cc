/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts and stops recordings by command. */
#ifndef CALL_RECORDING_H
#define CALL_RECORDING_H

#include "call/call.h"

struct call;

enum call_record { CALL_RECORD_START, CALL_RECORD_PAUSE, CALL_RECORD_STOP };

/* The recorder that the commands use. NULL: none, and the commands are refused. */
void calls_recorder(struct calls *c, const struct recorder *rec);

/* Executes a command for the whole call, or for one side (by label, or by from-tag with the flag
 * "directional"). START resumes a paused recording. */
struct calls_record {
	enum call_record what;
	struct ngval *dict; /* receives the file names */
};
void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_record order, uint64_t now_ns, struct call_reply *out);

/* Continues the recording of a restored call in a new file. NULL, or why recording has ended. */
const char *calls_record_resume(
	struct calls *c, struct pool *p, struct call *call, uint64_t now_ns);

#endif
