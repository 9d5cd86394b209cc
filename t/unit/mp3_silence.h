/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame of MP3: MPEG-1 layer III, 32 kbit/s, 44.1 kHz, mono. Its granules have no coefficients,
 * so it is silence. Any number of them make a file. */
#ifndef MP3_SILENCE_H
#define MP3_SILENCE_H

#include <stdint.h>

enum { MP3_SILENCE_RATE = 44100, MP3_SILENCE_SAMPLES = 1152 };

/* 144 * 32000 / 44100 bytes; the side information is all zeroes, too */
static const uint8_t mp3_silence[104] = {0xff, 0xfb, 0x10, 0xc4};

#endif
