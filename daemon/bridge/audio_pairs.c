/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "bridge/audio_pairs.h"

#include <stdio.h>
#include <string.h>

static struct audio_stats *sum_of(struct audio_pairs *p, const char *name)
{
	uint32_t i = 0;

	while (i < p->n && i < AUDIO_PAIRS - 1 && strcmp(p->at[i].name, name) != 0)
		i++;
	if (i == p->n) {
		p->n++;
		snprintf(p->at[i].name, sizeof(p->at[i].name), "%s",
			i < AUDIO_PAIRS - 1 ? name : "others");
	}
	return &p->at[i].sum;
}

/* A counter that is below "from" belongs to a session that has just ended. */
void audio_pairs_add(struct audio_pairs *p, const char *name, const struct audio_stats *from,
	const struct audio_stats *to)
{
	struct audio_stats *sum = sum_of(p, name);

#define X(id, text) sum->id += to->id > from->id ? to->id - from->id : 0;
	AUDIO_COUNTS(X)
#undef X
}
