/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What neg_answer.c has for others. */
#ifndef OFFER_NEG_ANSWER_H
#define OFFER_NEG_ANSWER_H

#include "call/plan.h"

void negotiate_answer(struct plan *out, struct call *next, struct neg_in *in);

#endif
