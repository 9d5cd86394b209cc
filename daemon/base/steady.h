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

/* steady_ns() - CLOCK_MONOTONIC, which never changes. All processes of one boot read the same
 * CLOCK_MONOTONIC, so their steady clocks differ by the difference of these. */
uint64_t steady_ahead_ns(void);

/* A number made of the machine's boot ID: other boots and other machines have others. 0: not
 * known. Reads a file; call it rarely. */
uint64_t steady_boot(void);

#endif
