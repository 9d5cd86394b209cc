/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal's packets: decodes them, and gives their audio to the session of the other leg. */
#ifndef AUDIO_HEAR_H
#define AUDIO_HEAR_H

#include "audio/session.h"

/* Processes the packet that is due; lost: missing packets before it. */
void audio_hear(struct audio_session *s, struct audio_session *to, const struct audio_packet *p,
	uint32_t lost, uint64_t now_ns);
/* Call it when the terminal's source has started or restarted. */
void audio_hear_start(struct audio_session *s);
/* Generates comfort noise for the other terminal, if it is due. */
void audio_hear_noise(struct audio_session *s, struct audio_session *to, uint64_t now_ns);

#endif
