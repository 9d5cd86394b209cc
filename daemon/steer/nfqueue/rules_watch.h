/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects when another program removes the rules of nfqueue steering: a restarted firewall service,
 * or "nft flush ruleset". Opening needs CAP_NET_ADMIN. iptables-legacy sends no notifications, so
 * its rules are not watched. Deletion of only the jump to our chain is not detected either. Control
 * thread only. */
#ifndef STEER_NFQUEUE_RULES_WATCH_H
#define STEER_NFQUEUE_RULES_WATCH_H

#include "steer/steer.h"

/* A descriptor that is readable after a change of any nftables rule, which the caller closes, or
 * -errno. */
int rules_watch_open(void);
/* Reads all notifications. *missing: true after our rules, or some of them, were removed, false
 * after they were set; otherwise unchanged. Lost notifications count as a removal. 0 or -errno. */
int rules_watch_read(const struct steer_config *cfg, int fd, bool *missing);

/* Evaluates one notification, for tests. Pure. */
void rules_watch_message(
	const struct steer_config *cfg, const void *msg, size_t len, bool *missing);

#endif
