/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies a negotiated copy of a call to the packet side: takes ports and keys, and commits, or
 * gives all back. */
#ifndef CALL_APPLY_H
#define CALL_APPLY_H

#include "call/model.h"

/* enum raw_kind of its media. */
uint8_t leg_raw(const struct leg *l);

/* Takes what next wants and does not have. On error nothing of it is left. */
int apply_take(const struct relay *relay, const struct call *prev, struct call *next);

/* Gives back what apply_take() took: what next holds and prev does not. */
void apply_undo(const struct relay *relay, const struct call *prev, struct call *next);

/* Tells the worker all that differs, and behind it the commands in more, at once or not at all.
 * After success what prev holds and next does not is given back. */
int apply_commit(const struct relay *relay, struct pool *p, const struct call *prev,
	struct call *next, uint64_t now_ns, const struct media_cmd *more, uint32_t more_n);

/* Gives back everything. */
void apply_release_all(const struct relay *relay, struct call *c);

#endif
