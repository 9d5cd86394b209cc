/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All codecs of this process: the built-in ones, and those of the plug-ins of a folder. It is
 * filled once and then only read. */
#ifndef CODEC_REGISTRY_H
#define CODEC_REGISTRY_H

#include "codec/about.h"
#include "codec/home.h"

enum { CODEC_ENTRIES = 256, CODEC_PLUGINS = 64, CODEC_FILE_MAX = 64 };

enum codec_isolation {
	CODEC_ISOLATE_FOREIGN, /* plug-ins of other folders than our own */
	CODEC_ISOLATE_ALL,
	CODEC_ISOLATE_NONE,
};

/* A plug-in that was found, loaded or not. */
struct codec_loaded {
	char file[CODEC_FILE_MAX];
	char version[CODEC_NAME_MAX], license[CODEC_NAME_MAX];
	char refused[CODEC_WHY_MAX];         /* the reason; empty: it is loaded */
	uint32_t codecs;                     /* entries that it has */
	struct codec_home *home;             /* isolated; NULL: in this process */
	struct xcipher_codec_plugin *tables; /* in this process */
};

struct codec_entry {
	struct codec_about about;
	const struct xcipher_codec *codec; /* in this process, */
	struct codec_home *home;           /* or isolated */
	uint32_t number;                   /* of the codec in its plug-in */
	uint32_t plugin;                   /* in loaded; UINT32_MAX: built in */
};

struct codec_registry {
	struct codec_entry entry[CODEC_ENTRIES];
	uint32_t entries;
	struct codec_loaded loaded[CODEC_PLUGINS];
	uint32_t plugins;
	const struct xcipher_resampler *resampler; /* of a plug-in; NULL: only the built-in one */
};

/* With the built-in codecs. 0 or -ENOMEM. */
int codec_registry_create(struct codec_registry **out);
/* No stream may be open. Plug-ins in this process stay loaded until it ends: libraries keep memory
 * and threads that they never give back. */
void codec_registry_destroy(struct codec_registry *r);
/* The codec of this name, clock and channels; of several PCM rates, the plug-in's first. NULL:
 * there is none. Names are compared without case. */
const struct codec_entry *codec_registry_find(
	const struct codec_registry *r, const char *name, uint32_t clock, uint32_t channels);
/* The same codec with PCM of this rate in Hz, or e itself if there is none. */
const struct codec_entry *codec_registry_variant(
	const struct codec_registry *r, const struct codec_entry *e, uint32_t rate);
/* The resampler between two rates in Hz: the built-in one if it has them, else that of a plug-in.
 * NULL: there is none. */
const struct xcipher_resampler *codec_registry_resampler(
	const struct codec_registry *r, uint32_t from, uint32_t to);
/* Whether PCM of one rate can be sent as PCM of the other, both ways. */
bool codec_registry_rates_fit(const struct codec_registry *r, uint32_t a, uint32_t b);
/* Adds a codec. False: there is one of its name, clock, channels and PCM rate already. */
bool codec_registry_add(struct codec_registry *r, const struct codec_entry *e);

#endif
