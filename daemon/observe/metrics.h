/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The metrics for Prometheus: the counters of ng's "statistics", and histograms. */
#ifndef OBSERVE_METRICS_H
#define OBSERVE_METRICS_H

#include "observe/stats.h"
#include "bridge/audio.h"
#include "control/handler.h"

struct metrics_input {
	const struct stats_input *stats;
	const struct handler *handler;
	/* connections of each kind; NULL: not in use */
	const struct ng_tcp *tcp, *proxies;
	const struct homer *homer;
	const struct teardown *teardown;
	const struct bridge_audio *audio;
};

/* Control thread. Appends the whole text. */
void metrics_write(const struct metrics_input *in, struct sbuf *out);

#endif
