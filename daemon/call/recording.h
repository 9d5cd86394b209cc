/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What recording.c has for others. */
#ifndef CALL_RECORDING_H
#define CALL_RECORDING_H

#include "call/call.h"

struct call;

enum call_record { CALL_RECORD_START, CALL_RECORD_PAUSE, CALL_RECORD_STOP };

/* Who records; NULL: nobody, and the commands say so. */
void calls_recorder(struct calls *c, const struct recorder *rec);

/* Of the whole call, or of what comes from one side (its label, or from-tag with the flag
 * "directional"). What is paused goes on by START. dict: where the recording is. */
void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	enum call_record what, uint64_t now_ns, struct call_reply *out, struct ngval *dict);

/* A call that comes back was recorded: it goes on in a file more. NULL, or why it is not recorded
 * any more. */
const char *calls_record_resume(
	struct calls *c, struct pool *p, struct call *call, uint64_t now_ns);

#endif
