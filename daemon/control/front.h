/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all transports of ng have in common: from a message to its reply, with the cache for repeated
 * requests. Knows no sockets. Control thread only. */
#ifndef CONTROL_FRONT_H
#define CONTROL_FRONT_H

#include "control/handler.h"

struct ng_front;

/* The handler must live longer than the front. 0 or -errno. */
int ng_front_create(struct ng_front **out, struct handler *h);
void ng_front_destroy(struct ng_front *f);
/* Once a second or so: forgets old replies, which hold keys. */
void ng_front_tick(struct ng_front *f, uint64_t now_mono_ns);

/* "cookie SP dictionary" to a reply of the same form, appended to reply, whose limit is what the
 * transport can carry. A request from this address with a cookie that was answered already gets the
 * same answer. now_ns: CLOCK_REALTIME. 0; -ENOMSG: no cookie, nothing to be said; other -errno: no
 * reply could be made. */
int ng_front_framed(struct ng_front *f, const struct endpoint *from, struct str message,
	uint64_t now_ns, struct sbuf *reply);
/* A dictionary without cookie. 0 or -errno as above. */
int ng_front_plain(struct ng_front *f, struct str body, uint64_t now_ns, struct sbuf *reply);
/* A cookie whose dictionary the transport could not make out. */
int ng_front_reject(struct ng_front *f, struct str cookie, const char *reason, struct sbuf *reply);

/* Only the proxy should reach this address: a warning unless it is this machine's own. */
void ng_front_warn_open(const struct endpoint *listen, const char *transport);

#endif
