/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP parameters of a leg come into force. */
#ifndef CALL_IN_FORCE_H
#define CALL_IN_FORCE_H

#include "call/model.h"

/* NULL: RTP in clear. Keys that were in force keep their slots. */
void leg_set_rx(struct leg *leg, const struct srtp_params *p);
void leg_set_tx(struct leg *leg, const struct srtp_params *p);
/* RTP in clear in both directions, by no keying. */
void leg_set_plain(struct leg *leg);

/* The m-lines that use this one's transport (BUNDLE) get its keys and addresses. Their own contexts
 * hold the keys, too, and no packet: so whoever looks at a leg sees what protects it. */
void side_share(struct side *s, uint32_t owner);

#endif
