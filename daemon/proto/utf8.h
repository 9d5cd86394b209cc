/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8 (Unicode 15, table 3-7). Pure. */
#ifndef PROTO_UTF8_H
#define PROTO_UTF8_H

#include "base/bytes.h"

/* Length of the well-formed sequence at s, which must not be empty. 0 if it is malformed. */
size_t utf8_len(struct str s);
bool utf8_valid(struct str s);

#endif
