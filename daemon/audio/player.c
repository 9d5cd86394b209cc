/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plays on a session: source.c provides clips and tones, events_out.c telephone events. */
#include "audio/player.h"

#include <errno.h>
#include <string.h>

#include "audio/session_int.h"

#define LATE_NS 200000000ull /* after a longer delay of the thread, audio is skipped */

bool audio_player_on(const struct audio_session *s)
{
	return s->player.on;
}

bool audio_player_replaces(const struct audio_session *s)
{
	return s->player.on && audio_source_replaces(&s->player.source);
}

static bool is_busy(const struct audio_player *p)
{
	return audio_source_busy(&p->source) || audio_events_busy(&p->events);
}

/* First sends the packet in progress, so each packet from now on has a whole packet time. */
static void begin(struct audio_session *s, uint64_t now_ns)
{
	struct audio_player *p = &s->player;

	if (p->on)
		return;
	audio_tx_at(&s->tx, audio_real(s, now_ns));
	audio_tx_flush(&s->tx);
	p->on = true;
	p->due_ns = now_ns;
	p->n = 0;
	s->tx.marker = true;
}

int audio_session_play(struct audio_session *s, const struct audio_play *play, uint64_t now_ns)
{
	int err = s->tx.encoder ? 0 : -ENOTSUP;

	err = err ? err : audio_source_play(&s->player.source, play, &s->player.ended);
	if (!err)
		begin(s, now_ns);
	return err;
}

int audio_session_digits(
	struct audio_session *s, const struct audio_digit *d, uint32_t n, uint64_t now_ns)
{
	struct audio_player *p = &s->player;
	int err;

	if (!s->tx.encoder)
		return -ENOTSUP;
	if (s->cfg.events.type == AUDIO_NO_TYPE) {
		err = audio_source_digits(&p->source, d, n);
	} else {
		p->events.clock = s->cfg.events.clock;
		p->events.stream = s->cfg.codec.clock;
		err = audio_events_add(&p->events, d, n);
	}
	if (!err)
		begin(s, now_ns);
	return err;
}

void audio_session_stop(struct audio_session *s, uint32_t id)
{
	audio_source_stop(&s->player.source, id, &s->player.ended);
	if (!id)
		audio_events_stop(&s->player.events);
}

void audio_session_ended(struct audio_session *s, struct audio_ended *out)
{
	*out = s->player.ended;
	s->player.ended.n = 0;
}

void audio_player_set(struct audio_session *s, const struct audio_cfg *before)
{
	if (before->codec.entry != s->cfg.codec.entry)
		s->player.n = 0;
	if (s->cfg.events.type == AUDIO_NO_TYPE || !s->tx.encoder)
		audio_events_init(&s->player.events, 0, 0);
	if (s->tx.encoder)
		return;
	audio_session_stop(s, 0);
	s->player.n = 0;
	s->player.on = false;
}

/* If the other party sends faster than the clock, its oldest audio is dropped. */
void audio_player_hear(struct audio_session *s, const int16_t *pcm, uint32_t n)
{
	struct audio_player *p = &s->player;
	uint32_t most = min_u32(4 * s->tx.frame, AUDIO_PCM), lost;

	if (!p->on) {
		audio_tx_pcm(&s->tx, pcm, n);
		return;
	}
	if (n > most) {
		pcm += n - most;
		n = most;
	}
	lost = p->n + n > most ? p->n + n - most : 0;
	memmove(p->other, p->other + lost, (p->n - lost) * sizeof(*p->other));
	p->n -= lost;
	memcpy(p->other + p->n, pcm, n * sizeof(*pcm));
	p->n += n;
}

/* Takes the other party's audio for one packet, filled up with silence. */
static void take(struct audio_player *p, int16_t *pcm, uint32_t n)
{
	uint32_t some = min_u32(n, p->n);

	memcpy(pcm, p->other, some * sizeof(*pcm));
	memset(pcm + some, 0, (n - some) * sizeof(*pcm));
	memmove(p->other, p->other + some, (p->n - some) * sizeof(*pcm));
	p->n -= some;
}

/* True: telephone events were sent, and this packet time has no audio. */
static bool send_event(struct audio_session *s, uint32_t units)
{
	struct audio_event_packet e;
	struct audio_tx_packet out;

	if (audio_events_step(&s->player.events, s->tx.ts, units, &e) != AUDIO_EVENTS_SEND)
		return false;
	out = (struct audio_tx_packet){.type = s->cfg.events.type,
		.marker = e.marker,
		.ts = e.ts,
		.payload = e.payload,
		.len = sizeof(e.payload)};
	for (uint32_t i = 0; i < e.copies; i++)
		audio_tx_payload(&s->tx, &out);
	s->tx.ts += units;
	s->tx.marker = true;
	return true;
}

static void one_packet(struct audio_session *s)
{
	struct audio_player *p = &s->player;
	int16_t *pcm = s->env->pcm;
	uint32_t n = s->tx.frame;

	take(p, pcm, n);
	audio_source_run(&p->source, s->tx.rate, pcm, n, &p->ended);
	if (s->cfg.events.type != AUDIO_NO_TYPE && send_event(s, audio_tx_units(&s->tx, n)))
		return;
	audio_tx_pcm(&s->tx, pcm, n);
}

void audio_player_tick(struct audio_session *s, uint64_t now_ns)
{
	struct audio_player *p = &s->player;

	if (!p->on || !s->tx.encoder)
		return;
	if (p->due_ns + LATE_NS < now_ns)
		p->due_ns = now_ns;
	while (p->on && p->due_ns <= now_ns) {
		audio_tx_at(&s->tx, audio_real(s, now_ns));
		one_packet(s);
		p->due_ns += (uint64_t)s->tx.frame * 1000000000 / s->tx.rate;
		p->on = is_busy(p);
	}
	if (!p->on)
		s->tx.marker = true;
}
