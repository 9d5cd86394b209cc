/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What pierce.c has for others. */
#ifndef CALL_PIERCE_H
#define CALL_PIERCE_H

#include "call/model.h"

/* Of a call that just came into force: what started anew is pierced, at once and then by the ticks.
 */
void pierce_start(const struct relay *relay, struct call *c, uint64_t now_ns);

/* Once a second. */
void pierce_again(const struct relay *relay, struct call *c, uint64_t now_ns);

#endif
