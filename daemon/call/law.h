/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transcoding between two legs: which payload types of G.711 leave under the other law. */
#ifndef CALL_LAW_H
#define CALL_LAW_H

#include "call/model.h"

/* media_stream_cfg.convert of the leg's packets to its peer. 0: they leave unchanged. */
uint32_t law_convert(const struct leg *l, const struct leg *peer);
/* The codecs of that conversion: "PCMU to PCMA". NULL: none. */
const char *law_pair(const struct leg *l, const struct leg *peer);
/* The same by number: 0 PCMU to PCMA, 1 PCMA to PCMU; -1: none. */
int law_pair_index(const struct leg *l, const struct leg *peer);
#define LAW_PAIRS 2
extern const char *const law_pair_name[LAW_PAIRS];

#endif
