/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replies to ng's query and delete. Contain no key. */
#ifndef CALL_QUERY_H
#define CALL_QUERY_H

#include "call/model.h"

void query_tree(const struct relay *relay, struct pool *p, const struct call *c,
	struct str from_tag, struct str to_tag, struct ngval *dict);

#endif
