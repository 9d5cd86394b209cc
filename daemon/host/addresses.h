/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The networks that are delivered to this host, sorted for look-up. Pure: filled once, then only
 * read. */
#ifndef HOST_ADDRESSES_H
#define HOST_ADDRESSES_H

#include "base/endpoint.h"

enum host_kind {
	HOST_LOCAL,    /* delivered to this host; also by "ip route add local" */
	HOST_BROADCAST /* directed broadcast of a connected network */
};

struct host_net {
	struct endpoint addr; /* port 0; an IPv4-mapped address counts as IPv4 */
	uint8_t bits;         /* prefix length */
	uint8_t kind;         /* enum host_kind */
	int dev;              /* interface that has the address; 0: none, or not known */
};

struct host_table {
	uint32_t singles; /* single addresses among them, which come first */
	uint32_t n;
	struct host_net net[];
};

/* Copies the networks without duplicates. NULL: out of memory. Free with free(). */
struct host_table *host_table_make(const struct host_net *net, uint32_t n);
/* Whether any network of this kind holds the address. The port is ignored. */
bool host_table_has(const struct host_table *t, const struct endpoint *e, enum host_kind kind);
/* The interface that has this address; 0: none. */
int host_table_dev(const struct host_table *t, const struct endpoint *e);
/* Returns e, with an IPv4-mapped IPv6 address converted to IPv4 (RFC 4291 2.5.5.2). The port is
 * kept. */
struct endpoint host_plain(const struct endpoint *e);

#endif
