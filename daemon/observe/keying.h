/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of the keying threads: DTLS handshakes, and ICE. */
#ifndef OBSERVE_KEYING_H
#define OBSERVE_KEYING_H

#include "base/sbuf.h"
#include "bridge/sessions.h"
#include "proto/ngval.h"

/* Adds the dictionary "sessions". */
void keying_stats(const struct bridge_sessions *s, struct pool *p, struct ngval *dict);
/* The metrics for Prometheus. */
void keying_metrics(const struct bridge_sessions *s, struct sbuf *b);

#endif
