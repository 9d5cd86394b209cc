/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all workers of "xdp" share: the interfaces, the XDP program on each of them, its maps, the hand-over. Control thread,
 * but for hub_port(); while xdp_back.c's thread runs, the interfaces are its own but for their name, xsks and life. */
#ifndef STEER_XDP_HUB_H
#define STEER_XDP_HUB_H

#include <net/if.h>
#include <stdatomic.h>

#include "steer/steer.h"
#include "steer/xdp_hand.h"

struct bpf_object;
struct back;

#define HUB_DEVS_MAX 16u

struct hub_dev {
	char name[IF_NAMESIZE];
	int ifindex;
	_Atomic uint32_t life; /* more each time that it is gone: sockets from before are dead */
	uint32_t queues;       /* receive queues: each has a socket of one worker */
	uint32_t queues_max;   /* at first: for so many there is memory */
	uint32_t tx_queues;    /* the first that many can send */
	struct bpf_object *obj;
	int xsks; /* map: queue -> socket */
	int link; /* the program's being attached; -1: not */
	bool skb; /* behind the driver, not in it */
};

struct steer_hub {
	struct hub_dev dev[HUB_DEVS_MAX];
	uint32_t devs;
	uint32_t workers;
	enum steer_xdp_mode mode;
	int ports, locals; /* maps that all programs share */
	/* An address may be configured more than once (advertised differently): the program knows the first only, since no two
	 * sockets can have one port of it anyway. */
	uint8_t first[STEER_MAX_LOCAL];
	bool doubled;
	struct hand *hand;
	struct back *back;
};

/* Which worker a queue belongs to. */
static inline uint32_t hub_owner(const struct steer_hub *h, uint32_t queue)
{
	return queue % h->workers;
}

/* Finds the interfaces and loads the programs; nothing is attached yet. Lowers cfg->workers where it may and should. 0 or -errno with a line in err. */
int hub_open(struct steer_hub **out, struct steer_config *cfg, char *err, size_t err_len);
/* NULL is fine. */
void hub_close(struct steer_hub *h);
/* From here on packets go to the sockets that are in the maps. */
int hub_attach(struct steer_hub *h, char *err, size_t err_len);
void hub_detach(struct steer_hub *h);
/* It is not there any more; it may be again: then its program is attached, once, to as many queues as there were. -ENODEV: there is none
 * of this name that is up. Whether it still has the program. */
void hub_dev_gone(struct hub_dev *d);
int hub_dev_back(struct steer_hub *h, struct hub_dev *d, char *err, size_t err_len);
bool hub_dev_attached(const struct hub_dev *d);
/* Any worker, for its own ports only: this port is in use from now on, or no longer. 0 or -errno. */
int hub_port(struct steer_hub *h, struct local_port local, bool in_use);

#endif
