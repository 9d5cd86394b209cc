/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call in a few lines, for lists. Contains no key. */
#ifndef CALL_SUMMARY_H
#define CALL_SUMMARY_H

#include "call/call.h"
#include "call/model.h"

/* Adds an ended call to the statistics. */
void summary_ended(const struct relay *relay, const struct call *c, struct calls_ended *e);

/* Appends the call to list. Returns its approximate size in a reply, in bytes. */
size_t summary_call(const struct relay *relay, struct pool *p, const struct call *c,
	uint64_t now_ns, struct ngval *list);

#endif
