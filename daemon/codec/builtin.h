/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The codecs that need no library: PCMU, PCMA, L16 and G.722, described as a plug-in describes its
 * own. */
#ifndef CODEC_BUILTIN_H
#define CODEC_BUILTIN_H

#include "xcipher_codec.h"

const struct xcipher_codec_plugin *codec_builtin(void);

#endif
