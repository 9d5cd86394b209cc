/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "call/session_places.h"

#include <errno.h>
#include <stdlib.h>

#include "call/model.h"

void session_places_change(struct calls *c, const struct call *prev, struct call *next)
{
	const struct call *of[2] = {prev, next};

	for (int k = 0; k < 2 && c->session_place; k++)
		for (uint32_t s = 0; of[k] && s < of[k]->sides; s++)
			for (uint32_t i = 0; i < of[k]->side[s]->legs; i++) {
				const struct leg *l = of[k]->side[s]->leg[i];

				if (l && l->has_session)
					c->session_place[l->session] =
						(struct session_place){.call = k ? next : NULL,
							.side = (uint8_t)s,
							.media = (uint8_t)i};
			}
}

int calls_set_sessions(struct calls *c, uint32_t max)
{
	c->session_place = calloc(max, sizeof(*c->session_place));
	return c->session_place ? 0 : -ENOMEM;
}
