/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A clock that never steps while the process runs: CLOCK_REALTIME of the first call, continued by
 * CLOCK_MONOTONIC. Other processes and other machines have nearly the same time if their clocks
 * are set. Any thread. */
#ifndef BASE_STEADY_H
#define BASE_STEADY_H

#include <stdint.h>

uint64_t steady_ns(void);

/* The same, of a recent time of CLOCK_REALTIME. */
uint64_t steady_of(uint64_t real_ns);

#endif
