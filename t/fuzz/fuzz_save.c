/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved calls: no input crashes the reader, and a record that was read is written back, and read
 * again, to the same bytes. */
#include <stdlib.h>

#include "call/model.h"
#include "persist/save_format.h"
#include "persist/save_read.h"
#include "persist/save_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct relay_local local[2] = {{.addr = {.family = AF_INET, .addr = {192, 0, 2, 1}}},
	{.addr = {.family = AF_INET6, .addr = {0x20, 1, 0xd, 0xb8, [15] = 1}}}};

/* Reads, and writes it into b. False: it makes no sense. */
static bool turn(struct str text, struct sbuf *b)
{
	struct keystore k = {0};
	struct call_state state;
	struct call *c = NULL;
	struct pool *p;
	bool good;

	if (pool_create(&p, 8u << 20))
		abort();
	good = save_read_call(&c, &state, &k, p, text, (struct save_locals){local, 2}) == 0;
	if (good)
		save_write_call(b, c, local, 2, &state);
	if (good)
		call_free(&k, c);
	if (k.live)
		abort();
	keystore_fini(&k);
	pool_destroy(p);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str text = {(const char *)data, len};
	struct sbuf first, second;
	struct call_state state;
	struct pool *p;

	sbuf_init(&first, 8u << 20);
	sbuf_init(&second, 8u << 20);
	if (turn(text, &first) &&
		(first.err || !turn(sbuf_view(&first), &second) || second.err ||
			!str_eq(sbuf_view(&first), sbuf_view(&second))))
		abort();
	sbuf_fini(&first);
	sbuf_fini(&second);
	if (pool_create(&p, 8u << 20))
		abort();
	(void)save_read_state(&state, p, text);
	pool_destroy(p);
	return 0;
}
