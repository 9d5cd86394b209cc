/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Raw sockets that send a burst with one sendmmsg per family, from any source ports. Headers are
 * written into the headroom before each payload. IP_PKTINFO gives the source address to routing, as
 * a bound socket would, so policy routing still works. Nothing is received here. */
#include "steer/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lines.h"
#include "packet/arena.h"
#include "steer/dgram.h"
#include "steer/sockets.h"

#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36 /* from linux/in6.h, which conflicts with netinet/in.h on some systems */
#endif

#define SEND_BUFFER (4 << 20)

union control {
	char buf[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct cmsghdr align;
};

struct burst { /* of one family */
	int fd;
	uint32_t n;
	struct mmsghdr *msg; /* [max], like the arrays below */
	struct iovec *iov;
	struct sockaddr_storage *name;
	union control *control;
	uint32_t *index; /* of the packet_out */
};

struct raw {
	struct steer_counters *counters;
	struct endpoint local[STEER_MAX_LOCAL];
	uint32_t locals;
	uint32_t max;
	struct burst v4, v6;
};

static void burst_fini(struct burst *b)
{
	if (b->fd >= 0)
		close(b->fd);
	free(b->msg);
	free(b->iov);
	free(b->name);
	free(b->control);
	free(b->index);
}

static int burst_init(struct burst *b, int family, uint32_t max)
{
	bool v6 = family == AF_INET6;
	int on = 1, len = SEND_BUFFER;

	b->msg = lines_alloc(max, sizeof(*b->msg));
	b->iov = lines_alloc(max, sizeof(*b->iov));
	b->name = lines_alloc(max, sizeof(*b->name));
	b->control = lines_alloc(max, sizeof(*b->control));
	b->index = lines_alloc(max, sizeof(*b->index));
	if (!b->msg || !b->iov || !b->name || !b->control || !b->index)
		return -ENOMEM;
	b->fd = socket(family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
	if (b->fd < 0)
		return v6 && errno == EAFNOSUPPORT ? 0 : -errno;
	if (setsockopt(b->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_HDRINCL : IP_HDRINCL, &on,
		    sizeof(on)))
		return -errno;
	if (setsockopt(b->fd, SOL_SOCKET, SO_SNDBUFFORCE, &len, sizeof(len)))
		(void)setsockopt(b->fd, SOL_SOCKET, SO_SNDBUF, &len, sizeof(len));
	return 0;
}

int raw_create(struct raw **out, const struct steer_config *cfg, struct steer_counters *counters)
{
	struct raw *r = lines_alloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->counters = counters;
	r->max = cfg->burst_max ? cfg->burst_max : 1;
	r->locals = cfg->locals;
	memcpy(r->local, cfg->local, sizeof(r->local));
	r->v4.fd = r->v6.fd = -1;
	err = burst_init(&r->v4, AF_INET, r->max);
	err = err ? err : burst_init(&r->v6, AF_INET6, r->max);
	if (err) {
		raw_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void raw_destroy(struct raw *r)
{
	if (!r)
		return;
	burst_fini(&r->v4);
	burst_fini(&r->v6);
	free(r);
}

static void source_v4(struct msghdr *h, const struct endpoint *src)
{
	struct in_pktinfo info = {0};
	struct cmsghdr *c;

	h->msg_controllen = CMSG_SPACE(sizeof(info));
	c = CMSG_FIRSTHDR(h);
	memcpy(&info.ipi_spec_dst, src->addr, 4);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IP, IP_PKTINFO};
	memcpy(CMSG_DATA(c), &info, sizeof(info));
}

static void source_v6(struct msghdr *h, const struct endpoint *src)
{
	struct in6_pktinfo info = {0};
	struct cmsghdr *c;

	h->msg_controllen = CMSG_SPACE(sizeof(info));
	c = CMSG_FIRSTHDR(h);
	memcpy(&info.ipi6_addr, src->addr, 16);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(info)), IPPROTO_IPV6, IPV6_PKTINFO};
	memcpy(CMSG_DATA(c), &info, sizeof(info));
}

static bool burst_put(
	struct raw *r, const struct arena *a, const struct packet_out *o, uint32_t index)
{
	bool v6 = o->dst.family == AF_INET6;
	struct burst *b = v6 ? &r->v6 : &r->v4;
	struct endpoint src, dst = o->dst;
	uint8_t *payload = a->out + o->out_off;
	struct msghdr *h;
	int hdr;

	if (b->fd < 0 || b->n == r->max || o->local.addr >= r->locals)
		return false;
	src = r->local[o->local.addr];
	/* With a wildcard address, only the kernel knows the source that the checksum needs. */
	if (src.family != dst.family || endpoint_is_unspecified(&src))
		return false;
	src.port = o->local.port;
	hdr = dgram_write(&src, &dst, o->tos, payload, o->len);
	if (hdr < 0)
		return false;
	dst.port = 0; /* a raw IPv6 socket takes the port for the protocol */
	b->iov[b->n] = (struct iovec){payload - hdr, (size_t)hdr + o->len};
	h = &b->msg[b->n].msg_hdr;
	*h = (struct msghdr){.msg_name = &b->name[b->n],
		.msg_namelen = endpoint_to_sockaddr(&dst, &b->name[b->n]),
		.msg_iov = &b->iov[b->n],
		.msg_iovlen = 1,
		.msg_control = b->control[b->n].buf,
		.msg_controllen = sizeof(b->control[b->n].buf)};
	if (v6)
		source_v6(h, &src);
	else
		source_v4(h, &src);
	b->index[b->n++] = index;
	return true;
}

static uint32_t burst_send(struct raw *r, struct burst *b, struct packet_out *out, uint32_t *left)
{
	uint32_t done = 0, over = 0;

	while (done < b->n) {
		int sent = sendmmsg(b->fd, b->msg + done, b->n - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		steer_count(&r->counters->send_calls, 1);
		if (sent > 0) {
			for (int i = 0; i < sent; i++)
				out[b->index[done++]].failed = 0;
			steer_count(&r->counters->send_packets, (uint64_t)sent);
		} else if (errno != EINTR) {
			left[over++] = b->index[done++];
		}
	}
	b->n = 0;
	return over;
}

uint32_t raw_send(struct raw *r, const struct arena *a, struct packet_out *out,
	const uint32_t *which, uint32_t n, uint32_t *left)
{
	uint32_t over = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = which ? which[k] : k;

		if (!burst_put(r, a, &out[i], i))
			left[over++] = i;
	}
	over += burst_send(r, &r->v4, out, left + over);
	return over + burst_send(r, &r->v6, out, left + over);
}
