/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ng client: a connected socket, so that a daemon that is not there is told from one that is slow. */
#include "ctl/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"

#define COOKIE_LEN 16
#define REPLY_MAX  65536

/* The reply to our cookie, or NULL: somebody else's, or a late one. */
static const char *match(const char *datagram, ssize_t len, const char *cookie)
{
	if (len <= COOKIE_LEN || memcmp(datagram, cookie, COOKIE_LEN) != 0 ||
		datagram[COOKIE_LEN] != ' ')
		return NULL;
	return datagram + COOKIE_LEN + 1;
}

static int wait_reply(int fd, const char *cookie, struct ngval **reply, struct pool *p, int wait_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	uint64_t until = clock_mono_ns() + (uint64_t)wait_ms * 1000000;

	for (;;) {
		uint64_t now = clock_mono_ns();
		char *buf;
		const char *body;
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
		body = match(buf, len, cookie);
		if (!body)
			continue;
		return bencode_parse(
			reply, p, (struct str){body, (size_t)(buf + len - body)}, &pos);
	}
}

int client_call(struct ngval **reply, struct pool *p, const struct endpoint *server,
	const struct ngval *request, unsigned timeout_s, uint64_t *elapsed_ns)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(server, &sa);
	char cookie[COOKIE_LEN + 1];
	struct sbuf b;
	uint64_t id = 0, start = clock_mono_ns();
	int fd = socket(server->family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (struct sockaddr *)&sa, len) ? -errno : secmem_random(&id, sizeof(id));
	sbuf_init(&b, REPLY_MAX);
	snprintf(cookie, sizeof(cookie), "%016llx", (unsigned long long)id);
	sbuf_printf(&b, "%s ", cookie);
	bencode_write(&b, request);
	err = err ? err : b.err;
	for (unsigned i = 0; i < timeout_s && !err; i++) {
		if (send(fd, b.p, b.len, 0) < 0) {
			err = -errno;
			break;
		}
		err = wait_reply(fd, cookie, reply, p, 1000);
		if (err != -EAGAIN)
			break;
		err = i + 1 == timeout_s ? -ETIMEDOUT : 0;
	}
	if (elapsed_ns)
		*elapsed_ns = clock_mono_ns() - start;
	sbuf_fini(&b);
	close(fd);
	return err;
}
