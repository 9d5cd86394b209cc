/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of audio sessions by pair of codecs, from the terminal's codec to the other one's, such
 * as "opus to PCMU". They only grow: sessions that have ended stay in them. Control thread only. */
#ifndef BRIDGE_AUDIO_PAIRS_H
#define BRIDGE_AUDIO_PAIRS_H

#include "audio/stats.h"

#define AUDIO_PAIRS     32u /* the last one stands for all others */
#define AUDIO_PAIR_TEXT 68u /* two names of at most 31 letters */

struct audio_pairs {
	uint32_t n;
	struct audio_pair {
		char name[AUDIO_PAIR_TEXT];
		struct audio_stats sum;
	} at[AUDIO_PAIRS];
};

/* Adds what a session counted between two times. */
void audio_pairs_add(struct audio_pairs *p, const char *name, const struct audio_stats *from,
	const struct audio_stats *to);

#endif
