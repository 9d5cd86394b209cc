/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds a lost roll-over counter by authentication (RFC 3711 3.3.1). */
#ifndef MEDIA_ROC_H
#define MEDIA_ROC_H

#include "media/state.h"
#include "packet/arena.h"

#define MEDIA_ROC_TRIES 16 /* at 300 packets a second, an hour */

/* Tests a packet that is old, or failed authentication with the index of *j, under later roll-over
 * counters. If it is authentic, *j has its index, and a->out the result of *j. in: the packet. */
bool media_roc_find(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, struct xc_job *j);

#endif
