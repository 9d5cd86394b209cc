/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts SRTP parameters of a leg into force. */
#ifndef CALL_IN_FORCE_H
#define CALL_IN_FORCE_H

#include "call/model.h"

/* NULL: RTP in clear. Keys that were in force keep their slots. */
void leg_set_rx(struct leg *leg, const struct srtp_params *p);
void leg_set_tx(struct leg *leg, const struct srtp_params *p);
/* Sets RTP in the clear in both directions, without keying. */
void leg_set_plain(struct leg *leg);

/* Copies keys and addresses to the m-lines that use this one's transport (BUNDLE), so that every
 * leg shows its protection. Only the owner's context has the keys (apply.c). */
void side_share(struct side *s, uint32_t owner);
/* Ends shared transports. The keys of sharing m-lines are forgotten: a second context would restart
 * their indexes (RFC 3711 9.1). */
void side_unshare(struct side *s);

#endif
