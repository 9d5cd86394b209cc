/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address and user of a Redis server: [PW@]ADDR:PORT[/DB], or redis://[USER[:PW]@]HOST[:PORT][/DB],
 * or rediss:// for TLS. */
#ifndef PERSIST_REDIS_SERVER_H
#define PERSIST_REDIS_SERVER_H

#include "base/endpoint.h"

#define REDIS_ADDRESSES 4

struct redis_server {
	struct endpoint addr; /* family 0: none, or not resolved yet if there is a name */
	struct endpoint all[REDIS_ADDRESSES]; /* of a name; connections try them in turn */
	uint32_t alls;
	char name[254]; /* host name; "" if an address was given */
	char user[64];  /* "" = the default user */
	char password[256];
	uint32_t db;
	bool tls;
};

/* In the URL forms %XX is decoded in user and password. 0 or -EINVAL. */
int redis_server_parse(struct redis_server *out, struct str text);
/* Resolves the name, if there is one, and keeps its first REDIS_ADDRESSES addresses. Blocks, so use
 * it only at start. 0 or -ENOENT with err. */
int redis_server_resolve(struct redis_server *s, char *err, size_t err_len);
static inline bool redis_server_is_set(const struct redis_server *s)
{
	return s->addr.port != 0;
}

#endif
