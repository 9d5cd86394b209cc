/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads audio files on a thread. The mutex protects the table; it is held for short times only,
 * never while a file is read. */
#include "audio/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/decoder.h"
#include "audio/wav.h"
#include "base/caps.h"
#include "base/thread.h"

enum { WAIT_MS = 20, RAW_RATE = 8000, HEADER_MAX = 1 << 20, BLOB_MAX = 4 << 20 };

enum state { UNUSED, ASKED, READING, DONE };

struct entry {
	char name[AUDIO_FILE_NAME]; /* empty for a blob */
	uint8_t *blob;              /* its bytes; NULL for a file */
	size_t blob_len;
	enum state state;
	int err;    /* after DONE: 0, or the error that prevented the clip */
	bool taken; /* after DONE: a request got the result, so the next one checks the file */
	struct audio_clip *clip; /* a reference, or NULL */
	struct stat was;         /* the file that clip was read from */
	uint64_t used;           /* number of the last request for it */
};

struct audio_files {
	char *folder; /* NULL: only blobs are played */
	int dir;
	char *program;
	uint64_t most; /* bytes of all entries */
	struct audio_decoder decoder;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	/* under the lock */
	struct entry entry[AUDIO_FILES];
	uint64_t requests;
	/* slow: the last wait timed out, and the thread still works. Requests do not wait, and
	 * clips that it read before are played as they are: decoding a file can take a minute. */
	bool stop, slow;
};

/* --- One file --------------------------------------------------------------------------------- */

static bool ends_with(struct str name, const char *end)
{
	struct str e = str_from(end);

	return name.len >= e.len &&
		str_eq_nocase((struct str){name.s + name.len - e.len, e.len}, e);
}

int audio_files_decode(struct str name, const uint8_t *bytes, size_t len, struct audio_clip **out)
{
	struct wav w;
	int err = wav_parse(&w, bytes, len);

	if (err == -ENOMSG && (ends_with(name, ".ul") || ends_with(name, ".ulaw")))
		err = wav_raw(&w, WAV_ULAW, RAW_RATE, bytes, len);
	else if (err == -ENOMSG && (ends_with(name, ".al") || ends_with(name, ".alaw")))
		err = wav_raw(&w, WAV_ALAW, RAW_RATE, bytes, len);
	else if (err == -ENOMSG && (ends_with(name, ".sw") || ends_with(name, ".raw")))
		err = wav_raw(&w, WAV_PCM, RAW_RATE, bytes, len);
	if (err)
		return err;
	if (!w.frames)
		return -EBADMSG;
	if ((uint64_t)w.frames * sizeof(int16_t) > AUDIO_CLIP_MAX)
		return -EFBIG;
	*out = wav_clip(&w);
	if (!*out)
		return -ENOMEM;
	*out = audio_clip_usual(*out);
	return 0;
}

static int decoded(int err, struct audio_clip **clip)
{
	if (!err)
		*clip = audio_clip_usual(*clip);
	return err;
}

/* Opens part by part, so that no link anywhere below the folder is followed. */
static int open_below(int dir, const char *name)
{
	char part[AUDIO_FILE_NAME];
	int at = dir, next;

	for (;;) {
		const char *slash = strchr(name, '/');
		size_t len = slash ? (size_t)(slash - name) : strlen(name);

		memcpy(part, name, len);
		part[len] = 0;
		next = openat(at, part,
			slash ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
			      : O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
		if (next < 0)
			next = errno == ENOENT                                          ? -ENOENT
				: errno == ELOOP || errno == ENOTDIR || errno == EACCES ? -EACCES
											: -EIO;
		if (at != dir)
			close(at);
		if (next < 0 || !slash)
			return next;
		at = next;
		name = slash + 1;
	}
}

static int read_all(int fd, size_t size, uint8_t **out)
{
	uint8_t *bytes = malloc(size ? size : 1);
	size_t at = 0;

	if (!bytes)
		return -ENOMEM;
	while (at < size) {
		ssize_t n = read(fd, bytes + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(bytes);
			return -EIO; /* the file was truncated while it was read */
		}
		at += (size_t)n;
	}
	*out = bytes;
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
		a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* *clip is replaced unless the file is the same as before. */
static int read_file(
	const struct audio_files *f, const char *name, struct stat *was, struct audio_clip **clip)
{
	int fd = open_below(f->dir, name), err = 0;
	uint8_t *bytes = NULL;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -EIO;
	else if (!S_ISREG(st.st_mode))
		err = -EACCES;
	else if (st.st_size > (off_t)AUDIO_CLIP_MAX + HEADER_MAX)
		err = -EFBIG;
	else if (*clip && is_same(&st, was))
		goto out;
	audio_clip_unref(*clip);
	*clip = NULL;
	if (!err)
		err = read_all(fd, (size_t)st.st_size, &bytes);
	if (!err)
		err = audio_files_decode(str_from(name), bytes, (size_t)st.st_size, clip);
	if (err == -ENOMSG && bytes && audio_decoder_knows(bytes, (size_t)st.st_size))
		err = decoded(audio_decoder_file(&f->decoder, fd, clip), clip);
	free(bytes);
	*was = st;
out:
	close(fd);
	return err;
}

static int read_blob(
	const struct audio_files *f, const uint8_t *blob, size_t len, struct audio_clip **clip)
{
	return *clip ? 0 : decoded(audio_decoder_bytes(&f->decoder, blob, len, clip), clip);
}

/* --- The bound -------------------------------------------------------------------------------- */

static void empty(struct entry *e)
{
	audio_clip_unref(e->clip);
	free(e->blob);
	*e = (struct entry){.state = UNUSED};
}

static uint64_t bytes_of(const struct entry *e)
{
	return e->blob_len + (e->clip ? e->clip->samples * sizeof(int16_t) : 0);
}

/* Whether a is emptied before b. Entries that a request still waits for are emptied last. */
static bool goes_before(const struct entry *a, const struct entry *b)
{
	return a->taken != b->taken ? a->taken : a->used < b->used;
}

/* Empties entries until the rest is within the bound. Keeps newest. If an entry is emptied before
 * its request took the clip, the file is read again. */
static void trim(struct audio_files *f, const struct entry *newest)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < AUDIO_FILES; i++)
		sum += f->entry[i].state == READING ? 0 : bytes_of(&f->entry[i]);
	while (sum > f->most) {
		struct entry *first = NULL;

		for (uint32_t i = 0; i < AUDIO_FILES; i++) {
			struct entry *e = &f->entry[i];

			if (e != newest && e->state == DONE && bytes_of(e) &&
				(!first || goes_before(e, first)))
				first = e;
		}
		if (!first)
			return;
		sum -= bytes_of(first);
		empty(first);
	}
}

/* --- The thread ------------------------------------------------------------------------------- */

static struct entry *first_asked(struct audio_files *f)
{
	struct entry *first = NULL;

	for (uint32_t i = 0; i < AUDIO_FILES; i++)
		if (f->entry[i].state == ASKED && (!first || f->entry[i].used < first->used))
			first = &f->entry[i];
	return first;
}

static void *run(void *arg)
{
	struct audio_files *f = arg;
	struct entry *e;

	(void)caps_limit(0);
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		struct audio_clip *clip;
		int err;

		e = first_asked(f);
		if (!e) {
			pthread_cond_wait(&f->work, &f->lock);
			continue;
		}
		/* While it is READING, nobody else changes the entry. */
		e->state = READING;
		clip = e->clip;
		pthread_mutex_unlock(&f->lock);
		err = e->blob ? read_blob(f, e->blob, e->blob_len, &clip)
			      : read_file(f, e->name, &e->was, &clip);
		pthread_mutex_lock(&f->lock);
		e->clip = clip;
		e->err = err;
		if (err) {
			audio_clip_unref(e->clip);
			e->clip = NULL;
		}
		e->taken = false;
		e->state = DONE;
		trim(f, e);
		f->slow = false;
		pthread_cond_broadcast(&f->done);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void init_waiting(struct audio_files *f)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->done, &attr);
	pthread_condattr_destroy(&attr);
}

static void free_files(struct audio_files *f)
{
	if (f->dir >= 0)
		close(f->dir);
	if (f->decoder.stop_fd >= 0)
		close(f->decoder.stop_fd);
	free(f->program);
	free(f->folder);
	free(f);
}

/* Opens the folder, and what the decoder needs. */
static int open_folder(struct audio_files *f, const char *folder)
{
	if (f->decoder.stop_fd < 0)
		return -errno;
	if (!f->program)
		return -ENOMEM;
	if (!folder)
		return 0;
	f->folder = strdup(folder);
	f->dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return f->dir < 0 ? -errno : f->folder ? 0 : -ENOMEM;
}

int audio_files_create(
	struct audio_files **out, const char *folder, const char *decoder, uint64_t most)
{
	struct audio_files *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->dir = -1;
	f->most = most;
	f->decoder.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->program = strdup(decoder);
	f->decoder.program = f->program;
	f->decoder.limit_ms = AUDIO_DECODER_MS;
	err = open_folder(f, folder);
	if (err)
		goto free_files;
	init_waiting(f);
	err = thread_start(&f->thread, NULL, "play-files", run, f);
	if (err)
		goto free_files;
	*out = f;
	return 0;
free_files:
	free_files(f);
	return err;
}

void audio_files_destroy(struct audio_files *f)
{
	uint64_t one = 1;

	if (!f)
		return;
	(void)!write(f->decoder.stop_fd, &one, sizeof(one));
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	for (uint32_t i = 0; i < AUDIO_FILES; i++)
		empty(&f->entry[i]);
	pthread_cond_destroy(&f->done);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->lock);
	free_files(f);
}

/* --- Requests --------------------------------------------------------------------------------- */

/* Makes an absolute name relative to the folder. Parts that are empty, "." or ".." are refused. */
static int below(const char *folder, struct str name, char out[AUDIO_FILE_NAME])
{
	size_t len = strlen(folder);
	struct str rest;

	while (len > 1 && folder[len - 1] == '/')
		len--;
	if (name.len && name.s[0] == '/') {
		if (name.len <= len || memcmp(name.s, folder, len) ||
			(name.s[len] != '/' && folder[len - 1] != '/'))
			return -EACCES;
		name = (struct str){name.s + len, name.len - len};
		while (name.len && name.s[0] == '/')
			name = (struct str){name.s + 1, name.len - 1};
	}
	if (!name.len || name.len >= AUDIO_FILE_NAME || memchr(name.s, 0, name.len))
		return -EACCES;
	rest = name;
	do {
		struct str part = str_cut(&rest, '/');

		if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return -EACCES;
	} while (rest.s);
	memcpy(out, name.s, name.len);
	out[name.len] = 0;
	return 0;
}

/* What a request names: a file, or a blob. */
struct wanted {
	const char *name; /* "": a blob */
	const uint8_t *blob;
	size_t len;
};

static bool is_of(const struct entry *e, const struct wanted *w)
{
	if (e->state == UNUSED || strcmp(e->name, w->name) != 0)
		return false;
	return !e->blob || (e->blob_len == w->len && memcmp(e->blob, w->blob, w->len) == 0);
}

/* The entry that is wanted, else an unused one, else the one that was used least recently. */
static struct entry *find(struct audio_files *f, const struct wanted *w)
{
	struct entry *best = NULL;

	for (uint32_t i = 0; i < AUDIO_FILES; i++) {
		struct entry *e = &f->entry[i];

		if (is_of(e, w))
			return e;
		if (e->state == ASKED || e->state == READING)
			continue;
		if (!best || (e->state == UNUSED && best->state != UNUSED) ||
			(e->state == best->state && e->used < best->used))
			best = e;
	}
	return best;
}

/* Gives the entry to this file or blob. */
static int begin(struct entry *e, const struct wanted *w)
{
	uint8_t *blob = w->blob ? malloc(w->len) : NULL;

	if (w->blob && !blob)
		return -ENOMEM;
	if (blob)
		memcpy(blob, w->blob, w->len);
	empty(e);
	*e = (struct entry){.state = DONE, .taken = true, .blob = blob, .blob_len = w->len};
	memcpy(e->name, w->name, strlen(w->name) + 1);
	return 0;
}

static void wait_for(struct audio_files *f, const struct entry *e)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WAIT_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	while (e->state != DONE)
		if (pthread_cond_timedwait(&f->done, &f->lock, &until)) {
			f->slow = true;
			break;
		}
}

/* The result of the entry, after the thread read it. */
static int result_of(struct audio_files *f, struct entry *e, struct audio_clip **out)
{
	e->used = ++f->requests;
	if (e->state == DONE && e->taken && !(f->slow && e->clip)) {
		e->state = ASKED;
		pthread_cond_signal(&f->work);
	}
	if (e->state != DONE && !f->slow)
		wait_for(f, e);
	if (e->state != DONE)
		return -EAGAIN;
	e->taken = true;
	if (e->clip)
		*out = audio_clip_ref(e->clip);
	return e->err;
}

static int get(struct audio_files *f, const struct wanted *w, struct audio_clip **out)
{
	struct entry *e;
	int err;

	pthread_mutex_lock(&f->lock);
	e = find(f, w);
	err = !e ? -EBUSY : is_of(e, w) ? 0 : begin(e, w);
	err = err ? err : result_of(f, e, out);
	pthread_mutex_unlock(&f->lock);
	return err;
}

int audio_files_get(struct audio_files *f, struct str name, struct audio_clip **out)
{
	char text[AUDIO_FILE_NAME];
	int err = f->folder ? below(f->folder, name, text) : -ENODEV;

	return err ? err : get(f, &(struct wanted){.name = text}, out);
}

int audio_files_blob(
	struct audio_files *f, const uint8_t *bytes, size_t len, struct audio_clip **out)
{
	int err = audio_files_decode(STR_NONE, bytes, len, out);

	if (err != -ENOMSG || !audio_decoder_knows(bytes, len))
		return err;
	if (!f)
		return -ENOPKG;
	return len > BLOB_MAX
		? -EFBIG
		: get(f, &(struct wanted){.name = "", .blob = bytes, .len = len}, out);
}
