/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets for the tests in the guest. "flow" sends numbered UDP datagrams in one network namespace
 * and receives them in another, and reports which were lost, repeated, out of order or changed.
 * "bulk" does so with many streams, until it is told to end (pktx_bulk.c). "raw" sends malformed
 * packets directly to a link. Prints one line of NAME=VALUE.
 *
 *   pktx flow --from NS,ADDR,PORT --to ADDR,PORT --recv NS,ADDR,PORT [--recv ...] [options]
 *        ends on SIGTERM at the latest
 *   pktx bulk NS,ADDR,PORT ADDR,PORT NS,ADDR,PORT NS,ADDR,PORT STREAMS STEP COUNT SEED
 *        from, to and receivers of the first stream; the ports of the next are STEP higher
 *   pktx raw  --dev NS,IFACE,MAC --from ADDR,PORT --to ADDR,PORT --kind KIND|fuzz [--count N]
 *        [--ms N] [--seed N] */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "pktx.h"

#define RECV_MAX   4
#define SEEN_MAX   (1u << 20)
#define PACKET_MAX 1500

struct flow {
	struct pktx_where from, to, recv[RECV_MAX];
	uint32_t recvs, count, rate, size, window, wait_ms, first, ssrc, ms;
	uint32_t ttl, tos, delay_ms;
	uint32_t peer_ssrc; /* expected TTL and TOS; 0: those of the sent packet */
	const char *kind;
};

/* Statistics of one receiver. */
struct seen {
	uint32_t got, dup, late, bad, highest;
	bool any;
	char from[INET6_ADDRSTRLEN + 8];
	uint32_t froms;
	int ttl, tos;
	uint8_t *map; /* [SEEN_MAX] */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- Flow ------------------------------------------------------------------------------------- */

/* A datagram that the relay treats as this kind. Its number is in the last four bytes of the
 * header. */
static size_t datagram(uint8_t *p, const struct flow *f, uint32_t number)
{
	size_t len = f->size < 28 ? 28 : f->size;

	memset(p, 0x5a, len);
	if (strcmp(f->kind, "stun") == 0) {
		put_be16(p, 0x0001);
		put_be16(p + 2, (uint16_t)(len - 20));
		put_be32(p + 4, 0x2112a442);
	} else if (strcmp(f->kind, "dtls") == 0) {
		p[0] = 22;
		put_be16(p + 1, 0xfefd);
	} else if (strcmp(f->kind, "rtcp") == 0) {
		p[0] = 0x80;
		p[1] = 200;
		put_be16(p + 2, (uint16_t)(len / 4 - 1));
		put_be32(p + 4, f->ssrc);
	} else if (strcmp(f->kind, "junk") == 0) {
		p[0] = 0xff;
	} else {
		p[0] = 0x80;
		p[1] = 0;
		put_be16(p + 2, (uint16_t)number);
		put_be32(p + 4, number * 160);
		put_be32(p + 8, f->ssrc);
	}
	put_be32(p + 20, 0x706b7478);
	put_be32(p + 24, number);
	return len;
}

static void ancillary(struct seen *s, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int v = 0;

		memcpy(&v, CMSG_DATA(c), c->cmsg_len == CMSG_LEN(1) ? 1 : sizeof(v));
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
			s->ttl = v;
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS))
			s->tos = v;
	}
}

static void numbered(struct seen *s, const struct flow *f, const uint8_t *p, size_t len)
{
	uint8_t want[PACKET_MAX];
	struct flow theirs = *f;
	uint32_t n;

	theirs.ssrc = f->peer_ssrc ? f->peer_ssrc : f->ssrc;

	if (len < 28 || be32(p + 20) != 0x706b7478 || (n = be32(p + 24)) >= SEEN_MAX) {
		s->bad++;
		return;
	}
	if (datagram(want, &theirs, n) != len || memcmp(want, p, len) != 0)
		s->bad++;
	s->got++;
	if (s->map[n]++)
		s->dup++;
	else if (s->any && n < s->highest)
		s->late++;
	s->highest = s->any && s->highest > n ? s->highest : n;
	s->any = true;
}

/* Reads all waiting packets. Returns their number. */
static uint32_t drain(int fd, struct seen *s, const struct flow *f)
{
	uint32_t n = 0;

	for (;;) {
		uint8_t p[PACKET_MAX + 1];
		char control[128], from[sizeof(s->from)];
		struct sockaddr_storage sa;
		struct iovec iov = {p, sizeof(p)};
		struct msghdr m = {.msg_name = &sa,
			.msg_namelen = sizeof(sa),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t len = recvmsg(fd, &m, MSG_DONTWAIT);

		if (len < 0)
			return n;
		n++;
		pktx_name(&sa, from, sizeof(from));
		if (strcmp(from, s->from) != 0) {
			memcpy(s->from, from, sizeof(from));
			s->froms++;
		}
		ancillary(s, &m);
		numbered(s, f, p, (size_t)len);
	}
}

static void report(const struct flow *f, const struct seen *s, uint32_t sent, uint64_t took_ns)
{
	for (uint32_t i = 0; i < f->recvs; i++)
		printf("%ssent=%u got=%u dup=%u late=%u bad=%u from=%s froms=%u ttl=%d tos=%d",
			i ? " | " : "", sent, s[i].got, s[i].dup, s[i].late, s[i].bad,
			s[i].from[0] ? s[i].from : "-", s[i].froms, s[i].ttl, s[i].tos);
	printf(" us=%llu\n", (unsigned long long)(took_ns / 1000));
}

static uint32_t drain_all(const int *fd, struct seen *s, const struct flow *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->recvs; i++)
		n += drain(fd[i], &s[i], f);
	return n;
}

static void wait_in(const int *fd, uint32_t n, int ms)
{
	struct pollfd p[RECV_MAX];

	for (uint32_t i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
	poll(p, n, ms);
}

/* A test may end a flow early by SIGTERM and gets its results. */
static volatile sig_atomic_t over;

static void on_term(int signal)
{
	(void)signal;
	over = 1;
}

/* Whether the flow still sends. */
static bool lasts(const struct flow *f, uint32_t sent, uint64_t start)
{
	return !over && sent < f->count && (!f->ms || now_ns() - start < f->ms * 1000000ull);
}

/* After all have arrived, repeated ones would follow soon. */
static uint64_t patience_ns(const struct flow *f, const struct seen *s, uint32_t sent)
{
	bool all = f->recvs > 0;

	for (uint32_t i = 0; i < f->recvs; i++)
		all = all && s[i].got >= sent;
	return (all && f->wait_ms > 30 ? 30 : f->wait_ms) * 1000000ull;
}

static int flow_run(const struct flow *f)
{
	struct seen seen[RECV_MAX] = {0};
	struct sockaddr_storage to;
	socklen_t to_len;
	uint8_t p[PACKET_MAX];
	int in[RECV_MAX], out;
	uint32_t sent = 0;
	uint64_t start, last;

	for (uint32_t i = 0; i < f->recvs; i++) {
		in[i] = pktx_socket(&f->recv[i]);
		seen[i].map = calloc(SEEN_MAX, 1);
		seen[i].ttl = seen[i].tos = -1;
	}
	/* A terminal sends from its receiving port: one socket, if both are the same. */
	out = f->recvs && pktx_same(&f->from, &f->recv[0]) ? in[0] : pktx_socket(&f->from);
	pktx_mark(out, f->ttl, f->tos);
	to_len = pktx_address(&f->to, &to);
	pktx_stay();
	signal(SIGTERM, on_term);
	usleep(f->delay_ms * 1000);
	start = last = now_ns();
	while (lasts(f, sent, start) || now_ns() - last < patience_ns(f, seen, sent)) {
		bool more = lasts(f, sent, start);
		uint64_t due = f->rate ? start + sent * (1000000000ull / f->rate) : 0;

		if (drain_all(in, seen, f))
			last = f->window || !more ? last : now_ns();
		if (!more && f->recvs && seen[0].got >= sent && f->window)
			break;
		if (more && now_ns() >= due && (!f->window || sent - seen[0].got < f->window)) {
			if (sendto(out, p, datagram(p, f, f->first + sent), 0,
				    (struct sockaddr *)&to, to_len) < 0 &&
				errno != ENOBUFS && errno != ECONNREFUSED && errno != EPERM)
				perror("pktx: sendto");
			sent++;
			last = now_ns();
			continue;
		}
		/* The window does not open: count its packets as lost and continue. */
		if (more && f->window && now_ns() - last > f->wait_ms * 1000000ull)
			break;
		wait_in(in, f->recvs, more && !f->window ? 1 : 10);
	}
	drain_all(in, seen, f); /* it may have slept longer than its limit */
	report(f, seen, sent, (f->window ? now_ns() : last) - start);
	return 0;
}

/* --- Options ---------------------------------------------------------------------------------- */

enum {
	FROM = 1,
	TO,
	RECV,
	COUNT,
	RATE,
	SIZE,
	KIND,
	WINDOW,
	WAIT,
	FIRST,
	SSRC,
	TTL,
	TOS,
	DEV,
	MS,
	SEED,
	PEER_SSRC,
	DELAY
};

static const struct option OPTIONS[] = {
	{"from", 1, NULL, FROM},
	{"to", 1, NULL, TO},
	{"recv", 1, NULL, RECV},
	{"count", 1, NULL, COUNT},
	{"rate", 1, NULL, RATE},
	{"size", 1, NULL, SIZE},
	{"kind", 1, NULL, KIND},
	{"window", 1, NULL, WINDOW},
	{"wait", 1, NULL, WAIT},
	{"first", 1, NULL, FIRST},
	{"ssrc", 1, NULL, SSRC},
	{"ttl", 1, NULL, TTL},
	{"tos", 1, NULL, TOS},
	{"dev", 1, NULL, DEV},
	{"ms", 1, NULL, MS},
	{"seed", 1, NULL, SEED},
	{"peer-ssrc", 1, NULL, PEER_SSRC},
	{"delay", 1, NULL, DELAY},
	{0},
};

int main(int argc, char **argv)
{
	struct flow f = {.count = 100,
		.rate = 1000,
		.size = 172,
		.wait_ms = 1000,
		.ssrc = 0x1234,
		.kind = "rtp"};
	const char *dev = NULL, *patience = getenv("PATIENCE"); /* for a slow guest */
	uint32_t seed = 1;
	int c;

	if (argc > 1 && strcmp(argv[1], "bulk") == 0)
		return pktx_bulk(argc - 1, argv + 1);
	if (patience)
		f.wait_ms *= (uint32_t)strtoul(patience, NULL, 10);
	while ((c = getopt_long(argc, argv, "", OPTIONS, NULL)) > 0) {
		uint32_t n = optarg ? (uint32_t)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case FROM:
			pktx_where(&f.from, optarg);
			break;
		case TO:
			pktx_where(&f.to, optarg);
			break;
		case RECV:
			if (f.recvs < RECV_MAX)
				pktx_where(&f.recv[f.recvs++], optarg);
			break;
		case COUNT:
			f.count = n;
			break;
		case RATE:
			f.rate = n;
			break;
		case SIZE:
			f.size = n < PACKET_MAX ? n : PACKET_MAX;
			break;
		case KIND:
			f.kind = optarg;
			break;
		case WINDOW:
			f.window = n;
			f.rate = 0;
			break;
		case WAIT:
			f.wait_ms = n;
			break;
		case FIRST:
			f.first = n;
			break;
		case SSRC:
			f.ssrc = n;
			break;
		case TTL:
			f.ttl = n;
			break;
		case TOS:
			f.tos = n;
			break;
		case DEV:
			dev = optarg;
			break;
		case MS:
			f.ms = n;
			break;
		case PEER_SSRC:
			f.peer_ssrc = n;
			break;
		case DELAY:
			f.delay_ms = n;
			break;
		case SEED:
			seed = n;
			break;
		default:
			return 2;
		}
	}
	if (optind < argc && strcmp(argv[optind], "flow") == 0)
		return flow_run(&f);
	if (optind < argc && strcmp(argv[optind], "raw") == 0 && dev)
		return pktx_raw(
			dev, &f.from, &f.to, &(struct pktx_what){f.kind, f.count, f.ms, seed});
	fprintf(stderr, "usage: pktx flow|raw OPTIONS, see its first lines\n");
	return 2;
}
