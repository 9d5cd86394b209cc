/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the packet side has to say to ng's "statistics": everything is counted always, nothing is
 * stopped to read it. */
#ifndef OBSERVE_STATS_H
#define OBSERVE_STATS_H

#include "observe/recent.h"
#include "batch/engines.h"
#include "bridge/interfaces.h"
#include "bridge/kernel_watch.h"
#include "observe/limits.h"
#include "record/record.h"
#include "bridge/bridge.h"
#include "bridge/rules_keep.h"
#include "observe/trend.h"
#include "persist/redis.h"
#include "proto/ngval.h"

struct stats_input {
	struct worker *const *worker;
	uint32_t workers;
	const struct bridge *relay;
	const struct engines *engines;
	const struct calls *calls;
	const struct limits *limits;
	const struct kernel_watch *kernel;   /* NULL: there is none */
	const struct rules_keep *rules;      /* NULL: there are none */
	const struct interfaces *interfaces; /* NULL: none is watched */
	const struct redis *redis;           /* NULL: there is none */
	const struct record *record;         /* NULL: nothing is recorded */
	uint32_t max_sessions;
	const char *steering;
	const char *socket_calls;   /* how ordinary sockets are served */
	uint64_t started_mono_ns;   /* CLOCK_MONOTONIC */
	struct recent recent;       /* of the packets' delay */
	struct recent recent_batch; /* of batch sizes */
	struct trend trend;
};

/* Adds the dictionary "xcipher" to dict. */
void stats_fill(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Of it, the dictionary "limits". */
void stats_fill_limits(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* The same and more, for the web page. */
void stats_fill_page(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* The last ten minutes, for its charts. */
void stats_fill_history(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Call it once a second, for the figures of the last ten seconds. */
void stats_second(struct stats_input *in);

#endif
