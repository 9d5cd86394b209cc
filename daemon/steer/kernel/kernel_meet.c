/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks whether the kernel module is loaded, and whether it has the features that we need: at the
 * start, and when it was loaded again. Writes the fields of steer_config for kernel steering. Knows
 * no worker and no packet; each worker restores its targets itself (steer/kernel/kernel.c). */
#include "steer/kernel/kernel_meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define RELAY_FEATURES (NFX_FEATURE_RELAY | NFX_FEATURE_SSRC | NFX_FEATURE_RELAYED)
#define FEATURES                                                                                 \
	(RELAY_FEATURES | NFX_FEATURE_QUEUE | NFX_FEATURE_VERDICT | NFX_FEATURE_SEQ |            \
		NFX_FEATURE_RATE | NFX_FEATURE_EVENTS | NFX_FEATURE_MULTI | NFX_FEATURE_UNREAD | \
		NFX_FEATURE_RING | NFX_FEATURE_GUARD | NFX_FEATURE_RING_WAIT)

uint32_t kernel_owner(const struct steer_config *cfg, uint32_t worker)
{
	return cfg->queue_num + worker;
}

int kernel_hello(
	struct knl *k, const struct steer_config *cfg, uint32_t worker, struct knl_peer *peer)
{
	return knl_hello(k, kernel_owner(cfg, worker), KERNEL_GRACE_MS, FEATURES, peer);
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
			"kernel steering: nf_xcipher and this daemon (interface %u) are not compatible: %s",
			NFX_VERSION, said[0] ? said : "install the same release of both");
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

int kernel_meet(struct knl **out, const struct steer_config *cfg, uint32_t worker,
	struct knl_peer *peer, char *err, size_t err_len)
{
	struct knl *k = NULL;
	int res = knl_open(&k);

	memset(peer, 0, sizeof(*peer));
	res = res ? res : kernel_hello(k, cfg, worker, peer);
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

int kernel_open(struct steer_config *cfg, char *err, size_t err_len)
{
	struct knl_peer peer;
	struct knl *k;
	int res = kernel_meet(&k, cfg, 0, &peer, err, err_len);
	bool sends;

	if (res)
		return res;
	knl_close(k);
	cfg->knl_features = peer.features;
	(void)knl_open(&cfg->knl);
	cfg->relays =
		cfg->knl && (peer.features & RELAY_FEATURES) == RELAY_FEATURES && !cfg->queue_only;
	if (peer.features & NFX_FEATURE_EVENTS && !knl_open(&cfg->events) &&
		knl_listen(cfg->events)) {
		knl_close(cfg->events);
		cfg->events = NULL;
	}
	cfg->relays_copies = peer.features & NFX_FEATURE_MULTI && peer.max_dests >= KNL_DESTS;
	cfg->relays_srtp = peer.features & NFX_FEATURE_SEQ;
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
	if (cfg->ring && !(peer.features & NFX_FEATURE_RING)) {
		log_warn(
			"kernel steering: nf_xcipher %s has no packet ring, so packets use the netlink queues, at higher cost: install the module of this release, then modprobe -r nf_xcipher; modprobe nf_xcipher; systemctl restart xcipherd",
			peer.release);
		cfg->ring = false;
	}
	log_info(
		"kernel steering: nf_xcipher %s, interface %u, features %#x of %#x, results are sent by %s, plain media %s",
		peer.release, peer.version, peer.features, FEATURES,
		sends ? "verdict" : "raw socket",
		cfg->relays ? cfg->relays_srtp
				? "and passed-through media are relayed in the kernel"
				: "are relayed in the kernel"
			    : "are relayed by xcipherd");
	if (!(peer.features & NFX_FEATURE_UNREAD))
		log_warn(
			"kernel steering: nf_xcipher %s drops short T.38 datagrams, so faxes may fail: install the module of this release, then modprobe -r nf_xcipher; modprobe nf_xcipher",
			peer.release);
	return 0;
}

void kernel_close(struct steer_config *cfg)
{
	knl_close(cfg->knl);
	knl_close(cfg->events);
	cfg->knl = cfg->events = NULL;
}

/* --- Unloaded, and loaded again --------------------------------------------------------------- */

int kernel_alive(const struct steer_config *cfg)
{
	return cfg->knl ? knl_alive(cfg->knl) : 0;
}

int kernel_over_source_rate(const struct steer_config *cfg, uint64_t *packets)
{
	uint64_t stats[NFX_S_COUNT];
	int res = cfg->knl && cfg->source_rate ? knl_totals(cfg->knl, stats) : -ENOENT;

	if (!res)
		*packets = stats[NFX_S_SOURCE_DROPS];
	return res;
}

/* A module with fewer features would invalidate decisions made at start. Without a ring, packets
 * use the queue. */
int kernel_back(const struct steer_config *cfg, char *err, size_t err_len)
{
	struct knl_peer peer;
	struct knl *k;
	int res = knl_again(cfg->knl);

	if (res)
		return res;
	res = kernel_meet(&k, cfg, 0, &peer, err, err_len);
	if (res)
		return res;
	knl_close(k);
	if (((peer.features | NFX_FEATURE_RING | NFX_FEATURE_GUARD | NFX_FEATURE_RING_WAIT) &
		    cfg->knl_features) != cfg->knl_features ||
		(cfg->relays_copies && peer.max_dests < KNL_DESTS)) {
		snprintf(err, err_len,
			"kernel steering: nf_xcipher %s has fewer features (%#x) than the one before (%#x): restart xcipherd to use it",
			peer.release, peer.features, cfg->knl_features);
		return -EPROTO;
	}
	res = cfg->events ? knl_again(cfg->events) : 0;
	res = res || !cfg->events ? res : knl_listen(cfg->events);
	if (res)
		complain(err, err_len, res, "");
	return res;
}
