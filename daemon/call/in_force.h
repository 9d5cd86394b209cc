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

/* The m-lines that use this one's transport (BUNDLE) get its keys and addresses, so whoever looks
 * at a leg sees what protects it. Only the owner's context has the keys (apply.c). */
void side_share(struct side *s, uint32_t owner);
/* No m-line uses another one's transport. Its keys are forgotten: in a second context their indexes
 * would start again (RFC 3711 9.1). */
void side_unshare(struct side *s);

#endif
