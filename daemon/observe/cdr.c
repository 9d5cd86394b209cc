/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See cdr.h. The queue is a list under a lock that is held only to link or unlink a line. */
#include "observe/cdr.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (256u << 10)
#define WAITING_MAX    (16u << 20) /* bytes of all lines that wait */
#define LOG_EVERY_NS   (10 * NS_PER_SEC)

struct line {
	struct line *next;
	size_t len;
	char text[];
};

struct cdr {
	const char *path;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news;
	/* under the lock */
	struct line *first, **last;
	size_t bytes;
	bool reopen, ending, started;
	/* the thread's */
	int fd;
	bool torn; /* the file ends in the middle of a line */
	struct log_limit log_write;
	/* the control thread's */
	struct log_limit log_full;
};

static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

/* --- The thread ------------------------------------------------------------------------------- */

static void again(struct cdr *c)
{
	int fd = open_file(c->path);

	if (fd < 0) {
		log_err("cannot reopen --cdr-file=%s: %s. Records continue in the old file",
			c->path, strerror(-fd));
		return;
	}
	close(c->fd);
	c->fd = fd;
	c->torn = false;
}

static int put(struct cdr *c, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(c->fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
		c->torn = len > 0;
	}
	return 0;
}

static void write_line(struct cdr *c, const struct line *l)
{
	int err = c->torn ? put(c, "\n", 1) : 0;
	uint64_t held;

	err = err ? err : put(c, l->text, l->len);
	if (err && log_limit_pass(&c->log_write, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_err("--cdr-file=%s: %s: the record of a call is lost (%llu more since the last line)",
			c->path, strerror(-err), (unsigned long long)held);
}

static void *run(void *arg)
{
	struct cdr *c = arg;

	(void)caps_limit(0);
	pthread_mutex_lock(&c->lock);
	c->started = true;
	pthread_cond_broadcast(&c->news);
	while (c->first || c->reopen || !c->ending) {
		struct line *l = c->first, *next;
		bool reopen = c->reopen;

		if (!l && !reopen) {
			pthread_cond_wait(&c->news, &c->lock);
			continue;
		}
		c->first = NULL;
		c->last = &c->first;
		c->bytes = 0;
		c->reopen = false;
		pthread_mutex_unlock(&c->lock);
		if (reopen)
			again(c);
		for (; l; l = next) {
			next = l->next;
			write_line(c, l);
			free(l);
		}
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* --- The control thread ----------------------------------------------------------------------- */

static int start(struct cdr *c)
{
	int err = thread_start(&c->thread, NULL, "cdr", run, c);

	if (err)
		return err;
	pthread_mutex_lock(&c->lock);
	while (!c->started)
		pthread_cond_wait(&c->news, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int cdr_create(struct cdr **out, const char *path, char *err, size_t err_len)
{
	struct cdr *c = calloc(1, sizeof(*c));
	int ret;

	if (!c) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	c->path = path;
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->news, NULL);
	ret = c->fd = open_file(path);
	if (ret >= 0)
		ret = start(c);
	if (ret < 0) {
		snprintf(err, err_len,
			"--cdr-file=%s: %s. It must be a file that xcipherd may create and write to",
			path, strerror(-ret));
		if (c->fd >= 0)
			close(c->fd);
		free(c);
		return ret;
	}
	*out = c;
	return 0;
}

static struct line *format(const struct ngval *record)
{
	struct line *l = NULL;
	struct sbuf b;

	sbuf_init(&b, LINE_MAX_BYTES);
	json_write(&b, record, false);
	sbuf_str(&b, STR("\n"));
	if (!b.err)
		l = malloc(sizeof(*l) + b.len);
	if (l) {
		l->next = NULL;
		l->len = b.len;
		memcpy(l->text, b.p, b.len);
	}
	sbuf_fini(&b);
	return l;
}

void cdr_write(struct cdr *c, const struct ngval *record)
{
	struct line *l = c ? format(record) : NULL;
	uint64_t held;
	bool room;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	room = l && c->bytes + l->len <= WAITING_MAX;
	if (room) {
		c->bytes += l->len;
		*c->last = l;
		c->last = &l->next;
		pthread_cond_signal(&c->news);
	}
	pthread_mutex_unlock(&c->lock);
	if (room)
		return;
	free(l);
	if (log_limit_pass(&c->log_full, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_err("--cdr-file=%s: the record of a call is lost: the disk is too slow, or memory is short (%llu more since the last line)",
			c->path, (unsigned long long)held);
}

void cdr_reopen(struct cdr *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->reopen = true;
	pthread_cond_signal(&c->news);
	pthread_mutex_unlock(&c->lock);
}

void cdr_destroy(struct cdr *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_signal(&c->news);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->news);
	close(c->fd);
	free(c);
}
