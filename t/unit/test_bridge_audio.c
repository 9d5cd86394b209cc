/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio sessions on running codec threads: handles, settings that change all the time while a
 * worker sends packets, and the packets that come back. ThreadSanitizer runs it, too. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "bridge/audio.h"
#include "codec/registry.h"
#include "proto/rtp.h"

enum { THREADS = 2, MAX = 16, ROUNDS = 400, WANTED = 200 };

struct rig {
	struct codec_registry *codecs;
	struct audio_channel *channel[THREADS];
	struct bridge_audio *b;
	const struct audio_ops *ops;
	_Atomic uint32_t serial[THREADS][2]; /* for the worker: its streams' sessions; 0: none */
	_Atomic uint32_t heard[THREADS];     /* packets that came back */
	_Atomic bool stop;
	uint32_t ended;
};

static void on_event(void *arg, uint32_t audio, const struct audio_event *e)
{
	(void)audio;
	((struct rig *)arg)->ended += e->kind == AUDIO_EVENT_PLAYED;
}

static void rig_start(struct rig *r)
{
	struct bridge_audio_config cfg = {.channel = r->channel,
		.workers = 1,
		.threads = THREADS,
		.max = MAX,
		.keep_not = 0,
		.event_fd = -1,
		.event = on_event,
		.event_arg = r};

	memset(r, 0, sizeof(*r));
	assert_int_equal(codec_registry_create(&r->codecs), 0);
	for (uint32_t t = 0; t < THREADS; t++) {
		r->channel[t] = aligned_alloc(64, (sizeof(struct audio_channel) + 63) / 64 * 64);
		assert_non_null(r->channel[t]);
		assert_int_equal(audio_channel_init(r->channel[t]), 0);
	}
	cfg.codecs = r->codecs;
	assert_int_equal(bridge_audio_create(&r->b, &cfg), 0);
	r->ops = &bridge_audio_ops;
}

static void rig_end(struct rig *r)
{
	bridge_audio_destroy(r->b);
	for (uint32_t t = 0; t < THREADS; t++) {
		audio_channel_fini(r->channel[t]);
		free(r->channel[t]);
	}
	codec_registry_destroy(r->codecs);
}

/* Calls get threads in turn, whatever their Call-ID, and a call's sessions share one. */
static void calls_are_spread(void **state)
{
	uint32_t audio[MAX], serial;
	struct rig r;

	(void)state;
	rig_start(&r);
	for (uint32_t i = 0; i < MAX; i++) {
		uint32_t near = i % 2 ? audio[i - 1] : AUDIO_NONE;

		assert_int_equal(r.ops->take(r.b, near, &audio[i], &serial), 0);
		if (i % 2)
			assert_int_equal(audio[i] % THREADS, audio[i - 1] % THREADS);
	}
	assert_int_equal(r.ops->take(r.b, AUDIO_NONE, &audio[0], &serial), -ENOSPC);
	assert_int_equal(r.ops->take(r.b, 1, &audio[0], &serial), -ENOSPC);
	rig_end(&r);
}

/* --- Threads ---------------------------------------------------------------------------------- */

static void say(struct rig *r, uint32_t t, uint32_t end, uint16_t seq, struct audio_share *share)
{
	struct audio_packet p = {.stream = 2 * t + end,
		.serial = atomic_load(&r->serial[t][end]),
		.len = RTP_FIXED_LEN + 160};
	uint8_t bytes[RTP_FIXED_LEN + 160] = {0x80, end ? 8 : 0};

	put_be16(bytes + 2, seq);
	put_be32(bytes + 4, seq * 160u);
	put_be32(bytes + 8, 77 + end);
	if (p.serial)
		(void)audio_take(r->channel[t], share, &p, bytes);
}

static void *worker(void *arg)
{
	struct rig *r = arg;
	struct audio_share share[THREADS][2] = {0};

	for (uint16_t seq = 0; !atomic_load(&r->stop); seq++)
		for (uint32_t t = 0; t < THREADS; t++) {
			say(r, t, 0, seq, &share[t][0]);
			say(r, t, 1, seq, &share[t][1]);
			audio_flush(r->channel[t]);
			for (const struct audio_packet *p; (p = audio_next(r->channel[t]));) {
				assert_true(p->len >= 8 && p->stream / 2 == t);
				audio_sent(r->channel[t]);
				atomic_fetch_add(&r->heard[t], 1);
			}
			sched_yield();
		}
	return NULL;
}

static void set(struct rig *r, uint32_t audio, uint32_t end, uint32_t to, uint8_t ptime)
{
	uint16_t entry = (uint16_t)(codec_registry_find(r->codecs, end ? "PCMA" : "PCMU", 8000, 1) -
		r->codecs->entry);
	struct audio_cfg cfg = {.types = 1,
		.type = {{.type = end ? 8 : 0, .entry = entry, .clock = 8000}},
		.events = {.type = AUDIO_NO_TYPE},
		.cn = {.type = AUDIO_NO_TYPE},
		.ptime = ptime,
		.to = to,
		.ssrc = 5 + end,
		.cname = "x"};
	struct relay_port port = {
		.rtp_stream = 2 * (audio % THREADS) + end, .rtcp_stream = 2 * (audio % THREADS)};

	cfg.codec = cfg.type[0];
	if (!r->ops->set(r->b, audio, 0, &port, true, &cfg))
		r->ops->send(r->b, audio);
}

static void play(struct rig *r, uint32_t audio)
{
	struct audio_clip *c = audio_clip_create(8000, 80);
	struct audio_play p = {.clip = c, .repeat = 1, .id = 1};
	const struct audio_digit d = {.event = 1, .ms = 100, .pause_ms = 100};

	memset(c->pcm, 0, 160);
	if (r->ops->play(r->b, audio, &p))
		audio_clip_unref(c);
	(void)r->ops->digits(r->b, audio, &d, 1);
}

static uint64_t pair_count(const struct audio_pairs *p, const char *name)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (strcmp(p->at[i].name, name) == 0)
			return p->at[i].sum.decoded + p->at[i].sum.passed;
	return 0;
}

/* Counters by pair of codecs never fall: not if sessions end, nor if others take their places. */
static void assert_grown(struct rig *r, uint64_t before[2])
{
	static const char *const names[] = {"PCMU to PCMA", "PCMA to PCMU"};
	struct audio_pairs p;

	bridge_audio_pairs(r->b, &p);
	assert_true(p.n <= 2);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t now = pair_count(&p, names[i]);

		assert_true(now >= before[i]);
		before[i] = now;
	}
}

/* Settings change, clips play, calls end and begin, while packets come. */
static void calls_while_packets_come(void **state)
{
	uint32_t audio[THREADS][2], serial;
	uint64_t counted[2] = {0};
	struct audio_stats stats;
	pthread_t thread;
	struct rig r;

	(void)state;
	rig_start(&r);
	assert_int_equal(bridge_audio_start(r.b), 0);
	assert_int_equal(pthread_create(&thread, NULL, worker, &r), 0);
	/* Clips and digits come back, too: media of both directions must be counted. */
	for (uint32_t i = 0; i < ROUNDS || atomic_load(&r.heard[0]) < WANTED ||
		atomic_load(&r.heard[1]) < WANTED || !counted[0] || !counted[1] || !r.ended;
		i++) {
		uint32_t t = i % THREADS;

		for (uint32_t end = 0; i % 64 < THREADS && end < 2; end++) {
			if (i >= 64)
				r.ops->release(r.b, audio[t][end]);
			assert_int_equal(r.ops->take(r.b, t, &audio[t][end], &serial), 0);
			atomic_store(&r.serial[t][end], serial);
		}
		set(&r, audio[t][0], 0, audio[t][1], (uint8_t)(10 + i % 3 * 10));
		set(&r, audio[t][1], 1, audio[t][0], 20);
		play(&r, audio[t][i / 2 % 2]);
		(void)r.ops->stop(r.b, audio[t][0], 0);
		r.ops->stats(r.b, audio[t][0], &stats);
		assert_grown(&r, counted);
		bridge_audio_poll(r.b);
		sched_yield();
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	rig_end(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_spread),
		cmocka_unit_test(calls_while_packets_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
