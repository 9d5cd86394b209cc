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
/* Whether a server's certificate must have the name that sessions_begin() gets (names.h) or,
 * without one, the IP address of the connection. */
void sessions_verify_name(bool on);
/* Until sessions_end(), connections (SSL) that this process creates are to the server with this
 * address of len octets. client: we are its client, else the server. name: of the server, from the
 * URI; NULL: the URI has an address. It must last until sessions_end(). Others are left alone. */
void sessions_begin(const void *address, size_t len, bool client, const char *name);
void sessions_end(void);
/* tls.so does not export its data of a connection. They have the SSL among their first words. This
 * finds the place, in the data of the connection that was created between sessions_begin() and
 * sessions_end(), for all processes. own: may be NULL. */
void sessions_learn(const void *own);
/* Whether the peer of the connection with these data has a certificate of this name. False while
 * the place of the SSL is unknown. */
bool sessions_peer_is(const void *own, const char *name);

#endif
