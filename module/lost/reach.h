/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses from which a location may be fetched, if the operator did not list the hosts. */
#ifndef LOST_REACH_H
#define LOST_REACH_H

#include <stdbool.h>
#include <sys/socket.h>

/* Addresses of the host itself (loopback, unspecified), of its link, and of groups: a caller must
 * not make us connect to these. False for other families, too. */
bool reach_is_near(const struct sockaddr *a);

#endif
