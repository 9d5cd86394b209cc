/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of "xdp" shared by all workers: the interfaces, the XDP program on each, its maps, and the
 * rings between workers. Control thread, except for hub_port(). While the thread of xdp_back.c
 * runs, it owns the interfaces, except for their name, xsks and life. */
#ifndef STEER_XDP_XDP_HUB_H
#define STEER_XDP_XDP_HUB_H

#include <net/if.h>
#include <stdatomic.h>

#include "steer/steer.h"
#include "steer/xdp/xdp_hand.h"

struct bpf_object;
struct back;
struct xdp_guards;

#define HUB_DEVS_MAX 16u

struct hub_dev {
	char name[IF_NAMESIZE];
	int ifindex;
	/* incremented each time the interface disappears: older sockets are dead */
	_Atomic uint32_t life;
	uint32_t queues;     /* receive queues; each has a socket of one worker */
	uint32_t queues_max; /* queues at start, which memory was allocated for */
	uint32_t tx_queues;  /* number of queues, from the first, that can send */
	struct bpf_object *obj;
	int xsks; /* map: queue -> socket */
	int link; /* of the attached program; -1: not attached */
	bool skb; /* generic mode, not in the driver */
};

struct steer_hub {
	struct hub_dev dev[HUB_DEVS_MAX];
	uint32_t devs;
	uint32_t workers;
	enum steer_xdp_mode mode;
	int ports, locals, addresses; /* maps that all programs share */
	struct xdp_guards *guards;
	/* An address may be configured more than once (with different advertised addresses). The
	 * program knows only the first, because two sockets cannot share a port of it. */
	uint8_t first[STEER_MAX_LOCAL];
	bool doubled;
	struct hand *hand;
	struct back *back;
};

/* The worker that owns a queue. */
static inline uint32_t hub_owner(const struct steer_hub *h, uint32_t queue)
{
	return queue % h->workers;
}

/* Finds the interfaces and loads the programs without attaching them. Reduces cfg->workers if that
 * is allowed and useful. 0 or -errno with a line in err. */
int hub_open(struct steer_hub **out, struct steer_config *cfg, char *err, size_t err_len);
/* NULL is fine. */
void hub_close(struct steer_hub *h);
/* Attaches the programs: packets go to the sockets in the maps from now on. */
int hub_attach(struct steer_hub *h, char *err, size_t err_len);
void hub_detach(struct steer_hub *h);
/* hub_dev_gone(): the interface disappeared. hub_dev_back(): looks for it, and attaches its program
 * again, to as many queues as before; -ENODEV: no interface of this name is up. hub_dev_attached():
 * whether it still has the program. */
void hub_dev_gone(struct hub_dev *d);
int hub_dev_back(struct steer_hub *h, struct hub_dev *d, char *err, size_t err_len);
bool hub_dev_attached(const struct hub_dev *d);
/* Any worker, for its own ports only: marks this port as used or unused. 0 or -errno. */
int hub_port(struct steer_hub *h, struct local_port local, bool in_use);

#endif
