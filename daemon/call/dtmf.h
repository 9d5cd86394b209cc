/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digits that a party must not get (ng's DTMF-security): what replaces them, and the digits that
 * begin and end it. MEDIA_GATE_DTMF says whether it is in force. */
#ifndef CALL_DTMF_H
#define CALL_DTMF_H

#include "call/call.h"
#include "call/model.h"

/* Stores the request's DTMF keys in the side that it concerns. NULL, or the error-reason. */
const char *dtmf_read(struct side *s, const struct ng_request *r);
/* Whether the request blocks digits at once: it has a mode, and no digits that begin it. */
bool dtmf_blocks(const struct ng_request *r);
/* After "unblock DTMF": forgets the mode and the digits that begin it. */
void dtmf_forget(struct side *s);
/* After a command that blocks at once or ends it: the terminal's digits change nothing. */
void dtmf_forget_trigger(struct side *s);
/* Whether a leg of the side needs an audio session to replace digits, or to hear them. */
bool dtmf_needs_session(const struct call *c, const struct side *s);
/* Whether some leg cannot replace digits as its mode says, and therefore drops them. */
bool dtmf_only_drops(const struct call *c);

#endif
