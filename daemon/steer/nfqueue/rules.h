/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The netfilter rules that send packets for our ports to the workers' queues. */
#ifndef STEER_NFQUEUE_RULES_H
#define STEER_NFQUEUE_RULES_H

#include "steer/steer.h"

/* Whether this thread has the capabilities that rules and queues need. */
bool rules_permitted(void);
/* Removes rules of an earlier instance, then sets the rules. 0 or -errno with one line in err. */
int rules_setup(const struct steer_config *cfg, char *err, size_t err_len);
/* The same while packets are handled: one transaction if nftables accepts our rules. */
int rules_again(const struct steer_config *cfg, char *err, size_t err_len);
/* Removes everything that belongs to this queue number, by all tools that may have set it. */
void rules_teardown(const struct steer_config *cfg);

#endif
