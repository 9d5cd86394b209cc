/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decodes and executes one ng request, and encodes its reply. Shared by all transports; knows
 * neither sockets nor cookies. */
#ifndef CONTROL_HANDLER_H
#define CONTROL_HANDLER_H

#include "call/call.h"
#include "control/drops.h"
#include "control/page.h"

#define HANDLER_POOL_LIMIT \
	(16u << 20) /* memory for one request: a datagram full of empty lists takes 3 MiB */

struct handler;

struct stats_source { /* adds app/'s parts of "statistics" */
	void (*fill)(void *arg, struct pool *p, struct ngval *dict);
	void *arg;
};

/* stats.fill may be NULL. mono_ns: CLOCK_MONOTONIC, start of the uptime. 0 or -ENOMEM. */
int handler_create(
	struct handler **out, struct calls *calls, struct stats_source stats, uint64_t mono_ns);
void handler_destroy(struct handler *h);
/* Executes "active" and "standby": NULL, or the error-reason. *warning: for the reply, in p. */
typedef const char *handler_role_fn(void *arg, bool active, struct pool *p, struct str *warning);
/* Sets the function for these commands; without it they are refused. */
void handler_on_role(struct handler *h, handler_role_fn *become, void *arg);

/* Called after each command that may have changed a call, before its reply is sent. */
void handler_on_change(struct handler *h, void (*changed)(void *arg), void *arg);

/* Sets named flags, used for each request; they must outlive the handler. NULL: none. */
void handler_templates(struct handler *h, const struct ng_templates *templates);

/* Commands that change the daemon as a whole: app/ executes them. NULL, or the error-reason.
 * Results go into dict. */
typedef const char *handler_operate_fn(
	void *arg, const struct ng_request *r, struct pool *p, struct ngval *dict);
void handler_operator(struct handler *h, handler_operate_fn *operate, void *arg);

/* Sources of the replies to "metrics", "page" and "page history". */
struct handler_web {
	struct page_source page;
	/* Appends metrics in Prometheus' text format. */
	void (*metrics)(void *arg, struct sbuf *out);
	void *arg;
};
/* web must outlive the handler. NULL: the three commands are refused. */
void handler_show(struct handler *h, const struct handler_web *web);

/* Executes one request. body: a dictionary in this encoding. Appends the reply in the same
 * encoding, or an error reply if it does not fit reply's limit. from: the client, or NULL. now_ns:
 * CLOCK_REALTIME. 0; -EAGAIN: the reply is an error, nothing changed, and the same request may
 * succeed soon. */
struct handler_message {
	const struct endpoint *from; /* the client, or NULL */
	struct str body;             /* a dictionary */
	enum ng_encoding encoding;
};
int handler_request(struct handler *h, struct pool *p, const struct handler_message *m,
	uint64_t now_ns, struct sbuf *reply);
/* Writes an error reply for a malformed request. */
void handler_reject(struct handler *h, struct pool *p, enum ng_encoding enc, const char *reason,
	struct sbuf *reply);
struct handler_count {
	uint64_t requests, errors, ns; /* ns: total processing time */
};

/* Refused commands of the protocol, and the reason in the reply. */
struct handler_refusal {
	const char *command, *reason;
};
const struct handler_refusal *handler_refusals(size_t *n);

/* Counters of one command; NG_NONE: of malformed requests. */
struct handler_count handler_count(const struct handler *h, enum ng_command c);
uint64_t handler_duplicates(const struct handler *h);
/* Counts a repeated request that a transport answered from its cache. */
void handler_count_duplicate(struct handler *h);
/* Messages dropped without a reply, by reason. */
uint64_t handler_drops(const struct handler *h, enum ng_drop reason);
void handler_count_drops(struct handler *h, enum ng_drop reason, uint32_t n);

#endif
