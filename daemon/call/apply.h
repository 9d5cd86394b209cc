/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies a negotiated copy of a call to the packet side: takes ports and keys, and commits, or
 * gives all back. */
#ifndef CALL_APPLY_H
#define CALL_APPLY_H

#include "call/model.h"

/* The enum raw_kind of its media. */
uint8_t leg_raw(const struct leg *l);

/* Takes resources that next needs and does not have. On error, none are kept. */
int apply_take(const struct relay *relay, const struct call *prev, struct call *next);

/* Releases what apply_take() took: resources that next holds and prev does not. */
void apply_undo(const struct relay *relay, const struct call *prev, struct call *next);

/* Commands for a worker, at now_ns. */
struct apply_cmds {
	struct media_cmd *cmd;
	uint32_t n;
	uint64_t now_ns;
};

/* Sends all differences to the worker at more->now_ns, followed by the commands in more: all or
 * none. On success, releases resources that prev holds and next does not. */
int apply_commit(const struct relay *relay, struct pool *p, const struct call *prev,
	struct call *next, const struct apply_cmds *more);

/* Gives back everything. */
void apply_release_all(const struct relay *relay, struct call *c);

#endif
