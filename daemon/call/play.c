/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plays to parties. Until the clip ends, a leg that plays has an audio session (leg_audio.c), even
 * if it is not transcoded. */
#include "call/play.h"

#include <errno.h>
#include <stdlib.h>

#include "audio/clip.h"
#include "audio/files.h"
#include "audio/tones.h"
#include "base/clock.h"
#include "call/apply.h"
#include "call/audio.h"
#include "call/call_int.h"
#include "call/gate.h"
#include "call/table.h"
#include "proto/base64.h"

enum {
	DIGIT_MS = 250,
	PAUSE_MS = 100,
	DIGIT_MIN_MS = 100,
	DIGIT_MAX_MS = 5000,
	VOLUME = 8,
	VOLUME_MAX = 63,
};
#define AFTER_NS (NS_PER_SEC) /* most that the session ends a clip late */

void calls_files(struct calls *c, struct audio_files *f)
{
	c->files = f;
}

/* --- Selection -------------------------------------------------------------------------------- */

struct targets {
	uint32_t n;
	struct {
		uint8_t side;
		uint8_t media;
	} at[CALL_MAX_SIDES];
};

/* The side's first audio m-line that can be played to. */
static void add_first(struct targets *t, const struct call *c, const struct side *s)
{
	for (uint32_t i = 0; i < s->legs && t->n < CALL_MAX_SIDES; i++) {
		const struct leg *l = s->leg[i];

		if (!l || !l->active || strcmp(l->kind, "audio") != 0)
			continue;
		t->at[t->n].side = call_side_index(c, s);
		t->at[t->n++].media = (uint8_t)i;
		return;
	}
}

/* peers: selects the peers of the selected parties in place of these. */
static const char *select_targets(
	struct targets *t, const struct call *c, const struct ng_request *r, bool peers)
{
	struct endpoint addr = {0};

	*t = (struct targets){0};
	if (r->address.len && endpoint_parse_addr(&addr, r->address))
		return NGE_ADDRESS;
	if (!r->from_tag.len && !r->label.len && !r->address.len && !ng_flag(r, NG_FLAG_ALL))
		return NGE_NO_PARTY;
	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];

		if (!gate_is_source(s, r, &addr) || s->listener)
			continue;
		if (peers && (s->peer >= c->sides || c->side[s->peer]->gone))
			continue;
		add_first(t, c, peers ? c->side[s->peer] : s);
	}
	return t->n ? NULL : NGE_PARTICIPANT;
}

static struct leg *target(struct call *c, const struct targets *t, uint32_t i)
{
	return c->side[t->at[i].side]->leg[t->at[i].media];
}

/* Puts a changed copy into force. Returns the call; NULL: it failed. */
static struct call *put(struct calls *c, struct pool *p, struct call *call, struct call *next,
	uint64_t now_ns, struct call_reply *out)
{
	int err = apply_take(c->relay, call, next);

	if (err)
		call_free(&c->keys, next);
	else
		err = calls_put_in_force(c, p, call, next, now_ns);
	if (err) {
		calls_resource_error(out, err, false);
		return NULL;
	}
	return next;
}

static struct call *find(
	struct calls *c, const struct ng_request *r, struct call **next, struct call_reply *out)
{
	struct call *call = call_table_find(&c->table, r->call_id);

	*out = (struct call_reply){0};
	*next = NULL;
	if (!call)
		out->error = NGE_UNKNOWN_CALL;
	else if (!c->relay->audio)
		out->error = NGE_NO_AUDIO;
	else if (!(*next = call_clone(&c->keys, call)))
		out->error = NGE_NOMEM;
	return out->error ? NULL : call;
}

/* --- Clips ------------------------------------------------------------------------------------ */

static void set_error(struct pool *p, struct call_reply *out, int err)
{
	static const struct {
		int err;
		const char *text;
	} why[] = {
		{-EACCES, "its name leads out of play-dir, or it is not a plain file"},
		{-ENOENT, "no such file in play-dir"},
		{-EFBIG, "it is too long"},
		{-ENOMSG, "its format is not known"},
		{-ENOPKG,
			"Opus, Vorbis and MP3 need xcipher-av: install it, or see --play-decoder"},
		{-ETIME, "it takes too long to decode"},
		{-EBADMSG, "it is malformed, or empty"},
		{-ENOTSUP, "its coding, rate or number of channels is not supported"},
		{-EINVAL, "start-pos is beyond its end"},
		{-EIO, "it cannot be read"},
	};

	if (err == -EAGAIN || err == -EBUSY) {
		out->error = NGE_BUSY;
		out->again = true;
		return;
	}
	out->error = err == -ENOMEM ? NGE_NOMEM : err == -ENODEV ? NGE_PLAY_OFF : NGE_PLAY_FILE;
	for (size_t i = 0; i < ARRAY_LEN(why); i++)
		if (why[i].err == err)
			out->detail = pool_strdup(p, str_from(why[i].text));
}

static int decode_blob(
	struct calls *c, struct pool *p, const struct ng_play *play, struct audio_clip **out)
{
	uint8_t *bytes;
	int n;

	if (play->blob.len)
		return audio_files_blob(
			c->files, (const uint8_t *)play->blob.s, play->blob.len, out);
	bytes = pool_alloc(p, play->blob64.len);
	if (!bytes)
		return -ENOMEM;
	n = base64_decode(bytes, play->blob64.len, play->blob64);
	return n < 0 ? -EBADMSG : audio_files_blob(c->files, bytes, (size_t)n, out);
}

/* The clip of the request, or NULL and an error. */
static struct audio_clip *clip_of(
	struct calls *c, struct pool *p, const struct ng_request *r, struct call_reply *out)
{
	struct audio_clip *clip = NULL;
	int err = 0;

	if (r->play.file.len && !c->files)
		out->error = NGE_PLAY_OFF;
	else if (r->play.file.len)
		err = audio_files_get(c->files, r->play.file, &clip);
	else if (r->play.blob.len || r->play.blob64.len)
		err = decode_blob(c, p, &r->play, &clip);
	else
		out->error = r->play.db_id.len ? NGE_DB : NGE_NO_MEDIA;
	if (!err && clip && r->play.start_pos >= (int64_t)clip->file_samples)
		err = -EINVAL;
	if (!err)
		return clip;
	set_error(p, out, err);
	audio_clip_unref(clip);
	return NULL;
}

static uint32_t bounded(int64_t v, uint32_t def, uint32_t min, uint32_t max)
{
	return v < 0 ? def : v < min ? min : v > max ? max : (uint32_t)v;
}

/* The first sample to play, counted at the file's rate. */
static uint32_t start_of(const struct ng_request *r, const struct audio_clip *clip)
{
	return bounded(r->play.start_pos, 0, 0, clip->file_samples);
}

static struct audio_play play_of(const struct ng_request *r, struct audio_clip *clip, uint32_t id)
{
	uint64_t start = (uint64_t)start_of(r, clip) * clip->rate / clip->file_rate;

	return (struct audio_play){.clip = clip,
		.start = start < clip->samples ? (uint32_t)start : clip->samples - 1,
		.repeat = bounded(r->play.repeat_times, r->play.repeat_ms > 0 ? UINT32_MAX : 1, 1,
			UINT32_MAX),
		.limit_ms = bounded(r->play.repeat_ms, 0, 0, UINT32_MAX),
		.mix = !ng_flag(r, NG_FLAG_BLOCK_EGRESS),
		.id = id};
}

static uint64_t length_ns(const struct audio_play *play)
{
	const struct audio_clip *c = play->clip;
	double s = ((double)c->samples * play->repeat - play->start) / c->rate;
	double limit = play->limit_ms ? play->limit_ms / 1000.0 : s;

	s = s < limit ? s : limit;
	return s > 1e9 ? (uint64_t)1000000000 * NS_PER_SEC : (uint64_t)(s * NS_PER_SEC);
}

static void stop_clip(struct calls *c, const struct leg *l)
{
	if (l->play.until_ns && l->audio.has)
		(void)c->relay->audio->ops->stop(c->relay->audio->arg, l->audio.handle, l->play.id);
}

/* Starts the clip at all targets that have a session. Returns their number. */
static uint32_t start(
	struct calls *c, struct call *call, const struct targets *t, const struct audio_play *play)
{
	const struct audio *a = c->relay->audio;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		struct leg *l = target(call, t, i);
		bool done = false;

		if (l->audio.has) {
			audio_clip_ref(play->clip);
			done = a->ops->play(a->arg, l->audio.handle, play) == 0;
			if (!done)
				audio_clip_unref(play->clip);
		}
		if (!done)
			l->play.until_ns = 0;
		n += done;
	}
	return n;
}

void calls_play_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct call *next, *call = find(c, r, &next, out);
	struct audio_clip *clip = NULL;
	struct audio_play play;
	struct targets t;

	if (!call)
		return;
	out->error = select_targets(&t, next, r, false);
	if (!out->error)
		clip = clip_of(c, p, r, out);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	play = play_of(r, clip, ++c->plays);
	for (uint32_t i = 0; i < t.n; i++) {
		struct leg *l = target(next, &t, i);

		stop_clip(c, l);
		l->play.id = play.id;
		l->play.rate = clip->file_rate;
		l->play.samples = clip->file_samples;
		l->play.start = start_of(r, clip);
		l->play.began_ns = now_ns;
		l->play.until_ns = now_ns + length_ns(&play) + AFTER_NS;
	}
	call = put(c, p, call, next, now_ns, out);
	if (call && !start(c, call, &t, &play))
		out->error = NGE_PLAY_LEG;
	else if (call)
		ngval_add_int(p, dict, STR("duration"),
			(int64_t)((uint64_t)clip->file_samples * 1000 / clip->file_rate));
	audio_clip_unref(clip);
}

static uint32_t position(const struct leg_play *play, uint64_t now_ns)
{
	uint64_t us = now_ns > play->began_ns ? (now_ns - play->began_ns) / 1000 : 0;

	return (uint32_t)((play->start + us * play->rate / 1000000) % play->samples);
}

void calls_stop_media(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict)
{
	struct call *next, *call = find(c, r, &next, out);
	struct targets t;
	uint32_t last = 0;

	if (!call)
		return;
	out->error = select_targets(&t, next, r, false);
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	for (uint32_t i = 0; i < t.n; i++) {
		struct leg *l = target(next, &t, i);

		if (!l->play.until_ns)
			continue;
		stop_clip(c, l);
		last = position(&l->play, now_ns);
		l->play.until_ns = 0;
	}
	if (put(c, p, call, next, now_ns, out))
		ngval_add_int(p, dict, STR("last-frame-pos"), last);
}

/* --- Digits ----------------------------------------------------------------------------------- */

/* Parses a digit: 0 to 15, or a character. */
static uint8_t digit_of(struct str code)
{
	uint64_t n;

	if (str_to_u64(&n, code, 15) == 0)
		return (uint8_t)n;
	return code.len == 1 ? tones_event(code.s[0]) : TONES_NO_DIGIT;
}

static uint32_t send_digit(
	struct calls *c, struct call *call, const struct targets *t, const struct audio_digit *d)
{
	const struct audio *a = c->relay->audio;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const struct leg *l = target(call, t, i);

		n += l->audio.has && a->ops->digits(a->arg, l->audio.handle, d, 1) == 0;
	}
	return n;
}

void calls_play_dtmf(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out)
{
	const struct ng_play *q = &r->play;
	const struct audio_digit d = {.event = digit_of(q->code),
		.volume = (uint8_t)bounded(q->volume, VOLUME, 0, VOLUME_MAX),
		.ms = (uint16_t)bounded(q->duration, DIGIT_MS, DIGIT_MIN_MS, DIGIT_MAX_MS),
		.pause_ms = (uint16_t)bounded(q->pause, PAUSE_MS, DIGIT_MIN_MS, DIGIT_MAX_MS)};
	struct call *next, *call = find(c, r, &next, out);
	struct targets t;

	if (!call)
		return;
	out->error = select_targets(&t, next, r, true);
	if (!out->error && d.event == TONES_NO_DIGIT)
		out->error = NGE_DIGIT;
	if (out->error) {
		call_free(&c->keys, next);
		return;
	}
	for (uint32_t i = 0; i < t.n; i++) {
		struct leg *l = target(next, &t, i);
		uint64_t from = l->play.digits_ns > now_ns ? l->play.digits_ns : now_ns + AFTER_NS;

		l->play.digits_ns = from + (uint64_t)(d.ms + d.pause_ms) * 1000000;
	}
	call = put(c, p, call, next, now_ns, out);
	if (call && !send_digit(c, call, &t, &d))
		out->error = NGE_PLAY_LEG;
}

/* --- The end ---------------------------------------------------------------------------------- */

/* Removes the marks of finished plays. Returns whether there were any. */
static bool clear(struct call *c, uint64_t now_ns, bool really)
{
	bool any = false;

	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			struct leg *l = c->side[s]->leg[i];

			if (!l)
				continue;
			any |= l->play.until_ns && now_ns >= l->play.until_ns;
			any |= l->play.digits_ns && now_ns >= l->play.digits_ns;
			if (really && now_ns >= l->play.until_ns)
				l->play.until_ns = 0;
			if (really && now_ns >= l->play.digits_ns)
				l->play.digits_ns = 0;
		}
	return any;
}

bool play_tick(struct calls *c, struct call *call, uint64_t now_ns)
{
	struct call_reply reply = {0};
	struct call *next;
	struct pool *p;
	bool done;

	if (!c->relay->audio || !clear(call, now_ns, false))
		return false;
	next = call_clone(&c->keys, call);
	if (!next)
		return false;
	if (pool_create(&p, 1u << 20)) {
		call_free(&c->keys, next);
		return false;
	}
	clear(next, now_ns, true);
	done = put(c, p, call, next, now_ns, &reply);
	pool_destroy(p);
	return done;
}
