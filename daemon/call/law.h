/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transcoding between two legs: which payload types of G.711 leave under the other law. */
#ifndef CALL_LAW_H
#define CALL_LAW_H

#include "call/model.h"

/* media_stream_cfg.convert of the leg's packets to its peer. 0: they leave unchanged. */
uint32_t law_convert(const struct leg *l, const struct leg *peer);
/* The name of the conversion of packets from this m-line's terminal; NULL: they leave unchanged. */
const char *law_pair_text(const struct call *c, const struct side *s, uint32_t media);

#endif
