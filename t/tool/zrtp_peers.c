/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Terminals of ZRTP for measurements: zrtp_peers ADDRESS PORT COUNT SECONDS. Each has a UDP port,
 * PORT + 2 * i, answers the first Hello that it receives, and completes the exchange. Prints how
 * many are open, when all are or time is over. It waits with epoll: a poll() of a thousand sockets
 * takes 150 us, and a kernel without preemption runs nothing else on that processor meanwhile. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "keying/zrtp.h"

#define TICK_MS 10
#define COUNT   4096u
#define EVENTS  16 /* of one wait */

struct terminal {
	struct zrtp *z;
	int fd;
	struct sockaddr_in to;
	bool begun;
};

static struct terminal terminals[COUNT];

static bool open_one(int epoll, uint32_t i, const char *address, uint32_t port)
{
	struct terminal *t = &terminals[i];
	struct epoll_event readable = {.events = EPOLLIN, .data.u32 = i};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct zrtp_config c = {.ssrc = i + 1, .not_mitm = true};

	t->fd = socket(AF_INET, SOCK_DGRAM, 0);
	return t->fd >= 0 && inet_pton(AF_INET, address, &at.sin_addr) == 1 &&
		bind(t->fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
		epoll_ctl(epoll, EPOLL_CTL_ADD, t->fd, &readable) == 0 &&
		secmem_random(c.seed, sizeof(c.seed)) == 0 && zrtp_create(&t->z, &c) == 0;
}

static void send_all(uint32_t i)
{
	const struct terminal *t = &terminals[i];
	uint8_t p[ZRTP_PACKET_MAX];
	int n;

	while ((n = zrtp_next(t->z, p, sizeof(p))) > 0)
		(void)sendto(
			t->fd, p, (size_t)n, 0, (const struct sockaddr *)&t->to, sizeof(t->to));
}

static void receive(uint32_t i, uint64_t now_ns)
{
	struct terminal *t = &terminals[i];
	socklen_t len = sizeof(t->to);
	uint8_t p[2048];
	ssize_t n = recvfrom(t->fd, p, sizeof(p), 0, (struct sockaddr *)&t->to, &len);

	if (n <= 0)
		return;
	if (!t->begun)
		zrtp_start(t->z, now_ns);
	t->begun = true;
	(void)zrtp_take(t->z, p, (size_t)n, now_ns);
	send_all(i);
}

static uint32_t tick(uint32_t count, uint64_t now_ns)
{
	uint32_t open = 0;

	for (uint32_t i = 0; i < count; i++) {
		open += zrtp_state(terminals[i].z) == ZRTP_OPEN;
		if (zrtp_deadline(terminals[i].z) <= now_ns) {
			zrtp_tick(terminals[i].z, now_ns);
			send_all(i);
		}
	}
	return open;
}

static uint32_t run(int epoll, uint32_t count, uint64_t until_ns)
{
	struct epoll_event ready[EVENTS];
	uint64_t now_ns = clock_mono_ns(), next_ns = now_ns;
	uint32_t open = 0;

	while (open < count && now_ns < until_ns) {
		int n = epoll_wait(epoll, ready, EVENTS, TICK_MS);

		now_ns = clock_mono_ns();
		for (int i = 0; i < n; i++)
			receive(ready[i].data.u32, now_ns);
		if (now_ns < next_ns)
			continue;
		open = tick(count, now_ns);
		next_ns = now_ns + TICK_MS * 1000000ull;
	}
	return open;
}

int main(int argc, char **argv)
{
	uint32_t count = argc == 5 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	int epoll = epoll_create1(0);

	if (!count || count > COUNT || epoll < 0) {
		fprintf(stderr, "usage: zrtp_peers ADDRESS PORT COUNT SECONDS\n");
		return 2;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!open_one(epoll, i, argv[1], (uint32_t)strtoul(argv[2], NULL, 10) + 2 * i)) {
			perror("zrtp_peers");
			return 1;
		}
	puts("ready");
	fflush(stdout);
	printf("%u open\n",
		run(epoll, count, clock_mono_ns() + strtoul(argv[4], NULL, 10) * 1000000000));
	for (uint32_t i = 0; i < count; i++) {
		zrtp_destroy(terminals[i].z);
		close(terminals[i].fd);
	}
	close(epoll);
	return 0;
}
