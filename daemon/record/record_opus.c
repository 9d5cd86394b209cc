/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ogg Opus files of recordings (record/record_opus.h). The encoder is a codec of the registry,
 * which may run in a process of its own, so its packets are checked. */
#include "record/record_opus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/bytes.h"
#include "codec/stream.h"
#include "record/record_ogg.h"

enum {
	FRAME_MS = 20,
	FRAME_48 = 960, /* its samples at 48 kHz, the unit of granules */
	FRAME_MAX = FRAME_48,
	PACKET_MAX = 1275, /* of one frame (RFC 6716 3.2.1) */
	/* The delay of libopus for voice, 6.5 ms at 48 kHz. Players skip it. */
	PRE_SKIP = 312,
};

/* One frame of 20 ms in the mode for music, whose first bit says that it is silent. */
static const uint8_t silence[] = {0xf8, 0xff, 0xfe};

struct record_opus {
	int fd;
	uint32_t rate, serial, number; /* number: of the next page */
	uint16_t channels;
	const struct codec_entry *codec;
	struct codec_stream *coder[2];
	uint64_t size;    /* bytes of whole pages in the file */
	uint64_t frames;  /* written to them */
	uint64_t owed;    /* frames of silence before the next samples */
	uint64_t samples; /* of each channel, given so far, with silence */
	int16_t pcm[2][FRAME_MAX];
	uint32_t waiting; /* samples in pcm */
	uint32_t paged;   /* frames in page */
	struct record_ogg page;
	uint8_t bytes[RECORD_OGG_MAX];
	char path[];
};

static uint32_t frame_samples(const struct record_opus *o)
{
	return o->rate * FRAME_MS / 1000;
}

const struct codec_entry *record_opus_codec(const struct codec_registry *r, uint32_t rate)
{
	const struct codec_entry *e = codec_registry_find(r, "opus", 48000, 1);

	if (!e)
		return NULL;
	e = codec_registry_variant(r, e, rate);
	return e->about.rate == rate && e->about.can & CODEC_ENCODES ? e : NULL;
}

/* --- Pages ------------------------------------------------------------------------------------ */

static int write_at(int fd, const uint8_t *p, size_t len, off_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Writes the page. After an error its frames are owed as silence. */
static int end_page(struct record_opus *o, uint8_t flags, uint64_t granule)
{
	struct record_ogg_page p = {
		.flags = flags, .granule = granule, .serial = o->serial, .number = o->number};
	size_t len = record_ogg_end(&o->page, &p, o->bytes);
	int err = write_at(o->fd, o->bytes, len, (off_t)o->size);
	uint32_t frames = o->paged;

	o->paged = 0;
	if (err) {
		(void)!ftruncate(o->fd, (off_t)o->size);
		o->owed += frames;
		return err;
	}
	o->size += len;
	o->frames += frames;
	o->number++;
	return 0;
}

static int flush(struct record_opus *o)
{
	return o->paged ? end_page(o, 0, (o->frames + o->paged) * FRAME_48) : 0;
}

static int add(struct record_opus *o, const uint8_t *packet, size_t len)
{
	int err = 0;

	if (!record_ogg_add(&o->page, packet, len)) {
		err = flush(o);
		if (err) {
			o->owed++;
			return err;
		}
		(void)record_ogg_add(&o->page, packet, len); /* an empty page has room for any */
	}
	o->paged++;
	return 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Whether a packet is one frame of 20 ms, mono (RFC 6716 3.1). */
static bool is_sound(const uint8_t *p, int len)
{
	uint8_t config;

	if (len < 1 || len > PACKET_MAX + 1 || p[0] & 7)
		return false;
	config = p[0] >> 3;
	return config < 12 ? config % 4 == 1 : config < 16 ? config % 2 == 1 : config % 4 == 3;
}

/* Appends the packet of a channel. All but the last channel's state their length, after the first
 * byte (RFC 6716 appendix B). */
static size_t put_packet(uint8_t *to, const uint8_t *p, size_t len, bool last)
{
	size_t n = 0, body = len - 1;

	to[n++] = p[0];
	if (!last && body < 252) {
		to[n++] = (uint8_t)body;
	} else if (!last) {
		to[n++] = (uint8_t)(252 + (body & 3));
		to[n++] = (uint8_t)((body - 252 - (body & 3)) / 4);
	}
	memcpy(to + n, p + 1, body);
	return n + body;
}

/* Adds the packet of all channels: of o->pcm, or silence without the encoders. */
static int put_frame(struct record_opus *o, bool silent)
{
	uint8_t packet[2 * (PACKET_MAX + 3)], one[PACKET_MAX + 1];
	size_t len = 0;

	for (uint32_t c = 0; c < o->channels; c++) {
		int n = silent ? 0
			       : codec_stream_encode(o->coder[c], o->pcm[c], frame_samples(o), one,
					 sizeof(one));

		if (!is_sound(one, n)) {
			memcpy(one, silence, sizeof(silence));
			n = sizeof(silence);
		}
		len += put_packet(packet + len, one, (size_t)n, c + 1u == o->channels);
	}
	return add(o, packet, len);
}

static int open_coder(struct codec_stream **out, const struct codec_entry *codec)
{
	struct codec_stream_cfg cfg = {.can = CODEC_ENCODES, .wish = {.size = sizeof(cfg.wish)}};

	return codec_stream_open(out, codec, &cfg);
}

/* After frames that the encoders did not make, decoders do not know what these refer to. */
static void restart_coders(struct record_opus *o)
{
	for (uint32_t c = 0; c < o->channels; c++) {
		struct codec_stream *next;

		if (open_coder(&next, o->codec))
			continue; /* with the old one, quality is lower for an instant */
		codec_stream_close(o->coder[c]);
		o->coder[c] = next;
	}
}

/* Writes the silence that is owed. What fails stays owed. */
static int settle(struct record_opus *o)
{
	int err = 0;

	if (o->owed)
		restart_coders(o);
	while (o->owed && !err) {
		o->owed--;
		err = put_frame(o, true);
	}
	return err;
}

int record_opus_write(struct record_opus *o, const int16_t *pcm, uint32_t n)
{
	int err = n ? settle(o) : 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t c = 0; c < o->channels; c++)
			o->pcm[c][o->waiting] = *pcm++;
		if (++o->waiting < frame_samples(o))
			continue;
		o->waiting = 0;
		if (err)
			o->owed++;
		else
			err = put_frame(o, false);
	}
	o->samples += n;
	return err ? err : flush(o);
}

void record_opus_silence(struct record_opus *o, uint64_t n)
{
	o->owed += n / frame_samples(o);
	o->samples += n;
}

/* --- Life ------------------------------------------------------------------------------------- */

static void put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

/* The two header packets, each on a page of its own (RFC 7845 5). */
static int write_headers(struct record_opus *o)
{
	uint8_t head[23] = "OpusHead\1", tags[sizeof(RECORD_OPUS_TAGS) - 1];
	int err;

	head[9] = (uint8_t)o->channels;
	head[10] = PRE_SKIP & 0xff;
	head[11] = PRE_SKIP >> 8;
	put_le32(head + 12, o->rate);
	/* Family 1: the number of streams, how many of them are stereo, and each channel's. */
	head[18] = o->channels > 1;
	head[19] = (uint8_t)o->channels;
	head[22] = 1;
	(void)record_ogg_add(&o->page, head, o->channels > 1 ? sizeof(head) : 19);
	err = end_page(o, RECORD_OGG_FIRST, 0);
	if (err)
		return err;
	memcpy(tags, RECORD_OPUS_TAGS, sizeof(tags));
	(void)record_ogg_add(&o->page, tags, sizeof(tags));
	return end_page(o, 0, 0);
}

static void free_opus(struct record_opus *o)
{
	for (uint32_t c = 0; c < 2; c++)
		codec_stream_close(o->coder[c]);
	if (o->fd >= 0)
		close(o->fd);
	explicit_bzero(o->pcm, sizeof(o->pcm));
	free(o);
}

int record_opus_open(struct record_opus **out, const char *path, const struct codec_entry *codec,
	uint16_t channels)
{
	struct record_opus *o = calloc(1, sizeof(*o) + strlen(path) + 1);
	int err = 0;

	if (!o)
		return -ENOMEM;
	o->fd = -1;
	o->codec = codec;
	o->rate = codec->about.rate;
	o->channels = channels;
	o->serial = 1;
	memcpy(o->path, path, strlen(path) + 1);
	for (uint32_t c = 0; c < channels && !err; c++)
		err = open_coder(&o->coder[c], codec);
	if (!err) {
		o->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		err = o->fd < 0 ? -errno : 0;
	}
	if (!err) {
		/* Another daemon with the same folder leaves it alone. Not every file system has
		 * locks. */
		(void)flock(o->fd, LOCK_EX | LOCK_NB);
		err = write_headers(o);
		if (err)
			unlink(path);
	}
	if (err)
		free_opus(o);
	else
		*out = o;
	return err;
}

/* The last samples leave the encoder after its delay. The granule of the last page says which part
 * of its frames is audio (RFC 7845 4.4). */
static int write_end(struct record_opus *o)
{
	uint64_t end = PRE_SKIP + o->samples * 48000 / o->rate;
	int err = settle(o);

	if (o->waiting)
		for (uint32_t c = 0; c < o->channels; c++)
			memset(o->pcm[c] + o->waiting, 0,
				(frame_samples(o) - o->waiting) * sizeof(o->pcm[c][0]));
	else
		memset(o->pcm, 0, sizeof(o->pcm));
	while (!err && (o->frames + o->paged) * FRAME_48 < end) {
		err = put_frame(o, false);
		memset(o->pcm, 0, sizeof(o->pcm));
	}
	return err ? err : end_page(o, RECORD_OGG_LAST, end);
}

int record_opus_close(struct record_opus *o, bool discard)
{
	int err = 0;

	if (!o)
		return 0;
	if (discard)
		unlink(o->path);
	else
		err = write_end(o);
	free_opus(o);
	return err;
}
