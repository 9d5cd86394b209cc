/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions made of the columns "compared" and "kernel" of media/fields.h. Pure. */
#include "media/media.h"

static bool is_zero(const void *p, size_t len)
{
	const uint8_t *b = p;

	while (len && b[len - 1] == 0)
		len--;
	return len == 0;
}

#define SAME_BY_VALUE(sent, now)    (memcmp(&(sent), &(now), sizeof(now)) == 0)
#define SAME_BY_ENDPOINT(sent, now) endpoint_eq(&(sent), &(now))
#define SAME_BY_CRYPTO(sent, now)   crypto_same(&(sent), &(now))
#define SAME_BY_EVENT(sent, now)    !(now)
#define SAME_FIXED(sent, now)       true
#define SAME_CARRIED(sent, now)     true
#define X(type, name, suffix, compared, fast, kernel, saved) \
	&&SAME_##compared(sent->name, now->name)

_Static_assert(sizeof(struct media_key) == sizeof(uint32_t) + SUITE_MKI_KEPT, "without padding");

static bool crypto_same(const struct media_crypto *sent, const struct media_crypto *now)
{
	return true CRYPTO_FIELDS(X);
}

bool media_ctx_same(const struct media_ctx_cfg *sent, const struct media_ctx_cfg *now)
{
	return true CTX_FIELDS(X);
}

bool media_stream_same(const struct media_stream_cfg *sent, const struct media_stream_cfg *now)
{
	return true STREAM_FIELDS(X);
}
#undef X

enum {
	KERNEL_ANY = 0,
	KERNEL_FLOW = 0,
	KERNEL_NOT_FROM_TO = KERNEL_NOT_FROM | KERNEL_NOT_TO,
	KERNEL_NOT_FROM_HEARER = KERNEL_NOT_FROM | KERNEL_NOT_HEARER,
};

uint8_t media_stream_kernel(const struct media_stream_cfg *c)
{
	uint8_t roles = 0;

#define X(type, name, suffix, compared, fast, kernel, saved)                          \
	_Static_assert(sizeof(#saved) > 1, "the column saved of " #name " is empty"); \
	if (KERNEL_##kernel != 0 && !is_zero(&c->name, sizeof(c->name)))              \
		roles |= KERNEL_##kernel;
	STREAM_FIELDS(X)
#undef X
	return roles;
}
