/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends calls whose answer was refused, and removes SDP that the daemon does not process. */
#ifndef MODULE_REJECT_H
#define MODULE_REJECT_H

#include <core/parser/msg_parser.h>

/* Call it in a reply route of tm. A provisional reply, or one without a transaction, is forwarded
 * without its body. A success reply to INVITE or UPDATE becomes a refusal with this code; ACK and
 * BYE end the callee's side, and within a dialog the caller's too. warning: the value of a Warning
 * header field; "": none. 1; -1: none of these. */
int reject_reply(struct sip_msg *msg, int code, const char *reason, const char *warning);
/* Call it after t_check_trans() and before tm's reply route. If that route will not process the SDP
 * of a reply, its body is removed. 1; -1: not a reply, or malformed, so that its body is
 * unknown. */
int reject_sdp(struct sip_msg *msg);

#endif
