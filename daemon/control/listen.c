/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets. A peer that is gone without a word is found out by keep-alive probes. */
#include "control/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

static int open_listener(struct endpoint *local, const struct endpoint *at)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(at, &sa);
	int fd = socket(at->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0,
	    err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* "::" serves IPv4 too, as people expect of it */
	if (at->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)&sa, len) || listen(fd, BACKLOG))
		goto fail;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		goto fail;
	*local = *at;
	/* as it was given: "::" must not be read back as something else */
	local->port = at->family == AF_INET ? ntohs(((struct sockaddr_in *)&sa)->sin_port)
					    : ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	return fd;
fail:
	err = -errno;
	close(fd);
	return err;
}

int listen_tcp(struct endpoint *local, const struct endpoint *at, const char *what, char *err,
	size_t err_len)
{
	char text[ENDPOINT_STRLEN];
	int fd = open_listener(local, at);

	if (fd < 0)
		snprintf(err, err_len, "cannot listen for %s on %s: %s", what,
			endpoint_fmt(at, text), strerror(-fd));
	return fd;
}

int listen_accept(int fd, struct endpoint *from)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int on = 1, idle = 60, every = 15, count = 4;
	int c = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (c < 0)
		return -errno;
	if (endpoint_from_sockaddr(from, &sa)) {
		close(c);
		return -EAFNOSUPPORT;
	}
	setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(c, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(c, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(c, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(c, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	return c;
}
