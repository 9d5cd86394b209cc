/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS sessions that all processes of Kamailio share, so that a new connection resumes one: as a
 * client, and as a server for clients that return. Uses OpenSSL, but nothing of Kamailio. */
#ifndef XCIPHER_MODULE_TLS_SESSIONS_H
#define XCIPHER_MODULE_TLS_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Before the processes are forked, and after OpenSSL got its functions for memory. False: out of
 * memory. */
bool sessions_init(void);
/* Whether a server's certificate must name the IP address of the connection. */
void sessions_verify_address(bool on);
/* Until sessions_end(), connections (SSL) that this process creates are to the server with this
 * address of len octets. client: we are its client, else the server. Others are left alone. */
void sessions_begin(const void *address, size_t len, bool client);
void sessions_end(void);

#endif
