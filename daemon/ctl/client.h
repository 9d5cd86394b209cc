/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One ng request over UDP and its reply; over TCP if that is too long for a datagram. */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "base/endpoint.h"
#include "proto/ng_auth.h"

struct client {
	struct endpoint server;
	const struct ng_keys *keys; /* sign with the first one; NULL: unsigned */
	unsigned timeout_s;
};

/* Reads the keys of a file, and frees the previous ones in *keys. 0, or -errno with one line in
 * err. Free with secmem_free(). */
int client_keys(struct ng_keys **keys, const char *path, char *err, size_t err_len);

/* Sends the request with a fresh cookie, again each second with the same cookie, until the reply
 * comes or timeout_s is over. The reply lives in the pool. 0; -ETIMEDOUT; -EBADMSG; another -errno
 * of the socket calls. elapsed_ns may be NULL. If the daemon says that the reply is too long for a
 * datagram, asks again over TCP at the same address. Not so for commands that change something. */
int client_call(struct ngval **reply, struct pool *p, const struct client *c,
	const struct ngval *request, uint64_t *elapsed_ns);

#endif
