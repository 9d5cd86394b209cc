/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transcoding between two legs: which payload types of G.711 leave under the other law. */
#ifndef CALL_LAW_H
#define CALL_LAW_H

#include "call/model.h"

/* media_stream_cfg.convert of the leg's packets to its peer. 0: they leave unchanged. */
uint32_t law_convert(const struct leg *l, const struct leg *peer);
/* How the packets of this m-line's terminal leave now: as an index of call_codec_pair; -1: as they
 * came. */
int law_pair(const struct call *c, const struct side *s, uint32_t media);
/* The same as a name; NULL: as they came. */
const char *law_pair_text(const struct call *c, const struct side *s, uint32_t media);

#endif
