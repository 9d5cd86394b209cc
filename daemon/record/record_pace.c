/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_pace.h"

uint32_t record_pace_next(uint32_t slept_ms, uint32_t found, uint32_t room)
{
	if (found > room / 4)
		return 0;
	/* Few packets after no sleep say nothing about the rate. */
	return slept_ms == 0 || found > room / 8 ? RECORD_PACE_SHORT_MS : RECORD_PACE_LONG_MS;
}
