/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pings all nodes, also those that are down, so that they are used again. Never in a SIP worker,
 * except when an operator asks (xcipher.ping runs in the RPC process). */
#include "health.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <core/cfg/cfg_struct.h>
#include <core/dprint.h>
#include <core/pt.h>
#include <core/sr_module.h>

#include "call.h"
#include "settings.h"

struct ping {
	struct node node;
	int fd;
	bool answered;
	char cookie[COOKIE_LEN];
	char datagram[256];
	int len;
};

static void ping_send(struct ping *p)
{
	static const struct wire_request request = {.command = "ping"};
	int n = p->len;

	/* Retransmissions repeat the same datagram. */
	if (!n)
		n = wire_write(p->datagram, sizeof(p->datagram), sign_now(),
			(struct text){p->cookie, strlen(p->cookie)}, &request);
	p->len = n;
	if (n > 0 && send(p->fd, p->datagram, (size_t)n, 0) != n)
		LM_DBG("ping to %s not sent: %s\n", p->node.id, strerror(errno));
}

static void ping_start(struct ping *p)
{
	p->fd = socket(p->node.addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sync_cookie(p->cookie);
	if (p->fd >= 0 &&
		connect(p->fd, (const struct sockaddr *)&p->node.addr, p->node.addr_len) == 0)
		ping_send(p);
}

static void ping_read(struct ping *p)
{
	struct wire_reply r;
	char buf[2048];
	ssize_t n = recv(p->fd, buf, sizeof(buf), 0);

	if (n <= 0) { /* refused: it will not answer any more */
		close(p->fd);
		p->fd = -1;
		return;
	}
	if (!text_is(wire_cookie(settings.keys, buf, (size_t)n), p->cookie) ||
		!reply_genuine(p->node.id, p->datagram, (size_t)p->len, buf, (size_t)n))
		return;
	wire_read(&r, buf, (size_t)n, false, (struct text){NULL, 0}, (struct text){NULL, 0});
	p->answered |= r.result == WIRE_PONG;
	wire_fini(&r);
}

int health_round(int *asked)
{
	struct node *list = calloc(NODES_MAX, sizeof(*list));
	struct ping *p = calloc(NODES_MAX, sizeof(*p));
	struct pollfd poll_of[NODES_MAX];
	int n = list && p ? nodes_copy(list, NODES_MAX) : 0, answered = 0, left = n;
	uint64_t again = now_ms() + (uint64_t)settings.timeout_ms,
		 end = again + settings.timeout_ms;

	for (int i = 0; i < n; i++) {
		p[i].node = list[i];
		ping_start(&p[i]);
	}
	while (left && now_ms() < end) {
		for (int i = 0; i < NODES_MAX; i++)
			poll_of[i] = (struct pollfd){
				.fd = i >= n || p[i].answered ? -1 : p[i].fd, .events = POLLIN};
		if (poll(poll_of, NODES_MAX, 20) < 0 && errno != EINTR)
			break;
		left = 0;
		/* One datagram may have been lost. */
		if (again && now_ms() >= again) {
			again = 0;
			for (int i = 0; i < n; i++)
				if (!p[i].answered && p[i].fd >= 0)
					ping_send(&p[i]);
		}
		for (int i = 0; i < n; i++) {
			if (poll_of[i].revents)
				ping_read(&p[i]);
			left += !p[i].answered && p[i].fd >= 0;
		}
	}
	for (int i = 0; i < n; i++) {
		nodes_note(p[i].node.id, p[i].answered ? NODE_ANSWERED : NODE_TIMEOUT);
		answered += p[i].answered;
		if (p[i].fd >= 0)
			close(p[i].fd);
	}
	free(p);
	free(list);
	if (asked)
		*asked = n;
	return answered;
}

int health_init(void)
{
	if (settings.ping_interval <= 0)
		return 0;
	register_procs(1);
	cfg_register_child(1);
	return 0;
}

int health_fork(void)
{
	int pid;

	if (settings.ping_interval <= 0)
		return 0;
	pid = fork_process(PROC_NOCHLDINIT, "xcipher health", 1);
	if (pid < 0)
		return -1;
	if (pid > 0)
		return 0;
	if (cfg_child_init())
		exit(1);
	for (;;) {
		health_round(NULL);
		sleep((unsigned)settings.ping_interval);
		cfg_update();
	}
}
