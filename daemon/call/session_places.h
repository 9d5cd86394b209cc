/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the leg of a session, for its events. */
#ifndef CALL_SESSION_PLACES_H
#define CALL_SESSION_PLACES_H

#include "call/call_int.h"
#include "call/session.h"

struct session_place {
	struct call *call; /* NULL: none */
	uint8_t side, media;
};

/* Updates the table when next replaced prev; either may be NULL. */
void session_places_change(struct calls *c, const struct call *prev, struct call *next);

/* Reports to the sessions of this call which terminals have used their keys. */
void session_places_settle(const struct relay *r, struct call *call);

#endif
