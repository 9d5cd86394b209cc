/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The floor of a steering path for benchmarks: a bare loop that receives and sends, without a
 * look-up, cipher or check. What a relay costs beyond this is the relay's own.
 *
 *   steer_floor STEERING QUEUE MIN-MAX ADDR CALLS WINDOW-US TERMINAL-IP FIRST-PORT
 *
 * Prints "port K PORT" for each of 2 * CALLS legs, then "ready"; packets of leg K leave from leg K
 * ^ 1's port to TERMINAL-IP, FIRST-PORT + 2 * (K ^ 1). Ends when stdin does; without "ready" if it
 * could not begin. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "packet/arena.h"
#include "steer/ports.h"

enum { BURST = 256 };

static uint32_t leg_of_port[65536]; /* leg + 1 */
static struct local_port *port;     /* [legs] */
static struct packet_in in[BURST];
static struct packet_out out[BURST];

static int complain(const char *what, int res)
{
	fprintf(stderr, "steer_floor: %s: %s\n", what, strerror(-res));
	return 1;
}

static int take_ports(
	const struct steer_ops *ops, struct steer *s, const struct steer_config *cfg, uint32_t legs)
{
	struct ports *ports;
	struct ports_pair p;
	int res = ports_create(&ports, cfg, 0, 0);

	port = calloc(legs, sizeof(*port));
	if (res || !port)
		return res ? res : -ENOMEM;
	for (uint32_t k = 0; res == 0 && k < legs; k++) {
		res = ports_take(ports, 0, 0, 0, &p);
		res = res ? res : ops->port_add(s, p.rtp, p.rtp_fd);
		res = res ? res : ops->port_add(s, p.rtcp, p.rtcp_fd);
		port[k] = p.rtp;
		leg_of_port[p.rtp.port] = k + 1;
		printf("port %u %u\n", k, p.rtp.port);
	}
	ports_destroy(ports);
	return res;
}

static uint32_t forward(const struct steer_ops *ops, struct steer *s, struct arena *a,
	const struct endpoint *terminal)
{
	uint32_t n = ops->recv(s, a, 0, in, BURST), outs = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t leg = leg_of_port[in[i].local.port];

		in[i].verdict = PACKET_SENT;
		if (leg-- == 0 || in[i].len > ARENA_MAX_PACKET)
			continue;
		out[outs] = (struct packet_out){.dst = *terminal,
			.local = port[leg ^ 1],
			.out_off = in[i].slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
			.len = in[i].len,
			.in = i};
		out[outs].dst.port = (uint16_t)(terminal->port + 2 * (leg ^ 1));
		memcpy(a->out + out[outs].out_off, a->in + in[i].in_off, in[i].len);
		outs++;
	}
	if (outs)
		ops->send(s, a, out, outs);
	if (n)
		ops->verdict(s, in, n);
	return n;
}

static void loop(const struct steer_ops *ops, struct steer *s, struct arena *a,
	const struct endpoint *terminal, uint64_t window_ns)
{
	struct pollfd p[2] = {{.fd = ops->fd(s), .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	uint64_t looked = clock_mono_ns();
	uint32_t n = 0;

	while (!p[1].revents) {
		if (n && n < BURST && window_ns) {
			uint64_t until = looked + window_ns;
			struct timespec ts = {
				(time_t)(until / NS_PER_SEC), (long)(until % NS_PER_SEC)};

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		} else if (n < BURST) {
			poll(p, 2, 1000);
		}
		looked = clock_mono_ns();
		n = forward(ops, s, a, terminal);
	}
}

/* As the daemon: as many as are allowed. */
static void files_raise(void)
{
	struct rlimit files = {1 << 20, 1 << 20};

	if (setrlimit(RLIMIT_NOFILE, &files) && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static const struct steer_ops *find(const char *name)
{
	static const struct steer_ops *const all[] = {
		&steer_udp, &steer_nfqueue, &steer_kernel, &steer_xdp};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct steer_config cfg = {.workers = 1, .locals = 1, .burst_max = BURST};
	const struct steer_ops *ops = argc == 9 ? find(argv[1]) : NULL;
	struct endpoint terminal;
	struct arena a;
	struct steer *s;
	char err[256];
	unsigned min, max;
	int res;

	if (!ops || sscanf(argv[3], "%u-%u", &min, &max) != 2 ||
		endpoint_parse_addr(&cfg.local[0], str_from(argv[4])) ||
		endpoint_parse_addr(&terminal, str_from(argv[7]))) {
		fprintf(stderr,
			"usage: steer_floor STEERING QUEUE MIN-MAX ADDR CALLS WINDOW-US TERMINAL-IP FIRST-PORT\n");
		return 2;
	}
	files_raise();
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	cfg.queue_num = (uint16_t)atoi(argv[2]);
	cfg.port_min = (uint16_t)min;
	cfg.port_max = (uint16_t)max;
	terminal.port = (uint16_t)atoi(argv[8]);
	if (ops->open && ops->open(&cfg, err, sizeof(err))) {
		fprintf(stderr, "steer_floor: %s\n", err);
		return 1;
	}
	res = arena_create(&a, ops->slots ? ops->slots(&cfg) : BURST, 2);
	if (res)
		return complain("arena", res);
	if (ops->create(&s, &cfg, 0, err, sizeof(err)) ||
		(ops->memory && ops->memory(s, &a, err, sizeof(err))) ||
		ops->setup(&cfg, err, sizeof(err))) {
		fprintf(stderr, "steer_floor: %s\n", err);
		return 1;
	}
	res = take_ports(ops, s, &cfg, 2 * (uint32_t)atoi(argv[5]));
	if (!res) {
		printf("ready\n");
		fflush(stdout);
		loop(ops, s, &a, &terminal, (uint64_t)atoi(argv[6]) * 1000);
	}
	ops->destroy(s);
	ops->teardown(&cfg);
	if (ops->close)
		ops->close(&cfg);
	arena_destroy(&a);
	free(port);
	return res ? complain("ports", res) : 0;
}
