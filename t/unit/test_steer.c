/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by ordinary sockets on loopback, with plain system calls and with io_uring. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "packet/arena.h"
#include "steer/ports.h"
#include "steer/steer.h"

#define BURST 32u
#define PAIRS 8u
#define BASE  41300

struct bench {
	struct steer_config cfg;
	struct arena a;
	struct ports *ports;
	struct steer *s;
	struct ports_pair pair[2][PAIRS]; /* v4, v6; bound and given to the steering */
	struct packet_in in[BURST];
	struct packet_out out[BURST];
	int peer[2]; /* a terminal: v4, v6 */
};

static void address(
	const struct bench *b, struct local_port l, struct sockaddr_storage *sa, socklen_t *len)
{
	struct endpoint e = b->cfg.local[l.addr];

	e.port = l.port;
	*len = endpoint_to_sockaddr(&e, sa);
}

static int setup_by(void **state, enum steer_udp_io io)
{
	struct bench *b = calloc(1, sizeof(*b));
	char err[256];

	b->cfg = (struct steer_config){.locals = 2,
		.port_min = BASE,
		.port_max = BASE + 2 * PAIRS - 1,
		.workers = 1,
		.udp_io = io,
		.burst_max = BURST};
	if (steer_udp.open(&b->cfg, err, sizeof(err))) {
		free(b);
		*state = NULL;
		return 0;
	}
	endpoint_parse_addr(&b->cfg.local[0], STR("127.0.0.1"));
	endpoint_parse_addr(&b->cfg.local[1], STR("::1"));
	assert_int_equal(arena_create(&b->a, steer_udp.slots(&b->cfg) + 4, 2), 0);
	assert_int_equal(ports_create(&b->ports, &b->cfg, 0, 0), 0);
	assert_int_equal(steer_udp.create(&b->s, &b->cfg, 0, err, sizeof(err)), 0);
	assert_int_equal(steer_udp.memory(b->s, &b->a, err, sizeof(err)), 0);
	for (uint8_t f = 0; f < 2; f++) {
		b->peer[f] = socket(b->cfg.local[f].family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		for (uint32_t i = 0; i < PAIRS; i++) {
			struct ports_pair *p = &b->pair[f][i];

			assert_int_equal(ports_take(b->ports, f, 0, 0, p), 0);
			assert_int_equal(steer_udp.port_add(b->s, p->rtp, p->rtp_fd), 0);
			assert_int_equal(steer_udp.port_add(b->s, p->rtcp, p->rtcp_fd), 0);
		}
	}
	*state = b;
	return 0;
}

static int setup(void **state)
{
	return setup_by(state, STEER_UDP_PLAIN);
}

static int setup_uring(void **state)
{
	return setup_by(state, STEER_UDP_URING);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (!b)
		return 0;
	steer_udp.destroy(b->s);
	ports_destroy(b->ports);
	arena_destroy(&b->a);
	close(b->peer[0]);
	close(b->peer[1]);
	free(b);
	return 0;
}

/* Creates the test's bench, or skips the test where io_uring is refused. */
static struct bench *bench_of(void **state)
{
	if (!*state)
		skip();
	return *state;
}

/* The steering's buffer for packet i of a burst: from first on, or after the first BURST. */
static void assert_slot(
	const struct bench *b, const struct packet_in *in, uint32_t i, uint32_t first)
{
	if (b->cfg.udp_io == STEER_UDP_PLAIN) {
		assert_int_equal(in[i].slot, first + i);
	} else {
		assert_in_range(in[i].slot, BURST, b->a.slots - 1);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(in[i].slot, in[j].slot);
	}
	assert_int_equal(in[i].in_off, in[i].slot * ARENA_SLOT_LEN + ARENA_HEADROOM);
}

static void peer_send(struct bench *b, int f, struct local_port to, const void *p, size_t len)
{
	struct sockaddr_storage sa;
	socklen_t sa_len;

	address(b, to, &sa, &sa_len);
	assert_int_equal(
		sendto(b->peer[f], p, len, 0, (struct sockaddr *)&sa, sa_len), (ssize_t)len);
}

static struct endpoint peer_address(struct bench *b, int f)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct endpoint e, mine = b->cfg.local[f];

	assert_int_equal(getsockname(b->peer[f], (struct sockaddr *)&sa, &len), 0);
	endpoint_from_sockaddr(&e, &sa);
	if (e.port == 0) {
		len = endpoint_to_sockaddr(&mine, &sa);
		assert_int_equal(bind(b->peer[f], (struct sockaddr *)&sa, len), 0);
		return peer_address(b, f);
	}
	mine.port = e.port;
	return mine;
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void packets_come_with_all_that_is_known_of_them(void **state)
{
	struct bench *b = bench_of(state);
	uint64_t before = clock_real_ns();

	assert_false(readable(steer_udp.fd(b->s)));
	for (int f = 0; f < 2; f++) {
		struct endpoint me = peer_address(b, f);
		struct local_port to = b->pair[f][3].rtcp;
		struct packet_in *d = b->in;

		peer_send(b, f, to, "hello", 5);
		assert_true(readable(steer_udp.fd(b->s)));
		assert_int_equal(steer_udp.recv(b->s, &b->a, 4, b->in, BURST), 1);
		assert_true(endpoint_eq(&d->src, &me));
		assert_int_equal(d->local.port, to.port);
		assert_int_equal(d->local.addr, f);
		assert_slot(b, d, 0, 4);
		assert_int_equal(d->len, 5);
		assert_memory_equal(b->a.in + d->in_off, "hello", 5);
		assert_true(d->t_ns >= before && d->t_ns <= clock_real_ns());
		assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 0);
	}
	assert_false(readable(steer_udp.fd(b->s)));
}

static void a_too_long_datagram_tells_its_length(void **state)
{
	struct bench *b = bench_of(state);
	static uint8_t big[ARENA_MAX_PACKET + 500];
	static const size_t LEN[] = {ARENA_MAX_PACKET, ARENA_MAX_PACKET + 1, sizeof(big)};

	for (size_t i = 0; i < ARRAY_LEN(LEN); i++) {
		const uint8_t *end;

		memset(big, 0x5a, sizeof(big));
		for (uint32_t s = 0; s < b->a.slots; s++)
			memset(b->a.in + s * ARENA_SLOT_LEN + ARENA_HEADROOM + ARENA_MAX_PACKET, 0,
				XC_SLACK);
		peer_send(b, 0, b->pair[0][0].rtp, big, LEN[i]);
		assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 1);
		assert_int_equal(b->in[0].len, LEN[i]);
		end = b->a.in + b->in[0].in_off + ARENA_MAX_PACKET;
		for (size_t j = 0; j < XC_SLACK; j++)
			assert_int_equal(end[j], 0);
	}
}

static void a_flooded_port_does_not_starve_the_others(void **state)
{
	struct bench *b = bench_of(state);
	uint32_t quiet = 0, bursts = 0, all = 0, n;

	for (int i = 0; i < 200; i++)
		peer_send(b, 0, b->pair[0][0].rtp, "flood", 5);
	for (uint32_t i = 1; i < PAIRS; i++)
		peer_send(b, 0, b->pair[0][i].rtp, "quiet", 5);
	while ((n = steer_udp.recv(b->s, &b->a, 0, b->in, BURST)) > 0) {
		all += n;
		bursts++;
		for (uint32_t i = 0; i < n; i++) {
			assert_slot(b, b->in, i, 0);
			quiet += b->in[i].local.port != b->pair[0][0].rtp.port;
		}
		/* Full bursts as long as packets wait. */
		if (all < 200 + PAIRS - 1)
			assert_int_equal(n, BURST);
		if (bursts == 2)
			assert_int_equal(quiet, PAIRS - 1);
	}
	assert_int_equal(all, 200 + PAIRS - 1);
}

static void a_burst_takes_no_more_than_max(void **state)
{
	struct bench *b = bench_of(state);
	bool seen[12] = {false};
	uint32_t all = 0, n;

	for (uint8_t i = 0; i < 12; i++)
		peer_send(b, 0, b->pair[0][i % PAIRS].rtp, &i, 1);
	while ((n = steer_udp.recv(b->s, &b->a, 0, b->in, 5)) > 0) {
		assert_true(n <= 5);
		for (uint32_t i = 0; i < n; i++)
			seen[b->a.in[b->in[i].in_off]] = true;
		all += n;
	}
	assert_int_equal(all, 12);
	for (int i = 0; i < 12; i++)
		assert_true(seen[i]);
}

static void put_out(struct bench *b, uint32_t i, const struct endpoint *dst, struct local_port from,
	uint8_t tos)
{
	uint32_t off = i * ARENA_SLOT_LEN + ARENA_HEADROOM;

	b->a.out[off] = (uint8_t)i;
	b->out[i] = (struct packet_out){
		.dst = *dst, .local = from, .out_off = off, .len = 1, .tos = tos, .failed = 7};
}

static uint8_t peer_recv(struct bench *b, int f, struct endpoint *from, int *tos)
{
	union {
		char buf[256];
		struct cmsghdr align;
	} control;
	struct sockaddr_storage sa;
	uint8_t byte = 0xff;
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_name = &sa,
		.msg_namelen = sizeof(sa),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};

	assert_int_equal(recvmsg(b->peer[f], &h, 0), 1);
	endpoint_from_sockaddr(from, &sa);
	*tos = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if (f == 0 ? c->cmsg_type == IP_TOS : c->cmsg_type == IPV6_TCLASS)
			*tos = *CMSG_DATA(c);
	return byte;
}

static void a_mixed_burst_leaves_from_the_right_ports(void **state)
{
	struct bench *b = bench_of(state);
	const struct steer_counters *c = steer_udp.counters(b->s);
	int on = 1;

	for (int f = 0; f < 2; f++) {
		struct endpoint me = peer_address(b, f), from;
		uint32_t seen = 0, last[3] = {0};
		uint64_t calls = c->send_calls;

		setsockopt(b->peer[f], f ? IPPROTO_IPV6 : IPPROTO_IP,
			f ? IPV6_RECVTCLASS : IP_RECVTOS, &on, sizeof(on));
		for (uint32_t i = 0; i < BURST; i++)
			put_out(b, i, &me, b->pair[f][i % 3].rtp, i % 3 == 2 ? 0xb8 : 0x20);
		steer_udp.send(b->s, &b->a, b->out, BURST);
		/* Mixed packets: one system call for each port, or one for all. */
		assert_int_equal(c->send_calls - calls, b->cfg.udp_io == STEER_UDP_PLAIN ? 3 : 1);
		for (uint32_t i = 0; i < BURST; i++) {
			int tos;
			uint8_t id = peer_recv(b, f, &from, &tos);

			assert_int_equal(b->out[i].failed, 0);
			assert_int_equal(from.port, b->pair[f][id % 3].rtp.port);
			assert_int_equal(tos, id % 3 == 2 ? 0xb8 : 0x20);
			/* Each stream keeps its order. */
			assert_true(last[id % 3] == 0 || id > last[id % 3]);
			last[id % 3] = id;
			seen |= 1u << id;
		}
		assert_int_equal(seen, UINT32_MAX);
	}
	assert_int_equal(c->send_packets, 2 * BURST);
	assert_int_equal(c->send_errors, 0);
}

static void the_tos_of_each_packet_is_kept(void **state)
{
	struct bench *b = bench_of(state);
	struct endpoint me = peer_address(b, 0), from;
	int on = 1;

	setsockopt(b->peer[0], IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	for (uint32_t i = 0; i < 9; i++)
		put_out(b, i, &me, b->pair[0][0].rtp, i / 3 % 2 ? 0xb8 : 0);
	steer_udp.send(b->s, &b->a, b->out, 9);
	for (uint32_t i = 0; i < 9; i++) {
		int tos;

		assert_int_equal(peer_recv(b, 0, &from, &tos), i);
		assert_int_equal(tos, i / 3 % 2 ? 0xb8 : 0);
	}
}

static void what_cannot_leave_fails_alone(void **state)
{
	struct bench *b = bench_of(state);
	const struct steer_counters *c = steer_udp.counters(b->s);
	struct endpoint me = peer_address(b, 0), v6 = peer_address(b, 1), from;
	struct local_port nobody = {.port = BASE - 2, .addr = 0}, wrong = {.port = BASE, .addr = 9};
	int tos;

	put_out(b, 0, &me, b->pair[0][0].rtp, 0);
	put_out(b, 1, &v6, b->pair[0][0].rtp, 0); /* from an IPv4 socket */
	put_out(b, 2, &me, b->pair[0][0].rtp, 0);
	put_out(b, 3, &me, nobody, 0);
	put_out(b, 4, &me, wrong, 0);
	put_out(b, 5, &me, b->pair[0][1].rtp, 0);
	steer_udp.send(b->s, &b->a, b->out, 6);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(b->out[i].failed, i == 1 || i == 3 || i == 4);
	assert_int_equal(peer_recv(b, 0, &from, &tos), 0);
	assert_int_equal(peer_recv(b, 0, &from, &tos), 2);
	assert_int_equal(peer_recv(b, 0, &from, &tos), 5);
	assert_int_equal(c->send_errors, 3);
	assert_int_equal(c->send_packets, 3);
}

static void an_icmp_error_costs_no_packet(void **state)
{
	struct bench *b = bench_of(state);
	struct endpoint me = peer_address(b, 0), gone = me, from;
	int tos, on = 1;

	/* Unconnected sockets report errors only on request. */
	assert_int_equal(
		setsockopt(b->pair[0][0].rtp_fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), 0);
	steer_udp.port_del(b->s, b->pair[0][7].rtp);
	gone.port = b->pair[0][7].rtp.port;
	for (int round = 0; round < 3; round++) {
		put_out(b, 0, &gone, b->pair[0][0].rtp, 0);
		steer_udp.send(b->s, &b->a, b->out, 1);
		put_out(b, 1, &me, b->pair[0][0].rtp, 0);
		steer_udp.send(b->s, &b->a, b->out + 1, 1);
		assert_int_equal(b->out[1].failed, 0);
		assert_int_equal(peer_recv(b, 0, &from, &tos), 1);
		steer_udp.send(b->s, &b->a, b->out, 1);
		peer_send(b, 0, b->pair[0][0].rtp, "x", 1);
		assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 1);
	}
}

static void ports_come_and_go(void **state)
{
	struct bench *b = bench_of(state);
	struct local_port l = b->pair[0][2].rtp, outside = {.port = BASE + 2 * PAIRS, .addr = 0};
	struct ports_pair again;
	int fd = dup(b->peer[0]);

	assert_int_equal(steer_udp.port_add(b->s, l, fd), -EEXIST);
	assert_int_equal(steer_udp.port_add(b->s, l, -1), -EEXIST);
	assert_int_equal(steer_udp.port_add(b->s, outside, fd), -ERANGE);
	close(fd);
	peer_send(b, 0, l, "late", 4);
	steer_udp.port_del(b->s, l);
	steer_udp.port_del(b->s, l);
	steer_udp.port_del(b->s, b->pair[0][2].rtcp);
	assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 0);
	ports_put(b->ports, l, 0);
	assert_int_equal(ports_take(b->ports, 0, 0, 1, &again), 0);
	assert_int_equal(again.rtp.port, l.port);
	assert_int_equal(steer_udp.port_add(b->s, again.rtp, again.rtp_fd), 0);
	close(again.rtcp_fd);
	peer_send(b, 0, l, "new", 3);
	assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 1);
	assert_int_equal(b->in[0].len, 3);
}

/* Counters of two workers, or of a worker and the control thread, must not share a cache line. */
static void what_a_worker_counts_in_is_its_own(void **state)
{
	struct bench *b = bench_of(state);
	struct steer *more[16];
	char err[256];

	assert_int_equal((uintptr_t)steer_udp.counters(b->s) % 64, 0);
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		assert_int_equal(steer_udp.create(&more[i], &b->cfg, 0, err, sizeof(err)), 0);
		assert_int_equal((uintptr_t)steer_udp.counters(more[i]) % 64, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		steer_udp.destroy(more[i]);
}

static void overruns_are_counted(void **state)
{
	struct bench *b = bench_of(state);
	const struct steer_counters *c = steer_udp.counters(b->s);
	static const uint8_t p[1000];
	uint32_t all = 0, n;
	int small = 4096;

	setsockopt(b->pair[0][0].rtp_fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 50; i++)
		peer_send(b, 0, b->pair[0][0].rtp, p, sizeof(p));
	while ((n = steer_udp.recv(b->s, &b->a, 0, b->in, BURST)) > 0)
		all += n;
	/* The kernel reports drops with the next packet that gets through. */
	peer_send(b, 0, b->pair[0][0].rtp, p, sizeof(p));
	assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 1);
	assert_true(all < 50);
	assert_int_equal(c->overruns, 50 - all);
}

/* A full socket may receive no packet for a while; sockets of nfqueue and xdp never do. */
static void overruns_are_counted_when_no_packet_follows(void **state)
{
	struct bench *b = bench_of(state);
	const struct steer_counters *c = steer_udp.counters(b->s);
	static const uint8_t p[1000];
	uint32_t all = 0, n;
	int some = 65536;

	setsockopt(b->pair[0][0].rtp_fd, SOL_SOCKET, SO_RCVBUF, &some, sizeof(some));
	/* The second packet reports fewer drops than were already counted. */
	for (int i = 0; i < 300; i++) {
		peer_send(b, 0, b->pair[0][0].rtp, p, sizeof(p));
		if (i == 200)
			all += steer_udp.recv(b->s, &b->a, 0, b->in, BURST);
	}
	while ((n = steer_udp.recv(b->s, &b->a, 0, b->in, BURST)) > 0)
		all += n;
	assert_true(all > 20 && all < 300);
	if (b->cfg.udp_io == STEER_UDP_PLAIN)
		assert_int_equal(c->overruns, 300 - all);
	steer_udp.port_del(b->s, b->pair[0][0].rtp);
	assert_int_equal(c->overruns, 300 - all);
}

static void a_closed_port_is_free_at_once(void **state)
{
	struct bench *b = bench_of(state);
	struct sockaddr_storage sa;
	socklen_t len;

	/* Packets are arriving. Their counts go with the port when it is removed. */
	for (int round = 0; round < 20; round++) {
		struct local_port port = b->pair[0][1].rtp;
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		for (int i = 0; i < 40; i++)
			peer_send(b, 0, port, "old", 3);
		if (round % 2)
			assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, 7), 7);
		steer_udp.port_del(b->s, port);
		address(b, port, &sa, &len);
		assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
		assert_int_equal(steer_udp.port_add(b->s, port, fd), 0);
		peer_send(b, 0, port, "new", 3);
		assert_int_equal(steer_udp.recv(b->s, &b->a, 0, b->in, BURST), 1);
		assert_memory_equal(b->a.in + b->in[0].in_off, "new", 3);
	}
}

static void nothing_is_written_after_the_end(void **state)
{
	struct bench *b = bench_of(state);
	size_t len = (size_t)b->a.slots * ARENA_SLOT_LEN;
	uint8_t *before = malloc(len);

	assert_non_null(before);
	for (int i = 0; i < 50; i++)
		peer_send(b, 0, b->pair[0][i % PAIRS].rtp, "late", 4);
	steer_udp.destroy(b->s);
	b->s = NULL;
	memcpy(before, b->a.in, len);
	/* The port has no socket any more. */
	for (int i = 0; i < 50; i++) {
		struct sockaddr_storage sa;
		socklen_t sa_len;

		address(b, b->pair[0][i % PAIRS].rtp, &sa, &sa_len);
		(void)!sendto(b->peer[0], "late", 4, 0, (struct sockaddr *)&sa, sa_len);
	}
	usleep(20000);
	assert_memory_equal(before, b->a.in, len);
	free(before);
}

/* Some containers forbid io_uring like this. */
static void refuse_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {ARRAY_LEN(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
		_exit(9);
}

static void a_kernel_that_refuses_io_uring_is_served_plainly(void **state)
{
	struct steer_config cfg = {.udp_io = STEER_UDP_AUTO, .burst_max = BURST};
	char err[256] = "";
	int status, res;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		refuse_io_uring();
		res = steer_udp.open(&cfg, err, sizeof(err));
		if (res || cfg.udp_io != STEER_UDP_PLAIN || steer_udp.slots(&cfg) != BURST)
			_exit(1);
		cfg.udp_io = STEER_UDP_URING;
		res = steer_udp.open(&cfg, err, sizeof(err));
		_exit(res == -EPERM && strstr(err, "--udp-io=auto") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
#define ON_LOOPBACK(f)                                           \
	cmocka_unit_test_setup_teardown(f, setup, teardown),     \
	{                                                        \
#f " (io_uring)", f, setup_uring, teardown, NULL \
	}
	const struct CMUnitTest tests[] = {
		ON_LOOPBACK(packets_come_with_all_that_is_known_of_them),
		ON_LOOPBACK(a_too_long_datagram_tells_its_length),
		ON_LOOPBACK(a_flooded_port_does_not_starve_the_others),
		ON_LOOPBACK(a_burst_takes_no_more_than_max),
		ON_LOOPBACK(a_mixed_burst_leaves_from_the_right_ports),
		ON_LOOPBACK(the_tos_of_each_packet_is_kept),
		ON_LOOPBACK(what_cannot_leave_fails_alone),
		ON_LOOPBACK(an_icmp_error_costs_no_packet),
		ON_LOOPBACK(ports_come_and_go),
		ON_LOOPBACK(what_a_worker_counts_in_is_its_own),
		ON_LOOPBACK(overruns_are_counted),
		ON_LOOPBACK(overruns_are_counted_when_no_packet_follows),
		ON_LOOPBACK(a_closed_port_is_free_at_once),
		ON_LOOPBACK(nothing_is_written_after_the_end),
		cmocka_unit_test(a_kernel_that_refuses_io_uring_is_served_plainly),
	};

	return cmocka_run_group_tests_name("steer", tests, NULL, NULL);
}
