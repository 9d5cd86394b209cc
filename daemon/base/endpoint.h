/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An IP address with a port, small enough for a packet descriptor. */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <netinet/in.h>
#include "base/bytes.h"

struct endpoint {
	uint8_t addr[16]; /* network order; IPv4 uses the first four bytes, the rest are zero */
	uint16_t port;    /* host order; 0 = none */
	uint8_t family;   /* AF_INET, AF_INET6, or 0 = unset */
	uint8_t pad;
};

#define ENDPOINT_STRLEN 64 /* "[v6]:port" and the zero */

static inline bool endpoint_addr_eq(const struct endpoint *a, const struct endpoint *b)
{
	return a->family == b->family && memcmp(a->addr, b->addr, 16) == 0;
}

static inline bool endpoint_eq(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && endpoint_addr_eq(a, b);
}

/* "192.0.2.1", "2001:db8::1" or "[2001:db8::1]", without port. 0 or -EINVAL. Host names are not
 * looked up. */
int endpoint_parse_addr(struct endpoint *out, struct str text);
/* "ADDR:PORT", "[V6]:PORT". 0 or -EINVAL. */
int endpoint_parse(struct endpoint *out, struct str text);
bool endpoint_is_unspecified(const struct endpoint *e); /* 0.0.0.0, ::, or unset */
bool endpoint_is_multicast(const struct endpoint *e);
/* Whether the address is in the network of this address and prefix length. */
bool endpoint_in_net(const struct endpoint *e, const struct endpoint *net, uint8_t bits);
/* "192.0.2.0/24", "2001:db8::/32", or an address alone. 0 or -EINVAL. */
int endpoint_parse_net(struct endpoint *net, uint8_t *bits, struct str text);
/* Write into buf and return it. */
const char *endpoint_fmt(const struct endpoint *e, char buf[ENDPOINT_STRLEN]);
const char *endpoint_fmt_addr(const struct endpoint *e, char buf[ENDPOINT_STRLEN]);
socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *out);
/* 0 or -EAFNOSUPPORT. An IPv4-mapped IPv6 address becomes IPv4. */
int endpoint_from_sockaddr(struct endpoint *out, const struct sockaddr_storage *sa);

#endif
