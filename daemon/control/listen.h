/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The listening side of a server of streams, over TCP or a Unix socket: connections are taken a few
 * at a time, refused where the server has no room, and left waiting for a second when descriptors
 * have run out. */
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
	/* False: one more connection is too many now. */
	bool (*room)(void *server, const struct endpoint *from);
	/* Owns fd, which does not block and has keep-alive probes, from here on. */
	void (*open)(void *server, int fd, const struct endpoint *from);
	void *server;
	const uint32_t *connections; /* open now, for the log */
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
/* Now and then: descriptors may be there again. */
void listener_resume(struct listener *l);
void listener_stop(struct listener *l);

#endif
