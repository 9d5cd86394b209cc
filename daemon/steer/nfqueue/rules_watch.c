/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notifications of nftables (NFNLGRP_NFTABLES). They include iptables-nft, whose chains are in the
 * table "mangle" of each family. The kernel reports a transaction's changes in order, so the last
 * change of our table decides, whoever made it. Our own transactions end with new rules. */
#include "steer/nfqueue/rules_watch.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_BUFFER (4 << 20) /* enough for a large firewall loaded at once */
#define READ_LEN       65536

int rules_watch_open(void)
{
	struct sockaddr_nl local = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	int group = NFNLGRP_NFTABLES, len = RECEIVE_BUFFER, err = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &len, sizeof(len)))
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &len, sizeof(len));
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)) ||
		setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

static bool is_string(const struct nlattr *a, const char *want)
{
	size_t len = strlen(want) + 1;

	return a && mnl_attr_get_payload_len(a) == len &&
		memcmp(mnl_attr_get_payload(a), want, len) == 0;
}

/* The table's name is attribute 1 in messages about tables, chains and rules. */
_Static_assert(NFTA_TABLE_NAME == 1 && NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1, "one table");

/* Whether a change concerns our table, or our chain in a table of iptables. */
static bool is_ours(const struct steer_config *cfg, const struct nlmsghdr *h)
{
	const struct nfgenmsg *g = mnl_nlmsg_get_payload(h);
	int type = h->nlmsg_type & 0xff;
	int chain_attr = type == NFT_MSG_NEWRULE || type == NFT_MSG_DELRULE ? NFTA_RULE_CHAIN
									    : NFTA_CHAIN_NAME;
	const struct nlattr *a, *table = NULL, *chain = NULL;
	char name[32];

	mnl_attr_for_each(a, h, sizeof(*g))
	{
		if (mnl_attr_get_type(a) == NFTA_TABLE_NAME)
			table = a;
		else if (mnl_attr_get_type(a) == chain_attr)
			chain = a;
	}
	if (g->nfgen_family == NFPROTO_INET) {
		snprintf(name, sizeof(name), "xcipher_q%u", cfg->queue_num);
		return is_string(table, name);
	}
	snprintf(name, sizeof(name), "XCIPHER_%u", cfg->queue_num);
	return type != NFT_MSG_DELTABLE && is_string(table, "mangle") && is_string(chain, name);
}

void rules_watch_message(const struct steer_config *cfg, const void *msg, size_t len, bool *missing)
{
	const struct nlmsghdr *h = msg;

	if (len > INT32_MAX || !mnl_nlmsg_ok(h, (int)len) ||
		h->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES ||
		h->nlmsg_len < NLMSG_HDRLEN + sizeof(struct nfgenmsg))
		return;
	switch (h->nlmsg_type & 0xff) {
	case NFT_MSG_DELTABLE:
	case NFT_MSG_DELCHAIN:
	case NFT_MSG_DELRULE:
		*missing |= is_ours(cfg, h);
		break;
	case NFT_MSG_NEWRULE:
		*missing &= !is_ours(cfg, h);
		break;
	default:
		break;
	}
}

int rules_watch_read(const struct steer_config *cfg, int fd, bool *missing)
{
	_Alignas(struct nlmsghdr) char buf[READ_LEN];

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);
		const struct nlmsghdr *h = (const struct nlmsghdr *)buf;
		int len = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) {
			*missing = true;
			continue;
		}
		if (n <= 0)
			return n == 0 || errno == EAGAIN ? 0 : -errno;
		for (; mnl_nlmsg_ok(h, len); h = mnl_nlmsg_next(h, &len))
			rules_watch_message(cfg, h, (size_t)len, missing);
	}
}
