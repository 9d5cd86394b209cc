/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exchanges of MIKEY that ended, by mode, role and result. */
#ifndef OBSERVE_MIKEY_H
#define OBSERVE_MIKEY_H

#include "base/sbuf.h"
#include "keying/mikey_host.h"
#include "proto/ngval.h"

/* Adds the dictionary "MIKEY". */
void mikey_stats(const struct mikey_host *h, struct pool *p, struct ngval *dict);
/* The metrics for Prometheus. */
void mikey_metrics(const struct mikey_host *h, struct sbuf *b);

#endif
