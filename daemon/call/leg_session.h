/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session of a leg (call/session.h): whether the leg needs one, and its settings. */
#ifndef CALL_LEG_SESSION_H
#define CALL_LEG_SESSION_H

#include "call/model.h"
#include "call/session.h"

/* ICE, DTLS, or both are offered or in force. */
bool leg_needs_session(const struct leg *l);
/* Takes a handle if the leg needs one and has none. 0, or the error of the operation. */
int leg_session_take(const struct relay *r, struct leg *l);
/* Prepares the settings of the leg's session, which must exist. */
int leg_session_set(const struct relay *r, const struct call *c, struct leg *l);
/* Makes a candidate of an address that SDP named for RTP, or for RTCP. Its type is not known, so it
 * gets the best one. False: the address is unspecified. */
bool leg_candidate(struct ice_candidate *out, const struct endpoint *named, bool rtcp);
/* STUN, DTLS: packets of these kinds go to the keying thread (media_stream_cfg.side). */
uint8_t leg_side_kinds(const struct leg *l);

#endif
