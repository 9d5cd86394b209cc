/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The networks whose packets this host takes as its own, sorted for look-up. Pure: filled once, then read only. */
#ifndef HOST_TABLE_H
#define HOST_TABLE_H

#include "base/endpoint.h"

enum host_kind {
	HOST_LOCAL,    /* delivered to this host; also by "ip route add local" */
	HOST_BROADCAST /* directed broadcast of a connected network */
};

struct host_net {
	struct endpoint addr; /* port 0; an IPv4-mapped address counts as IPv4 */
	uint8_t bits;         /* prefix length */
	uint8_t kind;         /* enum host_kind */
	int dev; /* interface that carries the address; 0: none does, as far as known */
};

struct host_table {
	uint32_t singles; /* of them whole addresses, which come first */
	uint32_t n;
	struct host_net net[];
};

/* Copies the networks; duplicates are kept once. NULL: no memory. For free(). */
struct host_table *host_table_make(const struct host_net *net, uint32_t n);
/* Whether any network of this kind holds the address. The port is ignored. */
bool host_table_has(const struct host_table *t, const struct endpoint *e, enum host_kind kind);
/* The interface that carries this address of ours; 0: none does. */
int host_table_dev(const struct host_table *t, const struct endpoint *e);
/* Returns e, or what an IPv4-mapped IPv6 address stands for (RFC 4291 2.5.5.2). The port stays. */
struct endpoint host_plain(const struct endpoint *e);

#endif
