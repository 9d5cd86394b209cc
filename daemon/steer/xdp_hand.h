/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that arrived on one worker's queue but belong to another worker: handed over by bounded rings, one for each pair of
 * workers that needs it, so that every ring has one producer and one consumer. */
#ifndef STEER_XDP_HAND_H
#define STEER_XDP_HAND_H

#include "steer/steer.h"

struct hand;

/* Control thread, before workers run. workers: at most 64. */
int hand_create(struct hand **out, uint32_t workers);
void hand_destroy(struct hand *h);
/* Control thread: this worker has queues, so it may have something for others, lying in its arena. */
int hand_producer(struct hand *h, uint32_t worker, const struct arena *a);
/* Readable when something waits for the worker. */
int hand_fd(const struct hand *h, uint32_t worker);

/* Producer: d->slot stays lent until it comes back. False: full, nothing happened. */
bool hand_push(struct hand *h, uint32_t from, uint32_t to, const struct media_in *d);
/* Producer: a slot that came back. */
bool hand_returned(struct hand *h, uint32_t from, uint32_t *slot);

/* Consumer: the next packet, and where its payload lies; hand_return() when it has been copied. */
bool hand_pop(
	struct hand *h, uint32_t me, struct media_in *d, const uint8_t **payload, uint32_t *from);
void hand_return(struct hand *h, uint32_t me, uint32_t from, uint32_t slot);
/* Any thread: the worker looks again. */
void hand_wake(struct hand *h, uint32_t worker);
/* Consumer, when there was nothing: forget that the descriptor was readable. */
void hand_clear(struct hand *h, uint32_t me);

#endif
