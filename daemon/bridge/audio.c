/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles of audio sessions, and commands to the codec threads. handle % threads is the number of
 * its thread; the same holds for its serial. Each use of a handle gets a new serial, by which late
 * packets and events of earlier uses are recognised. */
#include "bridge/audio.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/secmem.h"

struct place {
	uint32_t serial; /* handle + a multiple of max; below max: never used */
	bool taken, open;
	uint32_t at;                /* in opened, if open */
	struct audio_cfg cfg;       /* the settings in force, if open */
	struct audio_stats counted; /* what is in ended already */
	/* Prepared settings; order NULL: none. */
	struct audio_order *order;
	struct audio_session *session;
	uint32_t worker, rtp_stream, rtcp_stream;
};

struct bridge_audio {
	struct bridge_audio_config cfg;
	struct audio_thread *thread[AUDIO_THREADS_MAX];
	/* Room reserved in the thread's ring: the end of each open session, and prepared
	 * settings. */
	uint32_t promised[AUDIO_THREADS_MAX];
	uint32_t *free_place[AUDIO_THREADS_MAX], free_n[AUDIO_THREADS_MAX]; /* stacks */
	struct place *place;                                                /* [max] */
	uint32_t *opened, opened_n; /* handles of open sessions */
	struct audio_pairs ended;   /* what was counted under earlier settings */
	uint64_t broken;
};

static uint32_t thread_of(const struct bridge_audio *b, uint32_t audio)
{
	return audio % b->cfg.threads;
}

static const struct codec_registry *op_codecs(void *arg)
{
	return ((struct bridge_audio *)arg)->cfg.codecs;
}

static void stats_of(const struct bridge_audio *b, uint32_t audio, struct audio_stats *out)
{
	*out = (struct audio_stats){0};
	if (b->place[audio].open)
		audio_thread_stats(b->thread[thread_of(b, audio)], b->place[audio].serial, out);
}

static void op_stats(void *arg, uint32_t audio, struct audio_stats *out)
{
	stats_of(arg, audio, out);
}

/* --- Counters by pair of codecs --------------------------------------------------------------- */

static struct place *other_of(const struct bridge_audio *b, const struct place *p)
{
	struct place *to = p->cfg.to < b->cfg.max ? &b->place[p->cfg.to] : NULL;

	return to && to->open && to != p ? to : NULL;
}

/* Adds what the session has counted and is not in ended. *now: its counters. */
static void add_pair(const struct bridge_audio *b, uint32_t audio, struct audio_pairs *to,
	struct audio_stats *now)
{
	const struct place *p = &b->place[audio], *other = other_of(b, p);
	const struct codec_entry *e = b->cfg.codecs->entry;
	char name[AUDIO_PAIR_TEXT];

	stats_of(b, audio, now);
	if (!other || p->cfg.codec.type == AUDIO_NO_TYPE || other->cfg.codec.type == AUDIO_NO_TYPE)
		return;
	snprintf(name, sizeof(name), "%s to %s", e[p->cfg.codec.entry].about.name,
		e[other->cfg.codec.entry].about.name);
	audio_pairs_add(to, name, &p->counted, now);
}

/* Call it before the codecs of this session, or of the one that it belongs to, change. */
static void settle_pairs(struct bridge_audio *b, uint32_t audio)
{
	struct place *p = &b->place[audio], *other = p->open ? other_of(b, p) : NULL;
	struct audio_stats now;

	if (!other)
		return;
	add_pair(b, audio, &b->ended, &now);
	p->counted = now;
	add_pair(b, (uint32_t)(other - b->place), &b->ended, &now);
	other->counted = now;
}

/* --- Handles ---------------------------------------------------------------------------------- */

/* The thread with the most free handles. No name of a call decides, so no caller can choose the
 * thread and use up its handles. */
static uint32_t freest(const struct bridge_audio *b)
{
	uint32_t best = 0;

	for (uint32_t t = 1; t < b->cfg.threads; t++)
		if (b->free_n[t] > b->free_n[best])
			best = t;
	return best;
}

static int op_take(void *arg, uint32_t near, uint32_t *audio, uint32_t *serial)
{
	struct bridge_audio *b = arg;
	uint32_t t = near == AUDIO_NONE ? freest(b) : thread_of(b, near);
	struct place *p;

	if (!b->free_n[t])
		return -ENOSPC;
	*audio = b->free_place[t][--b->free_n[t]];
	p = &b->place[*audio];
	/* Serial 0 means none. */
	p->serial = p->serial && p->serial < UINT32_MAX - b->cfg.max ? p->serial + b->cfg.max
								     : *audio + b->cfg.max;
	p->taken = true;
	p->open = false;
	p->counted = (struct audio_stats){0};
	*serial = p->serial;
	return 0;
}

static void op_undo(void *arg, uint32_t audio)
{
	struct bridge_audio *b = arg;
	struct place *p = &b->place[audio];

	if (!p->order)
		return;
	audio_order_free(p->order);
	audio_session_free(p->session);
	p->order = NULL;
	p->session = NULL;
	b->promised[thread_of(b, audio)] -= p->open ? 1 : 2;
}

static void op_release(void *arg, uint32_t audio)
{
	struct bridge_audio *b = arg;
	struct place *p = &b->place[audio];
	uint32_t t = thread_of(b, audio);
	const struct audio_cmd close = {.kind = AUDIO_CLOSE, .serial = p->serial};

	op_undo(b, audio);
	if (p->open) {
		settle_pairs(b, audio);
		b->opened[p->at] = b->opened[--b->opened_n];
		b->place[b->opened[p->at]].at = p->at;
		(void)audio_thread_command(b->thread[t], &close, 0);
		b->promised[t]--;
	}
	p->taken = p->open = false;
	secmem_wipe(&p->cfg, sizeof(p->cfg));
	b->free_place[t][b->free_n[t]++] = audio;
}

/* --- Settings --------------------------------------------------------------------------------- */

/* The settings that the session will have: prepared ones, else those in force. NULL: none. */
static const struct audio_cfg *next_cfg(const struct bridge_audio *b, uint32_t audio)
{
	const struct place *p = audio < b->cfg.max ? &b->place[audio] : NULL;

	return !p || !p->taken ? NULL : p->order ? &p->order->cfg : p->open ? &p->cfg : NULL;
}

/* Whether the PCM of all codecs that one terminal may send fits the other's codec. */
static bool rates_fit(
	const struct bridge_audio *b, const struct audio_cfg *from, const struct audio_cfg *to)
{
	const struct codec_registry *r = b->cfg.codecs;

	for (uint32_t i = 0; i < from->types && to->codec.type != AUDIO_NO_TYPE; i++)
		if (from->type[i].kind == AUDIO_CODEC &&
			!codec_registry_rates_fit(r, r->entry[from->type[i].entry].about.rate,
				r->entry[to->codec.entry].about.rate))
			return false;
	return true;
}

static int op_set(void *arg, uint32_t audio, uint32_t worker, const struct relay_port *port,
	bool mux, const struct audio_cfg *cfg)
{
	struct bridge_audio *b = arg;
	struct place *p = &b->place[audio];
	uint32_t t = thread_of(b, audio);
	const struct audio_cfg *to = cfg->to == audio ? NULL : next_cfg(b, cfg->to);
	struct audio_session *session = NULL;
	struct audio_order *order;
	int err;

	if (worker >= b->cfg.workers || (cfg->to != AUDIO_NONE && thread_of(b, cfg->to) != t))
		return -EINVAL;
	if (audio_thread_room(b->thread[t]) < b->promised[t] + 2)
		return -EAGAIN;
	err = audio_order_create(&order, b->cfg.codecs, cfg, p->open ? &p->cfg : NULL);
	if (err)
		return err == -ENOTSUP ? -EINVAL : err;
	if (to && !(rates_fit(b, cfg, to) && rates_fit(b, to, cfg))) {
		audio_order_free(order);
		return -EINVAL;
	}
	if (!p->open)
		session = audio_session_alloc();
	if (!p->open && !session) {
		audio_order_free(order);
		return -ENOMEM;
	}
	op_undo(b, audio);
	p->order = order;
	p->session = session;
	p->worker = worker;
	p->rtp_stream = port->rtp_stream;
	p->rtcp_stream = mux ? port->rtp_stream : port->rtcp_stream;
	b->promised[t] += p->open ? 1 : 2;
	return 0;
}

static void op_send(void *arg, uint32_t audio)
{
	struct bridge_audio *b = arg;
	struct place *p = &b->place[audio];
	uint32_t t = thread_of(b, audio);
	struct audio_cmd set = {.kind = AUDIO_SET,
		.serial = p->serial,
		.worker = p->worker,
		.rtp_stream = p->rtp_stream,
		.rtcp_stream = p->rtcp_stream,
		.order = p->order,
		.session = p->session};

	if (!p->order)
		return;
	settle_pairs(b, audio);
	p->cfg = p->order->cfg;
	(void)audio_thread_command(b->thread[t], &set, 0); /* room was promised */
	p->order = NULL;
	p->session = NULL;
	if (!p->open) {
		p->at = b->opened_n++;
		b->opened[p->at] = audio;
	}
	p->open = true;
	b->promised[t]--; /* the room for its end stays reserved */
}

/* --- Playing ---------------------------------------------------------------------------------- */

static int now(struct bridge_audio *b, uint32_t audio, struct audio_cmd *c)
{
	const struct place *p = &b->place[audio];
	uint32_t t = thread_of(b, audio);

	c->serial = p->serial;
	return p->open ? audio_thread_command(b->thread[t], c, b->promised[t]) : -EAGAIN;
}

static int op_play(void *arg, uint32_t audio, const struct audio_play *p)
{
	return now(arg, audio, &(struct audio_cmd){.kind = AUDIO_PLAY, .play = *p});
}

static int op_stop(void *arg, uint32_t audio, uint32_t id)
{
	return now(arg, audio, &(struct audio_cmd){.kind = AUDIO_STOP, .id = id});
}

static int op_digits(void *arg, uint32_t audio, const struct audio_digit *d, uint32_t n)
{
	struct audio_cmd c = {.kind = AUDIO_DIGITS, .n = (uint8_t)n};

	if (n > AUDIO_CMD_DIGITS)
		return -EAGAIN;
	memcpy(c.digit, d, n * sizeof(*d));
	return now(arg, audio, &c);
}

/* --- Counters and events ---------------------------------------------------------------------- */

static uint64_t op_now_ns(void *arg)
{
	(void)arg;
	return clock_mono_ns();
}

const struct audio_ops bridge_audio_ops = {.codecs = op_codecs,
	.take = op_take,
	.release = op_release,
	.set = op_set,
	.send = op_send,
	.undo = op_undo,
	.play = op_play,
	.stop = op_stop,
	.digits = op_digits,
	.stats = op_stats,
	.now_ns = op_now_ns};

uint32_t bridge_audio_max(const struct bridge_audio *b)
{
	return b->cfg.max;
}

void bridge_audio_poll(struct bridge_audio *b)
{
	struct audio_event e;

	for (uint32_t t = 0; t < b->cfg.threads; t++)
		while (audio_thread_event(b->thread[t], &e)) {
			const struct place *p = &b->place[e.serial % b->cfg.max];

			b->broken += e.kind == AUDIO_EVENT_BROKEN;
			if (p->open && p->serial == e.serial)
				b->cfg.event(b->cfg.event_arg, e.serial % b->cfg.max, &e);
		}
}

void bridge_audio_usage(const struct bridge_audio *b, struct bridge_audio_usage *out)
{
	*out = (struct bridge_audio_usage){0};
	if (!b)
		return;
	out->sessions = b->cfg.max;
	out->broken = b->broken;
	for (uint32_t t = 0; t < b->cfg.threads; t++) {
		struct audio_thread_counts c = audio_thread_counts(b->thread[t]);

		out->sessions -= b->free_n[t];
		out->packets += c.packets;
		out->strays += c.strays;
		out->cpu_ns += c.cpu_ns;
	}
	for (uint32_t i = 0; i < b->cfg.workers * b->cfg.threads; i++) {
		const struct audio_channel *c = b->cfg.channel[i];

		out->stale += atomic_load_explicit(&c->stale, memory_order_relaxed);
		out->back_full += atomic_load_explicit(&c->back_full, memory_order_relaxed);
	}
}

void bridge_audio_pairs(const struct bridge_audio *b, struct audio_pairs *out)
{
	struct audio_stats now;

	*out = (struct audio_pairs){.n = 0};
	if (!b)
		return;
	*out = b->ended;
	for (uint32_t i = 0; i < b->opened_n; i++)
		add_pair(b, b->opened[i], out, &now);
}

/* --- Start and stop --------------------------------------------------------------------------- */

static int thread_create(struct bridge_audio *b, uint32_t t)
{
	const struct audio_thread_config cfg = {.codecs = b->cfg.codecs,
		.channel = b->cfg.channel + (size_t)t * b->cfg.workers,
		.channels = b->cfg.workers,
		.max = b->cfg.max,
		.event_fd = b->cfg.event_fd,
		.index = t,
		.g722 = b->cfg.g722 ? &b->cfg.g722[t] : NULL,
		.keep_not = b->cfg.keep_not};
	uint32_t n = b->cfg.max / b->cfg.threads;

	b->free_place[t] = calloc(n, sizeof(*b->free_place[t]));
	if (!b->free_place[t])
		return -ENOMEM;
	while (b->free_n[t] < n) {
		b->free_place[t][b->free_n[t]] = (n - 1 - b->free_n[t]) * b->cfg.threads + t;
		b->free_n[t]++;
	}
	return audio_thread_create(&b->thread[t], &cfg);
}

int bridge_audio_create(struct bridge_audio **out, const struct bridge_audio_config *cfg)
{
	struct bridge_audio *b;
	int err;

	if (!cfg->threads || cfg->threads > AUDIO_THREADS_MAX || !cfg->max)
		return -EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->cfg = *cfg;
	b->cfg.max = (cfg->max + cfg->threads - 1) / cfg->threads * cfg->threads;
	b->place = calloc(b->cfg.max, sizeof(*b->place));
	b->opened = calloc(b->cfg.max, sizeof(*b->opened));
	err = b->place && b->opened ? 0 : -ENOMEM;
	for (uint32_t t = 0; !err && t < cfg->threads; t++)
		err = thread_create(b, t);
	if (err)
		bridge_audio_destroy(b);
	else
		*out = b;
	return err;
}

int bridge_audio_start(struct bridge_audio *b)
{
	int err = 0;

	for (uint32_t t = 0; !err && t < b->cfg.threads; t++)
		err = audio_thread_start(b->thread[t]);
	return err;
}

void bridge_audio_destroy(struct bridge_audio *b)
{
	if (!b)
		return;
	for (uint32_t t = 0; t < b->cfg.threads; t++) {
		audio_thread_destroy(b->thread[t]);
		free(b->free_place[t]);
	}
	for (uint32_t i = 0; b->place && i < b->cfg.max; i++) {
		audio_order_free(b->place[i].order);
		audio_session_free(b->place[i].session);
	}
	free(b->place);
	free(b->opened);
	free(b);
}
