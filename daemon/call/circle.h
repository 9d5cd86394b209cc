/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds media that returns in a circle which call/links.h cannot see. */
#ifndef CALL_CIRCLE_H
#define CALL_CIRCLE_H

#include "call/model.h"

/* Once a second: has streams watched that get more than a terminal sends. */
void circle_look(const struct relay *relay, struct call *c, uint64_t now_ns);

#endif
