/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket filter for IPv6 that drops datagrams from the wire with one of our own media addresses
 * as source. Linux refuses such sources only for IPv4. */
#ifndef STEER_OWN_SOURCE_H
#define STEER_OWN_SOURCE_H

#include "steer/steer.h"

/* Attach it to an IPv6 socket before the bind. Datagrams from the loopback interface pass: calls
 * that traverse this relay twice. 0 or -errno. */
int own_source_refuse(int fd, const struct steer_config *cfg);

#endif
