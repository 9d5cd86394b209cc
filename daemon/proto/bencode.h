/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bencode (BEP 3), the encoding of ng messages. Pure. */
#ifndef PROTO_BENCODE_H
#define PROTO_BENCODE_H

#include "proto/ngval.h"

/* Parses a whole message. Accepts any order of keys; strict in all else. 0,
 * -EBADMSG with the position of the error in *pos, or -ENOMEM. */
int bencode_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos);
void bencode_write(struct sbuf *b, const struct ngval *v);

#endif
