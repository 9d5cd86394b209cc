/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports changes of a recorded call to the recorder: the codecs of each port, which it needs to
 * write audio files, and metadata. */
#ifndef CALL_RECORD_MEDIA_H
#define CALL_RECORD_MEDIA_H

#include "call/call_int.h"

struct call;

/* Reports the codecs if they changed since the last report. Call it for each version of a call in
 * force. Does nothing if the call is not recorded, or the recorder does not decode. */
void record_media_tell(struct calls *c, struct call *call);

/* Adds metadata that changed to the recording's text. prev: the version that was in force, or
 * NULL. */
void record_metadata_tell(struct calls *c, const struct call *prev, const struct call *next);

#endif
