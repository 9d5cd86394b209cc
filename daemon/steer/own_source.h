/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket filter for IPv6: no datagram from the wire has one of our own media addresses as its source. Linux refuses such
 * sources for IPv4 only. */
#ifndef STEER_OWN_SOURCE_H
#define STEER_OWN_SOURCE_H

#include "steer/steer.h"

/* Attach it to an IPv6 socket, before the bind. What comes by the loopback interface passes: calls that go through this relay
 * twice. 0 or -errno. */
int own_source_refuse(int fd, const struct steer_config *cfg);

#endif
