/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a keying thread reports of a leg's session comes into force. */
#ifndef CALL_SESSION_EVENTS_H
#define CALL_SESSION_EVENTS_H

#include "call/calls.h"
#include "call/session.h"

/* Which leg a session is of. */
struct session_place {
	struct call *call; /* NULL: none */
	uint8_t side, media;
};

/* next is in force now, and prev is not; either may be NULL. */
void session_places_change(struct calls *c, const struct call *prev, struct call *next);

#endif
