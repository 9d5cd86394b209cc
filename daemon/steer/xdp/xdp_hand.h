/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes packets from the worker whose queue received them to the worker that owns them: a bounded
 * ring for each pair of workers that needs it, so that every ring has one producer and one
 * consumer. */
#ifndef STEER_XDP_XDP_HAND_H
#define STEER_XDP_XDP_HAND_H

#include "packet/arena.h"
#include "steer/steer.h"

struct hand;

/* Control thread, before workers run. workers: at most 64. */
int hand_create(struct hand **out, uint32_t workers);
void hand_destroy(struct hand *h);
/* Control thread: this worker has queues, so it may pass packets from its arena. */
int hand_producer(struct hand *h, uint32_t worker, const struct arena *a);
/* Readable if a packet waits for the worker. */
int hand_fd(const struct hand *h, uint32_t worker);

/* Producer: lends d->slot until it is returned. False: the ring is full, nothing changed. */
bool hand_push(struct hand *h, uint32_t from, uint32_t to, const struct packet_in *d);
/* Producer: a returned slot. */
bool hand_returned(struct hand *h, uint32_t from, uint32_t *slot);

/* Consumer: the next packet, and the location of its payload. Call hand_return() after copying it.
 */
bool hand_pop(
	struct hand *h, uint32_t me, struct packet_in *d, const uint8_t **payload, uint32_t *from);
void hand_return(struct hand *h, uint32_t me, uint32_t from, uint32_t slot);
/* Any thread: wakes the worker. */
void hand_wake(struct hand *h, uint32_t worker);
/* Consumer, if there was no packet: makes the descriptor unreadable. */
void hand_clear(struct hand *h, uint32_t me);

#endif
