/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunked bodies: the result does not depend on how the input is cut. */
#include <stdlib.h>

#include "base/sbuf.h"
#include "web/chunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int read_all(struct sbuf *body, struct str all, size_t step)
{
	struct chunks c = {0};
	int got = 0;

	while (got == 0 && all.len) {
		size_t n = all.len < step ? all.len : step;
		struct str in = {all.s, n}, piece;

		do {
			got = chunks_read(&c, &in, &piece);
			sbuf_str(body, piece);
		} while (got == 1);
		all = (struct str){all.s + n, all.len - n};
	}
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str all = {(const char *)data, len};
	struct sbuf whole, pieces;

	sbuf_init(&whole, 0);
	sbuf_init(&pieces, 0);
	if (read_all(&whole, all, len + 1) != read_all(&pieces, all, 1) ||
		!str_eq(sbuf_view(&whole), sbuf_view(&pieces)))
		abort();
	sbuf_fini(&whole);
	sbuf_fini(&pieces);
	return 0;
}
