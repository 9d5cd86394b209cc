/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_name.h"

#include <stdio.h>
#include <string.h>

void record_name_wav(char out[RECORD_NAME_MAX + 1], uint32_t which)
{
	if (which == RECORD_NAME_MIX)
		snprintf(out, RECORD_NAME_MAX + 1, "-mix.wav");
	else
		snprintf(out, RECORD_NAME_MAX + 1, "-%u.wav",
			(which - RECORD_NAME_SIDE) % RECORD_NAME_SIDES + 1);
}

void record_name_end(char out[RECORD_NAME_MAX + 1], uint32_t which)
{
	if (which < 2)
		snprintf(out, RECORD_NAME_MAX + 1, "%s", which ? ".txt" : ".pcap");
	else
		record_name_wav(out, which - 2);
}

bool record_name_is_wav(const char *name)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < RECORD_NAME_WAVS; i++) {
		char end[RECORD_NAME_MAX + 1];

		record_name_wav(end, i);
		if (len > strlen(end) && strcmp(name + len - strlen(end), end) == 0)
			return true;
	}
	return false;
}
