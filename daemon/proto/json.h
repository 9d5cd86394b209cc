/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON (RFC 8259), the other encoding of ng messages. Booleans become 0 and 1, null an empty
 * string. Fractions are truncated to integers. Pure. */
#ifndef PROTO_JSON_H
#define PROTO_JSON_H

#include "proto/ngval.h"

/* members of a container: each key is compared with all earlier ones */
#define JSON_MAX_VALUES 2048u

/* Errors as of bencode_parse(). */
int json_parse(struct ngval **out, struct pool *p, struct str msg, size_t *pos);
/* pretty: indented, for people. Bytes that are not UTF-8 become U+FFFD. */
void json_write(struct sbuf *b, const struct ngval *v, bool pretty);

#endif
