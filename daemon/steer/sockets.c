/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ordinary UDP sockets of one worker. A level-triggered epoll reports readable sockets, so
 * packets left in a socket after a full burst need no record. The kernel moves reported sockets to
 * the end of its list, so one flooded port does not starve the others. Sending groups a burst by
 * socket: one sendmmsg each. */
#include "steer/sockets.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "packet/arena.h"

#define EVENTS     128u /* sockets reported by one epoll_wait() */
#define PER_SOCKET 16u  /* packets received from one socket before the next one */
#define NONE       UINT32_MAX
#define TOS_UNSET  (-1)
#define FD_NONE    (-1) /* the port is not open */
/* Lower bound of a packet's share of a socket buffer: the kernel's own overhead is larger. */
#define PACKET_MIN 256u

struct sock {
	int fd;              /* or FD_* */
	int tos;             /* current TOS of the socket */
	uint32_t drops;      /* SO_RXQ_OVFL's last word */
	uint32_t head, tail; /* sockets_send() only: the burst's packets for this socket */
};

union control {
	char buf[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(uint32_t))];
	struct cmsghdr align;
};

struct sockets {
	struct steer_counters *counters;
	int epoll;
	uint8_t locals, pad;
	uint8_t family[STEER_MAX_LOCAL];
	uint16_t min;
	uint32_t range;    /* ports per local address */
	uint64_t *ours;    /* one bit per added port: stays in the cache when sock[] does not */
	struct sock *sock; /* [locals * range], indexed by address and port */
	struct epoll_event event[EVENTS];
	uint32_t events, next_event; /* sockets reported, and the next to serve */
	uint32_t before;             /* sockets_before() */
	uint32_t burst;
	struct mmsghdr *msg; /* [burst], like the arrays below */
	struct iovec *iov;
	struct sockaddr_storage *name;
	union control *control;
	uint32_t *chain, *touched;
};

static uint32_t sock_id(const struct sockets *s, struct local_port l)
{
	if (l.addr >= s->locals || l.port < s->min || l.port - s->min >= (int)s->range)
		return NONE;
	return l.addr * s->range + (l.port - s->min);
}

int sockets_create(struct sockets **out, const struct steer_config *cfg, uint32_t worker,
	struct steer_counters *counters)
{
	struct sockets *s = lines_alloc(1, sizeof(*s));
	uint16_t min, max;
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	steer_worker_ports(cfg, worker, &min, &max);
	s->counters = counters;
	s->min = min;
	s->range = max >= min ? (uint32_t)(max - min) + 1 : 0;
	s->locals = (uint8_t)cfg->locals;
	for (uint32_t i = 0; i < cfg->locals; i++)
		s->family[i] = cfg->local[i].family;
	s->burst = cfg->burst_max ? cfg->burst_max : 1;
	s->ours = calloc((size_t)s->locals * s->range / 64 + 1, sizeof(*s->ours));
	s->sock = calloc((size_t)s->locals * s->range + 1, sizeof(*s->sock));
	s->msg = lines_alloc(s->burst, sizeof(*s->msg));
	s->iov = lines_alloc(s->burst, sizeof(*s->iov));
	s->name = lines_alloc(s->burst, sizeof(*s->name));
	s->control = lines_alloc(s->burst, sizeof(*s->control));
	s->chain = lines_alloc(s->burst, sizeof(*s->chain));
	s->touched = lines_alloc(s->burst, sizeof(*s->touched));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		err = -errno;
	if (!s->ours || !s->sock || !s->msg || !s->iov || !s->name || !s->control || !s->chain ||
		!s->touched || s->epoll < 0) {
		s->range = 0; /* no descriptors yet */
		sockets_destroy(s);
		return err;
	}
	for (uint32_t i = 0; i < s->locals * s->range; i++)
		s->sock[i] = (struct sock){.fd = FD_NONE, .tos = TOS_UNSET, .head = NONE};
	*out = s;
	return 0;
}

void sockets_destroy(struct sockets *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->locals * s->range; i++)
		if (s->sock[i].fd >= 0)
			close(s->sock[i].fd);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s->ours);
	free(s->sock);
	free(s->msg);
	free(s->iov);
	free(s->name);
	free(s->control);
	free(s->chain);
	free(s->touched);
	free(s);
}

int sockets_epoll(const struct sockets *s)
{
	return s->epoll;
}

/* Upper limit of the packets in its buffer. */
static uint32_t in_buffer(int fd)
{
	uint32_t mem[SK_MEMINFO_VARS];
	socklen_t len = sizeof(mem);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len) ||
		len < (SK_MEMINFO_RMEM_ALLOC + 1) * sizeof(*mem))
		return 0;
	return (mem[SK_MEMINFO_RMEM_ALLOC] + PACKET_MIN - 1) / PACKET_MIN;
}

uint32_t sockets_before(const struct sockets *s)
{
	return s->before;
}

int sockets_add(struct sockets *s, struct local_port local, int fd)
{
	uint32_t id = sock_id(s, local);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = id};
	int on = 1;

	if (id == NONE)
		return -ERANGE;
	if (s->sock[id].fd != FD_NONE)
		return -EEXIST;
	/* Only statistics depend on these two options. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	s->sock[id] = (struct sock){.fd = fd, .tos = TOS_UNSET, .head = NONE};
	s->ours[id / 64] |= 1ull << id % 64;
	s->before += in_buffer(fd);
	return 0;
}

void sockets_del(struct sockets *s, struct local_port local)
{
	uint32_t id = sock_id(s, local);

	if (id == NONE || s->sock[id].fd == FD_NONE)
		return;
	s->ours[id / 64] &= ~(1ull << id % 64);
	sockets_lost(s->sock[id].fd, &s->sock[id].drops, s->counters);
	/* Explicitly: a duplicated descriptor would keep a closed socket in the epoll. */
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sock[id].fd, NULL);
	close(s->sock[id].fd);
	s->sock[id].fd = FD_NONE;
}

bool sockets_has(const struct sockets *s, struct local_port local)
{
	uint32_t id = sock_id(s, local);

	return id != NONE && (s->ours[id / 64] >> id % 64 & 1);
}

/* --- Receive ---------------------------------------------------------------------------------- */

static void recv_prepare(struct sockets *s, const struct arena *a, uint32_t slot, uint32_t i)
{
	s->iov[i] = (struct iovec){
		a->in + (size_t)slot * ARENA_SLOT_LEN + ARENA_HEADROOM, ARENA_MAX_PACKET};
	s->msg[i].msg_hdr = (struct msghdr){
		.msg_name = &s->name[i],
		.msg_namelen = sizeof(s->name[i]),
		.msg_iov = &s->iov[i],
		.msg_iovlen = 1,
		.msg_control = s->control[i].buf,
		.msg_controllen = sizeof(s->control[i].buf),
	};
}

/* A packet carries the drop count of its arrival, which may be older than the known one. */
static void lost_so_far(uint32_t so_far, uint32_t *drops, struct steer_counters *counters)
{
	int32_t more = (int32_t)(so_far - *drops);

	if (more <= 0)
		return;
	steer_count(&counters->overruns, (uint64_t)more);
	*drops = so_far;
}

uint64_t sockets_beside(struct msghdr *h, uint32_t *drops, struct steer_counters *counters)
{
	uint64_t t_ns = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_TIMESTAMPNS) {
			struct timespec ts;

			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			t_ns = (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
		} else if (c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t so_far;

			memcpy(&so_far, CMSG_DATA(c), sizeof(so_far));
			lost_so_far(so_far, drops, counters);
		}
	}
	return t_ns ? t_ns : clock_real_ns();
}

void sockets_lost(int fd, uint32_t *drops, struct steer_counters *counters)
{
	uint32_t mem[SK_MEMINFO_VARS];
	socklen_t len = sizeof(mem);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len) ||
		len < (SK_MEMINFO_DROPS + 1) * sizeof(*mem))
		return;
	lost_so_far(mem[SK_MEMINFO_DROPS], drops, counters);
}

/* A burst being received: n packets so far, and buffers prepared for more. */
struct reception {
	const struct arena *a;
	uint32_t first_slot;
	struct packet_in *in;
	uint32_t n, prepared;
};

/* One recvmmsg on one socket. prepared: how many of the burst's headers are ready. */
static uint32_t recv_socket(struct sockets *s, struct reception *r, uint32_t id, uint32_t want)
{
	const uint32_t n = r->n, slot = r->first_slot + n;
	struct sock *k = &s->sock[id];
	int got = -1;

	for (; r->prepared < n + want; r->prepared++)
		recv_prepare(s, r->a, r->first_slot + r->prepared, r->prepared);
	/* A pending ICMP error is reported once, instead of a packet: then ask again. */
	for (int tries = 0; got < 0 && tries < 3; tries++) {
		/* MSG_TRUNC: msg_len is the datagram's length even when the slot was shorter. */
		got = recvmmsg(k->fd, s->msg + n, want, MSG_DONTWAIT | MSG_TRUNC, NULL);
		steer_count(&s->counters->recv_calls, 1);
		if (got < 0 && (errno == EAGAIN || errno == EBADF))
			return 0;
	}
	for (uint32_t i = 0; got > 0 && i < (uint32_t)got; i++) {
		struct packet_in *d = &r->in[n + i];

		*d = (struct packet_in){
			.local = {.port = (uint16_t)(s->min + id % s->range),
				.addr = (uint8_t)(id / s->range)},
			.in_off = (slot + i) * ARENA_SLOT_LEN + ARENA_HEADROOM,
			.len = s->msg[n + i].msg_len,
			.slot = slot + i,
			.t_ns = sockets_beside(&s->msg[n + i].msg_hdr, &k->drops, s->counters),
		};
		(void)endpoint_from_sockaddr(&d->src, &s->name[n + i]);
	}
	/* The socket may have overflowed, and receive nothing for a while; with nfqueue and xdp,
	 * never again. */
	if (got == (int)want)
		sockets_lost(k->fd, &k->drops, s->counters);
	return got > 0 ? (uint32_t)got : 0;
}

uint32_t sockets_recv(struct sockets *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	struct reception r = {.a = a, .first_slot = first_slot, .in = in};
	bool more = true;

	max = min_u32(max, s->burst);
	while (r.n < max) {
		uint32_t id, want, got;

		if (s->next_event == s->events) {
			int ready;

			/* Ask again only if more packets are likely. */
			if (!more)
				break;
			ready = epoll_wait(s->epoll, s->event, EVENTS, 0);
			s->next_event = 0;
			s->events = ready > 0 ? (uint32_t)ready : 0;
			more = false;
			if (ready <= 0)
				break;
		}
		id = s->event[s->next_event++].data.u32;
		/* The port may have been removed since it was reported. */
		if (id == SOCKETS_FOREIGN || s->sock[id].fd < 0)
			continue;
		want = min_u32(PER_SOCKET, max - r.n);
		got = recv_socket(s, &r, id, want);
		r.n += got;
		more = more || got == want || (got && s->events == EVENTS);
	}
	s->before = r.n < max ? 0 : s->before - min_u32(s->before, r.n);
	steer_count(&s->counters->recv_packets, r.n);
	return r.n;
}

/* --- Send ------------------------------------------------------------------------------------- */

static void set_tos(struct sockets *s, uint32_t id, int tos)
{
	struct sock *k = &s->sock[id];
	bool v6 = s->family[id / s->range] == AF_INET6;

	if (k->tos == tos)
		return;
	(void)setsockopt(k->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos,
		sizeof(tos));
	k->tos = tos;
}

/* Sends n messages in s->msg; message j carries out[order[j]]. */
static void send_messages(struct sockets *s, struct sock *k, struct packet_out *out,
	const uint32_t *order, uint32_t n)
{
	uint32_t done = 0;
	bool again = false;

	while (done < n) {
		int r = sendmmsg(k->fd, s->msg + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		steer_count(&s->counters->send_calls, 1);
		if (r > 0) {
			steer_count(&s->counters->send_packets, (uint64_t)r);
			done += (uint32_t)r;
			again = false;
			continue;
		}
		/* The ICMP error belongs to an earlier packet: try again. */
		if (!again && (errno == EINTR || errno == ECONNREFUSED)) {
			again = true;
			continue;
		}
		out[order[done++]].failed = 1;
		steer_count(&s->counters->send_errors, 1);
		again = false;
	}
}

/* Sends one socket's packets, from the start of its chain. Starts a new call where the TOS
 * changes. */
static void send_socket(struct sockets *s, const struct arena *a, struct packet_out *out,
	const uint32_t *which, uint32_t base, uint32_t id)
{
	struct sock *k = &s->sock[id];
	uint32_t order[64], n = 0;

	for (uint32_t j = k->head; j != NONE;) {
		uint32_t i = which ? which[base + j] : base + j;
		struct packet_out *o = &out[i];

		set_tos(s, id, o->tos);
		s->iov[n] = (struct iovec){a->out + o->out_off, o->len};
		s->msg[n].msg_hdr = (struct msghdr){.msg_name = &s->name[n],
			.msg_namelen = endpoint_to_sockaddr(&o->dst, &s->name[n]),
			.msg_iov = &s->iov[n],
			.msg_iovlen = 1};
		order[n++] = i;
		j = s->chain[j];
		if (j == NONE || n == ARRAY_LEN(order) || n == s->burst ||
			out[which ? which[base + j] : base + j].tos != k->tos) {
			send_messages(s, k, out, order, n);
			n = 0;
		}
	}
	k->head = NONE;
}

void sockets_send(struct sockets *s, const struct arena *a, struct packet_out *out,
	const uint32_t *which, uint32_t n)
{
	for (uint32_t base = 0; base < n; base += s->burst) {
		uint32_t part = min_u32(n - base, s->burst), touched = 0;

		for (uint32_t j = 0; j < part; j++) {
			struct packet_out *o = &out[which ? which[base + j] : base + j];
			uint32_t id = sock_id(s, o->local);
			struct sock *k;

			o->failed = 0;
			if (id == NONE || s->sock[id].fd < 0) {
				o->failed = 1;
				steer_count(&s->counters->send_errors, 1);
				continue;
			}
			k = &s->sock[id];
			s->chain[j] = NONE;
			if (k->head == NONE) {
				s->touched[touched++] = id;
				k->head = j;
			} else {
				s->chain[k->tail] = j;
			}
			k->tail = j;
		}
		for (uint32_t t = 0; t < touched; t++)
			send_socket(s, a, out, which, base, s->touched[t]);
	}
}
