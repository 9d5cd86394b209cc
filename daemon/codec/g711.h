/* SPDX-License-Identifier: GPL-2.0-or-later */
/* G.711: one byte per sample, mu-law and A-law, to and from 16-bit PCM. Pure. */
#ifndef CODEC_G711_H
#define CODEC_G711_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code of the interval that contains the sample. A sample on a border takes the code of the
 * interval farther from zero; with A-law and below zero that of the nearer one. */
uint8_t g711_ulaw_encode(int16_t sample);
uint8_t g711_alaw_encode(int16_t sample);
/* The middle of the code's interval. */
int16_t g711_ulaw_decode(uint8_t code);
int16_t g711_alaw_decode(uint8_t code);
/* The same for n samples or codes, several at once. The arrays must not overlap. */
void g711_ulaw_encode_all(const int16_t *sample, size_t n, uint8_t *code);
void g711_alaw_encode_all(const int16_t *sample, size_t n, uint8_t *code);
void g711_ulaw_decode_all(const uint8_t *code, size_t n, int16_t *sample);
void g711_alaw_decode_all(const uint8_t *code, size_t n, int16_t *sample);

#endif
