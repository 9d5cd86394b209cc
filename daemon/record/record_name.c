/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_name.h"

#include <stdio.h>
#include <string.h>

void record_name_sound(char out[RECORD_NAME_MAX + 1], uint32_t which, bool opus)
{
	const char *format = opus ? "opus" : "wav";

	if (which == RECORD_NAME_MIX)
		snprintf(out, RECORD_NAME_MAX + 1, "-mix.%s", format);
	else
		snprintf(out, RECORD_NAME_MAX + 1, "-%u.%s",
			(which - RECORD_NAME_SIDE) % RECORD_NAME_SIDES + 1, format);
}

void record_name_end(char out[RECORD_NAME_MAX + 1], uint32_t which)
{
	if (which < 2)
		snprintf(out, RECORD_NAME_MAX + 1, "%s", which ? ".txt" : ".pcap");
	else
		record_name_sound(out, (which - 2) / 2, which % 2);
}

static bool is_sound(const char *name, bool opus)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < RECORD_NAME_SOUNDS; i++) {
		char end[RECORD_NAME_MAX + 1];

		record_name_sound(end, i, opus);
		if (len > strlen(end) && strcmp(name + len - strlen(end), end) == 0)
			return true;
	}
	return false;
}

bool record_name_is_wav(const char *name)
{
	return is_sound(name, false);
}

bool record_name_is_opus(const char *name)
{
	return is_sound(name, true);
}
