/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control thread's side of recording (record/record.h): names of files, commands to the
 * recording thread in one ring, start and stop. */
#include "record/record_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "base/thread.h"
#include "record/record_opus.h"
#include "record/record_share.h"
#include "record/record_wav.h"

/* --- Commands --------------------------------------------------------------------------------- */

static int tell(struct record *r, struct cmd c)
{
	uint64_t one = 1;

	/* Room is always left to stop every recording, whatever else is queued. */
	if ((c.kind != CMD_STOP && ring_room(&r->cmds) <= ACTIVE_MAX + 1) ||
		ring_push(&r->cmds, &c, 1)) {
		free(c.text);
		free(c.about);
		free(c.media);
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

/* Expands the pattern: %c the Call-ID, %r random digits, %t the time, %% a percent sign. False: it
 * has another directive. */
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

void record_number_part(char out[PART_LEN], uint32_t parts)
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
	record_number_part(part, s->parts);
	if ((size_t)snprintf(path, RECORD_PATH_MAX, "%s/%s%s", r->cfg.dir, name, part) >=
		RECORD_PATH_MAX - RECORD_NAME_MAX)
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

static void op_media(void *arg, uint32_t tap, const struct record_media *m)
{
	size_t len = sizeof(*m) + m->n * sizeof(m->at[0]);
	struct cmd c = {.kind = CMD_MEDIA, .tap = tap, .media = malloc(len)};

	if (!c.media)
		return;
	memcpy(c.media, m, len);
	(void)tell(arg, c);
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

const struct recorder_ops record_ops = {
	.start = op_start, .media = op_media, .note = op_note, .stop = op_stop};

/* --- Life ------------------------------------------------------------------------------------- */

static int start_thread(struct record *r)
{
	int err = thread_start(&r->thread, NULL, "recording", record_thread, r);

	r->running = err == 0;
	return err;
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

/* Files that an earlier process left, perhaps one with another output-format. */
static void repair(struct record *r)
{
	uint32_t wav = r->cfg.codecs ? record_wav_repair(r->cfg.dir) : 0;
	uint32_t opus = r->cfg.codecs ? record_opus_repair(r->cfg.dir, RECORD_OPUS_PAGES) : 0;

	atomic_store(&r->repaired, wav + opus);
	if (wav)
		log_info(
			"corrected the headers of %u WAV files in %s, which an earlier process left open",
			wav, r->cfg.dir);
	if (opus)
		log_info("ended %u Opus files in %s, which an earlier process left open", opus,
			r->cfg.dir);
}

/* The encoder of Opus files. NULL in *out: WAV. 0, or -errno with one line in err. */
static int find_encoder(
	const struct record_config *cfg, const struct codec_entry **out, char *err, size_t err_len)
{
	*out = cfg->codecs && cfg->audio_opus ? record_opus_codec(cfg->codecs, cfg->audio_rate)
					      : NULL;
	if (!cfg->codecs || !cfg->audio_opus || *out)
		return 0;
	if (codec_registry_find(cfg->codecs, "opus", 48000, 1))
		snprintf(err, err_len,
			"--output-format=opus: --resample-to=%u is not a rate of Opus. Set 8000, 16000 or 48000",
			cfg->audio_rate);
	else
		snprintf(err, err_len,
			"--output-format=opus: the codec plug-in for Opus is missing. Install xcipher-codec-opus, or see --codec-dir");
	return -EINVAL;
}

int record_create(struct record **out, const struct record_config *cfg, char *err, size_t err_len)
{
	const struct codec_entry *opus;
	struct record *r;
	int res = find_encoder(cfg, &opus, err, err_len);

	if (res)
		return res;
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
	r->audio.codecs = cfg->codecs;
	r->audio.opus = opus;
	r->audio.rate = cfg->audio_rate;
	r->audio.share = RECORD_SHARE_MOST;
	r->audio.mixed = cfg->audio_mixed;
	r->audio.single = cfg->audio_single;
	r->audio.by_channels = cfg->audio_by_channels;
	repair(r);
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
		.removed = atomic_load(&r->removed),
		.repaired = atomic_load(&r->repaired),
		.skipped = atomic_load(&r->skipped)};
}
