/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reply to ng's "statistics". */
#ifndef XCIPHER_CONTROL_STATISTICS_H
#define XCIPHER_CONTROL_STATISTICS_H

#include "call/call.h"
#include "control/handler.h"
#include "control/interval.h"

struct statistics {
	const struct calls_counters *calls;
	const struct handler_count *count; /* [NG_COMMAND_COUNT] */
	const struct interval *interval;
	const uint64_t *drops; /* [NG_DROP_COUNT] */
	uint64_t duplicates, uptime_ns;
};

void statistics_fill(const struct statistics *s, struct pool *p, struct ngval *dict);

#endif
