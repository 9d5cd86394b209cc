/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets as ng over TCP and the HTTP server use them. */
#ifndef CONTROL_LISTEN_H
#define CONTROL_LISTEN_H

#include "base/endpoint.h"

/* A listening socket, not blocking; local: where it listens, the port when it was 0. Returns the
 * descriptor, or -errno with one line in err that begins with what. */
int listen_tcp(struct endpoint *local, const struct endpoint *at, const char *what, char *err,
	size_t err_len);
/* The next connection, not blocking, with keep-alive probes and without delay: descriptor or -errno. */
int listen_accept(int fd, struct endpoint *from);

#endif
