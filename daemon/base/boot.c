/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/boot.h"

#include <inttypes.h>
#include <stdio.h>

/* The ID is a random UUID: 8 digits, 4 digits, and so on. */
uint64_t boot_number(void)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint64_t high = 0, low = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%8" SCNx64 "-%4" SCNx64, &high, &low) != 2)
		high = low = 0;
	fclose(f);
	return high << 16 | low;
}
