/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record_ogg.h"

#include <string.h>

/* Places in the header (RFC 3533 6). */
enum {
	AT_FLAGS = 5,
	AT_GRANULE = 6,
	AT_SERIAL = 14,
	AT_NUMBER = 18,
	AT_CRC = 22,
	AT_SEGMENTS = 26,
	CRC_LEN = 4,
};

static void put_le(uint8_t *p, uint64_t v, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

static uint64_t get_le(const uint8_t *p, uint32_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* Polynomial 0x04c11db7, neither reflected nor inverted; the field of the sum counts as zeroes. */
static uint32_t crc(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++) {
		uint8_t byte = i >= AT_CRC && i < AT_CRC + CRC_LEN ? 0 : p[i];

		sum ^= (uint32_t)byte << 24;
		for (int bit = 0; bit < 8; bit++)
			sum = sum & 0x80000000u ? sum << 1 ^ 0x04c11db7 : sum << 1;
	}
	return sum;
}

bool record_ogg_add(struct record_ogg *o, const uint8_t *packet, size_t len)
{
	size_t full = len / 255;

	if (len > RECORD_OGG_PACKET || o->segments + full + 1 > RECORD_OGG_SEGMENTS)
		return false;
	memcpy(o->body + o->len, packet, len);
	o->len += (uint32_t)len;
	memset(o->lacing + o->segments, 255, full);
	o->segments += (uint32_t)full;
	o->lacing[o->segments++] = (uint8_t)(len % 255); /* 0 ends a packet, too */
	return true;
}

size_t record_ogg_end(
	struct record_ogg *o, const struct record_ogg_page *p, uint8_t out[RECORD_OGG_MAX])
{
	size_t len = RECORD_OGG_HEADER + o->segments + o->len;

	memcpy(out, "OggS", 5); /* and version 0 */
	out[AT_FLAGS] = p->flags;
	put_le(out + AT_GRANULE, p->granule, 8);
	put_le(out + AT_SERIAL, p->serial, 4);
	put_le(out + AT_NUMBER, p->number, 4);
	out[AT_SEGMENTS] = (uint8_t)o->segments;
	memcpy(out + RECORD_OGG_HEADER, o->lacing, o->segments);
	memcpy(out + RECORD_OGG_HEADER + o->segments, o->body, o->len);
	put_le(out + AT_CRC, crc(out, len), CRC_LEN);
	o->segments = o->len = 0;
	return len;
}

size_t record_ogg_len(const uint8_t *p, size_t len)
{
	size_t need = RECORD_OGG_HEADER;

	if (len < need || memcmp(p, "OggS", 5) != 0)
		return 0;
	need += p[AT_SEGMENTS];
	if (len < need)
		return 0;
	for (uint32_t i = 0; i < p[AT_SEGMENTS]; i++)
		need += p[RECORD_OGG_HEADER + i];
	return need;
}

size_t record_ogg_read(struct record_ogg_page *out, const uint8_t *p, size_t len)
{
	size_t need = record_ogg_len(p, len);

	if (!need || len < need || get_le(p + AT_CRC, CRC_LEN) != crc(p, need))
		return 0;
	*out = (struct record_ogg_page){.flags = p[AT_FLAGS],
		.granule = get_le(p + AT_GRANULE, 8),
		.serial = (uint32_t)get_le(p + AT_SERIAL, 4),
		.number = (uint32_t)get_le(p + AT_NUMBER, 4)};
	return need;
}

void record_ogg_flag(uint8_t *page, size_t len, uint8_t flags)
{
	page[AT_FLAGS] = flags;
	put_le(page + AT_CRC, crc(page, len), CRC_LEN);
}
