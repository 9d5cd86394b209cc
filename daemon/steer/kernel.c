/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by our kernel module: nf_xcipher hands the packets of our ports to the workers' queues itself, without rules, ahead of
 * connection tracking and of every other hook's work, and sends what comes back in a verdict, for both families and without
 * the host's being set up to forward. Everything behind the queue is nfqueue's (steer/nfqueue.c), which this calls.
 *
 * Each worker has a netlink socket, by which it owns the targets of its ports. When the daemon dies they stay for a while,
 * and the next one takes them over by the same owner's number, which is the worker's queue's. */
#include "steer/steer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "steer/kernel_nl.h"

/* Targets of a daemon that is gone stay so long, and the new one has so long to set up its calls again. */
#define GRACE_MS   10000u
#define FEATURES   (NFX_FEATURE_QUEUE | NFX_FEATURE_VERDICT | NFX_FEATURE_RELAY | NFX_FEATURE_SSRC)
#define PURGE_STEP 32u

struct steer {
	struct steer *queue; /* nfqueue's, which alone looks into it */
	struct knl *knl;
	struct steer_config cfg;
	uint32_t worker;
	uint32_t instance; /* of the daemon: the upper half of our targets' cookies */
	/* Targets of an earlier instance that nobody asked for again. */
	uint64_t purge_ns; /* monotonic; 0: nothing to do */
	struct endpoint *stale;
	uint32_t stales, stale_cap;
};

/* --- What the module is --------------------------------------------------------------------------------------- */

static uint32_t owner_of(const struct steer_config *cfg, uint32_t worker)
{
	return cfg->queue_num + worker;
}

static void complain(char *err, size_t err_len, int res, const char *said)
{
	switch (res) {
	case -ENOENT:
		snprintf(err, err_len,
			"kernel steering: the module nf_xcipher is not loaded (modprobe nf_xcipher)");
		break;
	case -EPROTONOSUPPORT:
		snprintf(err, err_len,
			"kernel steering: nf_xcipher and this daemon (interface %u) do not understand each other: %s",
			NFX_VERSION, said[0] ? said : "bring both to one release");
		break;
	case -EPERM:
		snprintf(err, err_len,
			"kernel steering needs CAP_NET_ADMIN and CAP_NET_RAW (root): run as root, or use --steering=udp");
		break;
	case -EBUSY:
		snprintf(err, err_len,
			"kernel steering: another program owns these targets, choose another --nfqueue-num");
		break;
	default:
		snprintf(err, err_len, "kernel steering: nf_xcipher: %s%s%s", strerror(-res),
			said[0] ? ": " : "", said);
	}
}

/* A socket that owns the worker's targets. */
static int meet(struct knl **out, const struct steer_config *cfg, uint32_t worker,
	struct knl_peer *peer, char *err, size_t err_len)
{
	struct knl *k = NULL;
	int res = knl_open(&k);

	memset(peer, 0, sizeof(*peer));
	res = res ? res : knl_hello(k, owner_of(cfg, worker), GRACE_MS, FEATURES, peer);
	if (res) {
		complain(err, err_len, res, k ? knl_said(k) : "");
		knl_close(k);
		return res;
	}
	if (!(peer->features & NFX_FEATURE_QUEUE)) {
		snprintf(err, err_len, "kernel steering: nf_xcipher %s cannot queue (features %#x)",
			peer->release, peer->features);
		knl_close(k);
		return -EPROTO;
	}
	*out = k;
	return 0;
}

static int open_kernel(struct steer_config *cfg, char *err, size_t err_len)
{
	struct knl_peer peer;
	struct knl *k;
	int res = meet(&k, cfg, 0, &peer, err, err_len);
	bool sends;

	if (res)
		return res;
	knl_close(k);
	sends = peer.features & NFX_FEATURE_VERDICT && peer.mark;
	if (cfg->queue_send == STEER_QUEUE_VERDICT && !sends) {
		snprintf(err, err_len,
			"kernel steering: nf_xcipher %s cannot send by verdict, use --nfqueue-send=raw",
			peer.release);
		return -EINVAL;
	}
	sends = sends && cfg->queue_send != STEER_QUEUE_RAW;
	cfg->queue_send = sends ? STEER_QUEUE_VERDICT : STEER_QUEUE_RAW;
	cfg->queue_mark = sends ? peer.mark : 0;
	log_info(
		"kernel steering: nf_xcipher %s, interface %u, features %#x of our %#x, results leave by %s",
		peer.release, peer.version, peer.features, FEATURES,
		sends ? "verdict" : "raw socket");
	return 0;
}

/* There are no rules: targets come and go with ports. What a killed instance left is taken over. */
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

/* --- A worker's ----------------------------------------------------------------------------------------------- */

static void destroy(struct steer *s)
{
	if (!s)
		return;
	knl_close(s->knl);
	steer_nfqueue.destroy(s->queue);
	free(s->stale);
	free(s);
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = calloc(1, sizeof(*s));
	struct knl_peer peer;
	int res;

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->worker = worker;
	s->instance = (uint32_t)(clock_real_ns() >> 10) | 1;
	/* The queue first: packets must have a reader when targets send them there. */
	res = steer_nfqueue.create(&s->queue, cfg, worker, err, err_len);
	res = res ? res : meet(&s->knl, cfg, worker, &peer, err, err_len);
	if (res) {
		destroy(s);
		return res;
	}
	if (peer.adopted) {
		log_info("kernel steering, worker %u: %u targets of an earlier instance taken over",
			worker, peer.adopted);
		s->purge_ns = clock_mono_ns() + GRACE_MS * 1000000ull;
	}
	*out = s;
	return 0;
}

static int fd(const struct steer *s)
{
	return steer_nfqueue.fd(s->queue);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return steer_nfqueue.counters(s->queue);
}

static struct endpoint endpoint_of(const struct steer *s, struct local_port local)
{
	struct endpoint e = s->cfg.local[local.addr];

	e.port = local.port;
	return e;
}

/* Should the module refuse, the packets come by the ordinary socket. */
static int queue_target(struct steer *s, struct local_port local)
{
	struct knl_target t = {
		.local = endpoint_of(s, local),
		.action = NFX_ACTION_QUEUE,
		.rtcp_action = NFX_ACTION_QUEUE,
		.queue = (uint16_t)(s->cfg.queue_num + s->worker),
		.flags = NFX_FLAG_BYPASS,
		.cookie = (uint64_t)s->instance << 32,
	};

	return knl_target_set(s->knl, &t);
}

static int port_add(struct steer *s, struct local_port local, int sock)
{
	int res = steer_nfqueue.port_add(s->queue, local, sock);

	if (!res)
		(void)queue_target(s, local);
	return res;
}

static void port_del(struct steer *s, struct local_port local)
{
	struct endpoint e = endpoint_of(s, local);

	(void)knl_target_del(s->knl, &e);
	steer_nfqueue.port_del(s->queue, local);
}

/* --- What an earlier instance left ---------------------------------------------------------------------------- */

static void note_stale(void *arg, const struct knl_seen *seen)
{
	struct steer *s = arg;

	if (seen->cookie >> 32 != s->instance && s->stales < s->stale_cap)
		s->stale[s->stales++] = seen->local;
}

/* Once in a worker's life; a few at a time, so that no packet waits for long. */
static void purge(struct steer *s)
{
	if (!s->stale) {
		s->stale_cap = (uint32_t)(s->cfg.port_max - s->cfg.port_min + 1) * s->cfg.locals;
		s->stale = calloc(s->stale_cap, sizeof(*s->stale));
		if (s->stale)
			(void)knl_dump(s->knl, owner_of(&s->cfg, s->worker), -1, note_stale, s);
	}
	for (uint32_t i = 0; i < PURGE_STEP && s->stales; i++)
		(void)knl_target_del(s->knl, &s->stale[--s->stales]);
	if (s->stales)
		return;
	free(s->stale);
	s->stale = NULL;
	s->purge_ns = 0;
}

/* --- Packets -------------------------------------------------------------------------------------------------- */

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct media_in *in, uint32_t max)
{
	if (s->purge_ns && clock_mono_ns() >= s->purge_ns)
		purge(s);
	return steer_nfqueue.recv(s->queue, a, first_slot, in, max);
}

static void transmit(struct steer *s, const struct arena *a, struct media_out *out, uint32_t n)
{
	steer_nfqueue.send(s->queue, a, out, n);
}

static void verdict(struct steer *s, const struct media_in *in, uint32_t n)
{
	steer_nfqueue.verdict(s->queue, in, n);
}

const struct steer_ops steer_kernel = {
	.name = "kernel",
	.instead = &steer_nfqueue,
	.open = open_kernel,
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
