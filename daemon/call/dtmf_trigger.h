/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digits that begin and end the blocking of digits (call/dtmf.h). */
#ifndef CALL_DTMF_TRIGGER_H
#define CALL_DTMF_TRIGGER_H

#include "call/call.h"

struct call;
struct calls;

/* A digit of the side's terminal. May replace the call by a changed copy. */
void dtmf_digit(struct calls *c, struct call *call, uint8_t side, uint8_t digit, uint64_t now_ns);
/* Ends blockings whose time is over. True: the call was replaced. */
bool dtmf_tick(struct calls *c, struct call *call, uint64_t now_ns);

#endif
