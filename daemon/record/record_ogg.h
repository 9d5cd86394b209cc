/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of an Ogg stream (RFC 3533): packets are gathered in a page, which is then written at once.
 * A packet never spans two pages. Pure. */
#ifndef RECORD_RECORD_OGG_H
#define RECORD_RECORD_OGG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RECORD_OGG_SEGMENTS = 255,
	RECORD_OGG_HEADER = 27,
	RECORD_OGG_MAX = RECORD_OGG_HEADER + RECORD_OGG_SEGMENTS + RECORD_OGG_SEGMENTS * 255,
	RECORD_OGG_PACKET = 254 * 255, /* most bytes of a packet */
};

enum record_ogg_flag { RECORD_OGG_FIRST = 2, RECORD_OGG_LAST = 4 };

/* A page while it is filled. Begin with zeroes. */
struct record_ogg {
	uint32_t segments, len; /* of lacing and body */
	uint8_t lacing[RECORD_OGG_SEGMENTS];
	uint8_t body[RECORD_OGG_SEGMENTS * 255];
};

/* Adds a packet. False: the page has no room for it. */
bool record_ogg_add(struct record_ogg *o, const uint8_t *packet, size_t len);

struct record_ogg_page {
	uint8_t flags; /* enum record_ogg_flag */
	uint64_t granule;
	uint32_t serial, number;
};
/* Writes the page to out, and empties it. Returns its length. */
size_t record_ogg_end(
	struct record_ogg *o, const struct record_ogg_page *p, uint8_t out[RECORD_OGG_MAX]);
/* The length that the page at p states in its first RECORD_OGG_HEADER + RECORD_OGG_SEGMENTS bytes.
 * 0: these are cut, or no page begins at p. */
size_t record_ogg_len(const uint8_t *p, size_t len);
/* The length of the page that begins at p, and its fields; 0: it is cut, damaged, or none. */
size_t record_ogg_read(struct record_ogg_page *out, const uint8_t *p, size_t len);
/* Sets the flags of a whole page. */
void record_ogg_flag(uint8_t *page, size_t len, uint8_t flags);

#endif
