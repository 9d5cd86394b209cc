/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of one recording: their common name, and one of these endings. Pure. */
#ifndef RECORD_RECORD_NAME_H
#define RECORD_RECORD_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_NAME_MIX, RECORD_NAME_SIDE }; /* SIDE + n: of side n, from 0 */
#define RECORD_NAME_SIDES  16u
#define RECORD_NAME_SOUNDS (RECORD_NAME_SIDE + RECORD_NAME_SIDES)
#define RECORD_NAME_MAX    9u /* bytes of an ending, at most */
#define RECORD_NAME_ENDS   (2 + 2 * RECORD_NAME_SOUNDS)

/* The ending of an audio file: "-mix.wav", or "-1.wav" for side 0; with opus "-mix.opus" and
 * "-1.opus". which: below RECORD_NAME_SOUNDS. */
void record_name_sound(char out[RECORD_NAME_MAX + 1], uint32_t which, bool opus);
/* Every ending by number, below RECORD_NAME_ENDS: ".pcap", ".txt", and those of audio files. */
void record_name_end(char out[RECORD_NAME_MAX + 1], uint32_t which);
/* Whether the name has the ending of a WAV or Opus file. */
bool record_name_is_wav(const char *name);
bool record_name_is_opus(const char *name);

#endif
