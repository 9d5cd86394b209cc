/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Base64 (RFC 4648 4) for keys: the value of a character decides neither a branch nor a table
 * index. Pure. */
#ifndef PROTO_BASE64_H
#define PROTO_BASE64_H

#include "base/bytes.h"

#define BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4) /* with padding */

/* Padding is optional. Returns the number of bytes, or -EINVAL (also if they exceed cap; out is
 * then wiped). */
int base64_decode(uint8_t *out, size_t cap, struct str text);
/* Writes at most BASE64_LEN(len) characters without a final zero. Returns their number. */
size_t base64_encode(char *out, const uint8_t *p, size_t len, bool pad);

#endif
