/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of ZRTP's retained secrets. They are not in Redis: secrets live for months and calls for
 * minutes, Redis is optional, and a standby node needs its own ZID. The file is encrypted like
 * saved calls (persist/redis_crypt.h). Each save replaces the whole file, so it is never half
 * written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "app/daemon.h"
#include "base/log.h"
#include "keying/zrtp_store.h"
#include "persist/redis_crypt.h"

#define SAVE_EVERY_S 5u
#define ENTRIES_MAX  1000000u
#define FILE_LIMIT   ((size_t)1 << 30)
#define DAY_S        86400ull

static const struct str name = {"zrtp-cache", 10};

/* --- Writing ---------------------------------------------------------------------------------- */

static int write_all(int fd, struct str s)
{
	while (s.len) {
		ssize_t n = write(fd, s.s, s.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		s.s += n;
		s.len -= (size_t)n;
	}
	return 0;
}

static int replace_file(const char *path, struct str sealed, bool sync)
{
	char fresh[4096];
	int fd, err;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	(void)unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, sealed);
	if (!err && sync && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		(void)unlink(fresh);
	return err;
}

static int save(struct daemon *d, bool sync)
{
	uint64_t version = zrtp_store_version(d->zrtp.store);
	struct sbuf plain, sealed;
	int err;

	sbuf_init(&plain, FILE_LIMIT);
	sbuf_init(&sealed, FILE_LIMIT);
	err = zrtp_store_write(d->zrtp.store, &plain);
	err = err ? err : redis_crypt_close(d->zrtp.crypt, &sealed, name, sbuf_view(&plain));
	err = err ? err : replace_file(d->o.zrtp_cache, sbuf_view(&sealed), sync);
	sbuf_fini(&plain);
	sbuf_fini(&sealed);
	if (err && !d->zrtp.failed)
		log_err("--zrtp-cache=%s cannot be written (%s): ZRTP calls continue, but a restart forgets their retained secrets",
			d->o.zrtp_cache, strerror(-err));
	if (!err)
		d->zrtp.saved = version;
	d->zrtp.failed = err;
	return err;
}

static void tell_clock(struct daemon *d)
{
	zrtp_store_clock(d->zrtp.store, clock_real_ns() / NS_PER_SEC, clock_mono_ns());
}

void daemon_zrtp_tick(struct daemon *d)
{
	if (!d->zrtp.store)
		return;
	tell_clock(d);
	if (zrtp_store_version(d->zrtp.store) == d->zrtp.saved)
		return;
	if (d->zrtp.wait_s) {
		d->zrtp.wait_s--;
		return;
	}
	(void)save(d, false);
	d->zrtp.wait_s = SAVE_EVERY_S;
}

void daemon_zrtp_stop(struct daemon *d)
{
	if (d->zrtp.store) {
		tell_clock(d);
		if (zrtp_store_version(d->zrtp.store) != d->zrtp.saved)
			(void)save(d, true);
	}
	zrtp_store_destroy(d->zrtp.store);
	redis_crypt_destroy(d->zrtp.crypt);
	d->zrtp = (struct daemon_zrtp){0};
}

/* --- Reading ---------------------------------------------------------------------------------- */

static int read_all(struct sbuf *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char b[4096];
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (!out->err && (n = read(fd, b, sizeof(b))) > 0)
		sbuf_put(out, b, (size_t)n);
	n = n < 0 ? -errno : out->err;
	close(fd);
	return (int)n;
}

/* -ENOENT: the file does not exist yet. */
static int load(struct daemon *d)
{
	struct sbuf sealed, plain;
	int err;

	sbuf_init(&sealed, FILE_LIMIT);
	sbuf_init(&plain, FILE_LIMIT);
	err = read_all(&sealed, d->o.zrtp_cache);
	err = err ? err : redis_crypt_open(d->zrtp.crypt, &plain, name, sbuf_view(&sealed));
	err = err ? err : zrtp_store_read(d->zrtp.store, sbuf_view(&plain), clock_mono_ns());
	sbuf_fini(&sealed);
	sbuf_fini(&plain);
	if (err && err != -ENOENT)
		snprintf(d->err, sizeof(d->err),
			"--zrtp-cache=%s: %s. Move the file away to begin with an empty cache",
			d->o.zrtp_cache,
			err == -EBADMSG
				? "it was not written with this --zrtp-cache-key, or is damaged"
				: strerror(-err));
	return err;
}

static int check(struct daemon *d)
{
	const char *key = d->o.zrtp_cache_key;
	const char *wrong = !key[0] ? "needs --zrtp-cache-key=FILE, made by: openssl rand -hex 32"
		: strcmp(key, "none") == 0 ? "needs a key: --zrtp-cache-key=none is not possible"
		: !d->o.keying_threads     ? "needs keying threads (--keying-threads)"
		: !d->o.zrtp_cache_size || d->o.zrtp_cache_size > ENTRIES_MAX
		? "needs a --zrtp-cache-size of 1 to 1000000"
		: NULL;

	if (wrong)
		snprintf(d->err, sizeof(d->err), "--zrtp-cache %s", wrong);
	return wrong ? -EINVAL : 0;
}

int daemon_zrtp_create(struct daemon *d)
{
	const struct zrtp_store_config c = {.max = d->o.zrtp_cache_size,
		.life_s = d->o.zrtp_cache_days * DAY_S,
		.preshared = d->o.zrtp_preshared,
		.real_s = clock_real_ns() / NS_PER_SEC,
		.mono_ns = clock_mono_ns()};
	int err;

	if (!d->o.zrtp_cache[0])
		return 0;
	err = check(d);
	err = err ? err
		  : redis_crypt_create(&d->zrtp.crypt, "--zrtp-cache-key", d->o.zrtp_cache_key,
			    d->err, sizeof(d->err));
	if (err)
		return err;
	err = zrtp_store_create(&d->zrtp.store, &c);
	if (err)
		return daemon_fail(d, err, "zrtp-cache");
	err = load(d);
	if (err && err != -ENOENT)
		return err;
	d->zrtp.saved = err ? UINT64_MAX : zrtp_store_version(d->zrtp.store);
	log_info("ZRTP: %u terminals in %s", zrtp_store_count(d->zrtp.store), d->o.zrtp_cache);
	return 0;
}
