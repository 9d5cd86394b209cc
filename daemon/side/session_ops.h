/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions (side/session.h) as the keying thread runs them. */
#ifndef SIDE_SESSION_OPS_H
#define SIDE_SESSION_OPS_H

#include "side/session.h"
#include "side/thread.h"

/* arg of open(): the thread's struct session_env. cfg: a struct session_order from
 * session_order_new(). */
extern const struct side_session_ops session_ops_side;

/* On the heap; wiped and freed by the thread, or by session_order_free(). The reference to cert is
 * its own. NULL without memory or random bytes. */
struct session_order *session_order_new(const struct session_cfg *cfg, struct dtls_cert *cert);
void session_order_free(struct session_order *o);

#endif
