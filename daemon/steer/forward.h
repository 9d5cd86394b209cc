/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether this host would forward an IPv4 packet that comes in from the network with one of its own addresses as source: what a
 * rewritten packet looks like that NFQUEUE gives back before routing. */
#ifndef STEER_FORWARD_H
#define STEER_FORWARD_H

#include "steer/steer.h"

/* Looks at the interfaces that carry the local IPv4 addresses, or at all others where that is loopback; changes nothing. False: why names the first setting that is in
 * the way, or what else is. */
bool forward_ready(const struct steer_config *cfg, char *why, size_t why_len);

#endif
