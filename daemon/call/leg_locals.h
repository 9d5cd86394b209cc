/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of a leg that does ICE: one pair on each address of its interface (RFC 8421), of which
 * ICE selects one. They stay as long as the leg does ICE, so that another address can take over
 * when the selected one fails. Only struct leg_locals knows them; leg.port is the one in use. */
#ifndef CALL_LEG_LOCALS_H
#define CALL_LEG_LOCALS_H

#include "call/model.h"

/* Takes the ports that a leg with ice.wide should have. It does without those that are scarce.
 * A leg without ICE returns to its own address, and loses the others. */
void leg_locals_take(const struct relay *r, uint32_t worker, struct leg *l);

/* Uses the port on local address number at, by [rtcp]; of both if the leg has mux. False: it has no
 * such port. */
bool leg_locals_use(struct leg *l, bool rtcp, uint8_t at);

/* What the worker is told of a port that is not in use: it takes part in checks, and has no media.
 * in_use: what it is told of the one in use. */
struct media_stream_cfg leg_locals_idle(
	const struct media_stream_cfg *in_use, struct local_port local);

/* Whether one of its ports has this handle for RTP. */
bool leg_has_stream(const struct leg *l, uint32_t rtp_stream);

#endif
