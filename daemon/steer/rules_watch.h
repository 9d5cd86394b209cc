/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notices when another program removes the rules of nfqueue steering: a firewall service that starts
 * again, or "nft flush ruleset". Needs CAP_NET_ADMIN to open. iptables-legacy sends no notifications,
 * so its rules are not watched. A jump to our chain that is deleted by itself is not noticed either.
 * Control thread only. */
#ifndef STEER_RULES_WATCH_H
#define STEER_RULES_WATCH_H

#include "steer/steer.h"

/* A descriptor that is readable after a change of any nftables rule, which the caller closes, or -errno. */
int rules_watch_open(void);
/* Reads what there is. *missing: true after our rules, or some of them, were removed, false after they
 * were set; unchanged if they were not touched. Notifications that were lost count as a removal. 0 or -errno. */
int rules_watch_read(const struct steer_config *cfg, int fd, bool *missing);

/* One notification, for tests. Pure. */
void rules_watch_message(
	const struct steer_config *cfg, const void *msg, size_t len, bool *missing);

#endif
