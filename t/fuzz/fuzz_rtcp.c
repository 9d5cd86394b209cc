/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compound RTCP as a terminal sends it: nothing is read beyond it, and what is said stays within
 * bounds. */
#include <stdlib.h>

#include "proto/rtcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rtcp_info i;

	if (rtcp_read(&i, data, len))
		return 0;
	if (i.blocks > RTCP_REPORTS)
		abort();
	for (uint8_t b = 0; b < i.blocks; b++) {
		uint32_t mos = rtcp_mos(i.block[b].lsr, i.block[b].jitter, i.block[b].fraction);

		if (mos < 100 || mos > 500)
			abort();
	}
	return 0;
}
