/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mixes clips and tones into the audio for a terminal. Clips are resampled as they play. */
#include "audio/source.h"

#include <errno.h>
#include <string.h>

#include "audio/clip.h"
#include "audio/resample.h"
#include "base/bytes.h"

enum { CHUNK = 480 }; /* samples mixed at a time */

void audio_source_fini(struct audio_source *s)
{
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++)
		audio_clip_unref(s->play[i].play.clip);
	memset(s, 0, sizeof(*s));
}

static void end_play(struct audio_source_play *p, struct audio_ended *ended)
{
	if (ended->n < AUDIO_PLAYS)
		ended->id[ended->n++] = p->play.id;
	audio_clip_unref(p->play.clip);
	*p = (struct audio_source_play){0};
}

int audio_source_play(struct audio_source *s, const struct audio_play *p, struct audio_ended *ended)
{
	struct audio_source_play *free_one = NULL;

	if (p->start >= p->clip->samples)
		return -EINVAL;
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++) {
		struct audio_source_play *q = &s->play[i];

		if (q->play.clip && !p->mix && !q->play.mix)
			end_play(q, ended);
		if (!q->play.clip && !free_one)
			free_one = q;
	}
	if (!free_one)
		return -ENOSPC;
	*free_one = (struct audio_source_play){
		.play = *p, .at = p->start, .at_rate = 1, .left = p->repeat ? p->repeat : 1};
	return 0;
}

void audio_source_stop(struct audio_source *s, uint32_t id, struct audio_ended *ended)
{
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++)
		if (s->play[i].play.clip && (!id || s->play[i].play.id == id))
			end_play(&s->play[i], ended);
	if (!id) {
		s->wait = (struct audio_digits){0};
		s->digit_left = s->pause_left = 0;
	}
}

int audio_source_digits(struct audio_source *s, const struct audio_digit *d, uint32_t n)
{
	return audio_digits_add(&s->wait, d, n);
}

static bool has_digits(const struct audio_source *s)
{
	return s->wait.n || s->digit_left || s->pause_left;
}

bool audio_source_busy(const struct audio_source *s)
{
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++)
		if (s->play[i].play.clip)
			return true;
	return has_digits(s);
}

bool audio_source_replaces(const struct audio_source *s)
{
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++)
		if (s->play[i].play.clip && !s->play[i].play.mix)
			return true;
	return has_digits(s);
}

/* --- Clips ------------------------------------------------------------------------------------ */

static int16_t add_clipped(int16_t a, int16_t b)
{
	int32_t v = a + b;

	return (int16_t)(v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v);
}

/* Samples at rate until this round of the clip or its time limit ends. */
static uint32_t samples_left(const struct audio_source_play *p, uint32_t rate)
{
	uint64_t end = (uint64_t)p->play.clip->samples * rate;
	uint64_t left = (end - p->at + p->play.clip->rate - 1) / p->play.clip->rate;
	uint64_t limit_us = (uint64_t)p->play.limit_ms * 1000;

	if (limit_us) {
		uint64_t time = limit_us > p->played_us ? limit_us - p->played_us : 0;

		time = time * rate / 1000000;
		left = left < time ? left : time;
	}
	return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

/* Begins the next round. False: the play has ended. */
static bool again(struct audio_source_play *p)
{
	uint64_t limit_us = (uint64_t)p->play.limit_ms * 1000;

	/* The limit may have less than a sample left. */
	if ((limit_us && p->played_us + 1000 > limit_us) || --p->left == 0)
		return false;
	p->at = 0;
	return true;
}

static void run_play(struct audio_source_play *p, uint32_t rate, int16_t *pcm, uint32_t n,
	struct audio_ended *ended)
{
	struct audio_clip *c = p->play.clip;
	struct resample r = {c->pcm, c->samples, c->rate, rate};
	int16_t chunk[CHUNK];

	if (p->at_rate != rate) {
		p->at = p->at / p->at_rate * rate;
		p->at_rate = rate;
	}
	while (n) {
		uint32_t some = min_u32(min_u32(n, CHUNK), samples_left(p, rate));

		if (!some) {
			if (!again(p)) {
				end_play(p, ended);
				return;
			}
			continue;
		}
		resample_run(&r, p->at, chunk, some);
		for (uint32_t i = 0; i < some; i++)
			pcm[i] = add_clipped(pcm[i], chunk[i]);
		p->at += (uint64_t)some * c->rate;
		p->played_us += (uint64_t)some * 1000000 / rate;
		pcm += some;
		n -= some;
	}
	if (!samples_left(p, rate) && !again(p))
		end_play(p, ended);
}

/* --- Digits ----------------------------------------------------------------------------------- */

static void set_rate(struct audio_source *s, uint32_t rate)
{
	if (s->rate && s->rate != rate) {
		s->digit_left = (uint32_t)((uint64_t)s->digit_left * rate / s->rate);
		s->pause_left = (uint32_t)((uint64_t)s->pause_left * rate / s->rate);
		tone_out_init(&s->tone, s->digit.event, s->digit.volume, rate);
	}
	s->rate = rate;
}

static bool next_digit(struct audio_source *s)
{
	if (s->digit_left || s->pause_left)
		return true;
	if (!audio_digits_next(&s->wait, &s->digit))
		return false;
	s->digit_left = s->digit.ms * s->rate / 1000;
	s->pause_left = s->digit.pause_ms * s->rate / 1000;
	tone_out_init(&s->tone, s->digit.event, s->digit.volume, s->rate);
	return true;
}

/* A tone and the silence after it replace all other audio. */
static void run_digits(struct audio_source *s, int16_t *pcm, uint32_t n)
{
	while (n && next_digit(s)) {
		uint32_t some = min_u32(n, s->digit_left ? s->digit_left : s->pause_left);

		if (s->digit_left) {
			tone_out_run(&s->tone, pcm, some);
			s->digit_left -= some;
		} else {
			memset(pcm, 0, some * sizeof(*pcm));
			s->pause_left -= some;
		}
		pcm += some;
		n -= some;
	}
}

void audio_source_run(
	struct audio_source *s, uint32_t rate, int16_t *pcm, uint32_t n, struct audio_ended *ended)
{
	set_rate(s, rate);
	if (audio_source_replaces(s) && !has_digits(s))
		memset(pcm, 0, n * sizeof(*pcm));
	for (uint32_t i = 0; i < AUDIO_PLAYS; i++)
		if (s->play[i].play.clip)
			run_play(&s->play[i], rate, pcm, n, ended);
	run_digits(s, pcm, n);
}
