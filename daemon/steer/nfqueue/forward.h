/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether this host would forward an IPv4 packet that arrives from the network with one of the
 * host's own addresses as source. Rewritten packets that NFQUEUE returns before routing look like
 * this. */
#ifndef STEER_NFQUEUE_FORWARD_H
#define STEER_NFQUEUE_FORWARD_H

#include "steer/steer.h"

/* Checks the interfaces with the local IPv4 addresses, or all others if that is loopback. Changes
 * nothing. False: why names the first setting that prevents it, or another cause. */
bool forward_ready(const struct steer_config *cfg, char *why, size_t why_len);

#endif
