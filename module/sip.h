/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads SIP messages for the module, and replaces their body. */
#ifndef MODULE_SIP_H
#define MODULE_SIP_H

#include "call.h"

/* Reads Call-ID, tags, source, and the body for operations that have one. via: "1", "2", "auto",
 * "none"; "": the Via branch of a call that was forked before us. 0, or -1 with *why. */
int sip_collect(
	struct wire_request *r, struct sip_msg *msg, enum op op, const char *via, const char **why);
/* Replaces the old SDP, which may be a part of a multipart body. Takes effect when the message is
 * sent. 0 or -1. */
int sip_replace_body(struct sip_msg *msg, struct text sdp);
/* Whether the request, or the request of a reply, begins an emergency call. It must begin a dialog.
 * Either its URI as received is urn:service:sos or a number of emergency_numbers. Or it comes from
 * emergency_peers and has a mark: To urn:service:sos, Priority: emergency, or Resource-Priority:
 * esnet. */
bool sip_is_emergency(struct sip_msg *msg);
/* Reads emergency_numbers and emergency_peers, before processes are forked. 0, or -1 after logging
 * the error. */
int sip_emergency_init(void);
void sip_emergency_destroy(void);
/* Selects the operation of xcipher_manage() for this message; false if there is none. */
bool sip_manage(enum op *op, struct sip_msg *msg);
bool sip_has_sdp(struct sip_msg *msg);

#endif
