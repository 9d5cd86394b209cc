/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that audio sessions report to calls. */
#ifndef AUDIO_EVENT_H
#define AUDIO_EVENT_H

#include <stdint.h>

enum audio_event_kind {
	AUDIO_EVENT_PLAYED, /* a play has ended */
	AUDIO_EVENT_DIGIT,  /* the terminal's digit, of an event or a tone, has begun */
	AUDIO_EVENT_BROKEN, /* a codec's process failed too often: the leg is silent */
};

struct audio_event {
	uint32_t serial; /* of the session */
	uint8_t kind;    /* enum audio_event_kind */
	uint8_t digit;   /* DIGIT: RFC 4733 */
	uint32_t id;     /* PLAYED: of the play */
};

#endif
