/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading with a sticky error: what is read beyond the end is 0, and bad is set. */
#ifndef PROTO_MIKEY_INT_H
#define PROTO_MIKEY_INT_H

#include "proto/mikey.h"

struct mikey_cursor {
	struct str in;
	size_t at;
	bool bad;
};

/* 0 when bad */
uint8_t mikey_take_u8(struct mikey_cursor *c);
uint16_t mikey_take_u16(struct mikey_cursor *c);
struct str mikey_take_str(struct mikey_cursor *c, size_t len);
/* Key validity of this type. */
void mikey_take_kv(struct mikey_kv *kv, struct mikey_cursor *c, uint8_t type);

#endif
