/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens firewalls before terminals by a few empty packets (flag pierce-NAT of ng). */
#ifndef CALL_PIERCE_H
#define CALL_PIERCE_H

#include "call/model.h"

/* Call it when a call came into force: sends the first packets for each leg that has just
 * started. */
void pierce_start(const struct relay *relay, struct call *c, uint64_t now_ns);

/* Once a second: sends the next packets. */
void pierce_again(const struct relay *relay, struct call *c, uint64_t now_ns);

#endif
