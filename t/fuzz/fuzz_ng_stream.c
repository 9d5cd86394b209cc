/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream of ng messages: the messages found do not depend on how it is cut, and each message that
 * a parser accepts ends where the walk ends it. */
#include <stdlib.h>

#include "proto/bencode.h"
#include "proto/json.h"
#include "proto/ng.h"
#include "proto/ng_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Walks with step bytes more at a time; the result of the last walk, and where it was. */
static int walk_all(struct str all, size_t step, size_t *ends, uint32_t *messages)
{
	struct ng_stream s = {0};
	size_t base = 0, have = 0;
	int got = 0;

	*messages = 0;
	while (got == 0 && have < all.len) {
		have = have + step < all.len ? have + step : all.len;
		while ((got = ng_stream_walk(&s, (struct str){all.s + base, have - base})) == 1) {
			if (s.at > have - base || s.start >= s.at)
				abort();
			base += s.at;
			++*messages;
			s = (struct ng_stream){0};
		}
	}
	*ends = base + s.at;
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str all = {(const char *)data, len};
	size_t whole, pieces, pos;
	struct ng_stream s = {0};
	struct ngval *v = NULL;
	uint32_t n, m;
	struct ng_frame f;
	struct pool *p;
	int err;

	if (walk_all(all, len + 1, &whole, &n) != walk_all(all, 1, &pieces, &m) ||
		whole != pieces || n != m)
		abort();
	/* one message that a datagram may hold is one for the stream */
	if (ng_frame_parse(&f, all) || pool_create(&p, 8 << 20))
		return 0;
	err = f.encoding == NG_JSON ? json_parse(&v, p, f.body, &pos)
				    : bencode_parse(&v, p, f.body, &pos);
	pool_destroy(p);
	if (err || (size_t)(f.body.s - all.s) + f.body.len > NG_STREAM_MAX)
		return 0;
	if (ng_stream_walk(&s, all) != 1 || s.at != (size_t)(f.body.s - all.s) + f.body.len)
		abort();
	return 0;
}
