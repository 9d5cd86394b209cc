/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Speech for tests of quality: a sentence by espeak-ng, or, where that is not installed, a sum of
 * harmonics whose pitch and strength change. */
#ifndef CODEC_SPEECH_H
#define CODEC_SPEECH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills samples of one channel at the rate. Whether it is espeak-ng's. */
bool codec_speech(int16_t *pcm, size_t samples, uint32_t rate);

#endif
