/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A steering source without media, for tests in namespaces: says what comes in, and does what the
 * payload's first letter wants: D drop, P pass on, E send back from the port it came to, A drop and
 * serve the late port from now on.
 *
 *   steer_probe setup|teardown|run STEERING QUEUE WORKERS MIN-MAX ADDR...
 *
 * run: worker 0, the first four pairs of its ports on every address, until stdin ends. One more,
 * the late one, has a socket that nobody serves until A. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "packet/arena.h"
#include "steer/ports.h"

#define BURST 64u
#define PAIRS 4u

static const struct steer_ops *ops = &steer_nfqueue;
static struct steer_config cfg;
static struct ports_pair late;

static int complain(const char *what, int res)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-res));
	return 1;
}

static int take_ports(struct steer *s)
{
	struct ports *ports;
	struct ports_pair p;
	int res = ports_create(&ports, &cfg, 0, 0);

	for (uint8_t l = 0; res == 0 && l < cfg.locals; l++) {
		for (uint32_t i = 0; res == 0 && i < PAIRS; i++) {
			res = ports_take(ports, l, 0, 0, &p);
			res = res ? res : ops->port_add(s, p.rtp, p.rtp_fd);
			res = res ? res : ops->port_add(s, p.rtcp, p.rtcp_fd);
			printf("port %u %u\n", l, p.rtp.port);
		}
	}
	res = res ? res : ports_take(ports, 0, 0, 0, &late);
	printf("late %u\n", late.rtp.port);
	ports_destroy(ports);
	return res;
}

/* Says whether by then the socket has what came before. */
static void add_late(struct steer *s)
{
	struct pollfd p = {.fd = late.rtp_fd, .events = POLLIN};
	int res = ops->port_add(s, late.rtp, late.rtp_fd);

	printf("added %d %s\n", res, poll(&p, 1, 0) == 1 ? "before" : "nothing");
}

static void tell(const struct arena *a, const struct packet_in *d)
{
	const uint8_t *p = a->in + d->in_off;
	char src[ENDPOINT_STRLEN];
	uint64_t now = clock_real_ns();
	uint32_t sum = 0;

	for (uint32_t i = 0; i < d->len && d->len <= ARENA_MAX_PACKET; i++)
		sum = sum * 31 + p[i];
	printf("in %u %u %s %u %u %s %s\n", d->local.addr, d->local.port,
		endpoint_fmt(&d->src, src), d->len, sum, d->token ? "queue" : "socket",
		d->t_ns <= now && now - d->t_ns < NS_PER_SEC ? "now" : "then");
}

static uint32_t decide(struct steer *s, const struct arena *a, struct packet_in *in, uint32_t n,
	struct packet_out *out)
{
	uint32_t outs = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = a->in + in[i].in_off;
		uint32_t off = in[i].slot * ARENA_SLOT_LEN + ARENA_HEADROOM;

		tell(a, &in[i]);
		in[i].verdict = PACKET_DROP_MALFORMED;
		if (in[i].len == 0 || in[i].len > ARENA_MAX_PACKET)
			continue;
		if (*p == 'A')
			add_late(s);
		if (*p == 'P')
			in[i].verdict = PACKET_PASS;
		if (*p != 'E')
			continue;
		in[i].verdict = PACKET_SENT;
		memcpy(a->out + off, p, in[i].len);
		out[outs++] = (struct packet_out){.dst = in[i].src,
			.local = in[i].local,
			.out_off = off,
			.len = in[i].len,
			.tos = 0xb8,
			.in = i};
	}
	return outs;
}

static void counters(const struct steer *s)
{
	const struct steer_counters *c = ops->counters(s);

	printf("counters");
	for (int k = 0; k < STEER_COUNTER_N; k++)
		printf(" %s %llu", steer_counter_row[k].id,
			(unsigned long long)steer_counter_load(c, (enum steer_counter)k));
	printf("\n");
}

static int run(void)
{
	static struct packet_in in[BURST];
	static struct packet_out out[BURST];
	struct arena a;
	struct steer *s;
	char err[256];
	int res;

	if (ops->open && ops->open(&cfg, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	res = arena_create(&a, ops->slots ? ops->slots(&cfg) : BURST, 2);
	if (res)
		return complain("arena", res);
	/* Where the packets' memory is shared with the kernel, what setup() does lives as long as
	 * this process. */
	if (ops->create(&s, &cfg, 0, err, sizeof(err)) ||
		(ops->memory && ops->memory(s, &a, err, sizeof(err))) ||
		(ops->memory && ops->setup(&cfg, err, sizeof(err)))) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	res = take_ports(s);
	if (res)
		return complain("ports", res);
	printf("ready\n");
	for (;;) {
		struct pollfd p[2] = {{.fd = ops->fd(s), .events = POLLIN},
			{.fd = STDIN_FILENO, .events = POLLIN}};
		uint32_t n, outs;

		poll(p, 2, -1);
		if (p[1].revents)
			break;
		usleep(2000); /* let a burst gather */
		n = ops->recv(s, &a, 0, in, BURST);
		outs = decide(s, &a, in, n, out);
		if (outs)
			ops->send(s, &a, out, outs);
		for (uint32_t i = 0; i < outs; i++)
			if (out[i].failed)
				printf("failed %u\n", out[i].local.port);
		if (n)
			ops->verdict(s, in, n);
	}
	counters(s);
	ops->destroy(s);
	if (ops->close)
		ops->close(&cfg);
	arena_destroy(&a);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct steer_ops *const all[] = {
		&steer_nfqueue, &steer_udp, &steer_kernel, &steer_xdp};
	unsigned min, max;
	char err[256];

	log_open("steer_probe", getenv("PROBE_DEBUG") ? LOG_DEBUG : LOG_ERR, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 7 || sscanf(argv[5], "%u-%u", &min, &max) != 2) {
		fprintf(stderr,
			"usage: %s setup|teardown|run STEERING QUEUE WORKERS MIN-MAX ADDR...\n",
			argv[0]);
		return 2;
	}
	/* STEERING: udp, nfqueue, nfqueue:closed, xdp, or xdp: and a mode, as --xdp-mode has them
	 */
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strncmp(argv[2], all[i]->name, strlen(all[i]->name)) == 0)
			ops = all[i];
	cfg = (struct steer_config){.queue_num = (uint16_t)atoi(argv[3]),
		.workers = (uint32_t)atoi(argv[4]),
		.port_min = (uint16_t)min,
		.port_max = (uint16_t)max,
		.xdp_mode = strcmp(argv[2], "xdp:copy") == 0 ? STEER_XDP_COPY
			: strcmp(argv[2], "xdp:skb") == 0    ? STEER_XDP_SKB
							     : STEER_XDP_AUTO,
		.queue_closed = strcmp(argv[2], "nfqueue:closed") == 0,
		.burst_max = BURST};
	for (int i = 6; i < argc && cfg.locals < STEER_MAX_LOCAL; i++)
		if (endpoint_parse_addr(&cfg.local[cfg.locals++], str_from(argv[i])))
			return complain(argv[i], -EINVAL);
	if (strcmp(argv[1], "run") == 0)
		return run();
	if (strcmp(argv[1], "teardown") == 0) {
		ops->teardown(&cfg);
		return 0;
	}
	if (!ops->memory && ops->setup(&cfg, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	return 0;
}
