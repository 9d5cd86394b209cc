/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of a leg with ICE: one pair on each address of its interface (RFC 8421). ICE selects
 * one of the pairs. The leg keeps all pairs while it uses ICE, so that another address can take
 * over if the selected one fails. struct leg_locals lists them; leg.port is the pair in use. */
#ifndef CALL_LEG_LOCALS_H
#define CALL_LEG_LOCALS_H

#include "call/model.h"

/* Takes the ports that a leg with ice.wide needs, except on addresses where ports are scarce. A leg
 * without ICE returns to its own address, and releases the other ports. */
void leg_locals_take(const struct relay *r, uint32_t worker, struct leg *l);

/* Puts the port on local address number "at" into use, for RTP or RTCP; for both if the leg has
 * mux. False: the leg has no such port. */
bool leg_locals_use(struct leg *l, bool rtcp, uint8_t at);

/* Settings for a port that is not in use: it takes part in ICE checks, and receives media of other
 * valid pairs for the port in use. Media are never sent from it. in_use, stream: settings and
 * handle of the port in use. */
struct media_stream_cfg leg_locals_idle(
	const struct media_stream_cfg *in_use, uint32_t stream, struct local_port local);

/* Whether this is the RTP stream handle of one of the leg's ports. */
bool leg_has_stream(const struct leg *l, uint32_t rtp_stream);

#endif
