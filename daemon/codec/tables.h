/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of a plug-in's tables with the lengths that this program knows. Structures of the
 * interface grow at their end (xcipher_codec.h), so those of an older plug-in are shorter: here the
 * rest is zero. Those of a newer one are longer: the rest is left out. */
#ifndef CODEC_TABLES_H
#define CODEC_TABLES_H

#include "xcipher_codec.h"

/* Returns copies of all tables of p in one block for free(). Texts and functions stay the
 * plug-in's. Checks no more than it needs to: codec_check_plugin() does the rest. NULL: no memory,
 * or what *why then says. */
struct xcipher_codec_plugin *codec_tables_copy(
	const struct xcipher_codec_plugin *p, const char **why);

#endif
