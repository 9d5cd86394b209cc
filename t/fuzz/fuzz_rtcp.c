/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compound RTCP as a terminal sends it: nothing is read beyond it, and what is said stays within
 * bounds. */
#include <stdlib.h>

#include "proto/rtcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* SSRCs that are named, described, or reported on lie within the packet. */
static void names(const uint8_t *data, size_t len)
{
	struct rtcp_names named;
	struct rtcp_mid mid[RTCP_MIDS];
	uint16_t at[RTCP_ABOUT];
	uint32_t n = rtcp_about(at, data, len);

	for (uint32_t i = 0; i < n; i++)
		if (at[i] + 4u > len)
			abort();
	rtcp_names_read(&named, data, len);
	n = rtcp_mids_read(mid, data, len);
	if (named.n > RTCP_NAMES || n > RTCP_MIDS)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if ((const uint8_t *)mid[i].mid.s + mid[i].mid.len > data + len)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rtcp_info i;

	names(data, len);
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
