/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accepts connections for a server, over TCP or a Unix socket: a few at a time. Refuses connections
 * if the server has no room. Pauses for a second if descriptors run out. */
#ifndef CONTROL_LISTEN_H
#define CONTROL_LISTEN_H

#include <sys/types.h>

#include "base/endpoint.h"
#include "base/log.h"
#include "base/loop.h"

#define LISTEN_NO_GROUP ((gid_t)-1)

struct listener_config {
	struct loop *loop;
	struct endpoint at; /* port 0: any */
	const char *path;   /* of a Unix socket, instead of at; NULL: TCP */
	gid_t group;        /* may connect to path; LISTEN_NO_GROUP: only root and our own user */
	const char *what;   /* for the log: "HTTP" */
	/* False: no room for one more connection. */
	bool (*room)(void *server, const struct endpoint *from);
	/* Takes over fd, which is non-blocking and has keep-alive probes. */
	void (*open)(void *server, int fd, const struct endpoint *from);
	void *server;
	const uint32_t *connections; /* current number, for the log */
};

struct listener { /* zero: listens nowhere */
	struct listener_config cfg;
	struct endpoint local; /* with the real port if 0 was asked for; family 0: a path */
	struct loop_io *io;
	int fd;
	bool paused; /* no descriptors left: accept nothing for a second */
	struct log_limit log_full, log_accept;
};

/* 0, or -errno with one line in err; then it is zero. */
int listener_start(
	struct listener *l, const struct listener_config *cfg, char *err, size_t err_len);
/* Call it periodically: descriptors may be available again. */
void listener_resume(struct listener *l);
void listener_stop(struct listener *l);

#endif
