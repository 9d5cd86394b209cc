/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual CLOCK_MONOTONIC. Each round of an event loop takes a fixed time. An epoll_wait()
 * without events returns at once, with its timeout elapsed. So minutes of an event loop take no
 * real time. */
#ifndef VIRTUAL_TIME_H
#define VIRTUAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

void virtual_time_begin(void);
void virtual_time_pass(uint64_t ns);
/* Limits a wait in real time, for work outside the loop: true while a wait begun at start_ns may
 * last. */
uint64_t virtual_time_real_ns(void);
bool virtual_time_patient(uint64_t start_ns);

#endif
