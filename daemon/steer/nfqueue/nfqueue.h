/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What "kernel" steering says to the nfqueue steering that it stands on, beside steer_ops. Worker
 * thread. */
#ifndef STEER_NFQUEUE_NFQUEUE_H
#define STEER_NFQUEUE_NFQUEUE_H

#include "steer/steer.h"

/* The mark of results that leave by verdict, where they have one. */
void nfqueue_mark(struct steer *s, uint32_t mark);
/* From now on the queue brings what came by the sockets: what waits there goes first. */
void nfqueue_takes_over(struct steer *s);

#endif
