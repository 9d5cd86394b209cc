/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limit per source address of nfqueue steering (--source-rate). Netfilter keeps the rates, in
 * the rules of rules.c. Here are the text of these rules, and the counter of what they dropped. */
#ifndef STEER_NFQUEUE_LIMIT_H
#define STEER_NFQUEUE_LIMIT_H

#include "steer/counters.h"
#include "steer/steer.h"

#include "base/sbuf.h"

/* Addresses of each family that netfilter remembers. Packets of further ones have no limit. */
#define LIMIT_SOURCES   65535u
#define LIMIT_SECONDS   10u /* an address that sends nothing for this time is forgotten */
#define LIMIT_BURST_MIN 8u

/* nftables: the sets, and a counter per worker, inside the table and before the chain. Writes
 * nothing without a limit. */
void limit_sets(struct sbuf *b, const struct steer_config *cfg);
/* The rest of a rule for the ports of a worker: drops what is over the limit. */
void limit_rule(struct sbuf *b, const struct steer_config *cfg, bool v6, uint32_t worker);
/* The options of an iptables rule that matches packets over the limit. */
void limit_iptables(struct sbuf *b, const struct steer_config *cfg);

/* Reads a worker's counter of nftables. */
struct limit {
	int fd; /* -1: nothing is read */
	uint32_t worker;
	uint64_t seen; /* the counter's last value; it starts again with the rules */
};

/* Needs CAP_NET_ADMIN, as reading does. Without a limit, or after an error, nothing is read. */
void limit_open(struct limit *l, const struct steer_config *cfg, uint32_t worker);
void limit_close(struct limit *l);
/* Adds the packets that were dropped since the last call to c->source_limit. */
void limit_count(struct limit *l, const struct steer_config *cfg, struct steer_counters *c);

#endif
