/* SPDX-License-Identifier: GPL-2.0-or-later */
/* LD_PRELOAD for tests: the addresses of interfaces cannot be read, as in a sandbox that forbids
 * netlink sockets. */
#include <errno.h>
#include <ifaddrs.h>

int getifaddrs(struct ifaddrs **all)
{
	*all = 0;
	errno = EAFNOSUPPORT;
	return -1;
}
