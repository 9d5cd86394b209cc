/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec/tables.h"

#include <stdlib.h>
#include <string.h>

/* Members that a structure of version 1 has at least. Later ones may be missing. */
enum {
	LEAST_PLUGIN = offsetof(struct xcipher_codec_plugin, resampler),
	LEAST_CODEC = offsetof(struct xcipher_codec, direct),
	LEAST_DIRECT = sizeof(struct xcipher_codec_direct),
	LEAST_RESAMPLER = sizeof(struct xcipher_resampler),
	MOST_DIRECTS = 64,
};

/* Copies a structure that starts with its size, and sets the size of the copy. */
#define COPY(to, from, bytes)                                                            \
	do {                                                                             \
		memcpy((to), (from), (bytes) < sizeof(*(to)) ? (bytes) : sizeof(*(to))); \
		(to)->size = sizeof(*(to));                                              \
	} while (0)

/* The conversions of a codec; 0: it has none, or its structure is shorter. */
static uint32_t directs(const struct xcipher_codec *c)
{
	return c->size >= offsetof(struct xcipher_codec, zero) && c->direct ? c->direct_n : 0;
}

static const struct xcipher_resampler *resampler(const struct xcipher_codec_plugin *p)
{
	return p->size >= sizeof(*p) ? p->resampler : NULL;
}

/* Why the tables cannot be copied; NULL: they can. */
static const char *problem(const struct xcipher_codec_plugin *p)
{
	if (p->size < LEAST_PLUGIN)
		return "its table is too short";
	if (p->codecs > XCIPHER_CODEC_MAX_CODECS || (p->codecs && !p->codec))
		return "it has too many codecs, or none";
	if (resampler(p) && resampler(p)->size < LEAST_RESAMPLER)
		return "its resampler's table is too short";
	for (uint32_t i = 0; i < p->codecs; i++) {
		const struct xcipher_codec *c = p->codec[i];

		if (!c || c->size < LEAST_CODEC)
			return "a codec's table is missing or too short";
		if (directs(c) > MOST_DIRECTS || (directs(c) && c->direct->size < LEAST_DIRECT))
			return "a codec's direct conversions are too many or too short";
	}
	return NULL;
}

struct block {
	struct xcipher_codec_plugin plugin;
	struct xcipher_resampler resampler;
	const struct xcipher_codec *list[XCIPHER_CODEC_MAX_CODECS];
	struct xcipher_codec codec[XCIPHER_CODEC_MAX_CODECS];
	struct xcipher_codec_direct direct[]; /* of all codecs */
};

/* An array's structures are as long as the first one says. */
static void copy_directs(struct xcipher_codec_direct *to, const struct xcipher_codec *c)
{
	size_t step = c->direct->size;

	for (uint32_t i = 0; i < c->direct_n; i++)
		COPY(&to[i],
			(const struct xcipher_codec_direct *)(const void *)((const char *)
										    c->direct +
				i * step),
			step);
}

struct xcipher_codec_plugin *codec_tables_copy(
	const struct xcipher_codec_plugin *p, const char **why)
{
	struct block *b = NULL;
	size_t n = 0;

	*why = problem(p);
	for (uint32_t i = 0; !*why && i < p->codecs; i++)
		n += directs(p->codec[i]);
	if (!*why)
		b = calloc(1, sizeof(*b) + n * sizeof(*b->direct));
	if (!b)
		return NULL;
	COPY(&b->plugin, p, p->size);
	b->plugin.codec = b->list;
	if (resampler(p)) {
		COPY(&b->resampler, p->resampler, p->resampler->size);
		b->plugin.resampler = &b->resampler;
	}
	n = 0;
	for (uint32_t i = 0; i < p->codecs; i++) {
		const struct xcipher_codec *c = p->codec[i];

		b->list[i] = &b->codec[i];
		COPY(&b->codec[i], c, c->size);
		if (!directs(c))
			continue;
		b->codec[i].direct = &b->direct[n];
		copy_directs(&b->direct[n], c);
		n += c->direct_n;
	}
	return &b->plugin;
}
