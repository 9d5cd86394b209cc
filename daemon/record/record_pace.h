/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long the recording thread sleeps between two looks at the workers' rings. Pure. */
#ifndef RECORD_RECORD_PACE_H
#define RECORD_RECORD_PACE_H

#include <stdint.h>

#define RECORD_PACE_LONG_MS  20u
#define RECORD_PACE_SHORT_MS 4u

/* The next sleep in ms. slept_ms: the last one. found: entries of the fullest ring after it. room:
 * entries of a ring. The thread does not sleep while a ring is above a quarter. It sleeps for long
 * only if the last sleep shows that the ring does not overflow meanwhile. */
uint32_t record_pace_next(uint32_t slept_ms, uint32_t found, uint32_t room);

#endif
