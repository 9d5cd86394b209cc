/* SPDX-License-Identifier: GPL-2.0-or-later */
/* This host's own addresses and broadcast addresses, kept current by rtnetlink. The control thread
 * creates, updates and destroys it. Any thread may query it, without a lock and without waiting. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "base/endpoint.h"
#include "base/loop.h"
#include "host/addresses.h"

struct host;

/* Reads all addresses, then follows their changes on the loop. 0 or -errno. */
int host_create(struct host **out, struct loop *loop);
/* fn is called on the loop after the table was replaced. Not more often than once in 20 ms. */
void host_on_change(struct host *h, void (*fn)(void *arg), void *arg);
/* For tests: owns exactly these networks, and follows nothing. 0 or -ENOMEM. */
int host_create_fixed(struct host **out, const struct host_net *net, uint32_t n);
/* Stops following changes; queries still work. Call it before the loop is destroyed. NULL is
 * fine. */
void host_stop(struct host *h);
/* After host_stop(), and after the last query of any thread. NULL is fine. */
void host_destroy(struct host *h);

/* Any thread. Whether a packet to this address is delivered to this host: an address of any
 * interface, secondary ones and IPv4-mapped forms too, all of 127.0.0.0/8, and networks of "ip
 * route add local". The port is ignored. */
bool host_owns(const struct host *h, const struct endpoint *e);
/* Any thread. 255.255.255.255, or the directed broadcast address of a connected network;
 * IPv4-mapped forms too. */
bool host_broadcasts(const struct host *h, const struct endpoint *e);
/* Any thread. The interface that has this address; 0: none. */
int host_dev(const struct host *h, const struct endpoint *e);
/* Any thread. An address of this host of this family that is not loopback. False: it has none. */
bool host_any_address(const struct host *h, uint8_t family, struct endpoint *out);
/* Any thread. A number that changes with the addresses, routes, rules, links and rp_filter settings
 * of this host. */
uint32_t host_generation(const struct host *h);

#endif
