/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit of what one terminal can make the relay send (media_config.rate): packets of one stream
 * per second. Only packets that were received count: nobody else can use the limit up, except a
 * sender who forges the confirmed source of plain RTP. A stream that sends RATE_LOOK packets faster
 * than the limit is counted second by second, without the fast path, until a second stays below the
 * limit. Others pay for one look in RATE_LOOK packets. */
#ifndef MEDIA_RATE_H
#define MEDIA_RATE_H

#include "media/state.h"

#define RATE_LOOK 256u

/* A packet of media was received and counted: each one of a limited stream, others where
 * media_rate_looks(). now_ns: when it arrived. */
void media_rate_came(struct media *m, uint32_t stream, uint64_t now_ns);
/* other.c received a packet: each one, because senders can choose how they mix both kinds. counted:
 * in the stream's packets, too. */
void media_rate_other(struct media *m, uint32_t stream, bool counted, uint64_t now_ns);
/* Whether a packet that arrived now is too many. Reads only. */
bool media_rate_refuses(const struct media *m, uint32_t stream, uint64_t now_ns);

/* Whether to call media_rate_came() for a packet of this number, if the stream is not limited. */
static inline bool media_rate_looks(uint64_t number)
{
	return number % RATE_LOOK == 0;
}

#endif
