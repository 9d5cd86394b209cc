/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The synchronous exchange. Its own connected socket receives no replies to earlier requests, and
 * reports a missing node at once (ICMP). Blocks this process for at most max_nodes * (1 + retries)
 * * timeout. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <core/dprint.h>

#include "call.h"
#include "settings.h"

void sync_cookie(char *out)
{
	static unsigned number;
	static uint64_t start;

	if (!start)
		start = now_ms();
	snprintf(out, COOKIE_LEN, "%x_%llx_%x", (unsigned)getpid(), (unsigned long long)start,
		number++);
}

static int open_to(const struct target *t)
{
	int fd = socket(t->addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&t->addr, t->addr_len)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Waits for a reply until the job's deadline. STEP_DONE: it has come; else the next step. */
static enum step listen_for(
	struct context *c, int fd, struct wire_reply *reply, char *buf, size_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct text cookie;
	enum step next;
	uint64_t now;
	ssize_t n;

	while ((now = now_ms()) < c->job.due) {
		if (poll(&p, 1, (int)(c->job.due - now)) <= 0)
			continue;
		n = recv(fd, buf, size, 0);
		if (n < 0 && errno == ECONNREFUSED)
			return job_unreachable(&c->job);
		if (n <= 0)
			continue;
		cookie = wire_cookie(settings.keys, buf, (size_t)n);
		if (!text_is(cookie, c->job.cookie)) {
			counter_inc(counters.stray_replies);
			continue;
		}
		if (!job_genuine(&c->job, buf, (size_t)n))
			continue;
		wire_read(reply, buf, (size_t)n, c->job.op == OP_QUERY, c->from_tag, c->to_tag);
		next = job_reply(&c->job, reply);
		if (next == STEP_DONE)
			return next;
		/* Keep the last "load limit": it is the reason if no other node replies. */
		wire_fini(reply);
		if (next == STEP_SEND)
			return next;
	}
	return job_tick(&c->job, now_ms());
}

bool sync_exchange(struct context *c, struct wire_reply *reply, char *buf, size_t size)
{
	enum step step = job_start(&c->job, c->call_id, c->policy.emergency);
	int fd = -1, at = -1, n;
	char cookie[COOKIE_LEN];

	reply->pool = NULL;
	while (step == STEP_SEND) {
		if (at != c->job.at) {
			if (fd >= 0)
				close(fd);
			at = c->job.at;
			fd = open_to(job_target(&c->job));
		}
		if (fd < 0 || (send(fd, c->job.msg, c->job.len, 0) < 0 && errno != EAGAIN)) {
			step = job_unreachable(&c->job);
			continue;
		}
		job_sent(&c->job, now_ms());
		step = listen_for(c, fd, reply, buf, size);
		if (step != STEP_DONE || !reply->pool)
			continue;
		sync_cookie(cookie);
		n = call_loosen(c, reply, (char *)c->job.msg, WIRE_MAX, cookie);
		if (n > 0) {
			wire_fini(reply);
			strcpy(c->job.cookie, cookie);
			c->job.len = (size_t)n;
			c->job.sent = 0;
			step = STEP_SEND;
		}
	}
	if (fd >= 0)
		close(fd);
	return reply->pool != NULL;
}
