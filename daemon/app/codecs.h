/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the codecs that the options name (codec/registry.h). Control thread. */
#ifndef APP_CODECS_H
#define APP_CODECS_H

#include "app/options.h"
#include "bridge/audio.h"
#include "codec/registry.h"
#include "proto/ngval.h"

/* Loads the built-in codecs, and tests and loads all plug-ins. It logs each plug-in, and the reason
 * for each that is refused. 0, or -errno with one line in err if a folder of --codec-dir cannot be
 * used. After an error too, the caller destroys *out. The options must outlive the registry.
 * Blocks; call it before there are threads. */
int app_codecs_load(
	struct codec_registry **out, const struct options *o, char *err, size_t err_len);
/* Writes the reply to the ng command "codecs". */
void app_codecs_show(const struct codec_registry *r, struct pool *p, struct ngval *dict);
/* Adds what the codec threads did. b: NULL: there are none. */
void app_codecs_show_threads(const struct bridge_audio *b, struct pool *p, struct ngval *dict);

#endif
