/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of nfqueue steering for "kernel" steering, which is built on it, in addition to
 * steer_ops. Worker thread. */
#ifndef STEER_NFQUEUE_NFQUEUE_H
#define STEER_NFQUEUE_NFQUEUE_H

#include "steer/steer.h"

/* The mark for results sent by verdict. */
void nfqueue_mark(struct steer *s, uint32_t mark);
/* The queue takes over from the sockets: packets that wait there go first. */
void nfqueue_takes_over(struct steer *s);

/* As steer_nfqueue.counters(), to be updated by the same thread. */
struct steer_counters *nfqueue_counters(struct steer *s);

#endif
