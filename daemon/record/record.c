/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording thread (record/record.h). The control thread queues starts and stops in one ring;
 * each worker queues packets in another. While anything is recorded, the thread reads all rings
 * some fifty times a second. */
#include "record/record.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <poll.h>
#include <unistd.h>

#include "batch/engine.h"
#include "packet/arena.h"
#include "record/record_keep.h"
#include "base/caps.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"

enum {
	ACTIVE_MAX = 4096,
	CMD_RING = 4 * ACTIVE_MAX,
	LOOK_MS = 20,
	FLUSH_NS = 200000000,
	KEEP_S = 30
};
enum { PART_LEN = 16 };
enum { CACHE = 64, KEY_SLOTS = 2 * (CACHE + 1) }; /* pair 0 is plain */

enum cmd_kind { CMD_START, CMD_NOTE, CMD_STOP };

struct cmd {
	enum cmd_kind kind;
	uint32_t tap;
	bool discard;
	char *text;  /* heap: START: the path; NOTE: the line */
	char *about; /* START: lines */
	uint32_t parts;
};

struct active {
	struct active *next;
	uint32_t tap;
	struct record_file *file;
	char *path;
	uint32_t parts;            /* files before it, of the daemon that was here before */
	struct record_counts told; /* the part of them included in the sums */
};

struct record {
	struct record_config cfg;
	/* Control's. */
	uint32_t last_tap, started;
	uint64_t stopped_total;
	struct ring cmds;
	/* The thread's. */
	pthread_t thread;
	bool running;
	_Atomic bool end;
	int wake_fd;
	struct arena arena;
	struct engine_queue *queue;
	struct active *active[ACTIVE_MAX]; /* hash by tap */
	struct cmd taken[CMD_RING];        /* commands in order; starts are already executed */
	uint32_t taken_n;
	uint32_t *seen_lost, *late_lost; /* per tap: of workers; late: as of the last flush */
	uint64_t flushed_ns, kept_ns;
	struct log_limit log_disk, log_slow;
	_Atomic uint64_t n_active, recordings, packets, bytes, lost, errors, removed;
};

static void add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* --- Control's side --------------------------------------------------------------------------- */

static int tell(struct record *r, struct cmd c)
{
	uint64_t one = 1;

	/* Room is always left to stop every recording, whatever else is queued. */
	if ((c.kind != CMD_STOP && ring_room(&r->cmds) <= ACTIVE_MAX + 1) ||
		ring_push(&r->cmds, &c, 1)) {
		free(c.text);
		free(c.about);
		return -EAGAIN;
	}
	(void)!write(r->wake_fd, &one, sizeof(one));
	return 0;
}

/* Call-IDs come from strangers: of them letters, digits and a few signs are left. No dot at the
 * beginning, no '/'. */
static size_t clean(char *to, size_t room, struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len && n < room; i++) {
		char c = s.s[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '@' ||
			(c == '.' && n > 0);

		to[n++] = plain ? c : '_';
	}
	return n;
}

/* What the pattern says: %c the Call-ID, %r random digits, %t the time, %% a sign. False: it says
 * something else. */
static bool expand(char *to, size_t room, const struct record_start *s, const char *random)
{
	size_t n = 0;

	for (size_t i = 0; i < s->pattern.len && n + 1 < room; i++) {
		char c = s->pattern.s[i], what = i + 1 < s->pattern.len ? s->pattern.s[i + 1] : 0;
		time_t t = (time_t)(s->now_ns / NS_PER_SEC);
		struct tm tm;

		if (c != '%') {
			to[n++] = c;
			continue;
		}
		i++;
		if (what == 'c')
			n += clean(to + n, min_u32((uint32_t)(room - n - 1), 100), s->call_id);
		else if (what == 'r')
			n += (size_t)snprintf(to + n, room - n, "%s", random);
		else if (what == 't')
			n += strftime(to + n, room - n, "%Y%m%d-%H%M%S", gmtime_r(&t, &tm));
		else if (what == '%')
			to[n++] = '%';
		else
			return false;
	}
	if (n + 1 >= room) /* cut */
		return false;
	to[n] = 0;
	return true;
}

/* The suffix of the file name after parts earlier files. */
static void number_part(char out[PART_LEN], uint32_t parts)
{
	out[0] = 0;
	if (parts)
		snprintf(out, PART_LEN, "-part%u", parts + 1);
}

/* Strips the folder from the name, if it is given. Files are made directly in that folder only. */
static struct str in_folder(const struct record *r, struct str file)
{
	struct str dir = str_from(r->cfg.dir);

	while (dir.len > 1 && dir.s[dir.len - 1] == '/')
		dir.len--;
	if (file.len <= dir.len + 1 || !str_starts(file, dir) || file.s[dir.len] != '/')
		return file;
	return (struct str){file.s + dir.len + 1, file.len - dir.len - 1};
}

static int make_path(
	const struct record *r, const struct record_start *s, char path[RECORD_PATH_MAX])
{
	char name[200] = "", wanted[200] = "", random[17], part[PART_LEN];
	struct str file = in_folder(r, s->file);
	uint64_t number;
	size_t n;

	if (secmem_random(&number, sizeof(number)))
		return -EIO;
	snprintf(random, sizeof(random), "%016llx", (unsigned long long)number);
	if (file.len && file.len < sizeof(wanted)) {
		memcpy(wanted, file.s, file.len);
	} else if (file.len) {
		return -EINVAL;
	} else if (s->pattern.len) {
		if (!expand(wanted, sizeof(wanted), s, random))
			return -EINVAL;
	} else {
		n = clean(wanted, 150, s->call_id);
		snprintf(wanted + n, sizeof(wanted) - n, "%s%s", n ? "-" : "", random);
	}
	n = clean(name, sizeof(name) - 1, str_from(wanted));
	if (n == 0 || strcmp(name, wanted) != 0 || (file.len && n != file.len))
		return -EINVAL;
	number_part(part, s->parts);
	if ((size_t)snprintf(path, RECORD_PATH_MAX, "%s/%s%s", r->cfg.dir, name, part) >=
		RECORD_PATH_MAX - 8)
		return -EINVAL;
	return 0;
}

static int op_start(
	void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX])
{
	struct record *r = arg;
	struct cmd c = {.kind = CMD_START, .parts = s->parts};
	char when[64];
	struct tm tm;
	time_t t = (time_t)(s->now_ns / NS_PER_SEC);
	int err = make_path(r, s, path);

	if (err)
		return err;
	if (r->started - r->stopped_total >= ACTIVE_MAX)
		return -ENOSPC;
	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	c.text = strdup(path);
	if (!c.text ||
		asprintf(&c.about,
			"call-id: " STR_FMT "\nstarted: %s\nmetadata: " STR_FMT "\n" STR_FMT,
			STR_ARG(s->call_id), when, STR_ARG(s->metadata), STR_ARG(s->about)) < 0) {
		free(c.text);
		return -ENOMEM;
	}
	if (++r->last_tap == 0)
		r->last_tap = 1;
	c.tap = r->last_tap;
	err = tell(r, c);
	if (err)
		return err;
	r->started++;
	*tap = c.tap;
	return 0;
}

static void op_note(void *arg, uint32_t tap, struct str line)
{
	struct cmd c = {
		.kind = CMD_NOTE, .tap = tap, .text = strndup(line.s ? line.s : "", line.len)};

	if (c.text)
		(void)tell(arg, c);
}

static void op_stop(void *arg, uint32_t tap, bool discard)
{
	struct record *r = arg;

	if (tell(r, (struct cmd){.kind = CMD_STOP, .tap = tap, .discard = discard}) == 0)
		r->stopped_total++;
}

const struct recorder_ops record_ops = {.start = op_start, .note = op_note, .stop = op_stop};

/* --- The thread's side: files ----------------------------------------------------------------- */

static struct active **place(struct record *r, uint32_t tap)
{
	struct active **a = &r->active[tap % ACTIVE_MAX];

	while (*a && (*a)->tap != tap)
		a = &(*a)->next;
	return a;
}

static void disk_trouble(struct record *r, const char *path, int err)
{
	uint64_t held;

	add(&r->errors, 1);
	if (log_limit_pass(&r->log_disk, clock_mono_ns(), 10 * NS_PER_SEC, &held))
		log_warn(
			"recording %s.pcap has a gap: %s. Free space below --recording-dir, or lower --recording-max-age and --recording-max-size%s",
			path, strerror(-err), log_held((char[LOG_HELD]){0}, held));
}

/* Writes the buffer, and adds the result to the sums. */
static int flush(struct record *r, struct active *a)
{
	int err = record_file_flush(a->file);
	struct record_counts n;

	record_file_counts(a->file, &n);
	add(&r->packets, n.packets - a->told.packets);
	add(&r->bytes, n.bytes - a->told.bytes);
	add(&r->lost, n.lost - a->told.lost);
	a->told = n;
	return err;
}

static void begin(struct record *r, struct cmd *c)
{
	struct active **at = place(r, c->tap), *a = calloc(1, sizeof(*a));
	int err = a ? record_file_open(&a->file, c->text, r->cfg.format) : -ENOMEM;

	if (err) {
		add(&r->errors, 1);
		log_err("recording %s.pcap cannot be written: %s", c->text, strerror(-err));
		free(a);
		return;
	}
	a->tap = c->tap;
	a->path = c->text;
	a->parts = c->parts;
	c->text = NULL;
	record_file_note(a->file, str_trim(str_from(c->about)));
	*at = a;
	add(&r->recordings, 1);
	add(&r->n_active, 1);
}

/* Also removes this host's files of the call from before a restart. */
static void discard_parts(const struct active *a)
{
	char part[PART_LEN], path[RECORD_PATH_MAX + PART_LEN];
	int len;

	number_part(part, a->parts);
	len = (int)(strlen(a->path) - strlen(part));
	for (uint32_t i = 0; i < a->parts; i++) {
		number_part(part, i);
		snprintf(path, sizeof(path), "%.*s%s.pcap", len, a->path, part);
		unlink(path);
		snprintf(path, sizeof(path), "%.*s%s.txt", len, a->path, part);
		unlink(path);
	}
}

static void finish(struct record *r, struct active **at, bool discard)
{
	struct active *a = *at;
	int err = flush(r, a);

	if (err && !discard)
		disk_trouble(r, a->path, err);
	atomic_fetch_sub_explicit(&r->n_active, 1, memory_order_relaxed);
	*at = a->next;
	record_file_close(a->file, discard);
	if (discard)
		discard_parts(a);
	free(a->path);
	free(a);
}

static void carry_out(struct record *r, struct cmd *c)
{
	struct active **at = place(r, c->tap);

	if (c->kind == CMD_START)
		begin(r, c);
	else if (*at && c->kind == CMD_NOTE)
		record_file_note((*at)->file, str_from(c->text));
	else if (*at && c->kind == CMD_STOP)
		finish(r, at, c->discard);
	free(c->text);
	free(c->about);
}

/* Begins what is to begin, at once: its packets may be there already. The rest waits until packets
 * before it are written. */
static void take_commands(struct record *r)
{
	struct cmd c;

	while (r->taken_n < CMD_RING && ring_pop(&r->cmds, &c)) {
		if (c.kind == CMD_START)
			carry_out(r, &c);
		else
			r->taken[r->taken_n++] = c;
	}
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* The key's place in our own table. The engine is notified only when the place gets another key. */
static uint32_t key_slot(struct record *r, const struct tap_entry *e)
{
	bool rtcp = e->job.flags & XC_JOB_RTCP;
	uint32_t pair = 1 + (e->job.rx_key / 2 * 31 + e->tap) % CACHE, slot = 2 * pair + rtcp;

	if (memcmp(&r->arena.key[slot], &e->key, sizeof(e->key)) != 0) {
		r->arena.key[slot] = e->key;
		if (engine_serial.key_changed(r->queue, 2 * pair))
			return 0;
	}
	return slot;
}

/* The packet in clear, or NULL. */
static const uint8_t *decipher(struct record *r, const struct tap_entry *e, uint32_t *len)
{
	struct batch b = {.job = r->arena.job, .status = r->arena.status, .n = 1};
	struct xc_job *j = r->arena.job;

	*len = e->job.hdr_len + e->job.body_len;
	if (e->job.rx_key < 2)
		return e->bytes;
	*j = e->job;
	j->in_off = j->out_off = ARENA_HEADROOM;
	j->rx_key = key_slot(r, e);
	j->tx_key = j->flags & XC_JOB_RTCP ? 1 : 0;
	j->tx_tag_off = *len;
	j->ssrc_change = 0;
	memcpy(r->arena.in + j->in_off, e->bytes, e->len);
	r->arena.status[0] = XC_NOT_DONE;
	if (!j->rx_key || engine_serial.run(r->queue, &b) || b.status[0] != XC_OK)
		return NULL;
	return r->arena.out + j->out_off;
}

/* A worker dropped packets because its ring was full: the disk is too slow. */
static void fell_behind(struct record *r, uint32_t worker, struct active *a, uint32_t lost)
{
	uint32_t n = lost - r->seen_lost[worker];
	uint64_t held;

	r->seen_lost[worker] = lost;
	if (a)
		record_file_lost(a->file, n);
	else
		add(&r->lost, n);
	if (log_limit_pass(&r->log_slow, clock_mono_ns(), 10 * NS_PER_SEC, &held))
		log_warn(
			"recordings have a gap of %u packets: the disk of --recording-dir is too slow. Record fewer calls, or use a faster disk (%llu more reports suppressed)",
			n, (unsigned long long)held);
}

/* Finds drops after which no packet followed that would report them. */
static void look_for_lost(struct record *r)
{
	for (uint32_t w = 0; w < r->cfg.taps; w++) {
		uint32_t lost = atomic_load_explicit(&r->cfg.tap[w]->lost, memory_order_relaxed);

		if (lost == r->late_lost[w] && (int32_t)(lost - r->seen_lost[w]) > 0)
			fell_behind(r, w, NULL, lost);
		r->late_lost[w] = lost;
	}
}

static struct active *opened(struct record *r, uint32_t tap)
{
	struct active *a = *place(r, tap);

	if (a)
		return a;
	take_commands(r);
	return *place(r, tap);
}

static void packet(struct record *r, uint32_t worker, const struct tap_entry *e)
{
	struct active *a = opened(r, e->tap);
	struct endpoint to = r->cfg.local[e->to.addr].addr;
	const uint8_t *clear;
	uint32_t len;
	int err = 0;

	if ((int32_t)(e->lost - r->seen_lost[worker]) > 0)
		fell_behind(r, worker, a, e->lost);
	if (!a) /* it was stopped while this one was on its way */
		return;
	to.port = e->to.port;
	clear = decipher(r, e, &len);
	if (clear)
		err = record_file_packet(a->file, e->t_ns, &e->from, &to, clear, len);
	else
		record_file_lost(a->file, 1);
	if (err)
		disk_trouble(r, a->path, err);
}

static bool drain(struct record *r, struct tap_entry *e)
{
	bool any = false;

	for (uint32_t w = 0; w < r->cfg.taps; w++)
		while (ring_pop(&r->cfg.tap[w]->ring, e)) {
			packet(r, w, e);
			any = true;
		}
	return any;
}

/* --- The thread ------------------------------------------------------------------------------- */

static void flush_all(struct record *r)
{
	for (uint32_t i = 0; i < ACTIVE_MAX; i++)
		for (struct active *a = r->active[i]; a; a = a->next) {
			int err = flush(r, a);

			if (err)
				disk_trouble(r, a->path, err);
		}
}

/* A call on hold has nothing to write, and its recording must not look forgotten. */
static void touch_all(struct record *r)
{
	for (uint32_t i = 0; i < ACTIVE_MAX; i++)
		for (struct active *a = r->active[i]; a; a = a->next)
			record_file_touch(a->file);
}

static void housekeeping(struct record *r)
{
	uint64_t now = clock_mono_ns();

	if (now - r->flushed_ns >= FLUSH_NS) {
		r->flushed_ns = now;
		look_for_lost(r);
		flush_all(r);
	}
	if (now - r->kept_ns >= KEEP_S * NS_PER_SEC && (r->cfg.max_age_s || r->cfg.max_bytes)) {
		r->kept_ns = now;
		touch_all(r);
		add(&r->removed,
			record_keep(r->cfg.dir, r->cfg.max_age_s, r->cfg.max_bytes,
				clock_real_ns() / NS_PER_SEC));
	}
}

static void *run(void *arg)
{
	struct record *r = arg;
	struct tap_entry *e = secmem_alloc(sizeof(*e));
	bool end = false;

	(void)caps_limit(0);
	while (e && !end) {
		struct pollfd p = {.fd = r->wake_fd, .events = POLLIN};
		uint64_t count;

		end = atomic_load_explicit(&r->end, memory_order_acquire);
		poll(&p, 1, end ? 0 : atomic_load(&r->n_active) ? LOOK_MS : 1000);
		(void)!read(r->wake_fd, &count, sizeof(count));
		/* A new recording may already have packets, and an ending one may have some left:
		 * so start first, then read packets, then stop. */
		do {
			take_commands(r);
			(void)drain(r, e);
			for (uint32_t i = 0; i < r->taken_n; i++)
				carry_out(r, &r->taken[i]);
			r->taken_n = 0;
			take_commands(r);
		} while (r->taken_n);
		housekeeping(r);
	}
	secmem_free(e, sizeof(*e));
	for (uint32_t i = 0; i < ACTIVE_MAX; i++)
		while (r->active[i])
			finish(r, &r->active[i], false);
	return NULL;
}

static int start_thread(struct record *r)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	r->running = true;
	pthread_setname_np(r->thread, "recording");
	return 0;
}

static int prepare(struct record *r)
{
	int err = arena_create(&r->arena, 1, KEY_SLOTS);

	err = err ? err : engine_serial.queue_create(&r->queue, r->cfg.serial, &r->arena);
	err = err ? err : ring_init(&r->cmds, CMD_RING, sizeof(struct cmd));
	r->seen_lost = calloc(r->cfg.taps, sizeof(*r->seen_lost));
	r->late_lost = calloc(r->cfg.taps, sizeof(*r->late_lost));
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!err && (!r->seen_lost || !r->late_lost || r->wake_fd < 0))
		err = r->seen_lost && r->late_lost ? -errno : -ENOMEM;
	return err;
}

int record_create(struct record **out, const struct record_config *cfg, char *err, size_t err_len)
{
	struct record *r;
	int res;

	if (access(cfg->dir, W_OK | X_OK)) {
		res = -errno;
		snprintf(err, err_len,
			"--recording-dir=%s: %s. It must be a folder that xcipherd may write to",
			cfg->dir, strerror(-res));
		return res;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->wake_fd = -1;
	res = prepare(r);
	res = res ? res : start_thread(r);
	if (res) {
		record_destroy(r);
		snprintf(err, err_len, "recording: %s", strerror(-res));
		return res;
	}
	*out = r;
	return 0;
}

void record_destroy(struct record *r)
{
	uint64_t one = 1;

	if (!r)
		return;
	if (r->running) {
		atomic_store_explicit(&r->end, true, memory_order_release);
		(void)!write(r->wake_fd, &one, sizeof(one));
		pthread_join(r->thread, NULL);
	}
	if (r->queue)
		engine_serial.queue_destroy(r->queue);
	if (r->arena.in)
		arena_destroy(&r->arena);
	if (r->cmds.mem)
		ring_fini(&r->cmds);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	free(r->seen_lost);
	free(r->late_lost);
	free(r);
}

void record_stats(const struct record *r, struct record_stats *out)
{
	*out = (struct record_stats){.recordings = atomic_load(&r->recordings),
		.active = atomic_load(&r->n_active),
		.packets = atomic_load(&r->packets),
		.bytes = atomic_load(&r->bytes),
		.lost = atomic_load(&r->lost),
		.errors = atomic_load(&r->errors),
		.removed = atomic_load(&r->removed)};
}
