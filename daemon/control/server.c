/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over UDP. Each call empties the socket first. It drops datagrams that heard() refuses, and
 * queues the others per source. Then it executes requests, one per source in turn, so a flood does
 * not delay other sources. Clients connect their sockets, so a reply must have the request's
 * destination as source (IP_PKTINFO), even with a wildcard address. */
#include "control/server.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "control/backlog.h"

#define READS        512       /* datagrams taken from the socket per call: dropping one is cheap */
#define BUDGET       64        /* requests executed per call */
#define RECEIVE_MAX  (4 << 20) /* socket buffer: holds datagrams while the control thread is busy */
#define DATAGRAM_MAX 65536u
#define REPLY_MAX    65507u /* 65535 less the IPv4 and UDP headers */
#define LOG_EVERY_NS (10 * NS_PER_SEC)

struct ng_server {
	int fd;
	struct endpoint local;
	struct ng_dispatch *dispatch;
	struct backlog *backlog;
	struct log_limit log_send, log_lost;
	uint32_t lost; /* drops by the kernel so far; wraps */
	bool (*is_media)(void *arg, const struct endpoint *from);
	void *is_media_arg;
	char datagram[DATAGRAM_MAX]; /* wiped after each: SDP holds keys */
};

/* --- Opening ------------------------------------------------------------------------------- */

/* The kernel doubles the requested size and reports the doubled one. */
static uint32_t buffer_len(int fd)
{
	int size = 0;
	socklen_t len = sizeof(size);

	return getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len) || size < 0 ? 0
									      : (uint32_t)size / 2;
}

/* Only CAP_NET_ADMIN gives more than net.core.rmem_max. */
static void buffer_grow(int fd)
{
	int size = RECEIVE_MAX;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) == 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (buffer_len(fd) < RECEIVE_MAX)
		log_warn(
			"ng: the receive buffer is only %u KiB, and a burst of requests may fill it: raise net.core.rmem_max (sysctl) to %d",
			buffer_len(fd) / 1024, RECEIVE_MAX);
}

static int set_options(int fd, int family)
{
	int on = 1, off = 0;

	buffer_grow(fd);
	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) ? -errno : 0;
	/* "::" also serves IPv4, as users expect */
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)))
		return -errno;
	return 0;
}

static int open_socket(struct ng_server *s, const struct endpoint *listen)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(listen, &sa);
	int err;

	s->fd = socket(listen->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	err = set_options(s->fd, listen->family);
	if (err)
		return err;
	if (bind(s->fd, (struct sockaddr *)&sa, len))
		return -errno;
	len = sizeof(sa);
	if (getsockname(s->fd, (struct sockaddr *)&sa, &len))
		return -errno;
	s->local = *listen;
	/* keep the configured form: "::" must stay "::" */
	s->local.port = listen->family == AF_INET ? ntohs(((struct sockaddr_in *)&sa)->sin_port)
						  : ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	return 0;
}

int ng_server_create(struct ng_server **out, const struct endpoint *listen,
	struct ng_dispatch *dispatch, char *err, size_t err_len)
{
	struct ng_server *s = calloc(1, sizeof(*s));
	char text[ENDPOINT_STRLEN];
	uint8_t key[16];
	int ret;

	if (!s) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	s->fd = -1;
	s->dispatch = dispatch;
	ret = secmem_random(key, sizeof(key));
	ret = ret ? ret : backlog_create(&s->backlog, key);
	ret = ret ? ret : open_socket(s, listen);
	if (ret) {
		snprintf(err, err_len, "cannot listen for ng on %s: %s%s",
			endpoint_fmt(listen, text), strerror(-ret),
			ret == -EADDRINUSE ? ", perhaps by another xcipherd or rtpengine" : "");
		ng_server_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

void ng_server_destroy(struct ng_server *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	backlog_destroy(s->backlog);
	secmem_wipe(s->datagram, sizeof(s->datagram));
	free(s);
}

void ng_server_refuse(
	struct ng_server *s, bool (*is_media)(void *arg, const struct endpoint *from), void *arg)
{
	s->is_media = is_media;
	s->is_media_arg = arg;
}

void ng_server_tick(struct ng_server *s, uint64_t now_ns)
{
	uint32_t mem[SK_MEMINFO_VARS] = {0}, lost;
	socklen_t len = sizeof(mem);
	uint64_t held;

	if (getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, mem, &len) ||
		len <= SK_MEMINFO_DROPS * sizeof(*mem))
		return;
	lost = mem[SK_MEMINFO_DROPS] - s->lost;
	s->lost = mem[SK_MEMINFO_DROPS];
	if (!lost)
		return;
	ng_dispatch_count(s->dispatch, NG_DROP_OVERRUN, lost);
	if (log_limit_pass(&s->log_lost, now_ns, LOG_EVERY_NS, &held))
		log_warn(
			"ng: %u messages were lost, because the receive buffer of %u KiB was full: more arrived than could be executed (%llu more reports suppressed)",
			lost, buffer_len(s->fd) / 1024, (unsigned long long)held);
}

int ng_server_fd(const struct ng_server *s)
{
	return s->fd;
}

struct endpoint ng_server_local(const struct ng_server *s)
{
	return s->local;
}

/* --- Serving ------------------------------------------------------------------------------- */

/* Keeps the address at which a datagram arrived, so that the reply leaves from it. Routing chooses
 * the interface, except for link-local addresses: only the interface identifies their network. */
static void keep_local_address(struct ng_peer *p, struct msghdr *m)
{
	p->control_len = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct in_pktinfo v4;
		struct in6_pktinfo v6;

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(c), sizeof(v4));
			v4.ipi_ifindex = 0;
			memcpy(CMSG_DATA(c), &v4, sizeof(v4));
			p->control_len = CMSG_SPACE(sizeof(v4));
			return;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(c), sizeof(v6));
			if (!IN6_IS_ADDR_LINKLOCAL(&v6.ipi6_addr))
				v6.ipi6_ifindex = 0;
			memcpy(CMSG_DATA(c), &v6, sizeof(v6));
			p->control_len = CMSG_SPACE(sizeof(v6));
			return;
		}
	}
}

/* Length, or -errno. */
static ssize_t receive(struct ng_server *s, struct ng_peer *p)
{
	struct iovec iov = {s->datagram, sizeof(s->datagram)};
	struct msghdr m = {.msg_name = &p->sa,
		.msg_namelen = sizeof(p->sa),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = p->control,
		.msg_controllen = sizeof(p->control)};
	ssize_t n = recvmsg(s->fd, &m, 0);

	if (n < 0)
		return -errno;
	p->sa_len = m.msg_namelen;
	keep_local_address(p, &m);
	if (endpoint_from_sockaddr(&p->from, &p->sa))
		return -EAFNOSUPPORT;
	return n;
}

static void send_reply(struct ng_server *s, struct ng_peer *p, struct str reply, uint64_t now_ns)
{
	struct iovec iov = {(void *)reply.s, reply.len};
	struct msghdr m = {.msg_name = &p->sa,
		.msg_namelen = p->sa_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = p->control_len ? p->control : NULL,
		.msg_controllen = p->control_len};
	char text[ENDPOINT_STRLEN];
	uint64_t held;

	/* A full socket buffer loses the reply like the network would: the client repeats and
	 * the cache answers. */
	if (sendmsg(s->fd, &m, MSG_NOSIGNAL) < 0 &&
		log_limit_pass(&s->log_send, now_ns, LOG_EVERY_NS, &held))
		log_warn("ng reply to %s not sent: %s%s", endpoint_fmt(&p->from, text),
			strerror(errno), log_held((char[LOG_HELD]){0}, held));
}

/* Whether a datagram may wait for execution. False: it was counted as dropped. */
static bool heard(
	struct ng_server *s, const struct ng_peer *p, struct str datagram, uint64_t now_ns)
{
	if (s->is_media && s->is_media(s->is_media_arg, &p->from)) {
		ng_dispatch_drop(s->dispatch, NG_DROP_OWN_MEDIA, &p->from, 1);
		return false;
	}
	return ng_dispatch_admits(s->dispatch, &p->from, datagram, now_ns);
}

static void keep(struct ng_server *s, const struct ng_peer *p, struct str datagram)
{
	uint32_t dropped;
	int err = backlog_put(s->backlog, p, datagram, &dropped);

	if (dropped)
		ng_dispatch_drop(s->dispatch, NG_DROP_BACKLOG, &p->from, dropped);
	else if (err)
		ng_dispatch_drop(s->dispatch, NG_DROP_MEMORY, &p->from, 1);
}

static void serve(struct ng_server *s, struct waiting *w, uint64_t now_ns)
{
	struct sbuf reply;
	int err;

	sbuf_init(&reply, REPLY_MAX);
	err = ng_dispatch_framed(
		s->dispatch, &w->peer.from, (struct str){w->bytes, w->len}, now_ns, &reply);
	if (!err)
		send_reply(s, &w->peer, sbuf_view(&reply), now_ns);
	else if (err == -EAGAIN)
		ng_dispatch_drop(s->dispatch, NG_DROP_BUSY, &w->peer.from, 1);
	sbuf_fini(&reply);
}

bool ng_server_readable(struct ng_server *s, uint64_t now_ns)
{
	struct waiting *w;
	struct ng_peer p;

	for (int i = 0; i < READS; i++) {
		ssize_t n = receive(s, &p);
		struct str datagram = {s->datagram, n > 0 ? (size_t)n : 0};

		if (n == -EAGAIN)
			break;
		/* other errors are of earlier replies (ICMP), or signals: continue with the next
		 * datagram */
		if (n < 0)
			continue;
		if (heard(s, &p, datagram, now_ns))
			keep(s, &p, datagram);
		secmem_wipe(s->datagram, (size_t)n);
	}
	for (int i = 0; i < BUDGET && (w = backlog_take(s->backlog)); i++) {
		serve(s, w, now_ns);
		waiting_free(w);
	}
	return !backlog_empty(s->backlog);
}
