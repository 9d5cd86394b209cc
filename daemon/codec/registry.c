/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "registry.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "codec/builtin.h"
#include "codec/resampler.h"

const struct codec_entry *codec_registry_find(
	const struct codec_registry *r, const char *name, uint32_t clock, uint32_t channels)
{
	for (uint32_t i = 0; i < r->entries; i++)
		if (strcasecmp(r->entry[i].about.name, name) == 0 &&
			r->entry[i].about.clock == clock && r->entry[i].about.channels == channels)
			return &r->entry[i];
	return NULL;
}

/* NULL: there is none. */
static const struct codec_entry *variant(
	const struct codec_registry *r, const struct codec_about *like, uint32_t rate)
{
	for (uint32_t i = 0; i < r->entries; i++) {
		const struct codec_about *a = &r->entry[i].about;

		if (strcasecmp(a->name, like->name) == 0 && a->clock == like->clock &&
			a->channels == like->channels && a->rate == rate)
			return &r->entry[i];
	}
	return NULL;
}

const struct codec_entry *codec_registry_variant(
	const struct codec_registry *r, const struct codec_entry *e, uint32_t rate)
{
	const struct codec_entry *found = variant(r, &e->about, rate);

	return found ? found : e;
}

const struct xcipher_resampler *codec_registry_resampler(
	const struct codec_registry *r, uint32_t from, uint32_t to)
{
	return codec_resampler_has(from, to) ? codec_resampler() : r->resampler;
}

bool codec_registry_rates_fit(const struct codec_registry *r, uint32_t a, uint32_t b)
{
	return a == b || codec_registry_resampler(r, a, b);
}

bool codec_registry_add(struct codec_registry *r, const struct codec_entry *e)
{
	if (r->entries == CODEC_ENTRIES || variant(r, &e->about, e->about.rate))
		return false;
	r->entry[r->entries++] = *e;
	return true;
}

int codec_registry_create(struct codec_registry **out)
{
	const struct xcipher_codec_plugin *p = codec_builtin();
	struct codec_registry *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->codecs; i++) {
		struct codec_entry e = {.codec = p->codec[i], .number = i, .plugin = UINT32_MAX};

		codec_about_fill(&e.about, e.codec);
		codec_registry_add(r, &e);
	}
	*out = r;
	return 0;
}

void codec_registry_destroy(struct codec_registry *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->plugins; i++) {
		codec_home_destroy(r->loaded[i].home);
		free(r->loaded[i].tables);
	}
	free(r);
}
