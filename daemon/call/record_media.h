/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says to the recorder which codecs arrive at which port, so that it can write audio files. */
#ifndef CALL_RECORD_MEDIA_H
#define CALL_RECORD_MEDIA_H

#include "call/calls.h"

struct call;

/* Says it again if it changed since the last time. Call it for each version of a call in force.
 * Nothing if the call is not recorded, or the recorder does not decode. */
void record_media_tell(struct calls *c, struct call *call);

#endif
