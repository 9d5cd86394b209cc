/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "play media", "stop media" and "play DTMF": who hears what, which legs get audio sessions, and
 * for how long. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "audio/clip.h"
#include "call/call_int.h"
#include "call/delete.h"
#include "call/play.h"
#include "call/table.h"
#include "call/tick.h"
#include "call_talk.h"
#include "mock_audio.h"

struct rig {
	struct talk t;
	struct mock_audio a;
	struct ngval *dict;
};

static void rig_start(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	talk_start(&g->t);
	mock_audio_start(&g->a, &g->t.m->relay);
}

static void rig_end(struct rig *g)
{
	for (uint32_t i = 0; i < MOCK_AUDIOS; i++)
		audio_clip_unref(g->a.plays[i] ? g->a.play[i].clip : NULL);
	talk_end(&g->t);
	mock_audio_end(&g->a);
}

/* A call between a and b, both with this list of payload types. */
static void talk(struct rig *g, const char *formats, const char *maps)
{
	char text[512];

	snprintf(text, sizeof(text),
		"v=0\r\no=- 1 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\n"
		"m=audio 4000 RTP/AVP %s\r\n%s",
		formats, maps);
	talk_offer(&g->t, "a", "", text);
	assert_null(g->t.reply.error);
	talk_answer(&g->t, "a", "b", text);
	assert_null(g->t.reply.error);
}

static const struct leg *leg(struct rig *g, const char *tag)
{
	const struct call *c = call_table_find(&g->t.c->table, STR("call"));

	return c->side[call_side_by_tag(c, str_from(tag))]->leg[0];
}

static struct ng_request request(const char *from)
{
	struct ng_request r = talk_request(from, "", "");

	r.play.repeat_times = r.play.start_pos = r.play.repeat_ms = -1;
	r.play.duration = r.play.pause = r.play.volume = -1;
	return r;
}

/* 8000 Hz, mono, mu-law: n samples. In the pool of the next request. */
static struct str wav(uint32_t n)
{
	static char b[44 + 8000];

	memset(b, 0xff, sizeof(b));
	memcpy(b, "RIFF\0\0\0\0WAVEfmt \20\0\0\0\7\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\10\0data", 40);
	memcpy(b + 40, &n, 4);
	return (struct str){b, 44 + n};
}

/* The same at 44100 Hz. */
static struct str wav_of_a_cd(uint32_t n)
{
	struct str w = wav(n);

	memcpy((char *)w.s + 24, "\x44\xac\0\0\x44\xac\0\0", 8);
	return w;
}

static int64_t number(struct rig *g, const char *key)
{
	return ngval_int(ngval_get(g->dict, str_from(key)), -1);
}

static const char *play(struct rig *g, struct ng_request r)
{
	talk_pool(&g->t);
	g->dict = ngval_dict(g->t.p);
	calls_play_media(g->t.c, g->t.p, &r, g->t.now, &g->t.reply, g->dict);
	mock_relay_check(g->t.m);
	return g->t.reply.error;
}

static const char *stop(struct rig *g, struct ng_request r)
{
	talk_pool(&g->t);
	g->dict = ngval_dict(g->t.p);
	calls_stop_media(g->t.c, g->t.p, &r, g->t.now, &g->t.reply, g->dict);
	return g->t.reply.error;
}

static const char *digit(struct rig *g, struct ng_request r)
{
	talk_pool(&g->t);
	calls_play_dtmf(g->t.c, g->t.p, &r, g->t.now, &g->t.reply);
	return g->t.reply.error;
}

static const struct audio_play *played(struct rig *g, const char *tag)
{
	const struct leg *l = leg(g, tag);

	return l->audio.has && g->a.plays[l->audio.handle] ? &g->a.play[l->audio.handle] : NULL;
}

static void selected_party_hears_the_file(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	assert_false(leg(&g, "a")->audio.has);
	r = request("b");
	r.play.blob = wav(4000);
	r.play.start_pos = 80;
	r.play.repeat_times = 3;
	r.play.repeat_ms = 900;
	assert_null(play(&g, r));
	assert_int_equal(number(&g, "duration"), 500);
	assert_true(leg(&g, "a")->audio.has && leg(&g, "b")->audio.has);
	assert_null(played(&g, "a"));
	assert_int_equal(played(&g, "b")->start, 80);
	assert_int_equal(played(&g, "b")->repeat, 3);
	assert_int_equal(played(&g, "b")->limit_ms, 900);
	assert_true(played(&g, "b")->mix); /* the other party is still heard */
	rig_end(&g);
}

static void all_hear_it_and_block_egress_silences_the_other(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	r = request("");
	r.flags = 1ull << NG_FLAG_ALL | 1ull << NG_FLAG_BLOCK_EGRESS;
	r.play.blob = wav(80);
	assert_null(play(&g, r));
	assert_non_null(played(&g, "a"));
	assert_non_null(played(&g, "b"));
	assert_false(played(&g, "a")->mix || played(&g, "b")->mix);
	rig_end(&g);
}

static void session_ends_with_the_file(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	r = request("a");
	r.play.blob = wav(8000);
	assert_null(play(&g, r));
	g.t.now += NS_PER_SEC;
	calls_tick(g.t.c, g.t.now);
	assert_true(leg(&g, "a")->audio.has);
	g.t.now += 2 * NS_PER_SEC;
	calls_tick(g.t.c, g.t.now);
	assert_false(leg(&g, "a")->audio.has || leg(&g, "b")->audio.has);
	rig_end(&g);
}

/* Under one key 64 SSRCs are sent at most. So each session of a leg continues the leg's SSRC, after
 * the packets of the last session. These come faster than the first SSRC's ceiling allows, so the
 * second session has another one. */
static void many_clips_need_one_ssrc(void **state)
{
	struct audio_cfg before, now;
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	for (uint32_t i = 0; i < 100; i++) {
		r = request("a");
		r.play.blob = wav(8000);
		assert_null(play(&g, r));
		now = g.a.cfg[leg(&g, "a")->audio.handle];
		g.a.stats[leg(&g, "a")->audio.handle].sent = 1000;
		if (i > 1) {
			assert_int_equal(now.ssrc, before.ssrc);
			assert_true(now.index > before.index + 1000);
			assert_true(now.index < before.index + 3000);
		}
		before = now;
		assert_null(stop(&g, request("a")));
		assert_false(leg(&g, "a")->audio.has);
	}
	/* After this many packets a terminal could miss a cycle of sequence numbers. */
	assert_null(play(&g, r));
	g.a.stats[leg(&g, "a")->audio.handle].sent = 40000;
	assert_null(stop(&g, request("a")));
	assert_null(play(&g, r));
	assert_int_not_equal(g.a.cfg[leg(&g, "a")->audio.handle].ssrc, before.ssrc);
	rig_end(&g);
}

static void stop_tells_the_position(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	r = request("a");
	r.play.blob = wav(8000);
	r.play.start_pos = 100;
	assert_null(play(&g, r));
	g.t.now += NS_PER_SEC / 4;
	assert_null(stop(&g, request("b"))); /* nothing plays there */
	assert_int_equal(number(&g, "last-frame-pos"), 0);
	assert_true(leg(&g, "a")->audio.has);
	assert_null(stop(&g, request("a")));
	assert_int_equal(number(&g, "last-frame-pos"), 2100);
	assert_false(leg(&g, "a")->audio.has);
	rig_end(&g);
}

/* The clip is kept at a rate of its own. */
static void positions_are_those_of_the_file(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	r = request("a");
	r.play.blob = wav_of_a_cd(8000);
	r.play.start_pos = 4410;
	assert_null(play(&g, r));
	assert_int_equal(number(&g, "duration"), 181);
	assert_int_equal(played(&g, "a")->clip->rate, 48000);
	assert_int_equal(played(&g, "a")->start, 4800);
	g.t.now += NS_PER_SEC / 20;
	assert_null(stop(&g, request("a")));
	assert_int_equal(number(&g, "last-frame-pos"), 4410 + 2205);
	r.play.start_pos = 7999;
	assert_null(play(&g, r));
	assert_in_range(played(&g, "a")->start, 8706, played(&g, "a")->clip->samples - 1);
	r.play.start_pos = 8000;
	assert_non_null(play(&g, r));
	rig_end(&g);
}

static void second_file_ends_the_first(void **state)
{
	struct ng_request r;
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	r = request("a");
	r.play.blob = wav(8000);
	assert_null(play(&g, r));
	audio_clip_unref(played(&g, "a")->clip);
	assert_null(play(&g, r));
	assert_int_equal(g.a.stops[leg(&g, "a")->audio.handle], 1);
	assert_int_equal(played(&g, "a")->id, 2);
	rig_end(&g);
}

static void peer_hears_the_digit_of_the_selected_party(void **state)
{
	static const struct {
		const char *code;
		int64_t duration, volume, pause;
		struct audio_digit want;
	} T[] = {
		{"5", -1, -1, -1, {5, 8, 250, 100}},
		{"#", 99, 0, 10, {11, 0, 100, 100}},
		{"d", 9999, 100, 9999, {15, 63, 5000, 5000}},
		{"10", 120, 12, 200, {10, 12, 120, 200}},
	};
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0 101", "a=rtpmap:101 telephone-event/8000\r\n");
	for (uint32_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_request r = request("a");
		const struct audio_digit *d;

		r.play.code = str_from(T[i].code);
		r.play.duration = T[i].duration;
		r.play.volume = T[i].volume;
		r.play.pause = T[i].pause;
		assert_null(digit(&g, r));
		assert_int_equal(g.a.digits[leg(&g, "b")->audio.handle], i + 1);
		d = &g.a.digit[leg(&g, "b")->audio.handle][i];
		assert_int_equal(d->event, T[i].want.event);
		assert_int_equal(d->volume, T[i].want.volume);
		assert_int_equal(d->ms, T[i].want.ms);
		assert_int_equal(d->pause_ms, T[i].want.pause_ms);
	}
	assert_int_equal(g.a.digits[leg(&g, "a")->audio.handle], 0);
	assert_int_equal(g.a.cfg[leg(&g, "b")->audio.handle].events.type, 101);
	g.t.now += 15 * NS_PER_SEC;
	calls_tick(g.t.c, g.t.now);
	assert_false(leg(&g, "b")->audio.has);
	rig_end(&g);
}

static void requests_are_refused_with_a_reason(void **state)
{
	struct ng_request r = request("a");
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "96", "a=rtpmap:96 mystery/8000\r\n");
	assert_string_equal(play(&g, r), NGE_NO_MEDIA);
	r.play.db_id = STR("7");
	assert_string_equal(play(&g, r), NGE_DB);
	r.play.file = STR("a.wav");
	assert_string_equal(play(&g, r), NGE_PLAY_OFF);
	r.play.file = STR_NONE;
	r.play.blob = STR("no audio");
	assert_string_equal(play(&g, r), NGE_PLAY_FILE);
	r.play.blob = wav(80);
	r.play.start_pos = 80;
	assert_string_equal(play(&g, r), NGE_PLAY_FILE);
	r.play.start_pos = -1;
	assert_string_equal(play(&g, r), NGE_PLAY_LEG); /* an unknown codec */
	r.from_tag = STR("c");
	assert_string_equal(play(&g, r), NGE_PARTICIPANT);
	r.from_tag = STR_NONE;
	assert_string_equal(play(&g, r), NGE_NO_PARTY);
	assert_string_equal(stop(&g, r), NGE_NO_PARTY);
	assert_string_equal(digit(&g, r), NGE_NO_PARTY);
	r.from_tag = STR("a");
	r.play.code = STR("16");
	assert_string_equal(digit(&g, r), NGE_DIGIT);
	r.play.code = STR("1");
	assert_string_equal(digit(&g, r), NGE_PLAY_LEG);
	r.call_id = STR("other");
	assert_string_equal(play(&g, r), NGE_UNKNOWN_CALL);
	g.t.m->relay.audio = NULL;
	r.call_id = STR("call");
	assert_string_equal(play(&g, r), NGE_NO_AUDIO);
	g.t.m->relay.audio = &g.a.audio;
	rig_end(&g);
}

static const char *silence(struct rig *g, const char *from, bool on)
{
	struct ng_request r = request(from);

	talk_pool(&g->t);
	calls_gate(g->t.c, g->t.p, &r, (struct calls_gate){MEDIA_GATE_QUIET, on}, g->t.now,
		&g->t.reply);
	mock_relay_check(g->t.m);
	return g->t.reply.error;
}

/* A worker silences G.711; a session silences what it can decode. */
static void codec_thread_silences_other_codecs(void **state)
{
	static const struct {
		const char *formats, *maps;
		bool session, warns;
	} T[] = {
		{"0 8", "", false, false},
		{"96", "a=rtpmap:96 tin/8000\r\n", true, false},
		{"0 96", "a=rtpmap:96 tin/8000\r\n", true, false},
		{"96", "a=rtpmap:96 mystery/8000\r\n", false, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct codec_entry e = {.about = {.name = "tin",
						.clock = 8000,
						.rate = 8000,
						.channels = 1,
						.static_pt = -1,
						.ptime = 20,
						.frame_samples = 160,
						.can = CODEC_DECODES | CODEC_ENCODES}};
		struct rig g;

		rig_start(&g);
		assert_true(codec_registry_add(g.a.registry, &e));
		talk(&g, T[i].formats, T[i].maps);
		assert_null(silence(&g, "a", true));
		assert_int_equal(leg(&g, "a")->audio.has, T[i].session);
		assert_int_equal(leg(&g, "b")->audio.has, T[i].session);
		assert_int_equal(g.t.reply.warning.len > 0, T[i].warns);
		if (T[i].session) {
			assert_int_equal(
				g.a.cfg[leg(&g, "a")->audio.handle].gate, MEDIA_GATE_QUIET);
			assert_int_equal(g.a.cfg[leg(&g, "b")->audio.handle].gate, 0);
		}
		assert_null(silence(&g, "a", false));
		assert_false(leg(&g, "a")->audio.has || leg(&g, "b")->audio.has);
		rig_end(&g);
	}
}

static void busy_thread_plays_nothing(void **state)
{
	struct ng_request r = request("a");
	struct rig g;

	(void)state;
	rig_start(&g);
	talk(&g, "0", "");
	g.a.set_error = -EAGAIN;
	r.play.blob = wav(80);
	assert_string_equal(play(&g, r), NGE_BUSY);
	assert_false(leg(&g, "a")->audio.has);
	assert_int_equal(leg(&g, "a")->play.until_ns, 0);
	g.a.set_error = 0;
	rig_end(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(selected_party_hears_the_file),
		cmocka_unit_test(all_hear_it_and_block_egress_silences_the_other),
		cmocka_unit_test(session_ends_with_the_file),
		cmocka_unit_test(many_clips_need_one_ssrc),
		cmocka_unit_test(stop_tells_the_position),
		cmocka_unit_test(positions_are_those_of_the_file),
		cmocka_unit_test(second_file_ends_the_first),
		cmocka_unit_test(peer_hears_the_digit_of_the_selected_party),
		cmocka_unit_test(requests_are_refused_with_a_reason),
		cmocka_unit_test(codec_thread_silences_other_codecs),
		cmocka_unit_test(busy_thread_plays_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
