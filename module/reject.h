/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ending a call whose answer was refused, and removing SDP that nobody processes. */
#ifndef MODULE_REJECT_H
#define MODULE_REJECT_H

#include <core/parser/msg_parser.h>

/* In a reply route of tm. A provisional reply, and one without a transaction, goes on without its
 * body. A positive one to INVITE or UPDATE becomes a refusal with this code, the callee's side is
 * ended by ACK and BYE, and within a dialog so is the caller's. 1; -1: the reply is none of these.
 */
int reject_reply(struct sip_msg *msg, int code, const char *reason);
/* Before tm's reply route, behind t_check_trans(): a reply whose SDP that route will not process
 * goes on without its body. 1; -1: not a reply, or malformed, so that nobody can say what its body
 * is. */
int reject_sdp(struct sip_msg *msg);

#endif
