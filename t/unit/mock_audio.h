/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Codec threads in memory (call/audio.h). A mock hands out handles, checks every use of them, and
 * remembers the settings of each session and what it was asked to play. Each test includes it once.
 */
#ifndef MOCK_AUDIO_H
#define MOCK_AUDIO_H

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "call/audio.h"
#include "codec/registry.h"

#define MOCK_AUDIOS 8u

struct mock_audio {
	struct audio audio;
	struct codec_registry *registry; /* the built-in codecs; tests may add entries */
	uint64_t now_ns;                 /* its clock; 0: CLOCK_MONOTONIC */
	bool taken[MOCK_AUDIOS];
	uint32_t group[MOCK_AUDIOS], serial[MOCK_AUDIOS];
	struct audio_cfg cfg[MOCK_AUDIOS];  /* in force */
	struct audio_cfg next[MOCK_AUDIOS]; /* until send() or undo() */
	bool has_cfg[MOCK_AUDIOS], has_next[MOCK_AUDIOS];
	struct relay_port port[MOCK_AUDIOS];
	bool mux[MOCK_AUDIOS];
	uint32_t sets, takes;
	struct audio_play play[MOCK_AUDIOS]; /* the last one */
	struct audio_digit digit[MOCK_AUDIOS][16];
	uint32_t plays[MOCK_AUDIOS], stops[MOCK_AUDIOS], digits[MOCK_AUDIOS];
	struct audio_stats stats[MOCK_AUDIOS]; /* of each session; written by tests */
	int set_error;                         /* what set(), play() and digits() return */
};

static const struct codec_registry *mock_audio_codecs(void *arg)
{
	return ((struct mock_audio *)arg)->registry;
}

static int mock_audio_take(void *arg, uint32_t near, uint32_t *audio, uint32_t *serial)
{
	struct mock_audio *m = arg;
	uint32_t i = 0;

	while (i < MOCK_AUDIOS && m->taken[i])
		i++;
	if (i == MOCK_AUDIOS)
		return -ENOSPC;
	m->taken[i] = true;
	assert_true(near == AUDIO_NONE || (near < MOCK_AUDIOS && m->taken[near]));
	m->group[i] = near == AUDIO_NONE ? i : m->group[near];
	m->has_cfg[i] = m->has_next[i] = false;
	m->plays[i] = m->stops[i] = m->digits[i] = 0;
	*audio = i;
	*serial = m->serial[i] = i + MOCK_AUDIOS * ++m->takes;
	return 0;
}

static void mock_audio_release(void *arg, uint32_t audio)
{
	struct mock_audio *m = arg;

	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	m->taken[audio] = m->has_cfg[audio] = m->has_next[audio] = false;
}

static int mock_audio_set(void *arg, uint32_t audio, uint32_t worker, const struct relay_port *port,
	bool mux, const struct audio_cfg *cfg)
{
	struct mock_audio *m = arg;

	(void)worker;
	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	assert_true(cfg->types <= AUDIO_TYPES && cfg->ssrc);
	if (m->set_error)
		return m->set_error;
	m->next[audio] = *cfg;
	m->has_next[audio] = true;
	m->port[audio] = *port;
	m->mux[audio] = mux;
	m->sets++;
	return 0;
}

static void mock_audio_send(void *arg, uint32_t audio)
{
	struct mock_audio *m = arg;

	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	if (m->has_next[audio]) {
		m->cfg[audio] = m->next[audio];
		m->has_cfg[audio] = true;
	}
	m->has_next[audio] = false;
}

static void mock_audio_undo(void *arg, uint32_t audio)
{
	struct mock_audio *m = arg;

	assert_true(audio < MOCK_AUDIOS);
	m->has_next[audio] = false;
}

static int mock_audio_play(void *arg, uint32_t audio, const struct audio_play *p)
{
	struct mock_audio *m = arg;

	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	if (m->set_error)
		return m->set_error;
	m->play[audio] = *p;
	m->plays[audio]++;
	return 0;
}

static int mock_audio_stop(void *arg, uint32_t audio, uint32_t id)
{
	struct mock_audio *m = arg;

	(void)id;
	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	m->stops[audio]++;
	return m->set_error;
}

static int mock_audio_digits(void *arg, uint32_t audio, const struct audio_digit *d, uint32_t n)
{
	struct mock_audio *m = arg;

	assert_true(audio < MOCK_AUDIOS && m->taken[audio]);
	if (m->set_error || m->digits[audio] + n > 16)
		return m->set_error ? m->set_error : -EAGAIN;
	memcpy(&m->digit[audio][m->digits[audio]], d, n * sizeof(*d));
	m->digits[audio] += n;
	return 0;
}

static void mock_audio_stats(void *arg, uint32_t audio, struct audio_stats *out)
{
	*out = ((struct mock_audio *)arg)->stats[audio];
}

static uint64_t mock_audio_now_ns(void *arg)
{
	struct mock_audio *m = arg;

	return m->now_ns ? m->now_ns : clock_mono_ns();
}

/* Gives calls these codec threads. The caller has zeroed m, or keeps it over a restart of the
 * calls. */
static inline void mock_audio_start(struct mock_audio *m, struct relay *relay)
{
	static const struct audio_ops ops = {.codecs = mock_audio_codecs,
		.take = mock_audio_take,
		.release = mock_audio_release,
		.set = mock_audio_set,
		.send = mock_audio_send,
		.undo = mock_audio_undo,
		.play = mock_audio_play,
		.stop = mock_audio_stop,
		.digits = mock_audio_digits,
		.stats = mock_audio_stats,
		.now_ns = mock_audio_now_ns};

	if (!m->registry)
		assert_int_equal(codec_registry_create(&m->registry), 0);
	m->audio.ops = &ops;
	m->audio.arg = m;
	m->audio.max = MOCK_AUDIOS;
	relay->audio = &m->audio;
}

/* Checks that all sessions were released. */
static inline void mock_audio_end(struct mock_audio *m)
{
	for (uint32_t i = 0; i < MOCK_AUDIOS; i++)
		assert_false(m->taken[i] || m->has_next[i]);
	codec_registry_destroy(m->registry);
	m->registry = NULL;
}

/* Returns the handle of the session whose leg has this local port, or MOCK_AUDIOS. */
static inline uint32_t mock_audio_at(const struct mock_audio *m, uint16_t port)
{
	uint32_t i = 0;

	while (i < MOCK_AUDIOS && !(m->taken[i] && m->has_cfg[i] && m->port[i].rtp.port == port))
		i++;
	return i;
}

#endif
