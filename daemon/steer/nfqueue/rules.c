/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The netfilter rules of nfqueue steering, in one table or chain named after the first queue
 * number. So a later start finds and removes those of a killed instance.
 * Tries nftables' queue statement, then iptables' NFQUEUE target, each in one transaction: only the
 * kernel knows what it supports.
 * The hook is mangle INPUT: packets are reassembled and known to be for this host. Filter INPUT
 * comes later, so its rules do not see media. For results by verdict it is mangle PREROUTING, so
 * that they are routed; fragments then use the sockets.
 * "bypass": without a worker on the queue, packets go to the sockets. */
#include "steer/nfqueue/rules.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sbuf.h"
#include "steer/nfqueue/limit.h"
#include "steer/nfqueue/tool.h"

/* The same programs under two names; the administrator chooses what iptables is (nft or legacy). */
static const struct {
	const char *tool, *restore;
	int family;
} IPTABLES[] = {
	{"iptables-nft", "iptables-nft-restore", AF_INET},
	{"ip6tables-nft", "ip6tables-nft-restore", AF_INET6},
	{"iptables", "iptables-restore", AF_INET},
	{"ip6tables", "ip6tables-restore", AF_INET6},
};

bool rules_permitted(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};
	uint32_t want = 1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW;

	return syscall(SYS_capget, &h, d) == 0 && (d[0].effective & want) == want;
}

static bool has_family(const struct steer_config *cfg, int family)
{
	for (uint32_t i = 0; i < cfg->locals; i++)
		if (cfg->local[i].family == family)
			return true;
	return false;
}

/* Calls put() for each local address and worker that has ports. */
static void each_rule(struct sbuf *b, const struct steer_config *cfg, int family,
	void (*put)(struct sbuf *b, const struct steer_config *cfg, const struct endpoint *local,
		uint32_t worker, uint16_t min, uint16_t max))
{
	uint16_t min, max;

	for (uint32_t i = 0; i < cfg->locals; i++) {
		if (family && cfg->local[i].family != family)
			continue;
		for (uint32_t w = 0; w < cfg->workers; w++) {
			steer_worker_ports(cfg, w, &min, &max);
			if (max > min)
				put(b, cfg, &cfg->local[i], w, min, max);
		}
	}
}

static bool before_routing(const struct steer_config *cfg)
{
	return cfg->queue_send == STEER_QUEUE_VERDICT;
}

/* --- nftables --------------------------------------------------------------------------------- */

static void nft_match(struct sbuf *b, const struct endpoint *local, uint16_t min, uint16_t max)
{
	char addr[ENDPOINT_STRLEN];
	bool v6 = local->family == AF_INET6;

	if (endpoint_is_unspecified(local))
		sbuf_printf(b, "meta nfproto %s", v6 ? "ipv6" : "ipv4");
	else
		sbuf_printf(b, "%s daddr %s", v6 ? "ip6" : "ip", endpoint_fmt_addr(local, addr));
	sbuf_printf(b, " udp dport %u-%u", min, max);
}

static void nft_rule(struct sbuf *b, const struct steer_config *cfg, const struct endpoint *local,
	uint32_t worker, uint16_t min, uint16_t max)
{
	if (cfg->source_rate) {
		nft_match(b, local, min, max);
		limit_rule(b, cfg, local->family == AF_INET6, worker);
	}
	nft_match(b, local, min, max);
	sbuf_printf(b, " queue num %u bypass\n", cfg->queue_num + worker);
}

static int nft_setup(const struct steer_config *cfg, char *err, size_t err_len)
{
	const char *const argv[] = {"nft", "-f", "-", NULL};
	struct sbuf b;
	int res;

	sbuf_init(&b, 0);
	/* Replaces rules left by another instance or damaged by another program. */
	sbuf_printf(&b,
		"add table inet xcipher_q%u\ndelete table inet xcipher_q%u\n"
		"table inet xcipher_q%u {\n",
		cfg->queue_num, cfg->queue_num, cfg->queue_num);
	limit_sets(&b, cfg);
	sbuf_printf(&b, "chain input {\ntype filter hook %s priority -150; policy accept;\n",
		before_routing(cfg) ? "prerouting" : "input");
	each_rule(&b, cfg, 0, nft_rule);
	sbuf_printf(&b, "}\n}\n");
	res = b.err ? b.err : tool_run(argv, b.p, err, err_len);
	sbuf_fini(&b);
	return res;
}

static void nft_teardown(const struct steer_config *cfg)
{
	char table[32], err[64];
	const char *const argv[] = {"nft", "delete", "table", "inet", table, NULL};

	snprintf(table, sizeof(table), "xcipher_q%u", cfg->queue_num);
	(void)tool_run(argv, NULL, err, sizeof(err));
}

/* --- iptables --------------------------------------------------------------------------------- */

static void iptables_match(struct sbuf *b, const struct steer_config *cfg,
	const struct endpoint *local, uint16_t min, uint16_t max)
{
	char addr[ENDPOINT_STRLEN];

	sbuf_printf(b, "-A XCIPHER_%u", cfg->queue_num);
	if (!endpoint_is_unspecified(local))
		sbuf_printf(b, " -d %s", endpoint_fmt_addr(local, addr));
	sbuf_printf(b, " -p udp --dport %u:%u", min, max);
}

/* The limits of all rules have one name, so they share one table of sources. */
static void iptables_rule(struct sbuf *b, const struct steer_config *cfg,
	const struct endpoint *local, uint32_t worker, uint16_t min, uint16_t max)
{
	if (cfg->source_rate) {
		iptables_match(b, cfg, local, min, max);
		limit_iptables(b, cfg);
		sbuf_printf(b, " -j DROP\n");
	}
	iptables_match(b, cfg, local, min, max);
	sbuf_printf(b, " -j NFQUEUE --queue-num %u --queue-bypass\n", cfg->queue_num + worker);
}

static int iptables_setup(const struct steer_config *cfg, size_t which, char *err, size_t err_len)
{
	const char *const argv[] = {IPTABLES[which].restore, "--noflush", "-w", "5", NULL};
	struct sbuf b;
	int res;

	if (!has_family(cfg, IPTABLES[which].family))
		return 0;
	sbuf_init(&b, 0);
	sbuf_printf(&b, "*mangle\n:XCIPHER_%u - [0:0]\n", cfg->queue_num);
	each_rule(&b, cfg, IPTABLES[which].family, iptables_rule);
	sbuf_printf(&b, "-I %s -p udp -j XCIPHER_%u\nCOMMIT\n",
		before_routing(cfg) ? "PREROUTING" : "INPUT", cfg->queue_num);
	res = b.err ? b.err : tool_run(argv, b.p, err, err_len);
	sbuf_fini(&b);
	return res;
}

static void unhook(const char *tool, const char *from, const char *chain)
{
	const char *const argv[] = {
		tool, "-w", "5", "-t", "mangle", "-D", from, "-p", "udp", "-j", chain, NULL};
	char err[64];
	int tries = 0;

	while (tries++ < 8 && tool_run(argv, NULL, err, sizeof(err)) == 0)
		;
}

static void iptables_teardown(const struct steer_config *cfg, size_t which)
{
	char chain[32], err[64];
	const char *tool = IPTABLES[which].tool;
	const char *const flush[] = {tool, "-w", "5", "-t", "mangle", "-F", chain, NULL};
	const char *const drop[] = {tool, "-w", "5", "-t", "mangle", "-X", chain, NULL};

	snprintf(chain, sizeof(chain), "XCIPHER_%u", cfg->queue_num);
	/* A chain that cannot be flushed does not exist: done. */
	if (tool_run(flush, NULL, err, sizeof(err)))
		return;
	/* An earlier instance may have used another hook. */
	unhook(tool, "INPUT", chain);
	unhook(tool, "PREROUTING", chain);
	if (tool_run(drop, NULL, err, sizeof(err)))
		log_warn("nfqueue: cannot remove chain %s: %s", chain, err);
}

/* --- Choice between nftables and iptables ----------------------------------------------------- */

int rules_setup(const struct steer_config *cfg, char *err, size_t err_len)
{
	char nft_said[128] = "", said[160] = "";
	int res;

	if (!rules_permitted()) {
		snprintf(err, err_len,
			"nfqueue steering needs CAP_NET_ADMIN and CAP_NET_RAW (root): run as root, or use "
			"--steering=udp");
		return -EPERM;
	}
	rules_teardown(cfg);
	res = nft_setup(cfg, nft_said, sizeof(nft_said));
	for (size_t i = 0; res && i + 1 < ARRAY_LEN(IPTABLES); i += 2) {
		res = iptables_setup(cfg, i, said, sizeof(said));
		res = res ? res : iptables_setup(cfg, i + 1, said, sizeof(said));
		if (res)
			rules_teardown(cfg);
	}
	if (res)
		snprintf(err, err_len,
			"nfqueue steering: no rule could be set (%s; %s): use --steering=udp",
			nft_said, said);
	return res;
}

int rules_again(const struct steer_config *cfg, char *err, size_t err_len)
{
	return nft_setup(cfg, err, err_len) ? rules_setup(cfg, err, err_len) : 0;
}

void rules_teardown(const struct steer_config *cfg)
{
	if (!rules_permitted())
		return;
	nft_teardown(cfg);
	for (size_t i = 0; i < ARRAY_LEN(IPTABLES); i++)
		iptables_teardown(cfg, i);
}
