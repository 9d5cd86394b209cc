/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Big-endian loads and stores, and slices of text. Includes no other header of ours. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline uint16_t be16(const uint8_t *p)
{
	return (uint16_t)((p[0] << 8) | p[1]);
}

static inline uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A slice of memory that someone else owns, not terminated. s may be NULL only if len is 0. */
struct str {
	const char *s;
	size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_NONE     ((struct str){NULL, 0})
#define STR_FMT      "%.*s"
#define STR_ARG(x)   (int)(x).len, (x).s ? (x).s : ""

static inline struct str str_from(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

/* ASCII case-insensitive comparison. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts(struct str a, struct str prefix);
struct str str_trim(struct str a);

/* Whether a contains a byte below 0x20 other than TAB, or 0x7f. In a log such a byte could start a
 * line or a terminal sequence. */
bool str_has_control(struct str a);

/* Removes the next word from rest and returns it. Skips blanks and tabs before it. Empty at the
 * end. */
struct str str_word(struct str *rest);

/* Cuts *rest at the first separator: returns the text before it, and leaves the text after it in
 * *rest. Without a separator it returns all, and *rest becomes empty with s = NULL. */
struct str str_cut(struct str *rest, char sep);

/* Parses a decimal number without sign; the whole slice must be digits. 0, -EINVAL, or -ERANGE if
 * above max. */
int str_to_u64(uint64_t *out, struct str a, uint64_t max);

#endif
