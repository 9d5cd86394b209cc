/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the rtnetlink files of this folder: attributes, and dumps. */
#ifndef HOST_RTNL_INT_H
#define HOST_RTNL_INT_H

#include <stddef.h>

#include "base/endpoint.h"

struct mnl_socket;
struct nlattr;
struct nlmsghdr;

/* Attributes by type, up to max. */
struct rtnl_attrs {
	const struct nlattr **by_type;
	uint16_t max;
};

/* For mnl_attr_parse(); arg: a struct rtnl_attrs. */
int rtnl_collect(const struct nlattr *a, void *arg);
bool rtnl_address(const struct nlattr *a, uint8_t family, struct endpoint *out);
/* Whether the message may change what host_owns() answers. */
bool rtnl_about_local(const struct nlmsghdr *h);
/* Sends a dump request, built in b, and passes each message to put(). Always reads to the end,
 * because the socket is used again. 0, -EINTR if the kernel's table changed meanwhile, or another
 * -errno. */
int rtnl_dump(struct mnl_socket *s, struct nlmsghdr *h, char *b, size_t len,
	void (*put)(const struct nlmsghdr *h, void *arg), void *arg);

#endif
