/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sources of authentic ICE checks at a port. The terminal may send media on each valid pair of
 * its leg, and changes between pairs as it likes (RFC 8445 12.1). It learns that a pair is valid by
 * the response to its check, so the worker notes the source as it sends that response. A check may
 * be recorded and sent again from another address, so packets from these sources must be
 * authenticated. Unauthenticated media need the selected pair. */
#ifndef MEDIA_CHECKED_H
#define MEDIA_CHECKED_H

#include "media/state.h"

/* Notes the source of a check. A further one replaces the source whose check is the oldest. */
void media_checked_add(struct media *m, uint32_t stream, const struct endpoint *src);

/* Whether the stream's session answered an authentic check from there. */
bool media_checked(const struct media *m, uint32_t stream, const struct endpoint *src);

#endif
