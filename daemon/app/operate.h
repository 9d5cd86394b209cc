/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Changes by an operator while calls continue: limits, log level, draining, and a reload of the
 * options. Control thread. */
#ifndef APP_OPERATE_H
#define APP_OPERATE_H

#include "observe/cdr.h"
#include "call/call.h"
#include "observe/limits.h"
#include "app/options.h"
#include "observe/stats.h"
#include "base/log.h"
#include "proto/ng.h"

struct operate {
	/* Set by main, constant afterwards. */
	struct options *o; /* live ones change */
	struct cdr *cdr;   /* NULL: none */
	int argc;
	char **argv;
	struct calls *calls;
	struct limits *limits;
	struct stats_input *stats;
	const struct codec_registry *codecs;
	const struct bridge_audio *audio; /* NULL: no codec threads */
	void (*stop)(void *arg);          /* called when the daemon is drained */
	void *stop_arg;
	int (*keys)(
		void *arg, char *err, size_t err_len); /* reads the key files again: 0 or -errno */
	void *keys_arg;
	struct log_limit log;
	char err[512]; /* why the last reload was refused */
};

/* The options that concern calls; loop_key is left empty. */
struct call_policy operate_policy(const struct options *o);
/* The commands limits, drain, log level, reload and codecs (handler_operator()). NULL, or the
 * error-reason. */
const char *operate_request(
	void *arg, const struct ng_request *r, struct pool *p, struct ngval *dict);
/* Reads the options again, as at the start, and applies the live ones. NULL, or the error, with
 * nothing changed. The string is valid until the next call. */
const char *operate_reload(struct operate *op, struct pool *p, struct ngval *dict);
/* Call it once a second. Updates the load limits, and stops a drained daemon without calls. */
void operate_second(struct operate *op);

#endif
