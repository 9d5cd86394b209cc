/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection to xcipherd: a Unix socket on which requests wait for their replies in order
 * (proto/ng_proxy.h). If it breaks, or the daemon does not reply within LINK_LATE_NS, all waiting
 * requests fail. The connection is then tried again each second until it works. */
#ifndef WEB_LINK_H
#define WEB_LINK_H

#include <libwebsockets.h>

#include "base/clock.h"
#include "proto/ng_proxy.h"

#define LINK_PROTOCOL "xcipher-link"
#define LINK_LATE_NS  (10 * NS_PER_SEC)

enum link_result {
	LINK_OK,
	LINK_DROPPED, /* as in enum ng_proxy_status */
	LINK_DENIED,
	LINK_FAILED,
	LINK_GONE, /* the daemon does not reply */
};

/* reply is valid during the call, and empty unless LINK_OK. */
typedef void link_done(void *arg, enum link_result result, struct str reply);

struct link_config {
	/* has a protocol LINK_PROTOCOL with callbacks to link_event() */
	struct lws_vhost *vhost;
	const char *path;
	void (*changed)(void *arg); /* called when the daemon appears or disappears; may be NULL */
	void *arg;
};

struct link;

int link_create(struct link **out, const struct link_config *cfg);
void link_destroy(struct link *l); /* Calls no callback any more. NULL is fine. */
/* Once a second. now_ns: CLOCK_MONOTONIC. */
void link_tick(struct link *l, uint64_t now_ns);
/* For the callbacks LWS_CALLBACK_RAW_*. Returns their result. */
int link_event(struct link *l, enum lws_callback_reasons reason, void *in, size_t len);

bool link_is_up(const struct link *l);
/* Whether the daemon has keys, so that clients need the token. */
bool link_needs_token(const struct link *l);
/* Sends message and sets request->len. Calls done once, later, unless link_forget() is called
 * first. 0 or -errno: done is not called. */
int link_ask(struct link *l, const struct ng_proxy_request *request, struct str message,
	link_done *done, void *arg);
/* Drops all replies for arg. */
void link_forget(struct link *l, const void *arg);

#endif
