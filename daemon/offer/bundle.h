/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BUNDLE (RFC 9143) in offers and answers: which m-lines of a party share a transport. The other
 * party need not know of it. Pure. */
#ifndef OFFER_BUNDLE_H
#define OFFER_BUNDLE_H

#include "call/plan.h"

/* The offerer's group, if it may be accepted: fills plan->bundle, and completes its m-lines in
 * in->sdp. False: out of memory. */
bool bundle_offered(struct plan *plan, const struct side *from, struct neg_in *in);
/* Stores the offerer's data of m-line i, and whether the group names it. */
void bundle_said(struct leg *from, uint32_t i, const struct plan *plan);
/* All m-lines of the offer are decided: which of them we offer as a group. */
void bundle_ask(struct plan *plan, struct side *to, const struct neg_in *in);

/* Before the m-lines of an answer are negotiated, each as if it had a transport of its own: the
 * answerer's group, completed likewise, and which group of the offerer is accepted. False: out of
 * memory. */
bool bundle_answered(struct plan *plan, struct side *from, struct side *to, struct neg_in *in);
/* Whether the offerer's m-line becomes one of a group: it has rtcp-mux then. */
bool bundle_accepts(const struct plan *plan, const struct leg *offerer);
/* And after them: transports are shared from now on. */
void bundle_in_force(
	struct plan *plan, struct side *from, struct side *to, const struct neg_in *in);

/* Number of the m-line whose transport this one has in the SDP that is written. */
uint32_t bundle_owner(const struct side *to, uint32_t i, const struct plan *plan,
	const struct neg_in *in, bool is_answer);
/* The MIDs of the group to write, the tagged one first; s = NULL: none of several m-lines. */
struct str bundle_mids(const struct side *to, const struct sdp_media_edit *me,
	const struct neg_in *in, bool is_answer);
/* Whether one party has several m-lines on one transport in this exchange, and the other has not.
 * Transport-wide sequence numbers of one party are then wrong for the other: it would take the
 * numbers of other m-lines for lost packets. */
bool bundle_of_one(const struct side *from, const struct side *to, bool is_answer);
/* --- bundle_mid.c ----------------------------------------------------------------------------- */

/* Whether m-line i is in the group that our SDP will have. */
bool bundle_is_written(const struct side *to, uint32_t i, bool is_answer);
struct sdp_ext_ids;
/* Chooses the ID of the MID extension for m-lines that lack this extension. ids: the IDs in use in
 * the group. */
void bundle_ask_mid(struct side *to, const struct sdp_ext_ids *ids, const struct neg_in *in);
/* The a=extmap line to add for the MID extension; "": none. */
struct str bundle_extension(
	const struct side *to, uint32_t i, const struct neg_in *in, bool is_answer);

#endif
