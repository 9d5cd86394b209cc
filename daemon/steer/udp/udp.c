/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by ordinary UDP sockets: works everywhere, needs no privileges. Uses io_uring if the
 * kernel allows it (uring.c), else plain calls (sockets.c). */
#include "steer/steer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lines.h"
#include "base/log.h"
#include "packet/arena.h"
#include "steer/sockets.h"
#include "steer/udp/uring.h"

struct steer {
	struct steer_counters counters;
	struct sockets *sockets; /* exactly one of the two is set */
	struct uring *uring;
};

/* All workers use the same kind. */
static int open_udp(struct steer_config *cfg, char *err, size_t err_len)
{
	int res = cfg->udp_io == STEER_UDP_PLAIN ? 0 : uring_probe();

	if (res && cfg->udp_io == STEER_UDP_URING) {
		snprintf(err, err_len,
			"udp steering: the kernel refuses io_uring (%s; kernel 6.1 or later, sysctl kernel.io_uring_disabled, seccomp): use --udp-io=auto",
			strerror(-res));
		return res;
	}
	if (res)
		log_info(
			"udp steering: the kernel refuses io_uring: %s. Falling back to plain socket calls",
			strerror(-res));
	if (cfg->udp_io == STEER_UDP_AUTO)
		cfg->udp_io = res ? STEER_UDP_PLAIN : STEER_UDP_URING;
	return 0;
}

static uint32_t slots(const struct steer_config *cfg)
{
	return cfg->udp_io == STEER_UDP_URING ? uring_slots(cfg) : steer_first_slots(cfg);
}

static int memory(struct steer *s, const struct arena *a, char *err, size_t err_len)
{
	int res = s->uring ? uring_memory(s->uring, a) : 0;

	if (res)
		snprintf(err, err_len, "udp steering, io_uring: %s", strerror(-res));
	return res;
}

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
	uring_destroy(s->uring);
	free(s);
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = lines_alloc(1, sizeof(*s));
	int res = -ENOMEM;

	if (s && cfg->udp_io == STEER_UDP_URING)
		res = uring_create(&s->uring, cfg, worker, &s->counters);
	else if (s)
		res = sockets_create(&s->sockets, cfg, worker, &s->counters);
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
	return s->uring ? uring_fd(s->uring) : sockets_epoll(s->sockets);
}

static int port_add(struct steer *s, struct local_port local, int sock)
{
	return s->uring ? uring_add(s->uring, local, sock) : sockets_add(s->sockets, local, sock);
}

static void port_del(struct steer *s, struct local_port local)
{
	if (s->uring)
		uring_del(s->uring, local);
	else
		sockets_del(s->sockets, local);
}

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	if (s->uring)
		return uring_recv(s->uring, a, in, max);
	return sockets_recv(s->sockets, a, first_slot, in, max);
}

static void transmit(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	if (s->uring)
		uring_send(s->uring, a, out, n);
	else
		sockets_send(s->sockets, a, out, NULL, n);
}

/* Datagrams are consumed when read: nothing to report. */
static void verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	if (s->uring)
		uring_done(s->uring, in, n);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return &s->counters;
}

const struct steer_ops steer_udp = {
	.name = "udp",
	.open = open_udp,
	.slots = slots,
	.memory = memory,
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
