/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio/dtmf.h"
#include "audio/player.h"

#include <string.h>

#define DIGITS      16u
#define TONE_MS     120u /* of a tone, that one packet causes at most */
#define EVENT_MS    100u
#define EVENT_PAUSE 60u
#define EVENT_LEVEL 10u /* -dBm0 */

/* --- Events to tones -------------------------------------------------------------------------- */

bool audio_dtmf_makes_tones(const struct audio_session *to)
{
	return to->cfg.events_to_tone && to->cfg.events.type == AUDIO_NO_TYPE && to->tx.encoder;
}

uint32_t audio_dtmf_tone(
	struct audio_session *s, struct audio_session *to, const struct audio_dtmf_event *e)
{
	uint32_t most = TONE_MS * e->clock / 1000, units = e->lasts - e->done, samples;
	int16_t *pcm = s->env->pcm;

	if (e->event >= DIGITS || e->lasts <= e->done)
		return 0;
	units = min_u32(units, most);
	samples = (uint32_t)((uint64_t)units * to->tx.rate / e->clock);
	if (!e->done)
		tone_out_init(&s->rx.tone, e->event, e->volume, to->tx.rate);
	if (audio_cover_event(s))
		audio_cover_fill(s, to->tx.rate, pcm, samples);
	else
		tone_out_run(&s->rx.tone, pcm, samples);
	audio_player_hear(to, pcm, samples);
	return units;
}

/* --- Tones to events -------------------------------------------------------------------------- */

bool audio_dtmf_makes_events(const struct audio_session *s, const struct audio_session *to)
{
	return s->cfg.tone_to_events && to->cfg.events.type != AUDIO_NO_TYPE && to->tx.encoder;
}

void audio_dtmf_listen(struct audio_session *s, struct audio_session *to, int16_t *pcm, uint32_t n,
	uint32_t rate, uint64_t now_ns)
{
	uint8_t began[4];
	size_t digits;

	if (s->rx.tones_rate != rate)
		tones_in_init(&s->rx.tones, rate);
	s->rx.tones_rate = rate;
	digits = tones_in_run(&s->rx.tones, pcm, n, began, sizeof(began));
	for (size_t i = 0; i < digits; i++) {
		const struct audio_digit d = {.event = began[i],
			.volume = EVENT_LEVEL,
			.ms = EVENT_MS,
			.pause_ms = EVENT_PAUSE};

		audio_dtmf_heard(s, began[i]);
		if (!(s->cfg.gate & (AUDIO_GATE_DTMF | AUDIO_GATE_DROP)))
			(void)audio_session_digits(to, &d, 1, now_ns);
	}
	if (s->rx.tones.digit != TONES_NO_DIGIT)
		memset(pcm, 0, n * sizeof(*pcm));
}
