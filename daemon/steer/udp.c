/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by ordinary UDP sockets: works everywhere and needs no privileges. Everything is in sockets.c. */
#include "steer/steer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "steer/sockets.h"

struct steer {
	struct steer_counters counters;
	struct sockets *sockets;
};

static int setup(const struct steer_config *cfg, char *err, size_t err_len)
{
	(void)cfg;
	(void)err;
	(void)err_len;
	return 0;
}

static void teardown(const struct steer_config *cfg)
{
	(void)cfg;
}

static void destroy(struct steer *s)
{
	if (!s)
		return;
	sockets_destroy(s->sockets);
	free(s);
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = calloc(1, sizeof(*s));
	int res = s ? sockets_create(&s->sockets, cfg, worker, &s->counters) : -ENOMEM;

	if (res) {
		snprintf(err, err_len, "udp steering, worker %u: %s", worker, strerror(-res));
		destroy(s);
		return res;
	}
	*out = s;
	return 0;
}

static int fd(const struct steer *s)
{
	return sockets_epoll(s->sockets);
}

static int port_add(struct steer *s, struct local_port local, int sock)
{
	return sockets_add(s->sockets, local, sock);
}

static void port_del(struct steer *s, struct local_port local)
{
	sockets_del(s->sockets, local);
}

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct media_in *in, uint32_t max)
{
	return sockets_recv(s->sockets, a, first_slot, in, max);
}

static void transmit(struct steer *s, const struct arena *a, struct media_out *out, uint32_t n)
{
	sockets_send(s->sockets, a, out, NULL, n);
}

/* A datagram that was read is consumed: there is nobody to tell. */
static void verdict(struct steer *s, const struct media_in *in, uint32_t n)
{
	(void)s;
	(void)in;
	(void)n;
}

static const struct steer_counters *counters(const struct steer *s)
{
	return &s->counters;
}

const struct steer_ops steer_udp = {
	.name = "udp",
	.setup = setup,
	.teardown = teardown,
	.create = create,
	.destroy = destroy,
	.fd = fd,
	.port_add = port_add,
	.port_del = port_del,
	.recv = receive,
	.send = transmit,
	.verdict = verdict,
	.counters = counters,
};
