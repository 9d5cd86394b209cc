/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns an ng message into its reply, for all transports: authentication, and the cache for
 * repeated requests. Knows no sockets. Control thread only. */
#ifndef CONTROL_NG_DISPATCH_H
#define CONTROL_NG_DISPATCH_H

#include "control/handler.h"

struct ng_dispatch;

/* The handler must live longer than the dispatch. 0 or -errno. */
int ng_dispatch_create(struct ng_dispatch **out, struct handler *h);
/* Reads the keys of this file; UDP and TCP requests must then be signed by one of them (ng_auth.h).
 * A second call replaces the keys: requests signed by removed keys are dropped. 0, or -errno with
 * one line in err; then the previous keys stay in use. */
int ng_dispatch_keys(struct ng_dispatch *f, const char *key_file, char *err, size_t err_len);
bool ng_dispatch_has_keys(const struct ng_dispatch *f);
void ng_dispatch_destroy(struct ng_dispatch *f);
/* Call about once a second: frees old replies, which hold keys. */
void ng_dispatch_tick(struct ng_dispatch *f, uint64_t now_mono_ns);

/* Whether a message may wait for its turn. False: it is dropped and counted. Messages that are not
 * ng, or not signed by a key, take no room in their source's backlog. */
bool ng_dispatch_admits(
	struct ng_dispatch *f, const struct endpoint *from, struct str message, uint64_t now_ns);
/* Counts n messages that were dropped without a reply, and logs one of them per 10 s and reason. */
void ng_dispatch_drop(
	struct ng_dispatch *f, enum ng_drop reason, const struct endpoint *from, uint32_t n);

/* Only counts them, if no source is known. */
void ng_dispatch_count(struct ng_dispatch *f, enum ng_drop reason, uint32_t n);

/* Processes "cookie SP dictionary", and appends a reply of the same form, within reply's limit.
 * A repeated cookie from the same address gets the same reply. now_ns: CLOCK_REALTIME. 0;
 * -ENOMSG: dropped and counted, send no reply; -EAGAIN: the relay is busy, but a copy of the
 * request will be executed; the error reply is for transports whose clients do not repeat; other
 * -errno: no reply. */
int ng_dispatch_framed(struct ng_dispatch *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply);
/* The same over HTTP and WebSocket, where a token replaces the signature. */
int ng_dispatch_http(struct ng_dispatch *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply);
/* A dictionary without cookie. 0 or -errno as above. */
int ng_dispatch_plain(struct ng_dispatch *f, struct str body, uint64_t now_ns, struct sbuf *reply);
/* Appends an error reply to a cookie whose dictionary the transport could not read. -EACCES: the
 * reply cannot be signed: send none. */
int ng_dispatch_reject(
	struct ng_dispatch *f, struct str cookie, const char *reason, struct sbuf *reply);

#endif
