/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens Unix sockets for listen.c, and checks who connects. */
#ifndef CONTROL_LISTEN_UNIX_H
#define CONTROL_LISTEN_UNIX_H

#include <stdbool.h>
#include <sys/types.h>

/* A listening stream socket at path, which only our own user and group may connect to. A socket
 * that a program left behind is removed. Its descriptor; -EADDRINUSE: another program listens
 * there; -EEXIST: it is not a socket; other -errno. */
int listen_unix_open(const char *path, gid_t group);
/* Whether the peer runs as root, as our own user, or in group. */
bool listen_unix_admits(int fd, gid_t group);

#endif
