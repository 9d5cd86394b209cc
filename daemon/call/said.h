/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads an m-line of a terminal: its profile and address. Pure. */
#ifndef CALL_SAID_H
#define CALL_SAID_H

#include "call/plan.h"

/* The address that media are sent to: the signalled one, or received-from with the flag
 * SIP-source-address. */
struct endpoint neg_trusted(const struct ng_request *r, const struct endpoint *signalled);
/* Reads the MID, also of a rejected m-line, because the answer repeats it. */
void neg_said_mid(struct leg_said *said, const struct sdp_media *m);
void neg_said_at(struct leg_said *said, const struct sdp_media *m, const struct neg_in *in);
void neg_remotes(struct leg *l, const struct sdp_media *m, bool mux, const struct neg_in *in);

/* Old-style hold names no address: keep the known one. */
void neg_set_remote(
	struct leg *l, const struct endpoint *rtp, const struct endpoint *rtcp, bool mux);

#endif
