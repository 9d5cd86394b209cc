/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Private to handler.c, which decodes requests and encodes replies, and handler_commands.c, which
 * has a function per command. */
#ifndef CONTROL_HANDLER_INT_H
#define CONTROL_HANDLER_INT_H

#include "base/log.h"
#include "call/call.h"
#include "control/handler.h"
#include "control/interval.h"

struct handler {
	struct calls *calls;
	struct stats_source stats;
	handler_role_fn *become;
	void *become_arg;
	void (*changed)(void *arg);
	void *changed_arg;
	handler_operate_fn *operate;
	void *operate_arg;
	const struct handler_web *web;
	const struct ng_templates *templates;
	uint64_t start_ns;                            /* CLOCK_MONOTONIC */
	struct handler_count count[NG_COMMAND_COUNT]; /* [NG_NONE]: malformed requests */
	struct interval interval;
	uint64_t duplicates, drops[NG_DROP_COUNT];
	struct log_limit log_warning, log_load;
};

/* One request being processed. */
struct job {
	struct handler *h;
	struct pool *p;
	struct sbuf *to;
	enum ng_encoding enc;
	struct ng_request r;
	uint64_t now_ns;
	struct call_reply reply;
	struct ngval *dict; /* the handler's part of the reply */
	bool debug;         /* its call has the debug flag */
};

#define NEED_SDP      0x1u
#define NEED_CALL_ID  0x2u
#define NEED_FROM_TAG 0x4u
#define NEED_TO_TAG   0x8u
#define CHANGES       0x10u /* changes a call, or the daemon */

struct command {
	void (*run)(struct job *j);
	uint32_t need;
};

const struct command *handler_command(enum ng_command c);
/* NULL, or the error-reason: the request lacks something that need demands. */
const char *handler_missing(const struct ng_request *r, uint32_t need);
/* The error-reason for an unknown command. */
const char *handler_unknown(struct str command);

#endif
