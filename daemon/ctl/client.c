/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ng client. Its socket is connected, to distinguish a daemon that does not run from a slow
 * one. With keys the request is signed, and a reply is accepted only if the daemon signed it for
 * this request. */
#include "ctl/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret_file.h"
#include "base/secmem.h"
#include "proto/bencode.h"

#define COOKIE_LEN    16
#define REPLY_MAX     65536
#define TCP_REPLY_MAX (2u << 20) /* more than the daemon sends */

int client_keys(struct ng_keys **keys, const char *path, char *err, size_t err_len)
{
	struct ng_keys *k = *keys ? *keys : secmem_alloc(sizeof(*k));
	char text[4096];
	uint32_t line;
	int ret;

	snprintf(err, err_len, "out of memory");
	if (!k)
		return -ENOMEM;
	*keys = k;
	ret = secret_file_read("--ng-key-file", path, text, sizeof(text), err, err_len);
	if (ret < 0)
		return ret;
	ret = ng_keys_parse(k, (struct str){text, (size_t)ret}, &line);
	if (ret)
		snprintf(err, err_len,
			"--ng-key-file=%s, line %u: need one key of 64 hexadecimal digits per line",
			path, line);
	secmem_wipe(text, sizeof(text));
	return ret;
}

struct asked { /* expected properties of the reply */
	const struct ng_keys *keys;
	char cookie[COOKIE_LEN + NG_SIGNATURE + 1];
};

/* The body of the reply to our request; empty: it belongs to another request, or is forged. */
static struct str match(const struct asked *a, struct str datagram)
{
	struct ng_frame f = {0};

	if (ng_frame_parse(&f, datagram))
		return STR_NONE;
	if (a->keys ? ng_verify_reply(a->keys, str_from(a->cookie), f.cookie, f.body)
		    : str_eq(f.cookie, str_from(a->cookie)))
		return f.body;
	return STR_NONE;
}

static int wait_reply(
	int fd, const struct asked *a, struct ngval **reply, struct pool *p, int wait_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint64_t until = clock_mono_ns() + (uint64_t)wait_ms * 1000000;

	for (;;) {
		uint64_t now = clock_mono_ns();
		struct str body;
		char *buf;
		ssize_t len;
		size_t pos;

		if (now >= until || poll(&pfd, 1, (int)((until - now) / 1000000) + 1) == 0)
			return -EAGAIN;
		buf = pool_alloc(p, REPLY_MAX);
		if (!buf)
			return -ENOMEM;
		len = recv(fd, buf, REPLY_MAX, 0);
		if (len < 0)
			return -errno;
		body = match(a, (struct str){buf, (size_t)len});
		if (body.len)
			return bencode_parse(reply, p, body, &pos);
	}
}

/* Cookie, space, bencode. */
static int write_request(struct sbuf *b, struct asked *a, const struct ngval *request)
{
	struct sbuf body;
	uint64_t id;
	int err = secmem_random(&id, sizeof(id));

	if (err)
		return err;
	snprintf(a->cookie, sizeof(a->cookie), "%016llx", (unsigned long long)id);
	sbuf_init(&body, REPLY_MAX);
	bencode_write(&body, request);
	if (a->keys && !body.err &&
		!ng_sign_request(a->cookie + COOKIE_LEN, a->keys,
			(struct str){a->cookie, COOKIE_LEN}, clock_real_ns() / NS_PER_SEC,
			sbuf_view(&body)))
		err = -ENOMEM;
	sbuf_printf(b, "%s ", a->cookie);
	sbuf_str(b, sbuf_view(&body));
	err = err ? err : body.err ? body.err : b->err;
	sbuf_fini(&body);
	return err;
}

/* --- Replies larger than a datagram ----------------------------------------------------------- */

static bool is_too_long(struct pool *p, const struct ngval *reply)
{
	return str_starts(
		ngval_str(p, ngval_get(reply, STR("error-reason"))), STR("Reply is too long"));
}

/* Commands that change something were executed, although the reply did not fit. */
static bool only_looks(struct pool *p, const struct ngval *request)
{
	static const char *const names[] = {"query", "list", "calls", "explain", "statistics"};
	struct str command = ngval_str(p, ngval_get(request, STR("command")));

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(command, str_from(names[i])))
			return true;
	return false;
}

/* All until the end of the connection, which the daemon closes after its reply as we send no more.
 * The length, or -errno. */
static ssize_t read_all(int fd, char *buf, size_t room)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, buf + len, room - len, 0)) > 0) {
		len += (size_t)n;
		if (len == room)
			return -EMSGSIZE;
	}
	return n < 0 ? -errno : (ssize_t)len;
}

static int exchange_tcp(int fd, struct ngval **reply, struct pool *p, const struct client *c,
	const struct ngval *request)
{
	struct timeval limit = {.tv_sec = (time_t)c->timeout_s};
	char *buf = pool_alloc(p, TCP_REPLY_MAX);
	struct asked asked = {.keys = c->keys};
	struct sockaddr_storage sa;
	socklen_t sa_len = endpoint_to_sockaddr(&c->server, &sa);
	struct str body;
	struct sbuf b;
	ssize_t len;
	size_t pos;
	int err;

	if (!buf)
		return -ENOMEM;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	sbuf_init(&b, REPLY_MAX);
	err = write_request(&b, &asked, request);
	if (!err &&
		(connect(fd, (struct sockaddr *)&sa, sa_len) ||
			send(fd, b.p, b.len, MSG_NOSIGNAL) != (ssize_t)b.len ||
			shutdown(fd, SHUT_WR)))
		err = -errno;
	sbuf_fini(&b);
	len = err ? err : read_all(fd, buf, TCP_REPLY_MAX);
	if (len < 0)
		return (int)len;
	body = match(&asked, (struct str){buf, (size_t)len});
	return body.len ? bencode_parse(reply, p, body, &pos) : -EBADMSG;
}

/* Keeps the reply unchanged if the daemon has no TCP at this address. */
static void ask_by_tcp(
	struct ngval **reply, struct pool *p, const struct client *c, const struct ngval *request)
{
	int fd = socket(c->server.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ngval *longer = NULL;

	if (fd < 0)
		return;
	if (!exchange_tcp(fd, &longer, p, c, request))
		*reply = longer;
	close(fd);
}

int client_call(struct ngval **reply, struct pool *p, const struct client *c,
	const struct ngval *request, uint64_t *elapsed_ns)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(&c->server, &sa);
	struct asked asked = {.keys = c->keys};
	struct sbuf b;
	uint64_t start = clock_mono_ns();
	int fd = socket(c->server.family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	sbuf_init(&b, REPLY_MAX);
	err = connect(fd, (struct sockaddr *)&sa, len) ? -errno
						       : write_request(&b, &asked, request);
	for (unsigned i = 0; i < c->timeout_s && !err; i++) {
		if (send(fd, b.p, b.len, 0) < 0) {
			err = -errno;
			break;
		}
		err = wait_reply(fd, &asked, reply, p, 1000);
		if (err != -EAGAIN)
			break;
		err = i + 1 == c->timeout_s ? -ETIMEDOUT : 0;
	}
	if (elapsed_ns)
		*elapsed_ns = clock_mono_ns() - start;
	sbuf_fini(&b);
	close(fd);
	if (!err && is_too_long(p, *reply) && only_looks(p, request))
		ask_by_tcp(reply, p, c, request);
	return err;
}
