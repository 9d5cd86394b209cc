/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One connection to Redis that comes back by itself, on the control thread's loop. Never blocks. */
#ifndef CONTROL_REDIS_LINK_H
#define CONTROL_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "base/bytes.h"
#include "base/loop.h"
#include "control/redis_server.h"

/* reply: NULL when the connection went before it came. */
typedef void redis_reply_fn(void *arg, void *priv, const redisReply *reply);

struct redis_link_config {
	struct loop *loop;
	const struct redis_server *server; /* outlives the link */
	uint64_t timeout_ns;               /* without an answer that is due, and for connecting */
	void (*up)(void *arg);             /* commands may be sent from now on */
	void (*down)(void *arg, const char *why); /* also each time that it could not be reached */
	void *arg;
};

struct redis_link;

int redis_link_create(struct redis_link **out, const struct redis_link_config *cfg);
/* Replies that were waited for come as NULL. */
void redis_link_destroy(struct redis_link *l);
bool redis_link_is_up(const struct redis_link *l);
/* Commands whose reply has not come. */
uint32_t redis_link_waiting(const struct redis_link *l);
/* fn is called once for each command that was taken (0), or, of SUBSCRIBE, for each message. -ENOTCONN, -ENOMEM: never. */
int redis_link_send(struct redis_link *l, redis_reply_fn *fn, void *priv, uint32_t words,
	const struct str *word);
/* A command whose answer nobody wants. */
void redis_link_tell(struct redis_link *l, uint32_t words, const struct str *word);

#endif
