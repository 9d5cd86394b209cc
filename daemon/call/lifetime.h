/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which dialogs of a call are over by a timeout. Whoever knows a Call-ID can add a dialog to the call,
 * and each branch of a fork can send media. So the media and the signalling of one dialog, or of one
 * branch, keep no other alive. Reads the model and the counters only.
 *
 * Two sides that exchange media    They end together, by --timeout, or by --silent-timeout on hold,
 *                                  or by --offer-timeout before an answer. Other branches of the same
 *                                  caller end with them, except: while no answer is final, those that
 *                                  still ring; later, those that have a final answer, too. The caller
 *                                  then turns to one of these.
 * A branch without the media       It ends alone: by --timeout once its caller has a final answer,
 *                                  before that by --offer-timeout.
 * Sides joined by "connect"        They are one dialog.
 * A side without a peer            "connect" left it out, or it publishes: it ends alone.
 * A listener                       It keeps nothing alive, and ends with the last side that it hears.
 *
 * --final-timeout counts from the first offer of a dialog, and ends all of its branches. */
#ifndef CALL_LIFETIME_H
#define CALL_LIFETIME_H

#include "call/call.h"
#include "call/model.h"

struct lifetime_end {
	uint32_t sides; /* a bit each */
	enum call_end why;
};

/* Writes what is over to out, one entry per dialog or branch, no side twice. Returns how many; 0: nothing.
 * now_ns: CLOCK_REALTIME. */
uint32_t lifetime_over(struct lifetime_end out[CALL_MAX_SIDES], const struct call_policy *policy,
	const struct relay *relay, const struct call *c, uint64_t now_ns);

/* Notes a request that took effect for this side. */
void lifetime_signalled(struct side *s, uint64_t now_ns);
/* Notes that this side's dialog was answered; early: by a provisional answer. */
void lifetime_answered(struct side *s, bool early);

#endif
