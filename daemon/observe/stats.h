/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side's part of ng's "statistics". All counters are always on, and reading them stops
 * no thread. */
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
#include "bridge/sessions.h"
#include "observe/trend.h"
#include "persist/redis.h"
#include "proto/ngval.h"

struct mikey_host;

struct stats_input {
	struct worker *const *worker;
	uint32_t workers;
	const struct bridge *relay;
	const struct engines *engines;
	const struct calls *calls;
	const struct limits *limits;
	const struct kernel_watch *kernel;      /* NULL: no kernel steering */
	const struct rules_keep *rules;         /* NULL: no rules */
	const struct interfaces *interfaces;    /* NULL: not watched */
	const struct redis *redis;              /* NULL: not in use */
	const struct bridge_sessions *sessions; /* NULL: no keying threads */
	const struct mikey_host *mikey;         /* NULL: MIKEY is off */
	const struct record *record;            /* NULL: nothing is recorded */
	uint32_t max_sessions;
	const char *steering;
	const char *socket_calls;   /* the system calls used for sockets */
	uint64_t started_mono_ns;   /* CLOCK_MONOTONIC */
	struct recent recent;       /* packets' delay */
	struct recent recent_batch; /* of batch sizes */
	struct trend trend;
};

/* Adds the dictionary "xcipher" to dict. */
void stats_fill(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Adds only its dictionary "limits". */
void stats_fill_limits(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Adds it with more detail, for the web page. */
void stats_fill_page(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Adds the last ten minutes, for the page's charts. */
void stats_fill_history(const struct stats_input *in, struct pool *p, struct ngval *dict);

/* Call it once a second, for the figures of the last ten seconds. */
void stats_second(struct stats_input *in);

#endif
