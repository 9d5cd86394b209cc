/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Learning where a terminal really sends from. Pure: the time is a parameter. Only packets that authenticated are shown to
 * learn_packet(), so where the side speaks SRTP nobody else can latch. */
#ifndef MEDIA_LEARN_H
#define MEDIA_LEARN_H

#include "media/media.h"

#define LEARN_PERIOD_NS \
	3000000000ull /* delayed and heuristic decide this long after signalling (as rtpengine) */

enum learn_rank {
	LEARN_ANY,
	LEARN_SAME_PORT,
	LEARN_SAME_ADDR,
	LEARN_EXACT,
	LEARN_NOTHING_YET = -1
};

struct learn {
	struct endpoint signalled; /* from SDP; family 0 = none */
	struct endpoint candidate; /* heuristic: best source so far */
	int rank;                  /* of the candidate */
	uint64_t since_ns;         /* last signalling */
	/* What packets need once the source is confirmed comes last (media/int.h). */
	struct endpoint remote; /* where we send; the confirmed source once confirmed */
	bool confirmed;
};

/* Signalling came. restart: forget what was learned (also when the signalled address changed). */
void learn_signal(struct learn *l, const struct endpoint *signalled, bool restart, uint64_t now_ns);
/* May a packet from here be processed at all? Cheap: before any cipher. */
bool learn_accepts(
	const struct learn *l, const struct media_stream_cfg *cfg, const struct endpoint *src);
/* An authentic packet from here. True when remote or confirmed changed. */
bool learn_packet(struct learn *l, const struct media_stream_cfg *cfg, const struct endpoint *src,
	uint64_t now_ns);

#endif
