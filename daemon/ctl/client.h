/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One ng request over UDP and its reply. */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "base/endpoint.h"
#include "proto/ngval.h"

/* Sends the request with a fresh cookie, again each second with the same cookie, until the reply comes or timeout_s is over.
 * The reply lives in the pool. 0; -ETIMEDOUT; -EBADMSG; another -errno of the socket calls. elapsed_ns may be NULL. */
int client_call(struct ngval **reply, struct pool *p, const struct endpoint *server,
	const struct ngval *request, unsigned timeout_s, uint64_t *elapsed_ns);

#endif
