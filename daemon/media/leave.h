/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sending part of a packet's preparation. */
#ifndef MEDIA_LEAVE_H
#define MEDIA_LEAVE_H

#include "media/draft.h"

/* Fills in index, key and tag offset of the sent packet, for d.tx. Returns PACKET_JOB, or a drop
 * verdict. */
uint8_t media_leave(struct draft *d);
/* Before media_leave(): G.711 for a terminal that has the other law. */
void media_leave_convert(struct draft *d);

#endif
