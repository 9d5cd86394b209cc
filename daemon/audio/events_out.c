/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends telephone events. An event's first packet has the marker, each packet states the duration
 * so far, and the last one is sent three times. A duration has 16 bits: a longer event continues in
 * a new segment with its own timestamp. */
#include "audio/events_out.h"

#include <errno.h>

#include "base/bytes.h"

enum { END = 0x80, VOLUME = 0x3f, LAST_COPIES = 3, SEGMENT_MAX = 0xffff };

int audio_digits_add(struct audio_digits *q, const struct audio_digit *d, uint32_t n)
{
	if (n > AUDIO_DIGITS_MAX || q->n + n > AUDIO_DIGITS_MAX)
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++)
		if (d[i].event > 15 || !d[i].ms)
			return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		q->digit[(q->first + q->n++) % AUDIO_DIGITS_MAX] = d[i];
	return 0;
}

bool audio_digits_next(struct audio_digits *q, struct audio_digit *out)
{
	if (!q->n)
		return false;
	*out = q->digit[q->first];
	q->first = (q->first + 1) % AUDIO_DIGITS_MAX;
	q->n--;
	return true;
}

void audio_events_init(struct audio_events *e, uint32_t clock, uint32_t stream)
{
	*e = (struct audio_events){.clock = clock, .stream = stream};
}

int audio_events_add(struct audio_events *e, const struct audio_digit *d, uint32_t n)
{
	return audio_digits_add(&e->wait, d, n);
}

void audio_events_stop(struct audio_events *e)
{
	e->wait = (struct audio_digits){0};
	e->pause = 0;
	if (!e->begun)
		e->total = 0;
	else
		e->total = e->done + 1;
}

bool audio_events_busy(const struct audio_events *e)
{
	return e->total || e->pause || e->wait.n;
}

static bool begin(struct audio_events *e, uint32_t now)
{
	if (!audio_digits_next(&e->wait, &e->now))
		return false;
	e->total = (uint32_t)((uint64_t)e->now.ms * e->clock / 1000);
	e->done = e->segment = 0;
	e->ts = now;
	e->begun = false;
	return true;
}

static uint32_t scale(uint32_t units, uint32_t to, uint32_t from)
{
	return (uint32_t)((uint64_t)units * to / from);
}

enum audio_events_do audio_events_step(
	struct audio_events *e, uint32_t now, uint32_t units, struct audio_event_packet *out)
{
	uint32_t lasts = e->stream ? scale(units, e->clock, e->stream) : 0;
	bool end;

	if (e->pause) {
		e->pause -= min_u32(e->pause, lasts);
		return AUDIO_EVENTS_PAUSE;
	}
	if (!e->total && !begin(e, now))
		return AUDIO_EVENTS_IDLE;
	if (e->done + lasts - e->segment > SEGMENT_MAX) {
		e->ts += scale(e->done - e->segment, e->stream, e->clock);
		e->segment = e->done;
	}
	e->done += lasts;
	end = e->done >= e->total;
	*out = (struct audio_event_packet){.ts = e->ts,
		.marker = !e->begun,
		.copies = end ? LAST_COPIES : 1,
		.payload = {e->now.event, (uint8_t)((end ? END : 0) | (e->now.volume & VOLUME))}};
	put_be16(out->payload + 2, (uint16_t)(e->done - e->segment));
	e->begun = true;
	if (end) {
		e->total = 0;
		e->begun = false;
		e->pause = (uint32_t)((uint64_t)e->now.pause_ms * e->clock / 1000);
	}
	return AUDIO_EVENTS_SEND;
}
