/* SPDX-License-Identifier: GPL-2.0-or-later */
/* XML-RPC (xmlrpc.com/spec): writes a call with string parameters, and reads whether the reply
 * reports success. Pure. */
#ifndef PROTO_XMLRPC_H
#define PROTO_XMLRPC_H

#include "base/sbuf.h"

/* Appends the whole document; an error is left in b. Bytes that XML cannot have become '?'. */
void xmlrpc_write_call(struct sbuf *b, struct str method, const struct str *param, size_t n);

/* 0: success. -EREMOTEIO: a fault, whose text, with its entities, is in *fault if there is one.
 * -EBADMSG: not a reply of XML-RPC. */
int xmlrpc_read_reply(struct str reply, struct str *fault);

#endif
