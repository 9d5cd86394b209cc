/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies the events of a ZRTP exchange to its leg. Pure. */
#ifndef CALL_LEG_ZRTP_H
#define CALL_LEG_ZRTP_H

#include "call/model.h"

/* Whether the leg changed. An event of another exchange changes nothing. */
bool leg_zrtp_event(struct leg *l, const struct session_event *e);
/* Adds the event to the call's history. */
void leg_zrtp_note(struct call *c, struct str tag, const struct session_event *e, uint64_t now_ns);

#endif
