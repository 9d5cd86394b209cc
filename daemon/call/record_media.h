/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports the codecs of each port to the recorder, which needs them to write audio files. */
#ifndef CALL_RECORD_MEDIA_H
#define CALL_RECORD_MEDIA_H

#include "call/call_int.h"

struct call;

/* Reports the codecs if they changed since the last report. Call it for each version of a call in
 * force. Does nothing if the call is not recorded, or the recorder does not decode. */
void record_media_tell(struct calls *c, struct call *call);

#endif
