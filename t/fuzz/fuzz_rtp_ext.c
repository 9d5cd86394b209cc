/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header extensions of RTP. For every ID, a found element lies inside the extension. A written
 * element is found again. All other elements stay, except those to be removed. */
#include <stdlib.h>

#include "proto/rtp.h"
#include "proto/rtp_ext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct rtp_ext *a, const uint8_t *value, uint8_t len)
{
	return a->len == len && memcmp(a->at, value, len) == 0;
}

static void write_one(const uint8_t *data, size_t size, uint8_t id, uint8_t len)
{
	static const uint8_t value[255] = "0123456789abcdef";
	struct rtp_ext_edit e = {id, (uint8_t)(id + 1), {value, len}};
	uint8_t *p = malloc(size + RTP_EXT_GROWTH(len));
	struct rtp_ext before, after;
	struct rtp_hdr h;
	int32_t grown;
	int end, now;

	if (!p)
		return;
	memcpy(p, data, size);
	grown = rtp_ext_write(p, size, &e);
	if (grown == INT32_MIN) {
		if (memcmp(p, data, size) != 0)
			abort();
		free(p);
		return;
	}
	end = rtp_parse(&h, data, size);
	now = rtp_parse(&h, p, size + (size_t)grown);
	if (end < 0 || now != end + grown || memcmp(p + now, data + end, size - (size_t)end) != 0 ||
		!rtp_ext_find(&after, p, (size_t)now, id) || !same(&after, value, len))
		abort();
	for (int other = 1; other < 256; other++) {
		bool had = rtp_ext_find(&before, data, size, (uint8_t)other);
		bool has = rtp_ext_find(&after, p, (size_t)now, (uint8_t)other);

		if (other == id)
			continue;
		if (other == e.drop ? has : had != has)
			abort();
		if (has && !same(&after, before.at, before.len))
			abort();
	}
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *p = malloc(size ? size : 1);
	struct rtp_hdr h;
	int end;

	if (!p)
		return 0;
	memcpy(p, data, size);
	end = rtp_parse(&h, p, size);
	for (int id = 0; id < 256; id++) {
		struct rtp_ext e;

		if (!rtp_ext_find(&e, p, size, (uint8_t)id))
			continue;
		if (!id || end < 0 || e.at < p + RTP_FIXED_LEN + 4 || e.at + e.len > p + end)
			abort();
	}
	free(p);
	if (size) {
		write_one(data, size, data[size - 1], 1);
		write_one(data, size, 3, data[size - 1] % 20 + 1);
	}
	return 0;
}
