/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See listen.h. Keep-alive probes detect peers that disappeared without closing. */
#include "control/listen.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/listen_unix.h"

#define BACKLOG      64
#define ACCEPTS      16 /* per turn */
#define LOG_EVERY_NS (10 * NS_PER_SEC)

static int open_listener(struct endpoint *local, const struct endpoint *at)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(at, &sa);
	int fd = socket(at->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0,
	    err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* "::" also serves IPv4, as users expect */
	if (at->family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)&sa, len) || listen(fd, BACKLOG))
		goto fail;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len))
		goto fail;
	*local = *at;
	/* keep the configured form: "::" must stay "::" */
	local->port = at->family == AF_INET ? ntohs(((struct sockaddr_in *)&sa)->sin_port)
					    : ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	return fd;
fail:
	err = -errno;
	close(fd);
	return err;
}

static int accept_one(const struct listener *l, struct endpoint *from)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	int on = 1, idle = 60, every = 15, count = 4;
	int c = accept4(l->fd, (struct sockaddr *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (c < 0)
		return -errno;
	if (l->cfg.path) {
		*from = (struct endpoint){0};
		if (listen_unix_admits(c, l->cfg.group))
			return c;
		close(c);
		return -EPERM;
	}
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

static void on_listener(void *arg, uint32_t events)
{
	struct listener *l = arg;
	struct endpoint from;
	char text[ENDPOINT_STRLEN];
	uint64_t held, now = clock_mono_ns();

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept_one(l, &from);

		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
			l->paused = loop_io_change(l->io, 0) == 0;
			if (log_limit_pass(&l->log_accept, now, LOG_EVERY_NS, &held))
				log_warn("%s: cannot accept a connection: %s", l->cfg.what,
					strerror(-fd));
			return;
		}
		if (fd == -EAGAIN)
			return;
		if (fd == -EPERM && l->cfg.path &&
			log_limit_pass(&l->log_accept, now, LOG_EVERY_NS, &held))
			log_warn("%s: connection refused: its user is not in the socket's group",
				l->cfg.what);
		if (fd < 0)
			continue; /* the client left before accept() */
		if (l->cfg.room(l->cfg.server, &from)) {
			l->cfg.open(l->cfg.server, fd, &from);
			continue;
		}
		close(fd);
		if (log_limit_pass(&l->log_full, now, LOG_EVERY_NS, &held))
			log_warn("%s: connection from %s refused, %u are open%s", l->cfg.what,
				l->cfg.path ? "a local program" : endpoint_fmt(&from, text),
				*l->cfg.connections, log_held((char[LOG_HELD]){0}, held));
	}
}

int listener_start(struct listener *l, const struct listener_config *cfg, char *err, size_t err_len)
{
	char text[ENDPOINT_STRLEN];
	int fd, ret;

	*l = (struct listener){.cfg = *cfg};
	fd = ret = cfg->path ? listen_unix_open(cfg->path, cfg->group)
			     : open_listener(&l->local, &cfg->at);
	if (fd >= 0) {
		l->fd = fd;
		ret = loop_io_add(cfg->loop, &l->io, fd, EPOLLIN, on_listener, l);
	}
	if (ret == 0)
		return 0;
	snprintf(err, err_len, "cannot listen for %s on %s: %s", cfg->what,
		cfg->path ? cfg->path : endpoint_fmt(&cfg->at, text), strerror(-ret));
	if (fd >= 0)
		close(fd);
	*l = (struct listener){0};
	return ret;
}

void listener_resume(struct listener *l)
{
	if (l->paused)
		l->paused = loop_io_change(l->io, EPOLLIN) != 0;
}

void listener_stop(struct listener *l)
{
	if (!l->io)
		return;
	loop_io_remove(l->io);
	close(l->fd);
	if (l->cfg.path)
		unlink(l->cfg.path);
	*l = (struct listener){0};
}
