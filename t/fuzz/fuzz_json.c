/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON: never crashes, and parse(write(x)) is x, in JSON and in bencode. */
#include <stdlib.h>

#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ngval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_same(struct pool *p, const struct ngval *v, bool as_json)
{
	struct ngval *again = NULL;
	struct sbuf one, two;
	size_t pos;
	int err;

	sbuf_init(&one, 0);
	sbuf_init(&two, 0);
	if (as_json)
		json_write(&one, v, false);
	else
		bencode_write(&one, v);
	err = as_json ? json_parse(&again, p, sbuf_view(&one), &pos)
		      : bencode_parse(&again, p, sbuf_view(&one), &pos);
	if (err && !one.err && !pool_failed(p))
		abort();
	if (!err) {
		if (as_json)
			json_write(&two, again, false);
		else
			bencode_write(&two, again);
		if (!one.err && !two.err && !str_eq(sbuf_view(&one), sbuf_view(&two)))
			abort();
	}
	sbuf_fini(&one);
	sbuf_fini(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ngval *v = NULL;
	struct pool *p;
	size_t pos;

	if (pool_create(&p, 8 << 20))
		return 0;
	if (json_parse(&v, p, (struct str){(const char *)data, len}, &pos) == 0) {
		check_same(p, v, true);
		check_same(p, v, false);
	}
	pool_destroy(p);
	return 0;
}
