/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WAV files. Chunks may come in any order. Each size in the file is compared with the length of the
 * file. */
#include "audio/wav.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "audio/clip.h"
#include "codec/g711.h"

enum {
	FORMAT_PCM = 1,
	FORMAT_FLOAT = 3,
	FORMAT_ALAW = 6,
	FORMAT_ULAW = 7,
	FORMAT_EXTENSIBLE = 0xfffe,
};

enum { RIFF_LEN = 12, CHUNK_LEN = 8, FMT_LEN = 16, FMT_EXTENSIBLE_LEN = 40 };

static uint16_t le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
	return le16(p) | (uint32_t)le16(p + 2) << 16;
}

/* The rest of the GUID of an extensible format, after its first two bytes. */
static bool is_known_guid(const uint8_t *p)
{
	static const uint8_t guid[14] = {
		0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};

	return !memcmp(p, guid, sizeof(guid));
}

static int set_coding(struct wav *w, uint16_t format, uint16_t bits)
{
	switch (format) {
	case FORMAT_PCM:
		w->coding = WAV_PCM;
		break;
	case FORMAT_FLOAT:
		w->coding = WAV_FLOAT;
		break;
	case FORMAT_ALAW:
	case FORMAT_ULAW:
		w->coding = format == FORMAT_ALAW ? WAV_ALAW : WAV_ULAW;
		break;
	default:
		return -ENOTSUP;
	}
	w->bytes = (uint8_t)(bits / 8);
	if (bits % 8 || !bits || bits > 64)
		return -ENOTSUP;
	if (w->coding == WAV_PCM)
		return w->bytes <= 4 ? 0 : -ENOTSUP;
	if (w->coding == WAV_FLOAT)
		return w->bytes == 4 || w->bytes == 8 ? 0 : -ENOTSUP;
	return w->bytes == 1 ? 0 : -ENOTSUP;
}

static int parse_format(struct wav *w, const uint8_t *p, size_t len)
{
	uint16_t format, bits;

	if (len < FMT_LEN)
		return -EBADMSG;
	format = le16(p);
	w->channels = le16(p + 2);
	w->rate = le32(p + 4);
	bits = le16(p + 14);
	if (format == FORMAT_EXTENSIBLE) {
		if (len < FMT_EXTENSIBLE_LEN)
			return -EBADMSG;
		if (!is_known_guid(p + 26))
			return -ENOTSUP;
		format = le16(p + 24);
	}
	if (!w->channels || !w->rate)
		return -EBADMSG;
	if (w->channels > WAV_CHANNELS || w->rate < WAV_MIN_RATE || w->rate > WAV_MAX_RATE)
		return -ENOTSUP;
	return set_coding(w, format, bits);
}

/* Looks at one chunk. len: bytes that the file has of it. 1: format and samples are found; 0, or
 * -errno. */
static int take_chunk(struct wav *w, const uint8_t *name, const uint8_t *body, size_t len)
{
	int err;

	if (!memcmp(name, "fmt ", 4) && !w->bytes) {
		err = parse_format(w, body, len);
		if (err)
			return err;
	} else if (!memcmp(name, "data", 4) && !w->data) {
		w->data = body;
		w->frames = (uint32_t)len; /* in bytes, until both are found */
	}
	if (!w->data || !w->bytes)
		return 0;
	w->frames /= (uint32_t)w->bytes * w->channels;
	return 1;
}

int wav_parse(struct wav *out, const uint8_t *file, size_t len)
{
	struct wav w = {0};
	size_t at = RIFF_LEN;
	int found = 0;

	if (len < RIFF_LEN || memcmp(file, "RIFF", 4) || memcmp(file + 8, "WAVE", 4))
		return -ENOMSG;
	while (!found && at + CHUNK_LEN <= len) {
		const uint8_t *chunk = file + at;
		size_t size = le32(chunk + 4), there = len - at - CHUNK_LEN;

		found = take_chunk(&w, chunk, chunk + CHUNK_LEN, size < there ? size : there);
		at += CHUNK_LEN + size + (size & 1);
	}
	if (found <= 0)
		return found ? found : -EBADMSG;
	*out = w;
	return 0;
}

int wav_raw(struct wav *out, enum wav_coding coding, uint32_t rate, const uint8_t *file, size_t len)
{
	uint8_t bytes = coding == WAV_PCM ? 2 : 1;

	if (coding == WAV_FLOAT || rate < WAV_MIN_RATE || rate > WAV_MAX_RATE ||
		len / bytes > UINT32_MAX)
		return -ENOTSUP;
	*out = (struct wav){.coding = (uint8_t)coding,
		.bytes = bytes,
		.channels = 1,
		.rate = rate,
		.frames = (uint32_t)(len / bytes),
		.data = file};
	return 0;
}

/* Rounds to 16 bits. Not-a-number is silence. */
static int16_t from_float(double v)
{
	if (!(v > -1.0))
		return v != v ? 0 : INT16_MIN;
	if (v >= 32767.0 / 32768.0)
		return INT16_MAX;
	v *= 32768;
	return (int16_t)(v < 0 ? v - 0.5 : v + 0.5);
}

static int16_t from_float_bytes(const uint8_t *p, uint8_t bytes)
{
	uint64_t low = le32(p);
	uint32_t single = le32(p);
	double d;
	float f;

	if (bytes == 4) {
		memcpy(&f, &single, sizeof(f));
		return from_float(f);
	}
	low |= (uint64_t)le32(p + 4) << 32;
	memcpy(&d, &low, sizeof(d));
	return from_float(d);
}

static int16_t sample(const struct wav *w, const uint8_t *p)
{
	switch (w->coding) {
	case WAV_ALAW:
		return g711_alaw_decode(*p);
	case WAV_ULAW:
		return g711_ulaw_decode(*p);
	case WAV_FLOAT:
		return from_float_bytes(p, w->bytes);
	default:
		break;
	}
	if (w->bytes == 1)
		return (int16_t)((*p - 128) * 256); /* 8 bits have no sign */
	return (int16_t)le16(p + w->bytes - 2);
}

struct audio_clip *wav_clip(const struct wav *w)
{
	struct audio_clip *c = audio_clip_create(w->rate, w->frames);
	const uint8_t *p = w->data;

	for (uint32_t i = 0; c && i < w->frames; i++) {
		int32_t sum = 0;

		for (uint32_t k = 0; k < w->channels; k++, p += w->bytes)
			sum += sample(w, p);
		c->pcm[i] = (int16_t)(sum / w->channels);
	}
	return c;
}
