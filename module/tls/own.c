/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "own.h"

/* Whether other processes see the memory at p, by this list of mappings (proc(5), "maps"). */
static int is_shared(FILE *maps, const void *p)
{
	uintptr_t at = (uintptr_t)p, start, end;
	char *line = NULL, shared = 'p';
	size_t size = 0;

	rewind(maps);
	while (getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*c%*c%*c%c", &start, &end, &shared) ==
				3 &&
			at >= start && at < end)
			break;
		shared = 'p';
	}
	free(line);
	return shared == 's';
}

/* glibc numbers the keys from 0, and a key that nobody has created has no value. */
int own_values(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int changed = 0;

	if (!maps)
		return -1;
	for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
		void *value = pthread_getspecific(key);

		if (value && is_shared(maps, value) && !pthread_setspecific(key, NULL))
			changed++;
	}
	fclose(maps);
	return changed;
}
