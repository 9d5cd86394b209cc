/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the dialogs of a call that a timeout ends. Anyone who knows a Call-ID can add a dialog to
 * the call, and each branch of a fork can send media. So the media and the signalling of one dialog
 * or branch keep no other one alive. Reads only the model and the counters.
 *
 * - Two sides that exchange media end together: by --timeout, by --silent-timeout on hold, or by
 *   --offer-timeout before an answer. Other branches of the same caller end with them. Exceptions:
 *   branches that still ring while no answer is final, and later those that have a final answer,
 *   too. The caller then uses one of these.
 * - A branch without the media ends alone: by --timeout once its caller has a final answer, before
 *   that by --offer-timeout.
 * - Sides joined by "connect" are one dialog.
 * - A side without a peer, because "connect" left it or because it publishes, ends alone.
 * - A subscriber keeps nothing alive, and ends with the last side that it receives media of.
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

/* Writes ended dialogs and branches to out, one entry each, no side twice. Returns their number.
 * now_ns: CLOCK_REALTIME. */
uint32_t lifetime_over(struct lifetime_end out[CALL_MAX_SIDES], const struct call_policy *policy,
	const struct relay *relay, const struct call *c, uint64_t now_ns);

/* Notes a request that took effect for this side. */
void lifetime_signalled(struct side *s, uint64_t now_ns);
/* Notes that this side's dialog was answered; early: by a provisional answer. */
void lifetime_answered(struct side *s, bool early);

#endif
