/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes calls for saving. Pure. */
#ifndef PERSIST_SAVE_WRITE_H
#define PERSIST_SAVE_WRITE_H

#include "call/model.h"
#include "persist/save_format.h"

/* Appends bencode; errors stay in b. */
void save_write_call(struct sbuf *b, const struct call *c, const struct relay_local *locals,
	uint32_t locals_n, const struct call_state *state);
void save_write_state(struct sbuf *b, const struct call_state *state);

#endif
