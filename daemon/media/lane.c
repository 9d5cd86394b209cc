/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several bursts may be in flight, each with scratch of its own. Called by prepare.c, complete.c
 * and audio.c. */
#include "media/lane.h"

void media_lane_use(struct media *m, uint64_t burst)
{
	const struct lane *l = &m->lane[burst % m->bursts];

	m->slot_used = l->slot_used;
	m->note = l->note;
	m->open = l->open;
	m->in_stream = l->in_stream;
	m->out_stream = l->out_stream;
	m->first = l->first;
}
