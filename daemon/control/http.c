/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's side of the HTTP server: takes connections and hands them to the server thread, carries out the
 * jobs that come from there, a few per turn, and hands the replies back. It never waits for the server thread: the rings
 * hold every job and every connection there can be. */
#include "control/http_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "control/listen.h"

#define BUDGET       16 /* jobs per turn */
#define LOG_EVERY_NS (10 * NS_PER_SEC)

/* --- Jobs ------------------------------------------------------------------------------------------------------ */

struct http_job *http_job_take(struct http *h)
{
	for (uint32_t i = 0; i < HTTP_JOBS; i++)
		if (!h->job[i].taken) {
			h->job[i] = (struct http_job){.taken = true};
			sbuf_init(&h->job[i].body, HTTP_BODY_MAX);
			sbuf_init(&h->job[i].reply, HTTP_REPLY_MAX);
			return &h->job[i];
		}
	return NULL;
}

void http_job_free(struct http_job *j)
{
	sbuf_fini(&j->body);
	sbuf_fini(&j->reply);
	j->taken = false;
}

void http_job_ask(struct http *h, struct http_job *j)
{
	uint32_t number = (uint32_t)(j - h->job);
	uint64_t one = 1;

	ring_push(&h->ask, &number, 1); /* has room for all of them */
	(void)!write(h->ask_fd, &one, sizeof(one));
}

static void carry_out(struct http *h, struct http_job *j)
{
	struct str body = sbuf_view(&j->body);

	switch (j->kind) {
	case HTTP_JOB_NG:
		j->err = ng_front_framed(h->front, &j->from, body, clock_real_ns(), &j->reply);
		break;
	case HTTP_JOB_NG_PLAIN:
		j->err = ng_front_plain(h->front, body, clock_real_ns(), &j->reply);
		break;
	case HTTP_JOB_METRICS:
		h->cfg.metrics(h->cfg.arg, &j->reply);
		j->err = j->reply.err;
		break;
	case HTTP_JOB_PAGE:
		j->err = page_snapshot(&h->cfg.page, body, clock_real_ns(), &j->reply);
		break;
	case HTTP_JOB_END:
		j->err = page_end_call(h->front, body, clock_real_ns(), &j->reply);
		break;
	}
	sbuf_fini(&j->body);
}

static void on_ask(void *arg, uint32_t events)
{
	struct http *h = arg;
	uint64_t count;
	uint32_t number;
	int n = 0;

	(void)events;
	(void)!read(h->ask_fd, &count, sizeof(count));
	while (n < BUDGET && ring_pop(&h->ask, &number)) {
		carry_out(h, &h->job[number]);
		ring_push(&h->done, &number, 1);
		n++;
	}
	if (n)
		http_server_wake(h);
	if (n == BUDGET) { /* others first, then the rest */
		count = 1;
		(void)!write(h->ask_fd, &count, sizeof(count));
	}
}

/* --- Connections ----------------------------------------------------------------------------------------------- */

static void hand_over(struct http *h, int fd, const struct endpoint *from)
{
	char text[ENDPOINT_STRLEN];
	uint64_t held;

	if (atomic_load(&h->connections) < HTTP_CONNECTIONS &&
		ring_push(&h->accepted, &fd, 1) == 0) {
		atomic_fetch_add(&h->connections, 1);
		return;
	}
	close(fd);
	if (log_limit_pass(&h->log, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_warn("HTTP: connection from %s refused, %u are open (%llu more held back)",
			endpoint_fmt(from, text), HTTP_CONNECTIONS, (unsigned long long)held);
}

static void on_listener(void *arg, uint32_t events)
{
	struct http *h = arg;
	struct endpoint from;
	bool any = false;

	(void)events;
	for (int i = 0; i < BUDGET; i++) {
		int fd = listen_accept(h->listen_fd, &from);

		if (fd == -EAGAIN)
			break;
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
			h->paused = loop_io_change(h->listen_io, 0) == 0;
			break;
		}
		if (fd < 0)
			continue; /* it was gone before we came */
		hand_over(h, fd, &from);
		any = true;
	}
	if (any)
		http_server_wake(h);
}

static void on_second(void *arg)
{
	struct http *h = arg;

	if (h->paused)
		h->paused = loop_io_change(h->listen_io, EPOLLIN) != 0;
}

/* --- Start and stop -------------------------------------------------------------------------------------------- */

static int read_token(struct http *h, const char *path, char *err, size_t err_len)
{
	char text[HTTP_TOKEN_MAX + 16];
	struct str rest = {text, 0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (n < 0 || fstat(fd, &st)) {
		ret = -errno;
		snprintf(
			err, err_len, "cannot read --http-token-file=%s: %s", path, strerror(-ret));
	} else if (st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) {
		ret = -EPERM;
		snprintf(err, err_len,
			"--http-token-file=%s may be read or changed by others: chmod 640 or 600",
			path);
	} else {
		rest.len = (size_t)n;
		ret = http_token_set(&h->token, str_trim(str_cut(&rest, '\n')));
		if (ret)
			snprintf(err, err_len,
				"--http-token-file=%s: its first line must be a token of %d to %d letters or digits, as \"openssl rand -hex 24\" makes them",
				path, HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
	}
	secmem_wipe(text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return ret;
}

static int start(struct http *h, char *err, size_t err_len)
{
	int ret = 0;

	if (h->cfg.token_file[0])
		ret = read_token(h, h->cfg.token_file, err, err_len);
	if (ret)
		return ret;
	gethostname(h->machine, sizeof(h->machine) - 1);
	h->listen_fd = listen_tcp(&h->local, &h->cfg.listen, "HTTP", err, err_len);
	if (h->listen_fd < 0)
		return h->listen_fd;
	snprintf(err, err_len, "HTTP server: out of memory or descriptors");
	h->ask_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->ask_fd < 0)
		return -errno;
	ret = ring_init(&h->ask, HTTP_JOBS, sizeof(uint32_t));
	ret = ret ? ret : ring_init(&h->done, HTTP_JOBS, sizeof(uint32_t));
	ret = ret ? ret : ring_init(&h->accepted, HTTP_CONNECTIONS, sizeof(int));
	ret = ret ? ret : loop_io_add(h->loop, &h->ask_io, h->ask_fd, EPOLLIN, on_ask, h);
	ret = ret ? ret
		  : loop_io_add(h->loop, &h->listen_io, h->listen_fd, EPOLLIN, on_listener, h);
	ret = ret ? ret : loop_timer_add(h->loop, &h->timer, NS_PER_SEC, NS_PER_SEC, on_second, h);
	return ret ? ret : http_server_start(h);
}

int http_create(struct http **out, struct loop *loop, struct ng_front *front,
	const struct http_config *cfg, char *err, size_t err_len)
{
	struct http *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->loop = loop;
	h->front = front;
	h->listen_fd = h->ask_fd = -1;
	ret = start(h, err, err_len);
	if (ret) {
		http_destroy(h);
		return ret;
	}
	if (!h->token.set)
		ng_front_warn_open(&h->local, "HTTP without --http-token-file");
	*out = h;
	return 0;
}

void http_destroy(struct http *h)
{
	int fd;

	if (!h)
		return;
	http_server_stop(h);
	loop_timer_remove(h->timer);
	loop_io_remove(h->listen_io);
	loop_io_remove(h->ask_io);
	while (h->accepted.mem && ring_pop(&h->accepted, &fd))
		close(fd);
	if (h->listen_fd >= 0)
		close(h->listen_fd);
	if (h->ask_fd >= 0)
		close(h->ask_fd);
	for (uint32_t i = 0; i < HTTP_JOBS; i++)
		if (h->job[i].taken)
			http_job_free(&h->job[i]);
	ring_fini(&h->ask);
	ring_fini(&h->done);
	ring_fini(&h->accepted);
	secmem_wipe(&h->token, sizeof(h->token));
	free(h);
}

uint32_t http_connections(const struct http *h)
{
	return atomic_load(&h->connections);
}

struct endpoint http_local(const struct http *h)
{
	return h->local;
}
