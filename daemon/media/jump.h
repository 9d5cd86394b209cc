/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits jumps of indexes that are not authenticated. */
#ifndef MEDIA_JUMP_H
#define MEDIA_JUMP_H

#include "media/state.h"

/* Whether an unauthenticated index may be committed: it is not too far ahead, or further packets
 * followed it. Updates the run j; s: the SSRC's state before the packet. */
bool media_believable(struct jump *j, struct ssrc_state *s, uint64_t index, uint64_t now_ns);

#endif
