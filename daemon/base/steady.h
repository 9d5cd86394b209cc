/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A clock that never steps while the process runs: CLOCK_REALTIME of the first call, continued by
 * CLOCK_MONOTONIC. Other processes and machines have nearly the same time if their clocks are
 * synchronised. Any thread. */
#ifndef BASE_STEADY_H
#define BASE_STEADY_H

#include <stdint.h>

uint64_t steady_ns(void);

/* Converts a recent time of CLOCK_REALTIME. */
uint64_t steady_of(uint64_t real_ns);

/* steady_ns() - CLOCK_MONOTONIC, which never changes. All processes of one boot read the same
 * CLOCK_MONOTONIC, so the difference of two such values is that of their steady clocks. */
uint64_t steady_ahead_ns(void);

/* A number derived from the machine's boot ID, which differs for each boot and each machine. 0: not
 * known. Reads a file; call it rarely. */
uint64_t steady_boot(void);

#endif
