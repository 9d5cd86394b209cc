/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WAV files of recordings (record/record_wav.h). */
#include "record/record_wav.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "record/record_name.h"

enum { CHUNK = 4096, SAMPLE_BYTES = 2, CHUNKS_MAX = 64 };

/* Places in the header. It reserves the room of the chunk ds64, as EBU Tech 3306 recommends: up to
 * 4 GiB it is a RIFF file with an unused chunk, and above that an RF64 file. */
enum {
	AT_ROOM = 12,     /* JUNK or ds64 */
	AT_ROOM_LEN = 16, /* of it: 28 */
	AT_RIFF_64 = 20,
	AT_DATA_64 = 28,
	AT_COUNT_64 = 36,
	AT_FORMAT = 48,
	AT_CHANNELS = 58,
	AT_RATE = 60,
	AT_DATA = 72,
	OLD_HEADER = 44, /* of earlier versions: without the reserved room */
	OLD_CHANNELS = 22,
	OLD_RATE = 24,
};

struct record_wav {
	int fd;
	uint32_t rate;
	uint16_t channels;
	uint64_t data; /* bytes of samples in the file */
	uint64_t owed; /* bytes that were not written: silence before the next samples */
	char path[];
};

static void put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_format(uint8_t *p, uint32_t rate, uint16_t channels)
{
	memcpy(p, "fmt ", 4);
	put_le32(p + 4, 16);
	put_le16(p + 8, 1); /* PCM */
	put_le16(p + 10, channels);
	put_le32(p + 12, rate);
	put_le32(p + 16, rate * channels * SAMPLE_BYTES);
	put_le16(p + 20, (uint16_t)(channels * SAMPLE_BYTES));
	put_le16(p + 22, 8 * SAMPLE_BYTES);
	memcpy(p + 24, "data", 4);
}

static void header(uint8_t h[RECORD_WAV_HEADER], uint32_t rate, uint16_t channels, uint64_t data)
{
	uint64_t riff = data + RECORD_WAV_HEADER - 8;
	bool big = riff > UINT32_MAX;

	memset(h, 0, RECORD_WAV_HEADER);
	memcpy(h, big ? "RF64" : "RIFF", 4);
	put_le32(h + 4, big ? UINT32_MAX : (uint32_t)riff);
	memcpy(h + 8, "WAVE", 4);
	memcpy(h + AT_ROOM, big ? "ds64" : "JUNK", 4);
	put_le32(h + AT_ROOM_LEN, AT_FORMAT - AT_RIFF_64);
	if (big) {
		put_le64(h + AT_RIFF_64, riff);
		put_le64(h + AT_DATA_64, data);
		put_le64(h + AT_COUNT_64, data / SAMPLE_BYTES / channels);
	}
	put_format(h + AT_FORMAT, rate, channels);
	put_le32(h + AT_DATA + 4, big ? UINT32_MAX : (uint32_t)data);
}

/* As earlier versions wrote it. */
static void old_header(uint8_t h[OLD_HEADER], uint32_t rate, uint16_t channels, uint32_t data)
{
	memcpy(h, "RIFF", 4);
	put_le32(h + 4, data + OLD_HEADER - 8);
	memcpy(h + 8, "WAVE", 4);
	put_format(h + 12, rate, channels);
	put_le32(h + OLD_HEADER - 4, data);
}

static int write_at(int fd, const void *bytes, size_t len, off_t at)
{
	const uint8_t *p = bytes;

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

static int write_header(const struct record_wav *w)
{
	uint8_t h[RECORD_WAV_HEADER];

	header(h, w->rate, w->channels, w->data);
	return write_at(w->fd, h, sizeof(h), 0);
}

int record_wav_open(struct record_wav **out, const char *path, uint32_t rate, uint16_t channels)
{
	struct record_wav *w = calloc(1, sizeof(*w) + strlen(path) + 1);
	int err;

	if (!w)
		return -ENOMEM;
	w->rate = rate;
	w->channels = channels;
	memcpy(w->path, path, strlen(path) + 1);
	w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd < 0) {
		err = -errno;
		free(w);
		return err;
	}
	/* Another daemon with the same folder leaves it alone. Not every file system has locks. */
	(void)flock(w->fd, LOCK_EX | LOCK_NB);
	err = write_header(w);
	if (err) {
		record_wav_close(w, true);
		return err;
	}
	*out = w;
	return 0;
}

int record_wav_write(struct record_wav *w, const int16_t *pcm, uint32_t n)
{
	uint8_t bytes[CHUNK];
	uint32_t left = n * w->channels, len = left * SAMPLE_BYTES, done = 0;
	int err = 0;

	if (!len)
		return 0;
	while (left && !err) {
		uint32_t some = min_u32(left, CHUNK / SAMPLE_BYTES);

		for (uint32_t i = 0; i < some; i++)
			put_le16(bytes + SAMPLE_BYTES * i, (uint16_t)*pcm++);
		err = write_at(w->fd, bytes, (size_t)some * SAMPLE_BYTES,
			(off_t)(RECORD_WAV_HEADER + w->data + w->owed + done));
		done += some * SAMPLE_BYTES;
		left -= some;
	}
	if (!err) {
		w->data += w->owed + len;
		err = write_header(w);
		w->data -= err ? w->owed + len : 0;
	}
	if (!err) {
		w->owed = 0;
		return 0;
	}
	/* The header states the old length, so the part that was written has to go. */
	(void)!ftruncate(w->fd, (off_t)(RECORD_WAV_HEADER + w->data));
	w->owed += len;
	return err;
}

void record_wav_silence(struct record_wav *w, uint64_t n)
{
	w->owed += n * w->channels * SAMPLE_BYTES;
}

void record_wav_close(struct record_wav *w, bool discard)
{
	if (!w)
		return;
	if (discard)
		unlink(w->path);
	close(w->fd);
	free(w);
}

/* --- After a crash ---------------------------------------------------------------------------- */

/* Whether two headers differ in nothing but the lengths, which may contradict each other. */
static bool is_ours(const uint8_t *h, const uint8_t *want, bool old)
{
	size_t from = old ? 8 : AT_FORMAT;

	if (memcmp(h, "RIFF", 4) != 0 && (old || memcmp(h, "RF64", 4) != 0))
		return false;
	if (!old &&
		(memcmp(h + 8, want + 8, 4) != 0 ||
			memcmp(h + AT_ROOM_LEN, want + AT_ROOM_LEN, 4) != 0 ||
			(memcmp(h + AT_ROOM, "JUNK", 4) != 0 &&
				memcmp(h + AT_ROOM, "ds64", 4) != 0)))
		return false;
	return memcmp(h + from, want + from, (old ? OLD_HEADER : RECORD_WAV_HEADER) - 4 - from) ==
		0;
}

/* Whether the file ends with chunks that another program appended, as a tag editor does. h: its
 * header, len bytes. The lengths in it are right then: after a crash, that of RIFF is too small. */
static bool has_more_chunks(int fd, const uint8_t *h, uint64_t len, uint64_t size)
{
	uint64_t at = len + le32(h + len - 4), end;
	uint8_t c[8];

	if (memcmp(h, "RIFF", 4) != 0 || le32(h + 4) + 8ull != size)
		return false;
	for (int i = 0; i < CHUNKS_MAX; i++) {
		at += at % 2; /* each chunk begins at an even place */
		if (at + sizeof(c) > size || pread(fd, c, sizeof(c), (off_t)at) != sizeof(c))
			return false;
		for (int k = 0; k < 4; k++)
			if (c[k] < ' ' || c[k] > '~')
				return false;
		end = at + sizeof(c) + le32(c + 4);
		if (end == size || end + end % 2 == size)
			return true;
		at = end;
	}
	return false;
}

/* Corrects the header of a file of this version or, if old, of an earlier one. */
static bool repair_as(int fd, uint64_t size, bool old)
{
	uint8_t h[RECORD_WAV_HEADER], want[RECORD_WAV_HEADER];
	uint64_t len = old ? OLD_HEADER : RECORD_WAV_HEADER, data;
	uint16_t channels;
	uint32_t rate;

	if (size < len || (old && size > UINT32_MAX) || pread(fd, h, len, 0) != (ssize_t)len)
		return false;
	channels = h[old ? OLD_CHANNELS : AT_CHANNELS];
	rate = le32(h + (old ? OLD_RATE : AT_RATE));
	if (channels != 1 && channels != 2)
		return false;
	data = size - len;
	data -= data % (SAMPLE_BYTES * channels);
	if (old)
		old_header(want, rate, channels, (uint32_t)data);
	else
		header(want, rate, channels, data);
	if (!is_ours(h, want, old) || memcmp(h, want, len) == 0 ||
		has_more_chunks(fd, h, len, size))
		return false;
	return ftruncate(fd, (off_t)(len + data)) == 0 && write_at(fd, want, len, 0) == 0;
}

/* Whether the header was corrected. A file that another process writes, another program's file, or
 * one that is right, stays. */
static bool repair(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || flock(fd, LOCK_EX | LOCK_NB) ||
		fstat(fd, &st))
		return false;
	return repair_as(fd, (uint64_t)st.st_size, false) ||
		repair_as(fd, (uint64_t)st.st_size, true);
}

uint32_t record_wav_repair(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	uint32_t n = 0;
	int fd;

	if (!d)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (!record_name_is_wav(e->d_name))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		n += repair(fd);
		close(fd);
	}
	closedir(d);
	return n;
}
