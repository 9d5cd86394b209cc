/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of ZRTP, summed over the keying threads. */
#ifndef OBSERVE_KEYING_ZRTP_H
#define OBSERVE_KEYING_ZRTP_H

#include "base/sbuf.h"
#include "bridge/sessions.h"
#include "proto/ngval.h"

/* Adds "ZRTP". */
void zrtp_stats(const struct bridge_sessions_usage *u, struct pool *p, struct ngval *dict);
void zrtp_metrics(const struct bridge_sessions_usage *u, struct sbuf *b);

#endif
