/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which leg a session is of. Its events find the leg by this table. */
#ifndef CALL_SESSION_PLACES_H
#define CALL_SESSION_PLACES_H

#include "call/calls.h"
#include "call/session.h"

struct session_place {
	struct call *call; /* NULL: none */
	uint8_t side, media;
};

/* next is in force now, and prev is not; either may be NULL. */
void session_places_change(struct calls *c, const struct call *prev, struct call *next);

/* Tells the sessions of this call which terminals have used their keys. */
void session_places_settle(const struct relay *r, struct call *call);

#endif
