/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the rows of media/fields.h as text and changes one field at a time, for the tests of the
 * columns. A new row is tested automatically. */
#ifndef T_FIELD_ROWS_H
#define T_FIELD_ROWS_H

#include <string.h>

#include "media/media.h"

struct field_row {
	const char *name;
	size_t offset, len;
	const char *compared, *fast, *kernel, *saved;
};

#define FIELD_ROW(of, name, compared, fast, kernel, saved)                                   \
	{                                                                                    \
#name, offsetof(struct of, name), sizeof(((struct of *)0)->name), #compared, \
			#fast, #kernel, #saved                                               \
	}

#define X(type, name, suffix, compared, fast, kernel, saved) \
	FIELD_ROW(media_stream_cfg, name, compared, fast, kernel, saved),
static const struct field_row STREAM_ROW[] = {STREAM_FIELDS(X)};
#undef X
#define X(type, name, suffix, compared, fast, kernel, saved) \
	FIELD_ROW(media_ctx_cfg, name, compared, fast, kernel, saved),
static const struct field_row CTX_ROW[] = {CTX_FIELDS(X)};
#undef X
#define X(type, name, suffix, compared, fast, kernel, saved) \
	FIELD_ROW(media_crypto, name, compared, fast, kernel, saved),
static const struct field_row CRYPTO_ROW[] = {CRYPTO_FIELDS(X)};
#undef X

static inline bool row_is(const char *column, const char *value)
{
	return strcmp(column, value) == 0;
}

/* Gives the field another value: a handle becomes none or the first one, zero becomes one, a flag
 * or mode becomes zero. */
static inline void row_change(const struct field_row *r, void *cfg)
{
	static const uint32_t none = MEDIA_NONE;
	uint8_t *p = (uint8_t *)cfg + r->offset;
	bool zero = true;

	for (size_t i = 0; i < r->len; i++)
		zero &= p[i] == 0;
	if (row_is(r->fast, "NAMED"))
		memcpy(p, &none, sizeof(none));
	else if (r->len == sizeof(none) && memcmp(p, &none, sizeof(none)) == 0)
		memset(p, 0, r->len);
	else if (r->len == 1)
		p[0] = zero;
	else
		p[0] = (uint8_t)(p[0] + 1);
}

#endif
