/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which Redis: [PW@]ADDR:PORT[/DB]. */
#ifndef CONTROL_REDIS_SERVER_H
#define CONTROL_REDIS_SERVER_H

#include "base/endpoint.h"

struct redis_server {
	struct endpoint addr; /* family 0: none */
	char password[128];
	uint32_t db;
};

/* 0 or -EINVAL. */
int redis_server_parse(struct redis_server *out, struct str text);

#endif
