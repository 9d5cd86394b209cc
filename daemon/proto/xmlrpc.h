/* SPDX-License-Identifier: GPL-2.0-or-later */
/* XML-RPC (xmlrpc.com/spec): a call with strings for parameters, and what a reply says of its
 * success. Pure. */
#ifndef PROTO_XMLRPC_H
#define PROTO_XMLRPC_H

#include "base/sbuf.h"

/* Appends the whole document; an error is left in b. Bytes that XML cannot have become '?'. */
void xmlrpc_write_call(struct sbuf *b, struct str method, const struct str *param, size_t n);

/* 0: it was done. -EREMOTEIO: a fault, whose text is in *fault, as far as there is one; entities in
 * it stay as they are. -EBADMSG: that is no reply of XML-RPC. */
int xmlrpc_read_reply(struct str reply, struct str *fault);

#endif
