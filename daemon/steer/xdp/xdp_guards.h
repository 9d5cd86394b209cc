/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guards of streams under attack in the maps of the XDP program, its limit per source address, and
 * its counters of dropped packets. Each worker has its share of the places, so none waits for
 * another. */
#ifndef STEER_XDP_XDP_GUARDS_H
#define STEER_XDP_XDP_GUARDS_H

#include "packet/guard.h"
#include "packet/packet.h"

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
 * number of its address in map "locals". A guard that finds no place is left out: the daemon itself
 * checks the packets then. */
void xdp_guards_put(
	struct xdp_guards *g, uint32_t worker, struct local_port local, const struct guard *guard);
/* Any one thread: packets dropped so far, by enum guard_result; n[0]: over the limit per source. */
void xdp_guards_dropped(const struct xdp_guards *g, uint64_t n[GUARD_RESULTS]);

#endif
