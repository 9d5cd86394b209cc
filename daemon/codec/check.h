/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the tables of a plug-in keep the rules of xcipher_codec.h. Calls none of its functions
 * but the one that returns the tables. */
#ifndef CODEC_CHECK_H
#define CODEC_CHECK_H

#include <stdbool.h>

#include "xcipher_codec.h"

enum { CODEC_WHY_MAX = 160, CODEC_NAME_MAX = 32 };

/* 0, or -EINVAL and a reason of at most CODEC_WHY_MAX bytes in why. p may be NULL. */
int codec_check_plugin(const struct xcipher_codec_plugin *p, char *why);
/* A name of RTP: letters, digits and a few signs, up to CODEC_NAME_MAX - 1 bytes. */
bool codec_name_valid(const char *name);

/* Loads a plug-in into this process and checks its tables. 0, or -errno and a reason. The file is
 * trusted: its constructors run here. *handle is for dlclose(), and *out for free(): it has copies
 * of the tables (codec/tables.h). */
int codec_check_open(const char *path, void **handle, struct xcipher_codec_plugin **out, char *why);

#endif
