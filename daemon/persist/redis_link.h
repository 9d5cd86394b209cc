/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One connection to Redis, on the control thread's loop. It reconnects by itself and never blocks.
 * The server is not trusted: a reply that is malformed, too large, unsolicited, or of a wrong type
 * for its command ends the connection. */
#ifndef PERSIST_REDIS_LINK_H
#define PERSIST_REDIS_LINK_H

#include "base/loop.h"
#include "persist/redis_wire.h"
#include "proto/resp.h"

/* reply: NULL if the connection ended before. */
typedef void redis_reply_fn(void *arg, void *priv, const struct resp *reply);

struct redis_link_config {
	struct loop *loop;
	const struct redis_server *server; /* outlives the link */
	const struct redis_tls *tls;       /* outlives the link; NULL if the server is plain TCP */
	uint64_t timeout_ns;               /* for a reply, and for connecting */
	void (*up)(void *arg);             /* commands may be sent now */
	void (*down)(void *arg, const char *why); /* also called for each failed attempt to
						   * connect */
	/* A message of a channel. text.s == NULL: the subscription of that channel has begun. */
	void (*message)(void *arg, struct str channel, struct str text);
	void *arg;
};

struct redis_link;

int redis_link_create(struct redis_link **out, const struct redis_link_config *cfg);
/* Pending commands get NULL as reply. */
void redis_link_destroy(struct redis_link *l);
bool redis_link_is_up(const struct redis_link *l);
/* Number of commands without reply. */
uint32_t redis_link_waiting(const struct redis_link *l);
/* Returns 0 if the command was accepted; fn is then called once. fn NULL: the reply is ignored.
 * -ENOTCONN, -ENOMEM: fn is not called. */
int redis_link_send(struct redis_link *l, redis_reply_fn *fn, void *priv, uint32_t words,
	const struct str *word);
/* A link that subscribes sends no other commands. */
/* Sends queued bytes until the socket is full. */
void redis_link_flush(struct redis_link *l);
int redis_link_subscribe(struct redis_link *l, const char *channel);
int redis_link_unsubscribe(struct redis_link *l, const char *channel);
/* Ends the connection soon, as if it had failed; it reconnects later. May be called from a reply
 * function. */
void redis_link_fail(struct redis_link *l, const char *why);

#endif
