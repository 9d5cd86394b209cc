/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notifications of nftables that mean that our rules were removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "steer/nfqueue/rules_watch.h"

static const struct steer_config CFG = {.queue_num = 22};

static bool after(bool before, int type, int family, const char *table, const char *chain)
{
	_Alignas(struct nlmsghdr) char buf[512];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g;
	bool rule = type == NFT_MSG_NEWRULE || type == NFT_MSG_DELRULE;

	h->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = (uint8_t)family;
	mnl_attr_put_strz(h, NFTA_TABLE_NAME, table);
	if (chain)
		mnl_attr_put_strz(h, rule ? NFTA_RULE_CHAIN : NFTA_CHAIN_NAME, chain);
	rules_watch_message(&CFG, h, h->nlmsg_len, &before);
	return before;
}

static void only_changes_of_our_rules_count(void **state)
{
	static const struct {
		const char *why;
		int type, family;
		const char *table, *chain;
		bool touched, missing;
	} T[] = {
		{"our table", NFT_MSG_DELTABLE, NFPROTO_INET, "xcipher_q22", NULL, true, true},
		{"our chain", NFT_MSG_DELCHAIN, NFPROTO_INET, "xcipher_q22", "input", true, true},
		{"our rule", NFT_MSG_DELRULE, NFPROTO_INET, "xcipher_q22", "input", true, true},
		{"set again", NFT_MSG_NEWRULE, NFPROTO_INET, "xcipher_q22", "input", true, false},
		{"a table alone is no rule", NFT_MSG_NEWTABLE, NFPROTO_INET, "xcipher_q22", NULL,
			false, false},
		{"another instance's", NFT_MSG_DELTABLE, NFPROTO_INET, "xcipher_q2", NULL, false,
			false},
		{"a longer name", NFT_MSG_DELTABLE, NFPROTO_INET, "xcipher_q220", NULL, false,
			false},
		{"another family", NFT_MSG_DELTABLE, NFPROTO_IPV4, "xcipher_q22", NULL, false,
			false},
		{"iptables: our rule", NFT_MSG_DELRULE, NFPROTO_IPV4, "mangle", "XCIPHER_22", true,
			true},
		{"iptables: our chain, IPv6", NFT_MSG_DELCHAIN, NFPROTO_IPV6, "mangle",
			"XCIPHER_22", true, true},
		{"iptables: set again", NFT_MSG_NEWRULE, NFPROTO_IPV4, "mangle", "XCIPHER_22", true,
			false},
		{"iptables: others' rule", NFT_MSG_DELRULE, NFPROTO_IPV4, "mangle", "INPUT", false,
			false},
		{"iptables: another table", NFT_MSG_DELRULE, NFPROTO_IPV4, "filter", "XCIPHER_22",
			false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int before = 0; before < 2; before++) {
			bool want = T[i].touched ? T[i].missing : before;

			if (after(before, T[i].type, T[i].family, T[i].table, T[i].chain) != want)
				fail_msg("%s, missing before: %d", T[i].why, before);
		}
}

static void what_is_cut_or_of_others_changes_nothing(void **state)
{
	_Alignas(struct nlmsghdr) char buf[64] = {0};
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	bool missing = false;

	(void)state;
	for (uint32_t len = 0; len <= sizeof(buf); len++) {
		h->nlmsg_len = len;
		h->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE;
		rules_watch_message(&CFG, h, sizeof(buf), &missing);
		h->nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | NFT_MSG_DELTABLE;
		rules_watch_message(&CFG, h, sizeof(buf), &missing);
		assert_false(missing);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_changes_of_our_rules_count),
		cmocka_unit_test(what_is_cut_or_of_others_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
