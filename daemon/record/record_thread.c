/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recording thread (record/record.h). It takes commands from the control thread's ring, and
 * packets from a ring per worker. While anything is recorded, it reads all rings some fifty times
 * a second, more often under load (record_pace.h). */
#include "record/record_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/record_keep.h"
#include "record/record_pace.h"
#include "record/record_share.h"
#include "base/caps.h"
#include "base/clock.h"
#include "base/secmem.h"

enum { IDLE_MS = 1000, FLUSH_NS = 200000000, KEEP_S = 30 };

/* --- Files ------------------------------------------------------------------------------------ */

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

	record_add(&r->errors, 1);
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
	record_add(&r->packets, n.packets - a->told.packets);
	record_add(&r->bytes, n.bytes - a->told.bytes);
	record_add(&r->lost, n.lost - a->told.lost);
	a->told = n;
	return err;
}

/* Without audio files the recording continues as pcap. */
static void begin_audio(struct record *r, struct active *a, const char *path)
{
	int err =
		r->cfg.codecs ? record_audio_open(&a->audio, &r->audio, path, clock_mono_ns()) : 0;

	if (!err)
		return;
	record_add(&r->errors, 1);
	log_err("recording %s: audio files cannot be written: %s", path, strerror(-err));
}

static void begin(struct record *r, struct cmd *c)
{
	struct active **at = place(r, c->tap), *a = calloc(1, sizeof(*a));
	int err = a ? record_file_open(&a->file, c->text, r->cfg.format) : -ENOMEM;

	if (err) {
		record_add(&r->errors, 1);
		log_err("recording %s.pcap cannot be written: %s", c->text, strerror(-err));
		free(a);
		return;
	}
	begin_audio(r, a, c->text);
	a->tap = c->tap;
	a->path = c->text;
	a->parts = c->parts;
	c->text = NULL;
	record_file_note(a->file, str_trim(str_from(c->about)));
	*at = a;
	record_add(&r->recordings, 1);
	record_add(&r->n_active, 1);
}

/* Also removes this host's files of the call from before a restart. */
static void discard_parts(const struct active *a)
{
	char part[PART_LEN], path[RECORD_PATH_MAX + PART_LEN + RECORD_NAME_MAX];
	int len;

	record_number_part(part, a->parts);
	len = (int)(strlen(a->path) - strlen(part));
	for (uint32_t i = 0; i < a->parts; i++) {
		record_number_part(part, i);
		for (uint32_t e = 0; e < RECORD_NAME_ENDS; e++) {
			char end[RECORD_NAME_MAX + 1];

			record_name_end(end, e);
			snprintf(path, sizeof(path), "%.*s%s%s", len, a->path, part, end);
			unlink(path);
		}
	}
}

/* Reports audio that was not decoded. */
static void look_for_skipped(struct record *r, struct active *a)
{
	struct record_audio_counts n;
	uint64_t held;

	record_audio_counts(a->audio, &n);
	if (n.skipped == a->told_skipped)
		return;
	record_add(&r->skipped, n.skipped - a->told_skipped);
	if (!a->told_skipped &&
		log_limit_pass(&r->log_skipped, clock_mono_ns(), 10 * NS_PER_SEC, &held))
		log_warn(
			"recording %s: the audio files lack audio, because the call has more packets or codecs than are decoded for one call. The packets are in the pcap file%s",
			a->path, log_held((char[LOG_HELD]){0}, held));
	a->told_skipped = n.skipped;
}

static void finish_audio(struct record *r, struct active *a, bool discard)
{
	struct record_audio_counts n;
	char line[160];
	int err;

	look_for_skipped(r, a);
	record_audio_counts(a->audio, &n);
	snprintf(line, sizeof(line),
		"audio: %u files, %llu packets decoded, %llu lost, %llu broken, %llu skipped",
		n.files, (unsigned long long)n.decoded, (unsigned long long)n.lost,
		(unsigned long long)n.broken, (unsigned long long)n.skipped);
	err = record_audio_close(a->audio, clock_mono_ns(), discard);
	a->audio = NULL;
	if (err && !discard)
		disk_trouble(r, a->path, err);
	record_file_note(a->file, str_from(line));
}

static void finish(struct record *r, struct active **at, bool discard)
{
	struct active *a = *at;
	int err = flush(r, a);

	if (err && !discard)
		disk_trouble(r, a->path, err);
	atomic_fetch_sub_explicit(&r->n_active, 1, memory_order_relaxed);
	*at = a->next;
	if (a->audio)
		finish_audio(r, a, discard);
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
	else if (*at && (*at)->audio && c->kind == CMD_MEDIA)
		record_audio_media((*at)->audio, c->media, clock_mono_ns());
	else if (*at && c->kind == CMD_NOTE)
		record_file_note((*at)->file, str_from(c->text));
	else if (*at && c->kind == CMD_STOP)
		finish(r, at, c->discard);
	free(c->text);
	free(c->about);
	free(c->media);
}

/* Starts recordings at once, because packets may already wait; likewise new codecs. Other commands
 * wait until earlier packets are written. */
static void take_commands(struct record *r)
{
	struct cmd c;

	while (r->taken_n < CMD_RING && ring_pop(&r->cmds, &c)) {
		if (c.kind == CMD_START || c.kind == CMD_MEDIA)
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
	j->convert = 0;
	memcpy(r->arena.in + j->in_off, e->bytes, e->len);
	r->arena.status[0] = XC_NOT_DONE;
	if (!j->rx_key || engine_serial.run(r->queue, &b) || b.status[0] != XC_OK)
		return NULL;
	*len -= XC_BLOCK_CUT(e->job.flags); /* the block of SRTP+ chain; media checked the length */
	return r->arena.out + j->out_off;
}

/* A worker dropped packets because its ring had no room for them: the disk is too slow, or a call
 * has too many packets. */
static void fell_behind(struct record *r, uint32_t worker, struct active *a, uint32_t n)
{
	uint64_t held;

	r->behind = true;
	r->seen_lost[worker] += n;
	if (a)
		record_file_lost(a->file, n);
	else
		record_add(&r->lost, n);
	if (log_limit_pass(&r->log_slow, clock_mono_ns(), 10 * NS_PER_SEC, &held))
		log_warn(
			"recordings have a gap of %u packets: the disk of --recording-dir is too slow, or a call has too many packets. Record fewer calls, or use a faster disk (%llu more reports suppressed)",
			n, (unsigned long long)held);
}

/* Finds drops after which no packet followed that would report them. */
static void look_for_lost(struct record *r)
{
	for (uint32_t w = 0; w < r->cfg.taps; w++) {
		uint32_t lost = atomic_load_explicit(&r->cfg.tap[w]->lost, memory_order_relaxed);

		if (lost == r->late_lost[w] && (int32_t)(lost - r->seen_lost[w]) > 0)
			fell_behind(r, w, NULL, lost - r->seen_lost[w]);
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

/* On the monotonic clock: the timeline of audio does not jump if the host's time is set. */
static uint64_t arrival(const struct record *r, uint64_t t_ns)
{
	uint64_t now_ns = clock_mono_ns();
	int64_t t = (int64_t)t_ns - r->real_ahead_ns;

	return t > (int64_t)now_ns || t + (int64_t)NS_PER_SEC < (int64_t)now_ns ? now_ns
										: (uint64_t)t;
}

static void packet(struct record *r, uint32_t worker, const struct tap_entry *e)
{
	struct active *a = opened(r, e->tap);
	struct endpoint to = r->cfg.local[e->to.addr].addr;
	const uint8_t *clear;
	uint32_t len;
	int err = 0;

	/* Losses of other recordings are counted with packets of theirs. */
	if (e->missed && (int32_t)(e->lost - r->seen_lost[worker]) > 0)
		fell_behind(r, worker, a, min_u32(e->missed, e->lost - r->seen_lost[worker]));
	if (!a) /* it was stopped while this packet was queued */
		return;
	to.port = e->to.port;
	clear = decipher(r, e, &len);
	if (clear)
		err = record_file_packet(a->file, e->t_ns, &e->from, &to, clear, len);
	else
		record_file_lost(a->file, 1);
	if (err)
		disk_trouble(r, a->path, err);
	if (clear && a->audio && !(e->job.flags & XC_JOB_RTCP))
		record_audio_packet(a->audio, e->to, clear, len, arrival(r, e->t_ns));
}

/* Handles the packets that are queued at the call, and no later ones: a worker whose ring never
 * empties must not delay other workers and commands. Returns how many the fullest ring had. */
static uint32_t drain(struct record *r, struct tap_entry *e)
{
	uint32_t most = 0;

	for (uint32_t w = 0; w < r->cfg.taps; w++) {
		uint32_t n = tap_waiting(r->cfg.tap[w]);

		most = n > most ? n : most;
		r->behind |= n > TAP_ENTRIES / 2;
		for (; n && tap_next(r->cfg.tap[w], e); n--)
			packet(r, w, e);
	}
	return most;
}

/* --- The thread ------------------------------------------------------------------------------- */

static void flush_all(struct record *r)
{
	r->audio.share = record_share_next(r->audio.share, r->behind);
	r->behind = false;
	for (uint32_t i = 0; i < ACTIVE_MAX; i++)
		for (struct active *a = r->active[i]; a; a = a->next) {
			int err = flush(r, a), wav = 0;

			if (a->audio) {
				wav = record_audio_tick(a->audio, clock_mono_ns());
				look_for_skipped(r, a);
			}
			if (err || wav)
				disk_trouble(r, a->path, err ? err : wav);
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
		record_add(&r->removed,
			record_keep(r->cfg.dir, r->cfg.max_age_s, r->cfg.max_bytes,
				clock_real_ns() / NS_PER_SEC));
	}
}

void *record_thread(void *arg)
{
	struct record *r = arg;
	struct tap_entry *e = secmem_alloc(sizeof(*e));
	uint32_t pace_ms = RECORD_PACE_LONG_MS;
	bool end = false;

	(void)caps_limit(0);
	while (e && !end) {
		struct pollfd p = {.fd = r->wake_fd, .events = POLLIN};
		uint32_t most = 0;
		uint64_t count;

		end = atomic_load_explicit(&r->end, memory_order_acquire);
		poll(&p, 1, end ? 0 : atomic_load(&r->n_active) ? (int)pace_ms : IDLE_MS);
		(void)!read(r->wake_fd, &count, sizeof(count));
		r->real_ahead_ns = (int64_t)(clock_real_ns() - clock_mono_ns());
		/* A new recording may already have packets, and an ending one may have some left:
		 * so start first, then read packets, then stop. */
		do {
			uint32_t found;

			take_commands(r);
			found = drain(r, e);
			most = found > most ? found : most;
			for (uint32_t i = 0; i < r->taken_n; i++)
				carry_out(r, &r->taken[i]);
			r->taken_n = 0;
			take_commands(r);
		} while (r->taken_n);
		pace_ms = record_pace_next(pace_ms, most, TAP_ENTRIES);
		housekeeping(r);
	}
	secmem_free(e, sizeof(*e));
	for (uint32_t i = 0; i < ACTIVE_MAX; i++)
		while (r->active[i])
			finish(r, &r->active[i], false);
	return NULL;
}
