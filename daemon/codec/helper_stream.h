/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of one stream: does what the host asks by their shared memory. */
#ifndef CODEC_HELPER_STREAM_H
#define CODEC_HELPER_STREAM_H

#include "codec/shared.h"

/* Does not return. memory: of a struct codec_shared; sock: to the host. */
_Noreturn void helper_stream(const struct xcipher_codec_plugin *p, int memory, int sock);

#endif
