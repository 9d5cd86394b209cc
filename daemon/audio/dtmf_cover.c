/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/dtmf_cover.h"

#include <math.h>
#include <string.h>

#include "audio/session_int.h"

bool audio_cover_on(const struct audio_session *s)
{
	return (s->cfg.gate & AUDIO_GATE_DTMF && s->cfg.cover.mode != AUDIO_COVER_DROP) ||
		(s->rx.cover.active && s->rx.cover.covering);
}

bool audio_cover_event(const struct audio_session *s)
{
	return s->rx.event.hidden && s->cfg.cover.mode != AUDIO_COVER_DROP;
}

bool audio_cover_by_digits(const struct audio_session *s)
{
	return audio_cover_event(s) && s->cfg.cover.mode >= AUDIO_COVER_RANDOM;
}

void audio_cover_reset(struct audio_session *s)
{
	s->rx.cover.rate = s->rx.cover.n = 0;
}

void audio_cover_begin(struct audio_session *s)
{
	struct audio_cover *c = &s->rx.cover;

	c->digit = s->cfg.cover.mode == AUDIO_COVER_RANDOM
		? (uint8_t)(audio_session_draw(s) >> 16) % 10
		: s->cfg.cover.digit & 15;
	c->out_rate = 0;
}

/* One sine, with the power of cover.volume, or the two of a digit. */
static void prepare(struct audio_session *s, uint32_t rate)
{
	const struct audio_cover_cfg *cfg = &s->cfg.cover;
	struct audio_cover *c = &s->rx.cover;

	if (c->out_rate == rate)
		return;
	c->out_rate = rate;
	tone_out_init(&c->out, c->digit, cfg->volume, rate);
	if (cfg->mode != AUDIO_COVER_TONE)
		return;
	c->out.step[0] = 2 * M_PI * cfg->hz / rate;
	c->out.step[1] = 0;
	c->out.peak *= M_SQRT2;
}

void audio_cover_fill(struct audio_session *s, uint32_t rate, int16_t *pcm, uint32_t n)
{
	if (s->cfg.cover.mode <= AUDIO_COVER_SILENCE) {
		memset(pcm, 0, n * sizeof(*pcm));
		return;
	}
	prepare(s, rate);
	tone_out_run(&s->rx.cover.out, pcm, n);
}

/* Reports digits that began. Whether a digit is in progress. */
static bool detect(struct audio_session *s, const int16_t *pcm, uint32_t n)
{
	struct audio_cover *c = &s->rx.cover;
	bool before = c->tones.digit != TONES_NO_DIGIT;
	uint8_t began[8];
	size_t digits = tones_in_run(&c->tones, pcm, n, began, sizeof(began));

	for (size_t i = 0; i < digits; i++) {
		audio_dtmf_heard(s, began[i]);
		audio_cover_begin(s);
	}
	return digits || before || c->tones.digit != TONES_NO_DIGIT;
}

static void start(struct audio_session *s, uint32_t rate)
{
	struct audio_cover *c = &s->rx.cover;

	if (c->rate == rate)
		return;
	c->rate = rate;
	c->n = rate / 1000 * COVER_MS;
	c->active = false;
	tones_in_init(&c->tones, rate);
	audio_cover_begin(s);
}

void audio_cover_listen(struct audio_session *s, uint32_t rate, const int16_t *pcm, uint32_t n)
{
	start(s, rate);
	s->rx.cover.active = false;
	(void)detect(s, pcm, n);
}

void audio_cover_run(struct audio_session *s, uint32_t rate, int16_t *pcm, uint32_t n)
{
	struct audio_cover *c = &s->rx.cover;
	bool digit;

	start(s, rate);
	if (!c->active) { /* what it held is old */
		memset(c->held, 0, sizeof(c->held));
		c->at = 0;
		c->covering = false;
	}
	c->active = true;
	digit = detect(s, pcm, n);
	if (digit && !c->covering) {
		audio_cover_fill(s, rate, c->held + c->at, c->n - c->at);
		audio_cover_fill(s, rate, c->held, c->at);
	}
	if (digit)
		audio_cover_fill(s, rate, pcm, n);
	c->covering = digit;
	for (uint32_t i = 0; i < n; i++) {
		int16_t out = c->held[c->at];

		c->held[c->at] = pcm[i];
		c->at = (c->at + 1) % c->n;
		pcm[i] = out;
	}
}
