/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WAV files of recordings (record/record_wav.h). */
#include "record/record_wav.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "record/record_name.h"

enum { CHUNK = 4096, SAMPLE_BYTES = 2 };
#define DATA_MAX (UINT32_MAX - 2 * RECORD_WAV_HEADER) /* RIFF has lengths of 32 bits */

struct record_wav {
	int fd;
	uint32_t rate;
	uint16_t channels;
	uint32_t data; /* bytes of samples in the file */
	uint32_t owed; /* bytes that were not written: silence before the next samples */
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

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void header(uint8_t h[RECORD_WAV_HEADER], uint32_t rate, uint16_t channels, uint32_t data)
{
	memcpy(h, "RIFF", 4);
	put_le32(h + 4, data + RECORD_WAV_HEADER - 8);
	memcpy(h + 8, "WAVEfmt ", 8);
	put_le32(h + 16, 16);
	put_le16(h + 20, 1); /* PCM */
	put_le16(h + 22, channels);
	put_le32(h + 24, rate);
	put_le32(h + 28, rate * channels * SAMPLE_BYTES);
	put_le16(h + 32, (uint16_t)(channels * SAMPLE_BYTES));
	put_le16(h + 34, 8 * SAMPLE_BYTES);
	memcpy(h + 36, "data", 4);
	put_le32(h + 40, data);
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

	if (w->data > DATA_MAX - w->owed || len > DATA_MAX - w->data - w->owed)
		return -EFBIG;
	if (!len)
		return 0;
	while (left && !err) {
		uint32_t some = min_u32(left, CHUNK / SAMPLE_BYTES);

		for (uint32_t i = 0; i < some; i++)
			put_le16(bytes + SAMPLE_BYTES * i, (uint16_t)*pcm++);
		err = write_at(w->fd, bytes, (size_t)some * SAMPLE_BYTES,
			(off_t)RECORD_WAV_HEADER + w->data + w->owed + done);
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
	(void)!ftruncate(w->fd, (off_t)RECORD_WAV_HEADER + w->data);
	w->owed += len;
	return err;
}

int record_wav_silence(struct record_wav *w, uint64_t n)
{
	uint64_t room = DATA_MAX - w->data - w->owed;

	if (n > room / w->channels / SAMPLE_BYTES)
		return -EFBIG;
	w->owed += (uint32_t)n * w->channels * SAMPLE_BYTES;
	return 0;
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

/* Whether the header was corrected. Another program's file, or one that is right, stays. */
static bool repair(int fd)
{
	uint8_t h[RECORD_WAV_HEADER], want[RECORD_WAV_HEADER];
	struct stat st;
	uint32_t frame, data;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(h) ||
		st.st_size > (off_t)DATA_MAX || pread(fd, h, sizeof(h), 0) != sizeof(h))
		return false;
	data = (uint32_t)st.st_size - RECORD_WAV_HEADER;
	if (h[22] != 1 && h[22] != 2)
		return false;
	frame = SAMPLE_BYTES * (uint32_t)h[22];
	data -= data % frame;
	header(want, le32(h + 24), h[22], le32(h + 40));
	memcpy(want + 4, h + 4, 4); /* the lengths may contradict each other */
	if (memcmp(h, want, sizeof(h)) != 0 ||
		(le32(h + 40) == data && le32(h + 4) == data + RECORD_WAV_HEADER - 8))
		return false;
	header(h, le32(h + 24), h[22], data);
	return ftruncate(fd, (off_t)RECORD_WAV_HEADER + data) == 0 &&
		write_at(fd, h, sizeof(h), 0) == 0;
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
