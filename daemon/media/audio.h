/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams whose audio is transcoded: media_stream_cfg.audio. */
#ifndef MEDIA_AUDIO_H
#define MEDIA_AUDIO_H

#include "media/state.h"

/* Called by complete.c: copies an authentic, decrypted packet into the ring of the stream's codec
 * thread. Returns PACKET_AUDIO, or the reason of the drop. */
uint8_t media_audio_give(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j);

#endif
