/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the metrics. metrics.c writes calls, ng and the daemon as a whole;
 * metrics_packets.c writes packets, batches, devices and recordings. */
#ifndef OBSERVE_METRICS_INT_H
#define OBSERVE_METRICS_INT_H

#include <stdio.h>

#include "observe/metrics.h"
#include "observe/prometheus.h"

#define LABEL_LEN   192
#define WORKERS_MAX 64

#define COUNTER METRICS_COUNTER
#define GAUGE   METRICS_GAUGE

static inline uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline uint64_t load_plain(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

static inline const char *label(char out[LABEL_LEN], const char *key, const char *value)
{
	snprintf(out, LABEL_LEN, "%s=\"%s\"", key, value);
	return out;
}

void metrics_write_packets(const struct stats_input *in, struct sbuf *out);
void metrics_write_recording(const struct record *r, struct sbuf *b);

#endif
