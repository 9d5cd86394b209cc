/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over TCP: messages back to back on connections that stay. And ng over a Unix socket, for
 * xcipher-web, which forwards what its clients send (proto/ng_proxy.h). Hooks itself into the event
 * loop. Control thread only. */
#ifndef CONTROL_TCP_H
#define CONTROL_TCP_H

#include <sys/types.h>

#include "base/loop.h"
#include "control/ng_dispatch.h"

struct ng_tcp;

struct ng_tcp_config { /* 0 selects the default of a field */
	struct endpoint listen;
	const char *path;     /* of a Unix socket, instead of listen; NULL: TCP */
	gid_t group;          /* may connect to path, see control/listen.h */
	uint32_t connections; /* maximum; on excess see tcp.c */
	uint64_t idle_ns;     /* closes a connection that was idle this long */
	uint64_t evict_ns;    /* a connection silent this long may be closed for a new one */
	uint64_t stall_ns;    /* closes a connection with an unfinished message, or unread
			       * replies, for this long */
};

/* On error, returns -errno and sets *err to one line. Loop and dispatch must outlive it. */
int ng_tcp_create(struct ng_tcp **out, struct loop *loop, struct ng_dispatch *dispatch,
	const struct ng_tcp_config *cfg, char *err, size_t err_len);
/* Before the loop is destroyed. NULL is fine. */
void ng_tcp_destroy(struct ng_tcp *t);

/* Its address, with the port that the kernel chose if 0 was asked for. */
struct endpoint ng_tcp_local(const struct ng_tcp *t);
uint32_t ng_tcp_connections(const struct ng_tcp *t);

#endif
