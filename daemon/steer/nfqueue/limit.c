/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "steer/nfqueue/limit.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNTER "over_source_rate%u" /* worker */

/* A quarter of a second's packets, as in nf_xcipher and the XDP program. */
static uint32_t burst(const struct steer_config *cfg)
{
	uint32_t quarter = cfg->source_rate / 4;

	return quarter > LIMIT_BURST_MIN ? quarter : LIMIT_BURST_MIN;
}

static void set(struct sbuf *b, int version)
{
	sbuf_printf(b,
		"set source%d {\ntype ipv%d_addr; size %u; flags dynamic,timeout; timeout %us;\n}\n",
		version, version, LIMIT_SOURCES, LIMIT_SECONDS);
}

void limit_sets(struct sbuf *b, const struct steer_config *cfg)
{
	if (!cfg->source_rate)
		return;
	set(b, 4);
	set(b, 6);
	for (uint32_t w = 0; w < cfg->workers; w++)
		sbuf_printf(b, "counter " COUNTER " {\n}\n", w);
}

/* If a set is full, its rule does not match, and the packet passes. */
void limit_rule(struct sbuf *b, const struct steer_config *cfg, bool v6, uint32_t worker)
{
	sbuf_printf(b, " update @source%d { %s saddr limit rate over %u/second burst %u packets }",
		v6 ? 6 : 4, v6 ? "ip6" : "ip", cfg->source_rate, burst(cfg));
	sbuf_printf(b, " counter name " COUNTER " drop\n", worker);
}

void limit_iptables(struct sbuf *b, const struct steer_config *cfg)
{
	sbuf_printf(b,
		" -m hashlimit --hashlimit-above %u/second --hashlimit-burst %u --hashlimit-mode srcip"
		" --hashlimit-htable-max %u --hashlimit-htable-expire %u --hashlimit-name xcipher_%u",
		cfg->source_rate, burst(cfg), LIMIT_SOURCES, 1000 * LIMIT_SECONDS, cfg->queue_num);
}

void limit_open(struct limit *l, const struct steer_config *cfg, uint32_t worker)
{
	l->seen = 0;
	l->worker = worker;
	l->fd = cfg->source_rate
		? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER)
		: -1;
}

void limit_close(struct limit *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static int on_data(const struct nlattr *a, void *packets)
{
	if (mnl_attr_get_type(a) == NFTA_COUNTER_PACKETS && mnl_attr_validate(a, MNL_TYPE_U64) >= 0)
		*(uint64_t *)packets = be64toh(mnl_attr_get_u64(a));
	return MNL_CB_OK;
}

static int on_object(const struct nlattr *a, void *packets)
{
	if (mnl_attr_get_type(a) == NFTA_OBJ_DATA)
		return mnl_attr_parse_nested(a, on_data, packets);
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *h, void *packets)
{
	return mnl_attr_parse(h, sizeof(struct nfgenmsg), on_object, packets);
}

static ssize_t ask(const struct limit *l, const struct steer_config *cfg)
{
	_Alignas(struct nlmsghdr) char buf[256];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	char table[32], counter[32];

	h->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
	h->nlmsg_flags = NLM_F_REQUEST;
	g->nfgen_family = NFPROTO_INET;
	g->version = NFNETLINK_V0;
	snprintf(table, sizeof(table), "xcipher_q%u", cfg->queue_num);
	mnl_attr_put_strz(h, NFTA_OBJ_TABLE, table);
	snprintf(counter, sizeof(counter), COUNTER, l->worker);
	mnl_attr_put_strz(h, NFTA_OBJ_NAME, counter);
	mnl_attr_put_u32(h, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	return send(l->fd, h, h->nlmsg_len, 0);
}

/* The kernel answers before send() returns. Errors change nothing; they occur while the rules are
 * set again. */
void limit_count(struct limit *l, const struct steer_config *cfg, struct steer_counters *c)
{
	_Alignas(struct nlmsghdr) char buf[1024];
	uint64_t packets = l->seen;
	ssize_t n;

	if (l->fd < 0 || ask(l, cfg) < 0)
		return;
	while ((n = recv(l->fd, buf, sizeof(buf), 0)) > 0)
		(void)mnl_cb_run(buf, (size_t)n, 0, 0, on_message, &packets);
	if (packets < l->seen)
		l->seen = 0;
	atomic_fetch_add_explicit(&c->source_limit, packets - l->seen, memory_order_relaxed);
	l->seen = packets;
}
