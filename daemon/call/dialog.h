/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which dialog of a call a request belongs to, and whether it may change that dialog's media.
 * Pure.
 *
 * A call consists of all requests with one Call-ID. Its sides are parties, by tag. A dialog (RFC
 * 3261 12) is a pair of sides. A side's peer is the party that it exchanges media with. A forked
 * INVITE makes several sides with the same peer, one per branch. If the proxy sends no
 * via-branch, the branches share one side, whose earlier tags are aliases.
 *
 * Every phone that an INVITE reached knows its Call-ID, From tag and Via branch, even a phone
 * that did not get the call. So these alone must not suffice to change the media of a pair that
 * has answered:
 *
 * offer, no to-tag     An initial INVITE. It may add a branch. It must come from the SIP source
 *                      that the offerer's first offer came from, unless the call is being deleted.
 *                      If the offerer was answered before (early media, then a serial fork or a
 *                      redirection), it must describe the same media: addresses, ports, and with
 *                      SRTP a key that was offered before. After a final answer it is refused.
 * offer, both tags     A request in a dialog: both sides must be a pair. Once a side has a final
 *                      answer, it accepts offers only from its peer. It may itself switch to
 *                      another branch, from the SIP source that it had before.
 * offer, one unknown   An unknown tag is accepted for a side that has no tag yet, because none of
 *                      its SDPs was received. An unknown from-tag may also be a new branch with a
 *                      delayed offer, to a side without an answer.
 * offer, both unknown  Two new sides, independent of the others: both legs of a back-to-back user
 *                      agent that keeps the Call-ID, or parties that "connect" joins later. Every
 *                      limit counts them as a call of their own. They are refused after the final
 *                      answer of the dialog that began the call. If that dialog is being deleted,
 *                      they end it at once. Half of the places for sides are left to the parties
 *                      of existing dialogs.
 * answer               From a side of the pair, or from the branch that via-branch names. An answer
 *                      with an unknown to-tag belongs to the side that was offered to and has not
 *                      answered yet. If all have answered, it comes from a phone of a fork without
 *                      via-branch: the latest answer has the media. After a final answer it is
 *                      refused. After any answer, so is an unknown via-branch. A later final answer
 *                      of a known branch gets a valid SDP in reply, but no media. It gets them when
 *                      the caller ends the first dialog.
 * delete               No from-tag: all. Both tags known: that dialog, and its branches if no
 *                      other of them has a final answer. Dialogs that share only the Call-ID
 *                      continue. A branch that lost the call ends only itself. Otherwise via-branch
 *                      selects the branch. Neither tags nor via-branch: all. An unknown tag or
 *                      via-branch ends nothing. Exception: before any answer an unknown to-tag is
 *                      ignored, because a failed branch has a tag that was in no SDP.
 *
 * An answer is final by ng's sip-code, 200 to 299. If a proxy sends none, the latest answer has
 * the media, as forks with early media need it. Sides that "connect" joined are exempt from the
 * rule of pairs: their dialogs are not their pairs. */

#include "call/plan.h"
#ifndef CALL_DIALOG_H
#define CALL_DIALOG_H

struct dialog {
	uint8_t from, to; /* sender and receiver of this SDP; SIDE_NONE in an offer: a new side */
	bool waits;       /* a later final answer: it has no media yet */
	const char *why;  /* of NGE_DIALOG: cause and remedy */
};

/* NULL, or the error-reason that refuses the request; then only out->why is defined. NULL: the
 * reason needs no more text. */
const char *dialog_offer(struct dialog *out, const struct neg_in *in);
const char *dialog_answer(struct dialog *out, const struct call *c, const struct ng_request *r);
static inline bool dialog_is_final(const struct ng_request *r)
{
	return r->sip_code >= 200 && r->sip_code < 300;
}
/* Records that the answer of d->from to d->to came into force. */
void dialog_answered(struct call *c, const struct dialog *d, const struct ng_request *r);

/* Sides, a bit each: all that this side exchanges media with, directly or through others, and
 * itself. */
uint32_t dialog_sides(const struct call *c, uint8_t side);
/* Whether a side outside this set exchanges media. */
bool dialog_others_live(const struct call *c, uint32_t sides);
/* Whether an offer names no side of this call, and so begins another dialog. */
bool dialog_is_new(const struct call *c, const struct ng_request *r);

enum dialog_end { DIALOG_END_NOTHING, DIALOG_END_ALL, DIALOG_END_SIDES };

/* Finds the sides that a delete ends; *sides, a bit each, with DIALOG_END_SIDES. */
enum dialog_end dialog_delete(uint32_t *sides, const struct call *c, const struct ng_request *r);
/* Marks these sides as gone. A side that exchanged media with them switches to another branch, or
 * to none. */
void dialog_end_sides(struct call *c, uint32_t sides);

#endif
