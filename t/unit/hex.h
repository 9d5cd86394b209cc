/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hex to bytes, for tables of published vectors. */
#ifndef UNIT_HEX_H
#define UNIT_HEX_H

#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>

/* Number of bytes written; at most max. */
static inline size_t unhex(uint8_t *out, size_t max, const char *hex)
{
	size_t n = 0;
	unsigned v;

	for (; n < max && hex[2 * n] && sscanf(hex + 2 * n, "%2x", &v) == 1; n++)
		out[n] = (uint8_t)v;
	return n;
}

#endif
