/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of Opus files in the recording folder, which a crash may have damaged. */
#include <stdlib.h>
#include <string.h>

#include "record/record_ogg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A fuzzer does not find sums: the page is written with a right one. */
static size_t with_sum(uint8_t *page, const uint8_t *data, size_t len)
{
	struct record_ogg_page p;

	memcpy(page, data, len);
	if (len < RECORD_OGG_HEADER)
		return 0;
	record_ogg_flag(page, len, page[5]);
	return record_ogg_read(&p, page, len);
}

/* Packets whose lengths the input names. */
static void round_trip(const uint8_t *data, size_t len)
{
	static struct record_ogg o;
	static uint8_t out[RECORD_OGG_MAX];
	struct record_ogg_page p = {.granule = len, .serial = 1, .number = 2}, got;
	size_t n = 0;

	o.segments = o.len = 0;
	for (size_t i = 0; i < len; i++)
		n += record_ogg_add(&o, data, (size_t)data[i] * 4 % (len + 1));
	len = record_ogg_end(&o, &p, out);
	if (record_ogg_read(&got, out, len) != len || got.granule != p.granule || n > 255)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t page[RECORD_OGG_MAX];
	struct record_ogg_page p;
	size_t n;

	if (len > sizeof(page))
		return 0;
	if (record_ogg_read(&p, data, len) > len || with_sum(page, data, len) > len)
		abort();
	n = with_sum(page, data, len);
	if (n && n != record_ogg_len(page, len))
		abort();
	round_trip(data, len);
	return 0;
}
