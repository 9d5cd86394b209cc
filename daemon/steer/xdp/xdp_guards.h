/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guards of streams under attack in the maps of the XDP program and of xcipher_tc, the limit per
 * source address, and counters of dropped packets. Each worker has its share of the places, so none
 * waits for another. */
#ifndef STEER_XDP_XDP_GUARDS_H
#define STEER_XDP_XDP_GUARDS_H

#include "packet/guard.h"
#include "packet/packet.h"
#include "steer/counters.h"

struct bpf_object;
struct xdp_guards;

/* Takes the maps of the first program, after it was loaded. 0 or -errno. */
int xdp_guards_create(struct xdp_guards **out, const struct bpf_object *obj, uint32_t workers);
/* Wipes the secrets of guards. NULL is fine. */
void xdp_guards_destroy(struct xdp_guards *g);
/* Makes a further program use the same maps, before it is loaded. 0 or -errno. */
int xdp_guards_share(const struct xdp_guards *g, const struct bpf_object *obj);
/* Control thread: packets per second of one source address; 0: no limit. 0 or -errno. */
int xdp_guards_limit(const struct xdp_guards *g, uint32_t source_rate);
/* Worker thread: sets, changes or ends (NULL) the guard of a port of this worker. local.addr: the
 * number of its address in map "locals". A guard that finds no place is left out and counted: the
 * daemon itself checks the packets then. Returns by how much the number of guarded ports changed:
 * 1, 0 or -1. */
int xdp_guards_put(
	struct xdp_guards *g, uint32_t worker, struct local_port local, const struct guard *guard);
/* Any one thread: sets the counters of packets that guards dropped so far. Returns how many packets
 * the limit per source dropped. */
uint64_t xdp_guards_count(const struct xdp_guards *g, struct steer_counters *c);

#endif
