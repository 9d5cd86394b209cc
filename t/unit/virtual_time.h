/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CLOCK_MONOTONIC as a test wants it: a round of an event loop takes a moment of it, whatever that
 * does, and an epoll_wait() that nothing happens in goes on, at once, to its end. So what an event
 * loop does in seconds takes milliseconds, and a machine that is busy changes nothing. Whoever
 * calls virtual_time_begin() has it, for the whole program; CLOCK_REALTIME stays as it is. */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

void virtual_time_begin(void);
/* Real time, for what others have to do until the test can go on: true while a wait that began at
 * start_ns may last. */
uint64_t virtual_time_real_ns(void);
bool virtual_time_patient(uint64_t start_ns);

#endif
