/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Load for benchmarks of transcoding: terminals that talk to each other through a relay in
 * different codecs. Payloads are made before the clock starts, by our codecs from a tone that comes
 * and goes like syllables. SRTP is by libsrtp2. Legs 2k and 2k+1 talk to each other.
 *
 *   codecload SPEC CODEC-DIR CODEC CODEC SECONDS
 *
 * SPEC as for rtpload (suites 80, 32 and plain). CODEC: NAME/CLOCK:PAYLOAD-TYPE[:FMTP], of legs 2k
 * and of legs 2k+1. Each leg sends a packet of 20 ms every 20 ms. Each received packet is
 * decrypted; its payload type and the order of its numbers are checked. Delay is from the call to
 * send of the n-th packet to the arrival, by the kernel's clock, of the n-th packet at the other
 * leg. It includes the codecs' look-ahead, where a packet waits for the next one. One JSON object
 * on standard output. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <srtp2/srtp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hist.h"
#include "codec/loader.h"
#include "codec/stream.h"
#include "spec.h"

#define PACKET_NS  20000000ull
#define LOOP       200u /* packets of a codec's payloads, which repeat */
#define RTP        12u
#define BYTES      512u /* of a payload */
#define LOOK_AHEAD 2u   /* packets that a relay may still have at the end */
#define DRAIN_MS   300

struct codec {
	char name[32], fmtp[64];
	unsigned clock, type;
	uint32_t units; /* of a packet */
	uint8_t payload[LOOP][BYTES];
	int len[LOOP];
};

struct leg {
	int fd, rtcp_fd;
	struct sockaddr_in to;
	srtp_t tx, rx;     /* NULL: plain */
	uint64_t *sent_ns; /* [per_leg], CLOCK_REALTIME */
	uint32_t first;    /* sequence number received first, */
	uint32_t newest;   /* and the highest, extended */
	uint32_t ssrc;     /* received */
	uint32_t received, changes;
};

static struct codec codec[2];
static struct leg *legs;
static uint32_t leg_count, per_leg;
static struct {
	uint64_t sent, send_errors, late, received, octets;
	uint64_t reordered, wrong, bad_auth;
} total;
static struct hist delay;

static void die(const char *what)
{
	fprintf(stderr, "codecload: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* --- Payloads --------------------------------------------------------------------------------- */

/* A tone whose pitch glides, three times per second, with pauses. */
static void voice(int16_t *pcm, size_t n, uint32_t rate, uint32_t packet)
{
	for (size_t i = 0; i < n; i++) {
		double t = packet * 0.02 + (double)i / rate, at = fmod(t * 3, 1);
		double loud = at < 0.8 ? sin(M_PI * at / 0.8) : 0, x = 0;

		for (int k = 1; k <= 8; k++)
			x += sin(2 * M_PI * k * (140 * t - 8 * cos(2 * t))) / k;
		pcm[i] = (int16_t)lrint(4000 * loud * x);
	}
}

static void read_codec(struct codec *c, const char *text)
{
	if (sscanf(text, "%31[^/]/%u:%u:%63s", c->name, &c->clock, &c->type, c->fmtp) < 3) {
		fprintf(stderr, "codecload: %s: NAME/CLOCK:PAYLOAD-TYPE[:FMTP]\n", text);
		exit(2);
	}
	c->units = c->clock / 50;
}

static void make_payloads(const struct codec_registry *r, struct codec *c)
{
	const struct codec_entry *e = codec_registry_find(r, c->name, c->clock, 1);
	struct codec_stream_cfg cfg = {
		.can = CODEC_ENCODES, .fmtp = c->fmtp, .fmtp_len = strlen(c->fmtp)};
	struct codec_stream *s;
	int16_t pcm[960];
	int err = e ? codec_stream_open(&s, e, &cfg) : -ENOENT;

	if (err) {
		fprintf(stderr, "codecload: %s: %s\n", c->name, strerror(-err));
		exit(2);
	}
	for (uint32_t i = 0; i < LOOP; i++) {
		voice(pcm, e->about.rate / 50, e->about.rate, i);
		c->len[i] = codec_stream_encode(s, pcm, e->about.rate / 50, c->payload[i], BYTES);
		if (c->len[i] <= 0)
			die(c->name);
	}
	codec_stream_close(s);
}

static void make_codecs(const char *folder)
{
	struct codec_loader_cfg cfg = {.folder = folder, .isolation = CODEC_ISOLATE_NONE};
	char program[4096];
	struct codec_registry *r;

	snprintf(program, sizeof(program), "%s/../xcipher-codec-worker", folder);
	codec_home_defaults(&cfg.home);
	cfg.home.program = program;
	if (codec_registry_create(&r))
		die("memory");
	if (codec_loader_run(r, &cfg) < 0)
		die(folder);
	make_payloads(r, &codec[0]);
	make_payloads(r, &codec[1]);
	codec_registry_destroy(r);
}

/* --- Legs ------------------------------------------------------------------------------------- */

static int socket_at(const char *ip, unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size = 1 << 18,
	    on = 1;

	inet_pton(AF_INET, ip, &sa.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) ||
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return fd;
}

static srtp_t session(const char *suite, const char *hex, srtp_ssrc_type_t direction)
{
	uint8_t key[30];
	srtp_policy_t policy = {.ssrc = {.type = direction}, .key = key, .window_size = 1024};
	srtp_t s;

	if (strcmp(suite, "plain") == 0)
		return NULL;
	spec_key(key, sizeof(key), hex);
	srtp_crypto_policy_set_rtp_default(&policy.rtp);
	srtp_crypto_policy_set_rtp_default(&policy.rtcp);
	policy.rtp.auth_tag_len = strstr(suite, "32") ? 4 : 10;
	if (srtp_create(&s, &policy) != srtp_err_status_ok)
		die("srtp_create");
	return s;
}

static void add_leg(uint32_t n, struct spec_leg *s)
{
	struct leg *l;

	legs = spec_grow(legs, n, sizeof(*legs));
	l = &legs[n];
	*l = (struct leg){.fd = socket_at(s->ip, s->rtp),
		.rtcp_fd = socket_at(s->ip, s->rtcp),
		.to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->to_rtp)},
		.tx = session(s->tx_suite, s->tx_key, ssrc_any_outbound),
		.rx = session(s->rx_suite, s->rx_key, ssrc_any_inbound),
		.sent_ns = calloc(per_leg, sizeof(uint64_t))};
	if (!l->sent_ns || inet_pton(AF_INET, s->to_ip, &l->to.sin_addr) != 1)
		die("leg");
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void send_one(uint32_t k, uint32_t number)
{
	struct leg *l = &legs[k];
	const struct codec *c = &codec[k % 2];
	uint32_t at = (number + k * 7) % LOOP;
	uint8_t p[RTP + BYTES + SRTP_MAX_TRAILER_LEN];
	int len = (int)RTP + c->len[at];

	p[0] = 0x80;
	p[1] = (uint8_t)c->type;
	put_be16(p + 2, (uint16_t)(1000 + number));
	put_be32(p + 4, number * c->units);
	put_be32(p + 8, 0x20000000 + k);
	memcpy(p + RTP, c->payload[at], (size_t)c->len[at]);
	if (l->tx && srtp_protect(l->tx, p, &len) != srtp_err_status_ok)
		die("srtp_protect");
	l->sent_ns[number] = clock_real_ns();
	total.sent++;
	if (sendto(l->fd, p, (size_t)len, 0, (struct sockaddr *)&l->to, sizeof(l->to)) < 0)
		total.send_errors++;
}

static void book(struct leg *l, const struct leg *from, const uint8_t *p, uint64_t t_ns)
{
	uint32_t seq = be16(p + 2), number;

	if (!l->received || l->ssrc != be32(p + 8)) {
		l->changes += l->received > 0;
		l->ssrc = be32(p + 8);
		l->first = l->newest = seq - l->received;
	}
	seq = l->newest + (uint32_t)(int16_t)(uint16_t)(seq - l->newest);
	total.reordered += (int32_t)(seq - l->newest) < 0;
	l->newest = (int32_t)(seq - l->newest) > 0 ? seq : l->newest;
	number = seq - l->first;
	l->received++;
	if (number < per_leg && from->sent_ns[number] && t_ns > from->sent_ns[number])
		hist_add(&delay, t_ns - from->sent_ns[number]);
}

static void take(uint32_t k, uint8_t *p, int len, uint64_t t_ns)
{
	struct leg *l = &legs[k];

	if (len < (int)RTP || (p[1] & 0x7f) != codec[k % 2].type) {
		total.wrong++;
		return;
	}
	if (l->rx && srtp_unprotect(l->rx, p, &len) != srtp_err_status_ok) {
		total.bad_auth++;
		return;
	}
	total.received++;
	total.octets += (uint32_t)len - RTP;
	book(l, &legs[k ^ 1], p, t_ns);
}

static void read_all(uint32_t k)
{
	uint8_t p[2048], control[128];
	struct iovec iov = {p, sizeof(p)};

	for (;;) {
		struct msghdr m = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(legs[k].fd, &m, 0);
		struct timespec ts = {0};

		if (n < 0)
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
				memcpy(&ts, CMSG_DATA(c), sizeof(ts));
		take(k, p, (int)n, (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec);
	}
}

/* Reads what comes until then, and what waits if it is too late already: sending must not starve
 * reading. */
static void wait_until(int ep, uint64_t until_ns)
{
	struct epoll_event e[256];
	uint64_t now = clock_mono_ns();

	do {
		uint64_t left = now < until_ns ? until_ns - now : 0;
		struct timespec ts = {(time_t)(left / NS_PER_SEC), (long)(left % NS_PER_SEC)};
		int n = epoll_pwait2(ep, e, ARRAY_LEN(e), &ts, NULL);

		for (int i = 0; i < n; i++)
			read_all(e[i].data.u32);
	} while ((now = clock_mono_ns()) < until_ns);
}

/* The legs' packets are spread evenly over the 20 ms. */
static double run(void)
{
	int ep = epoll_create1(EPOLL_CLOEXEC);
	size_t all = (size_t)per_leg * leg_count;
	uint64_t start, end, before;

	for (uint32_t k = 0; k < leg_count; k++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = k};

		if (epoll_ctl(ep, EPOLL_CTL_ADD, legs[k].fd, &e))
			die("epoll");
	}
	start = clock_mono_ns();
	for (size_t i = 0; i < all; i++) {
		uint64_t due = start + i * PACKET_NS / leg_count;

		wait_until(ep, due);
		total.late += clock_mono_ns() > due + PACKET_NS;
		send_one((uint32_t)(i % leg_count), (uint32_t)(i / leg_count));
	}
	end = clock_mono_ns();
	do {
		before = total.received;
		wait_until(ep, clock_mono_ns() + DRAIN_MS * 1000000ull);
	} while (total.received != before);
	close(ep);
	return (double)(end - start) / 1e9;
}

static void report(double seconds)
{
	const struct hist *own[] = {&delay};
	struct hist_summary h;
	uint64_t lost = 0, changes = 0;

	for (uint32_t k = 0; k < leg_count; k++) {
		uint32_t due = per_leg > LOOK_AHEAD ? per_leg - LOOK_AHEAD : 0;

		lost += legs[k].received < due ? due - legs[k].received : 0;
		changes += legs[k].changes;
	}
	hist_summarise(&h, own, 1);
	printf("{\"legs\":%u,\"seconds\":%.3f,\"sent\":%llu,\"received\":%llu,\"lost\":%llu,\"reordered\":%llu,\"duplicates\":0,"
	       "\"wrong\":%llu,\"bad_auth\":%llu,\"ssrc_changes\":%llu,\"send_errors\":%llu,\"late\":%llu,\"octets\":%.1f,"
	       "\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
		leg_count, seconds, (unsigned long long)total.sent,
		(unsigned long long)total.received, (unsigned long long)lost,
		(unsigned long long)total.reordered, (unsigned long long)total.wrong,
		(unsigned long long)total.bad_auth, (unsigned long long)changes,
		(unsigned long long)total.send_errors, (unsigned long long)total.late,
		total.received ? (double)total.octets / (double)total.received : 0,
		(double)h.p50 / 1e3, (double)h.p99 / 1e3);
}

int main(int argc, char **argv)
{
	struct rlimit files;
	double seconds;

	if (argc != 6 || (seconds = atof(argv[5])) <= 0) {
		fprintf(stderr, "usage: codecload SPEC CODEC-DIR CODEC CODEC SECONDS\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	per_leg = (uint32_t)(seconds * 50);
	per_leg = per_leg ? per_leg : 1;
	read_codec(&codec[0], argv[3]);
	read_codec(&codec[1], argv[4]);
	make_codecs(argv[2]);
	if (srtp_init() != srtp_err_status_ok)
		die("srtp_init");
	leg_count = spec_read(argv[1], add_leg);
	report(run());
	return 0;
}
