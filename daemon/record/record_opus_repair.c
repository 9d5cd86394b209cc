/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ends Ogg Opus files of recordings that an earlier process left open (record/record_opus.h). */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/record_name.h"
#include "record/record_ogg.h"
#include "record/record_opus.h"

enum { HEADER_PAGES = 2 };

struct file {
	int fd;
	uint64_t size;
	uint64_t all;                  /* pages that may still be read, of all files */
	uint32_t most;                 /* of one file */
	uint8_t bytes[RECORD_OGG_MAX]; /* the page that was read last */
};

/* The length of the page at a place of the file, or 0. Reads little more than the page: a file may
 * have very many short ones. */
static size_t read_page(struct file *f, uint64_t at, struct record_ogg_page *page)
{
	ssize_t n = pread(f->fd, f->bytes, RECORD_OGG_HEADER + RECORD_OGG_SEGMENTS, (off_t)at);
	size_t got = n > 0 ? (size_t)n : 0, len = record_ogg_len(f->bytes, got);

	if (len > got &&
		pread(f->fd, f->bytes + got, len - got, (off_t)(at + got)) != (ssize_t)(len - got))
		return 0;
	return len ? record_ogg_read(page, f->bytes, len) : 0;
}

/* Whether the file ends with a page that is marked as its last. This spares reading all of it.
 * Only a page that would end with the file is summed: a file may look like very many others. */
static bool is_ended(struct file *f)
{
	uint64_t from = f->size > sizeof(f->bytes) ? f->size - sizeof(f->bytes) : 0;
	ssize_t n = pread(f->fd, f->bytes, sizeof(f->bytes), (off_t)from);
	struct record_ogg_page page;

	for (ssize_t at = n - RECORD_OGG_HEADER; at >= 0; at--)
		if (record_ogg_len(f->bytes + at, (size_t)(n - at)) == (size_t)(n - at) &&
			record_ogg_read(&page, f->bytes + at, (size_t)(n - at)))
			return page.flags & RECORD_OGG_LAST;
	return false;
}

/* Whether a header page is ours. */
static bool is_header(const struct file *f, size_t len, uint32_t number)
{
	const char *want = number ? RECORD_OPUS_TAGS : "OpusHead\1";
	size_t n = number ? sizeof(RECORD_OPUS_TAGS) - 1 : 9;

	return len >= RECORD_OGG_HEADER + 1 + n &&
		memcmp(f->bytes + RECORD_OGG_HEADER + 1, want, n) == 0;
}

/* Whether the file was changed. */
static bool end_file(struct file *f)
{
	struct record_ogg_page page;
	uint64_t at = 0, last = 0;
	uint32_t pages = 0;
	size_t len;

	while ((len = read_page(f, at, &page)) && page.number == pages) {
		if (pages == f->most || !f->all)
			return false;
		f->all--;
		if (pages < HEADER_PAGES && !is_header(f, len, pages))
			return false;
		if (page.flags & RECORD_OGG_LAST)
			return false; /* another program appended to the file */
		pages++;
		last = at;
		at += len;
	}
	if (pages < HEADER_PAGES || (pages == HEADER_PAGES && at == f->size))
		return false;
	if (ftruncate(f->fd, (off_t)at))
		return false;
	if (pages == HEADER_PAGES)
		return true;
	len = read_page(f, last, &page);
	record_ogg_flag(f->bytes, len, RECORD_OGG_LAST);
	return pwrite(f->fd, f->bytes, len, (off_t)last) == (ssize_t)len;
}

static bool repair(struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) || flock(f->fd, LOCK_EX | LOCK_NB) ||
		fstat(f->fd, &st))
		return false;
	f->size = (uint64_t)st.st_size;
	return !is_ended(f) && end_file(f);
}

uint32_t record_opus_repair(const char *dir, uint32_t pages)
{
	struct file *f = malloc(sizeof(*f));
	DIR *d = f ? opendir(dir) : NULL;
	const struct dirent *e;
	uint32_t n = 0;

	if (f) {
		f->most = pages;
		f->all = (uint64_t)pages * RECORD_OPUS_FILES;
	}
	while (d && (e = readdir(d)) != NULL) {
		if (!record_name_is_opus(e->d_name))
			continue;
		f->fd = openat(dirfd(d), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (f->fd < 0)
			continue;
		n += repair(f);
		close(f->fd);
	}
	if (d)
		closedir(d);
	free(f);
	return n;
}
