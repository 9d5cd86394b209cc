/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognises packets that were received before, because they returned in a circle. */
#ifndef MEDIA_AGAIN_H
#define MEDIA_AGAIN_H

#include "media/state.h"

#define AGAIN_HASHES 65536u /* a power of two */

#define AGAIN_PACKETS 4096u /* packets compared before a watch without repetition ends */

#define AGAIN_REPORTS 64u /* equal RTCP packets in a watch that do not yet count as a circle */

#define AGAIN_NS 5000000000ull /* time after which a watch ends: a circle is faster */

/* Starts to watch a stream for repeated packets. */
void media_watch(struct media *m, uint32_t stream);

/* For a watched stream: whether this packet, received at t_ns, was received before. Also ends the
 * watch when it is over. */
bool media_came_again(
	struct media *m, uint32_t stream, const uint8_t *p, uint32_t len, uint64_t t_ns);

#endif
