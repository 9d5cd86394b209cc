/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An Ogg Opus file that grows (RFC 7845). Each write appends whole pages, so the file still plays
 * after a crash. Two channels are two mono streams, so that no party is heard in the other's
 * channel. While it is open it has a lock (flock). One thread only; may block. */
#ifndef RECORD_RECORD_OPUS_H
#define RECORD_RECORD_OPUS_H

#include "codec/registry.h"

struct record_opus;

/* The second header packet: our name, of seven letters, as the vendor, and no comments. */
#define RECORD_OPUS_TAGS "OpusTags\7\0\0\0xcipher\0\0\0\0"

/* The codec that encodes mono PCM of this rate in Hz; NULL: there is none. */
const struct codec_entry *record_opus_codec(const struct codec_registry *r, uint32_t rate);

/* Creates the file, which must not exist, readable by the owner only. channels: 1 or 2. 0 or
 * -errno. */
int record_opus_open(struct record_opus **out, const char *path, const struct codec_entry *codec,
	uint16_t channels);
/* Appends n samples of each channel, interleaved. Up to 20 ms of them wait for the next ones. 0, or
 * -errno: they were not written, and the next ones follow after that much silence. */
int record_opus_write(struct record_opus *o, const int16_t *pcm, uint32_t n);
/* Puts n samples of silence into each channel. n: a multiple of 20 ms. They are written before the
 * next samples, and take four bytes for each 20 ms and channel. */
void record_opus_silence(struct record_opus *o, uint64_t n);
/* Writes the rest, and closes the file. discard: removes it instead. NULL is fine. 0 or -errno. */
int record_opus_close(struct record_opus *o, bool discard);

/* Cuts an incomplete page off the ends of the folder's recordings, and marks the last page as such,
 * after a crash. Touches only files that record_opus_open() named and wrote. Returns the number of
 * files that it changed. A file that a process has open stays as it is.
 * A file of many short pages, which is no recording, must not delay the start. So at most "pages"
 * pages of one file are read, and RECORD_OPUS_FILES times as many of all files. Files beyond that
 * stay as they are, and can still be played. */
uint32_t record_opus_repair(const char *dir, uint32_t pages);
#define RECORD_OPUS_PAGES (1u << 20) /* a recording of days: it has about one page a second */
#define RECORD_OPUS_FILES 8u

#endif
