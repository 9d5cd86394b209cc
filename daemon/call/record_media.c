/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/record_media.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "call/leg_audio.h"
#include "call/model.h"
#include "call/recorder.h"

/* In a BUNDLE group packets arrive at the port of the group's transport. */
static struct local_port port_of(const struct side *s, const struct leg *l)
{
	const struct leg *owner = l->via ? side_leg_get(s, l->via - 1) : l;

	return owner && owner->has_port ? owner->port.rtp : l->port.rtp;
}

static void add(
	const struct calls *c, const struct call *call, uint8_t side, struct record_media *m)
{
	const struct side *s = call->side[side];

	for (uint32_t i = 0; i < s->legs && m->n < RECORD_STREAMS; i++) {
		const struct leg *l = s->leg[i];
		struct record_stream *to = &m->at[m->n];

		if (!l || !l->has_port || s->gone || s->listener)
			continue;
		to->types = (uint8_t)leg_audio_types(c->relay, l, to->type);
		if (!to->types)
			continue;
		to->port = port_of(s, l);
		to->side = side;
		m->n++;
	}
}

void record_media_tell(struct calls *c, struct call *call)
{
	static const uint8_t label[16] = "recorded";
	struct record_media *m;
	uint64_t sum;

	if (!call->tap || !c->rec || !c->rec->audio || !c->relay->audio)
		return;
	m = calloc(1, sizeof(*m) + RECORD_STREAMS * sizeof(m->at[0]));
	if (!m)
		return;
	for (uint32_t i = 0; i < call->sides; i++)
		add(c, call, (uint8_t)i, m);
	sum = hash_siphash(label, m, sizeof(*m) + m->n * sizeof(m->at[0]));
	if (sum != call->tap_media)
		c->rec->ops->media(c->rec->arg, call->tap, m);
	call->tap_media = sum;
	free(m);
}

void record_metadata_tell(struct calls *c, const struct call *prev, const struct call *next)
{
	char *line;
	int len;

	/* A recording that begins has them in its first lines. */
	if (!prev || !next->tap || prev->tap != next->tap || !c->rec ||
		str_eq(prev->metadata, next->metadata))
		return;
	len = asprintf(&line, "metadata: " STR_FMT, STR_ARG(next->metadata));
	if (len < 0)
		return;
	c->rec->ops->note(c->rec->arg, next->tap, (struct str){line, (size_t)len});
	free(line);
}
