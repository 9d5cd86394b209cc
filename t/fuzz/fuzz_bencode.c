/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bencode: never crashes, never takes more than the pool, and writes back exactly the bytes it
 * accepted. */
#include <stdlib.h>

#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ngval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str msg = {(const char *)data, len};
	struct ngval *v = NULL, *again = NULL;
	struct pool *p;
	struct sbuf b;
	size_t pos;

	if (pool_create(&p, 4 << 20))
		return 0;
	sbuf_init(&b, 0);
	if (bencode_parse(&v, p, msg, &pos) == 0) {
		bencode_write(&b, v);
		if (b.err == 0 && !str_eq(sbuf_view(&b), msg))
			abort();
		sbuf_fini(&b);
		/* Every parsed value is valid JSON when written as such. */
		json_write(&b, v, len & 1);
		if (b.err == 0 && json_parse(&again, p, sbuf_view(&b), &pos) && !pool_failed(p))
			abort();
	} else if (pos > len) {
		abort();
	}
	sbuf_fini(&b);
	pool_destroy(p);
	return 0;
}
