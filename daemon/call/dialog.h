/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which dialog of a call a request belongs to, and whether it may change that dialog's media. Pure.
 *
 * A call is all that has one Call-ID. Its sides are parties, by tag. A dialog (RFC 3261 12) is a pair of sides. A side's peer
 * is the party that it exchanges media with. A forked INVITE makes several sides with the same peer, one per branch; with a
 * proxy that sends no via-branch they share one side, whose earlier tags are aliases.
 *
 * Anybody on the way of an INVITE knows its Call-ID, From tag and Via branch, also a phone that did not get the call. So
 * those alone may never change the media of a pair that has answered:
 *
 * offer, no to-tag     An initial INVITE. It may add a branch. It must come from the SIP source that the offerer's first offer
 *                      came from, unless the call is being deleted. If the offerer was answered before (early media, then a
 *                      serial fork or a redirection), it must describe the same media: addresses, ports, and with SRTP a key
 *                      that was offered before. After a final answer it is refused.
 * offer, both tags     A request in a dialog: both sides must be a pair. Once a side has its final answer, only that pair may
 *                      offer to it. The side itself may turn to another branch, from the SIP source it had before.
 * offer, one unknown   An unknown tag is accepted for a side that has no tag yet, because no SDP of it came by. An unknown
 *                      from-tag may also be a new branch with a delayed offer, to a side that was not answered.
 * offer, both unknown  Two new sides, which have nothing to do with the others.
 * answer               From a side of the pair, or from the branch that via-branch names, or, if the to-tag is unknown, from
 *                      who was asked and did not answer yet. A to-tag that is unknown after that is a phone of a fork without
 *                      via-branch: the latest answer has the media. After a final answer it is refused, and so is an unknown
 *                      via-branch once there was any answer. A known branch that answers finally but too late is answered with
 *                      valid SDP and waits without media: the caller may still end the first dialog, and then it has them.
 * delete               No from-tag: all. Both tags known: that dialog; all if no other was answered finally. A branch that did
 *                      not get the call ends only itself. Else via-branch says which branch. Neither: all. What names an
 *                      unknown tag or via-branch ends nothing; only an unknown to-tag before any answer is ignored: a branch that
 *                      fails has one that no SDP told.
 *
 * An answer is final by ng's sip-code, 200 to 299. A proxy that sends none leaves us with the latest answer, as forks with
 * early media need it. Sides that "connect" joined are exempt from the rule of pairs: their dialogs are not their pairs. */
#ifndef CALL_DIALOG_H
#define CALL_DIALOG_H

#include "call/negotiate.h"

struct dialog {
	uint8_t from, to; /* who says this SDP, who is told; SIDE_NONE in an offer: a new side */
	bool waits;       /* an answer that came after another's final one: its media wait */
};

/* NULL, or why the request may not be carried out; then *out is not to be used. */
const char *dialog_offer(struct dialog *out, const struct neg_in *in);
const char *dialog_answer(struct dialog *out, const struct call *c, const struct ng_request *r);
static inline bool dialog_is_final(const struct ng_request *r)
{
	return r->sip_code >= 200 && r->sip_code < 300;
}
/* The answer of from to to came into force. */
void dialog_answered(struct call *c, const struct dialog *d, const struct ng_request *r);

enum dialog_end { DIALOG_END_NOTHING, DIALOG_END_ALL, DIALOG_END_SIDE };

/* What a delete ends; *side with DIALOG_END_SIDE. */
enum dialog_end dialog_delete(uint8_t *side, const struct call *c, const struct ng_request *r);
/* Who has the media of side now that its peer is gone; SIDE_NONE: nobody. */
uint8_t dialog_next(const struct call *c, uint8_t side);

#endif
