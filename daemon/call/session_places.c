/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/session_places.h"

#include <errno.h>
#include <stdlib.h>

#include "call/model.h"
#include "keying/keying.h"

static void put(struct calls *c, const struct leg *l, struct session_place at)
{
	if (c->session_place && l->has_session)
		c->session_place[l->session] = at;
	if (c->audio_place && l->audio.has)
		c->audio_place[l->audio.handle] = at;
}

void session_places_change(struct calls *c, const struct call *prev, struct call *next)
{
	const struct call *of[2] = {prev, next};

	for (int k = 0; k < 2; k++)
		for (uint32_t s = 0; of[k] && s < of[k]->sides; s++)
			for (uint32_t i = 0; i < of[k]->side[s]->legs; i++) {
				const struct leg *l = of[k]->side[s]->leg[i];

				if (l)
					put(c, l,
						(struct session_place){.call = k ? next : NULL,
							.side = (uint8_t)s,
							.media = (uint8_t)i});
			}
}

int calls_set_sessions(struct calls *c, uint32_t max)
{
	c->session_place = calloc(max, sizeof(*c->session_place));
	return c->session_place ? 0 : -ENOMEM;
}

int calls_set_audio(struct calls *c, uint32_t max)
{
	c->audio_place = calloc(max, sizeof(*c->audio_place));
	return c->audio_place ? 0 : -ENOMEM;
}

bool calls_audio_of(const struct calls *c, uint32_t audio, struct call_digit *out)
{
	struct session_place at =
		c->audio_place ? c->audio_place[audio] : (struct session_place){0};

	if (!at.call)
		return false;
	*out = (struct call_digit){at.call, at.call->id, at.call->side[at.side]->tag, at.side};
	return true;
}

bool calls_digit(struct calls *c, uint32_t audio, struct call_digit *out)
{
	bool of_call = calls_audio_of(c, audio, out);

	c->counters.digits += of_call;
	return of_call;
}

/* The association or exchange whose keys are in force; 0: neither. */
static uint32_t keyed_by(const struct leg *l)
{
	struct keying_exchange x;

	if (keying_exchange(&x, &l->keying))
		return x.keyed ? x.number : 0;
	return l->keyed;
}

static void settle(const struct relay *r, const struct call *call, struct leg *l, bool rtcp)
{
	uint32_t by = keyed_by(l);
	struct media_key_usage u;

	if (l->settled[rtcp] == by || !l->rx_slot[0])
		return;
	r->ops->key_usage(r->arg, call->worker, l->rx_slot[0], &u);
	if ((rtcp ? u.rtcp : u.rtp) &&
		r->sessions->ops->settle(r->sessions->arg, l->session, by, rtcp) == 0)
		l->settled[rtcp] = by;
}

void session_places_settle(const struct relay *r, struct call *call)
{
	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			struct leg *l = call->side[s]->leg[i];

			if (!l || !l->committed || !l->has_session || !keyed_by(l))
				continue;
			settle(r, call, l, false);
			if (!l->mux && l->rx.rtcp.suite != SUITE_PLAIN)
				settle(r, call, l, true);
		}
}
