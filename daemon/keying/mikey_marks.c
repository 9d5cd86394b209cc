/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of timestamps: a header, and one timestamp for each place. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "keying/mikey_int.h"

#define PLACES 4096u

static const uint8_t magic[16] = "xcipher MIKEY 1";

struct file {
	uint8_t magic[16], key[16];
	uint64_t mark[PLACES]; /* NTP; 0: none */
};

struct mikey_marks {
	struct file *file; /* mapped */
	int fd;            /* holds the lock */
	uint64_t before[PLACES];
};

static int check(int fd, bool *fresh)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & (S_IRWXO | S_IWGRP))
		return -EPERM;
	*fresh = st.st_size == 0;
	if (*fresh)
		return -posix_fallocate(fd, 0, sizeof(struct file));
	return st.st_size == sizeof(struct file) ? 0 : -EINVAL;
}

/* Accepts a file of an earlier run, or writes a new one. The magic is written last, so an
 * incomplete file is written again. */
static int begin(struct file *f, bool fresh)
{
	static const uint8_t none[sizeof(magic)];

	if (!fresh && memcmp(f->magic, none, sizeof(magic)) != 0)
		return memcmp(f->magic, magic, sizeof(magic)) == 0 ? 0 : -EINVAL;
	if (secmem_random(f->key, sizeof(f->key)))
		return -EIO;
	memcpy(f->magic, magic, sizeof(magic));
	return 0;
}

/* Two daemons would not see each other's messages in "before". */
static int lock(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

static int map(struct mikey_marks *m)
{
	bool fresh;
	int err = lock(m->fd);
	void *p;

	err = err ? err : check(m->fd, &fresh);
	if (err)
		return err;
	p = mmap(NULL, sizeof(*m->file), PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	m->file = p;
	err = begin(m->file, fresh);
	if (!err)
		memcpy(m->before, m->file->mark, sizeof(m->before));
	return err;
}

int mikey_marks_open(struct mikey_marks **out, const char *path)
{
	/* O_NONBLOCK, because a named pipe would block. */
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct mikey_marks *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->fd = open(path, flags, 0600);
	err = m->fd < 0 ? -errno : map(m);
	if (err)
		mikey_marks_close(m);
	else
		*out = m;
	return err;
}

void mikey_marks_close(struct mikey_marks *m)
{
	if (!m)
		return;
	if (m->file)
		munmap(m->file, sizeof(*m->file));
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static uint32_t place(const struct mikey_marks *m, struct str owner)
{
	return (uint32_t)(hash_siphash(m->file->key, owner.s, owner.len) % PLACES);
}

static bool is_possible(uint64_t mark, uint64_t limit)
{
	return mark && !((limit - mark) >> 63);
}

uint64_t mikey_marks_before(const struct mikey_marks *m, struct str owner, uint64_t limit)
{
	uint64_t mark = m->before[place(m, owner)];

	return is_possible(mark, limit) ? mark : 0;
}

void mikey_marks_note(struct mikey_marks *m, struct str owner, uint64_t time, uint64_t limit)
{
	uint64_t *mark = &m->file->mark[place(m, owner)];

	if (!is_possible(*mark, limit) || (*mark - time) >> 63)
		*mark = time;
}
