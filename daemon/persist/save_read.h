/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads saved calls. Pure. */
#ifndef PERSIST_SAVE_READ_H
#define PERSIST_SAVE_READ_H

#include "call/model.h"
#include "persist/save_format.h"

/* Our addresses, which saved calls name by number. */
struct save_locals {
	const struct relay_local *at;
	uint32_t n;
};

/* 0, -ENOMEM, -EPROTONOSUPPORT (another version), -EADDRNOTAVAIL (unknown local address), -EBADMSG.
 * The call is complete except for what apply takes; free it with call_free(). The state is in the
 * pool. */
int save_read_call(struct call **out, struct call_state *state, struct keystore *k, struct pool *p,
	struct str text, struct save_locals locals);
int save_read_state(struct call_state *out, struct pool *p, struct str text);

#endif
