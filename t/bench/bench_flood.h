/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BENCH_FLOOD_H
#define BENCH_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

/* Prints what a packet of each flood costs. hello: a ClientHello without a cookie. False: something
 * was not dropped or answered as it should be. */
bool bench_flood(const uint8_t *hello, uint32_t len);

#endif
