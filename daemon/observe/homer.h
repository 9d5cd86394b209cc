/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends a copy of every relayed RTCP report to a Homer server (HEP version 3 over UDP), with the
 * Call-ID. */
#ifndef OBSERVE_HOMER_H
#define OBSERVE_HOMER_H

#include "worker/worker.h"
#include "base/loop.h"
#include "call/call.h"

struct homer;

struct homer_config {
	struct endpoint server;
	uint32_t capture_id;
	struct worker *const *worker;
	uint32_t workers;
	uint32_t max_stream; /* per worker */
	struct calls *calls;
	const struct relay_local *local;
	uint32_t locals;
};

/* 0 or -errno, with one line in err. */
int homer_create(struct homer **out, struct loop *loop, const struct homer_config *cfg, char *err,
	size_t err_len);
/* Stops reading reports. Call it before calls and loop are destroyed. NULL is fine. */
void homer_stop(struct homer *h);
/* After homer_stop() and the end of the workers. NULL is fine. */
void homer_destroy(struct homer *h);

struct homer_counters {
	uint64_t sent,
		/* failed: not taken by the kernel, or the call had ended */
		failed;
};
struct homer_counters homer_counters(const struct homer *h);

#endif
