/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

static bool is_near_v4(uint32_t a)
{
	return a >> 24 == 0 || a >> 24 == 127 || a >> 16 == 0xa9fe || a >> 28 >= 0xe;
}

bool reach_is_near(const struct sockaddr *a)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct in6_addr *in = &six->sin6_addr;
	uint32_t four;

	if (a->sa_family == AF_INET)
		return is_near_v4(
			ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr));
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&four, in->s6_addr + 12, sizeof(four));
	if (IN6_IS_ADDR_V4MAPPED(in) || IN6_IS_ADDR_V4COMPAT(in))
		return is_near_v4(ntohl(four));
	return IN6_IS_ADDR_LOOPBACK(in) || IN6_IS_ADDR_UNSPECIFIED(in) ||
		IN6_IS_ADDR_LINKLOCAL(in) || IN6_IS_ADDR_MULTICAST(in);
}
