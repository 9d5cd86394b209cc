/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replaces SSRCs toward SRTP after a restart, so that no keystream is used twice (RFC 3711 9.1). */
#ifndef MEDIA_RENAME_H
#define MEDIA_RENAME_H

#include "media/state.h"

uint32_t media_rename(uint64_t key, uint32_t ssrc);
uint32_t media_rename_back(uint64_t key, uint32_t name);

/* Renames SSRCs in a compound RTCP packet in the clear. from_source: it comes from such a source,
 * and its sender's SSRCs are renamed. Otherwise it goes to one, and the SSRCs that it reports on
 * are translated back. Truncated or unknown parts are kept. */
void media_rename_rtcp(uint64_t key, uint8_t *p, size_t len, bool from_source);

#endif
