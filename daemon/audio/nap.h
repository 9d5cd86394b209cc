/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a codec thread naps, so that one wake-up serves many packets. A wake-up of this thread and
 * one of the worker cost more than most codecs. With few packets it never naps, and each is
 * transcoded at once. */
#ifndef AUDIO_NAP_H
#define AUDIO_NAP_H

#include <stdbool.h>
#include <stdint.h>

#define AUDIO_NAP_NS 4000000u /* longest time that a packet waits for it */

struct audio_nap {
	uint64_t heard_ns; /* start of the last round with packets; 0: none */
};

/* Call it after a round that began at now_ns (CLOCK_MONOTONIC). more: packets still wait, because a
 * round takes only some of them. Returns the time at which the nap ends; 0: no nap, so the thread
 * sleeps until it is woken. It naps if the previous round with packets began less than two naps
 * earlier. */
static inline uint64_t audio_nap_until(
	struct audio_nap *p, uint32_t packets, bool more, uint64_t now_ns)
{
	uint64_t before = p->heard_ns;

	if (!packets)
		return 0;
	p->heard_ns = now_ns;
	return before && !more && now_ns - before < 2 * AUDIO_NAP_NS ? now_ns + AUDIO_NAP_NS : 0;
}

#endif
