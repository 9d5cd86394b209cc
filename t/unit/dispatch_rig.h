/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An event loop with an ng dispatcher, and clients of a server on loopback, for the tests of such
 * servers. Time is virtual: see virtual_time.h. Included after cmocka.h. */
#ifndef DISPATCH_RIG_H
#define DISPATCH_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/loop.h"
#include "call_talk.h"
#include "control/ng_dispatch.h"
#include "control/handler.h"
#include "virtual_time.h"

struct dispatch_rig {
	struct talk talk;
	struct handler *h;
	struct ng_dispatch *dispatch;
	struct loop *loop;
};

static inline void dispatch_start(struct dispatch_rig *r)
{
	virtual_time_begin();
	talk_start(&r->talk);
	assert_int_equal(handler_create(&r->h, r->talk.c, (struct stats_source){0}, 0), 0);
	assert_int_equal(ng_dispatch_create(&r->dispatch, r->h), 0);
	assert_int_equal(loop_create(&r->loop), 0);
}

/* Destroy the server first. */
static inline void dispatch_stop(struct dispatch_rig *r)
{
	loop_destroy(r->loop);
	ng_dispatch_destroy(r->dispatch);
	handler_destroy(r->h);
	talk_end(&r->talk);
}

static inline void dispatch_stop_loop(void *arg)
{
	loop_stop(arg);
}

static inline void dispatch_serve(struct dispatch_rig *r, uint64_t ns)
{
	struct loop_timer *t;

	assert_int_equal(loop_timer_add(r->loop, &t, ns, 0, dispatch_stop_loop, r->loop), 0);
	assert_int_equal(loop_run(r->loop), 0);
}

/* A connected, non-blocking socket that sends its data at once. */
static inline int dispatch_client(struct endpoint at)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(&at, &sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* Receives what has arrived and appends it after the first have bytes. Returns everything received,
 * zero-terminated. *closed: the connection ended. */
static inline struct str dispatch_receive_more(int fd, size_t have, bool *closed)
{
	static char buf[4 << 20];
	size_t len = have;
	ssize_t n;

	do {
		n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	*closed = n == 0 || errno == ECONNRESET;
	buf[len] = 0;
	return (struct str){buf, len};
}

static inline struct str dispatch_receive(int fd, bool *closed)
{
	return dispatch_receive_more(fd, 0, closed);
}

/* Receives until what is part of it. */
static inline struct str dispatch_receive_until(struct dispatch_rig *r, int fd, struct str what)
{
	uint64_t start = virtual_time_real_ns();
	struct str got;
	bool closed;

	for (got = dispatch_receive(fd, &closed);
		!memmem(got.s, got.len, what.s, what.len) && virtual_time_patient(start);
		got = dispatch_receive_more(fd, got.len, &closed))
		dispatch_serve(r, 1000000);
	return got;
}

/* Whether the connection ends once the data in flight is read. */
static inline bool dispatch_ends(struct dispatch_rig *r, int fd)
{
	uint64_t start = virtual_time_real_ns();
	bool closed;

	for (dispatch_receive(fd, &closed); !closed && virtual_time_patient(start);
		dispatch_receive(fd, &closed))
		dispatch_serve(r, 1000000);
	return closed;
}

static inline void dispatch_send(int fd, struct str s)
{
	assert_int_equal(send(fd, s.s, s.len, MSG_NOSIGNAL), s.len);
}

#endif
