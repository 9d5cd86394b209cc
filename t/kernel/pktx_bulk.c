/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many numbered streams at once, for tests of millions of packets. Each stream keeps a window of
 * packets on their way. If one receives no packet while the others do, its packets on their way are
 * written off, so that it continues, but slower. Packets that were written off can still arrive.
 * Three of four bursts are sent as one coalesced datagram, which costs the sender a tenth. A socket
 * at each destination counts the packets that no ring takes.
 *
 * Commands, one per line on standard input: "progress" prints the number of packets sent, "quiet"
 * ends sending and prints it, "end" prints a line per stream and ends the program. */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "pktx.h"

#define STREAMS_MAX  64
#define BURST        32 /* packets of equal size */
#define WINDOW       128
#define SINK_EVERY   4          /* rounds between two looks at a sink */
#define WRITE_OFF_NS 200000000u /* if the others do not go on either */
#define SIZE_MIN     60
#define SIZE_VARIES  140
#define PACKET_MAX   (SIZE_MIN + SIZE_VARIES)
#define MAGIC        0x62756c6bu

struct stream {
	struct sockaddr_storage to;
	socklen_t to_len;
	int in, out, sink;
	uint32_t sent, got, passed, written_off, dup, late, bad, highest;
	uint64_t last_ns, last_total; /* when it last sent or got a packet; packets of all then */
	uint8_t *seen;                /* a bit per number */
};

struct bulk {
	struct stream stream[STREAMS_MAX];
	uint32_t streams, count;
	uint64_t total; /* sent */
	unsigned seed;
	bool sends, over;
	char line[64];
	size_t line_len;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* RTP. The payload has the stream's number, and the packet's. */
static size_t packet(uint8_t p[PACKET_MAX], uint32_t stream, uint32_t number)
{
	size_t len = SIZE_MIN + number / BURST * 37 % SIZE_VARIES;

	memset(p, (int)(number + stream), len);
	p[0] = 0x80;
	p[1] = 0;
	put_be16(p + 2, (uint16_t)number);
	put_be32(p + 4, number * 160);
	put_be32(p + 8, stream);
	put_be32(p + 12, MAGIC);
	put_be32(p + 16, number);
	return len;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* How many packets it may send now. */
static uint32_t room(const struct bulk *b, struct stream *s, uint64_t now)
{
	int64_t away = (int64_t)s->sent - s->got - s->written_off;

	if (away >= WINDOW &&
		(b->total - s->last_total > 2ull * WINDOW * b->streams ||
			now - s->last_ns > WRITE_OFF_NS)) {
		s->written_off = s->sent - s->got;
		away = 0;
	}
	if (away < 0) { /* of those written off some arrived */
		s->written_off = s->sent > s->got ? s->sent - s->got : 0;
		away = 0;
	}
	return away < WINDOW ? WINDOW - (uint32_t)away : 0;
}

/* Each packet by itself. Returns how many were sent, or -1. */
static int send_each(struct stream *s, uint8_t (*data)[PACKET_MAX], size_t len, uint32_t n)
{
	struct iovec iov[BURST];
	struct mmsghdr m[BURST] = {0};

	for (uint32_t k = 0; k < n; k++) {
		iov[k] = (struct iovec){data[k], len};
		m[k].msg_hdr = (struct msghdr){.msg_name = &s->to,
			.msg_namelen = s->to_len,
			.msg_iov = &iov[k],
			.msg_iovlen = 1};
	}
	return sendmmsg(s->out, m, n, 0);
}

/* One datagram, which the kernel splits late. */
static int send_joined(struct stream *s, uint8_t (*data)[PACKET_MAX], size_t len, uint32_t n)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(uint16_t))];
	} c = {.h = {.cmsg_level = SOL_UDP,
		       .cmsg_type = UDP_SEGMENT,
		       .cmsg_len = CMSG_LEN(sizeof(uint16_t))}};
	struct iovec iov[BURST];
	struct msghdr m = {.msg_name = &s->to,
		.msg_namelen = s->to_len,
		.msg_iov = iov,
		.msg_iovlen = n,
		.msg_control = c.room,
		.msg_controllen = sizeof(c.room)};
	uint16_t size = (uint16_t)len;

	memcpy(CMSG_DATA(&c.h), &size, sizeof(size));
	for (uint32_t k = 0; k < n; k++)
		iov[k] = (struct iovec){data[k], len};
	return sendmsg(s->out, &m, 0) < 0 ? -1 : (int)n;
}

static uint32_t burst(struct bulk *b, uint32_t i, uint64_t now)
{
	struct stream *s = &b->stream[i];
	uint32_t n = 1 + (uint32_t)rand_r(&b->seed) % BURST, may = room(b, s, now);
	uint8_t data[BURST][PACKET_MAX];
	size_t len = 0;
	int done;

	n = n < may ? n : may;
	n = n < b->count - s->sent ? n : b->count - s->sent;
	n = n < BURST - s->sent % BURST ? n : BURST - s->sent % BURST;
	for (uint32_t k = 0; k < n; k++)
		len = packet(data[k], i, s->sent + k);
	if (n == 0)
		return 0;
	done = rand_r(&b->seed) % 4 ? send_joined(s, data, len, n) : send_each(s, data, len, n);
	if (done <= 0) {
		if (errno != ENOBUFS && errno != ECONNREFUSED)
			perror("pktx: send");
		return 0;
	}
	s->sent += (uint32_t)done;
	b->total += (uint32_t)done;
	s->last_ns = now;
	s->last_total = b->total;
	return (uint32_t)done;
}

/* --- Receiving -------------------------------------------------------------------------------- */

static void arrived(struct bulk *b, uint32_t i, const uint8_t *p, size_t len)
{
	struct stream *s = &b->stream[i];
	uint32_t n = len >= SIZE_MIN ? be32(p + 16) : UINT32_MAX;
	uint8_t want[PACKET_MAX];

	if (n >= s->sent || packet(want, i, n) != len || memcmp(want, p, len) != 0) {
		s->bad++;
		return;
	}
	if (s->seen[n / 8] & 1u << n % 8) {
		s->dup++;
		return;
	}
	s->seen[n / 8] |= (uint8_t)(1u << n % 8);
	s->late += s->got && n < s->highest;
	s->highest = n > s->highest ? n : s->highest;
	s->got++;
}

static uint32_t drain(struct bulk *b, uint32_t i)
{
	struct stream *s = &b->stream[i];
	uint8_t data[BURST][PACKET_MAX + 1];
	struct iovec iov[BURST];
	struct mmsghdr m[BURST] = {0};
	int n;

	for (uint32_t k = 0; k < BURST; k++) {
		iov[k] = (struct iovec){data[k], sizeof(data[k])};
		m[k].msg_hdr = (struct msghdr){.msg_iov = &iov[k], .msg_iovlen = 1};
	}
	n = recvmmsg(s->in, m, BURST, MSG_DONTWAIT, NULL);
	for (int k = 0; k < n; k++)
		arrived(b, i, data[k], m[k].msg_len);
	if (n > 0) {
		s->last_ns = now_ns();
		s->last_total = b->total;
	}
	return n > 0 ? (uint32_t)n : 0;
}

/* Packets that the gateway's socket got. */
static void drain_sink(struct stream *s)
{
	uint8_t data[BURST][1];
	struct iovec iov[BURST];
	struct mmsghdr m[BURST] = {0};
	int n;

	for (uint32_t k = 0; k < BURST; k++) {
		iov[k] = (struct iovec){data[k], 1};
		m[k].msg_hdr = (struct msghdr){.msg_iov = &iov[k], .msg_iovlen = 1};
	}
	while ((n = recvmmsg(s->sink, m, BURST, MSG_DONTWAIT, NULL)) > 0)
		s->passed += (uint32_t)n;
}

/* --- Commands --------------------------------------------------------------------------------- */

static void report(const struct bulk *b)
{
	for (uint32_t i = 0; i < b->streams; i++) {
		const struct stream *s = &b->stream[i];

		printf("stream=%u sent=%u got=%u passed=%u dup=%u late=%u bad=%u\n", i, s->sent,
			s->got, s->passed, s->dup, s->late, s->bad);
	}
}

static void command(struct bulk *b)
{
	if (strcmp(b->line, "quiet") == 0)
		b->sends = false;
	b->over = strcmp(b->line, "end") == 0;
	for (uint32_t i = 0; i < b->streams && b->over; i++)
		drain_sink(&b->stream[i]);
	if (b->over)
		report(b);
	else
		printf("sent=%llu\n", (unsigned long long)b->total);
	fflush(stdout);
}

/* Waits for standard input for that long, and for packets if there is time. */
static void look(struct bulk *b, int ms)
{
	struct pollfd p[STREAMS_MAX + 1] = {{.fd = 0, .events = POLLIN}};
	char c;

	for (uint32_t i = 0; i < b->streams; i++)
		p[1 + i] = (struct pollfd){.fd = b->stream[i].in, .events = POLLIN};
	if (poll(p, ms ? 1 + b->streams : 1, ms) <= 0 || !p[0].revents)
		return;
	if (read(0, &c, 1) != 1) {
		b->over = true;
	} else if (c != '\n') {
		if (b->line_len + 1 < sizeof(b->line))
			b->line[b->line_len++] = c;
	} else {
		b->line[b->line_len] = 0;
		b->line_len = 0;
		command(b);
	}
}

static void open_streams(struct bulk *b, char **where, uint32_t step)
{
	struct pktx_where at[4];

	for (int k = 0; k < 4; k++)
		pktx_where(&at[k], where[k]);
	for (uint32_t i = 0; i < b->streams; i++) {
		struct stream *s = &b->stream[i];

		s->out = pktx_socket(&at[0]);
		s->to_len = pktx_address(&at[1], &s->to);
		s->in = pktx_socket(&at[2]);
		s->sink = pktx_socket(&at[3]);
		s->seen = calloc(b->count / 8 + 1, 1);
		if (!s->seen) {
			perror("pktx");
			exit(1);
		}
		for (int k = 0; k < 4; k++)
			at[k].port = (uint16_t)(at[k].port + step);
	}
}

int pktx_bulk(int argc, char **argv)
{
	struct bulk *b = calloc(1, sizeof(*b));

	uint64_t rounds = 0;

	if (argc != 9 || !b) {
		fprintf(stderr, "usage: pktx bulk FROM TO RECV SINK STREAMS STEP COUNT SEED\n");
		return 2;
	}
	b->sends = true;
	b->streams = (uint32_t)strtoul(argv[5], NULL, 0);
	b->streams = b->streams < STREAMS_MAX ? b->streams : STREAMS_MAX;
	b->count = (uint32_t)strtoul(argv[7], NULL, 0);
	b->seed = (unsigned)strtoul(argv[8], NULL, 0);
	open_streams(b, argv + 1, (uint32_t)strtoul(argv[6], NULL, 0));
	pktx_stay();
	while (!b->over) {
		uint64_t now = now_ns();
		uint32_t moved = 0;

		for (uint32_t i = 0; i < b->streams && b->sends; i++)
			moved += burst(b, i, now);
		for (uint32_t i = 0; i < b->streams; i++)
			moved += drain(b, i);
		if (++rounds % SINK_EVERY == 0)
			drain_sink(&b->stream[rounds / SINK_EVERY % b->streams]);
		look(b, moved ? 0 : 1);
	}
	return 0;
}
