/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offers and answers between terminals with different codecs: what each gets in its SDP, and the
 * settings of the audio sessions of both legs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "call/call_int.h"
#include "call/delete.h"
#include "call/table.h"
#include "mock_audio.h"
#include "save_talk.h"

#define CALLER "198.51.100.1"
#define CALLEE "198.51.100.2"

#define RULE(o, n)                                                \
	{                                                         \
		.op = SDP_CODEC_##o, .name = { n, sizeof(n) - 1 } \
	}

struct rig {
	struct talk t;
	struct mock_audio a;
};

static void add(struct rig *g, const char *name, uint32_t clock, uint32_t channels, int type)
{
	struct codec_entry e = {.about = {.clock = clock,
					.rate = clock,
					.channels = channels,
					.static_pt = type,
					.ptime = 20,
					.frame_samples = clock / 50,
					.can = CODEC_DECODES | CODEC_ENCODES}};

	snprintf(e.about.name, sizeof(e.about.name), "%s", name);
	assert_true(codec_registry_add(g->a.registry, &e));
}

/* A mono codec with another PCM rate than its clock. */
static void add_variant(struct rig *g, const char *name, uint32_t rate)
{
	struct codec_entry e = g->a.registry->entry[g->a.registry->entries - 2];

	assert_string_equal(e.about.name, name);
	e.about.rate = rate;
	assert_true(codec_registry_add(g->a.registry, &e));
	assert_false(codec_registry_add(g->a.registry, &e));
}

static const struct xcipher_resampler resampler = {.size = sizeof(resampler)};

static void rig_start(struct rig *g)
{
	memset(g, 0, sizeof(*g));
	talk_start(&g->t);
	mock_audio_start(&g->a, &g->t.m->relay);
	g->a.registry->resampler = &resampler;
	add(g, "opus", 48000, 1, -1);
	add(g, "opus", 48000, 2, -1);
	add_variant(g, "opus", 8000);
	add(g, "G729", 8000, 1, 18);
	add(g, "AMR", 8000, 1, -1);
}

static void rig_end(struct rig *g)
{
	talk_end(&g->t);
	mock_audio_end(&g->a);
}

/* The caller's profile, and further lines; both terminals' a=ptime. */
static const char *profile = "RTP/AVP", *crypto = "", *ptime = "20";

/* formats: "0 96=opus/48000/2;useinbandfec=1 101=telephone-event/8000". In an fmtp "~" is a blank. */
static char *body(const char *addr, const char *formats)
{
	char *out = malloc(4096), types[256] = "", lines[2048] = "", copy[1024], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", formats);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *name = strchr(w, '='), *fmtp = name ? strchr(w, ';') : NULL;
		size_t at = strlen(lines);

		if (name)
			*name++ = 0;
		if (fmtp)
			*fmtp++ = 0;
		for (char *c = fmtp; c && *c; c++)
			*c = *c == '~' ? ' ' : *c;
		snprintf(types + strlen(types), 16, " %s", w);
		if (name)
			at += (size_t)snprintf(
				lines + at, sizeof(lines) - at, "a=rtpmap:%s %s\r\n", w, name);
		if (fmtp)
			snprintf(lines + at, sizeof(lines) - at, "a=fmtp:%s %s\r\n", w, fmtp);
	}
	snprintf(out, 4096,
		"v=0\r\no=- 42 7 IN IP4 %s\r\ns=-\r\nc=IN IP4 %s\r\nt=0 0\r\n"
		"m=audio 4000 %s%s\r\n%sa=ptime:%s\r\n%s",
		addr, addr, strcmp(addr, CALLER) == 0 ? profile : "RTP/AVP", types, lines, ptime,
		strcmp(addr, CALLER) == 0 ? crypto : "");
	return out;
}

/* The codecs of the last reply, as body() takes them. */
static const char *said(struct rig *g)
{
	struct talk *t = &g->t;
	static const struct sdp_filter none;
	struct sdp_codecs c;
	struct str out = STR("");

	sdp_filter_codecs(&none, &t->sdp->media[0], &c);
	for (uint32_t i = 0; i < c.theirs.n; i++) {
		const struct sdp_format *f = &c.theirs.at[i];

		out = pool_printf(t->p, STR_FMT "%s%u", STR_ARG(out), i ? " " : "", f->type);
		if (f->type >= 96)
			out = pool_printf(
				t->p, STR_FMT "=" STR_FMT, STR_ARG(out), STR_ARG(f->name));
		if (f->fmtp.len)
			out = pool_printf(
				t->p, STR_FMT ";" STR_FMT, STR_ARG(out), STR_ARG(f->fmtp));
	}
	return out.s;
}

static void offer(struct rig *g, const struct sdp_codec_rule *rule, const char *formats)
{
	char *text = body(CALLER, formats);
	struct ng_request r = talk_request("a", "", text);

	r.transport = STR("RTP/AVP");
	while (rule && rule->name.s)
		r.filter.codec[r.filter.codecs++] = *rule++;
	talk_send(&g->t, &r, false);
	free(text);
	assert_null(g->t.reply.error);
}

static void answer(struct rig *g, const char *formats)
{
	char *text = body(CALLEE, formats);

	struct ng_request r = talk_request("a", "b", text);

	r.command = NG_ANSWER;
	talk_send(&g->t, &r, true);
	free(text);
	assert_null(g->t.reply.error);
}

static const struct leg *leg(struct rig *g, const char *tag)
{
	const struct call *c = call_table_find(&g->t.c->table, STR("call"));

	return c->side[call_side_by_tag(c, str_from(tag))]->leg[0];
}

static const struct audio_cfg *session(struct rig *g, const char *tag)
{
	const struct leg *l = leg(g, tag);

	return l->audio.has ? &g->a.cfg[l->audio.handle] : NULL;
}

static const struct media_stream_cfg *stream(struct rig *g, const char *tag)
{
	return &g->t.m->stream_cfg[leg(g, tag)->port.rtp_stream];
}

struct row {
	const char *offer;
	struct sdp_codec_rule rule[4];
	const char *told, *answer, *back;
	bool sessions;
};

#define OPUS    "96=opus/48000/2;useinbandfec=1"
#define EVENT8  "101=telephone-event/8000;0-15"
#define EVENT48 "97=telephone-event/48000;0-15"
/* As Chromium's offer has them. */
#define BROWSER  "111=opus/48000/2;minptime=10"
#define EVENT110 "110=telephone-event/48000;0-15"
#define EVENT126 "126=telephone-event/8000;0-15"

static void the_offerer_is_answered_its_own_codec(void **state)
{
	static const struct row rows[] = {
		/* added, and the callee chooses */
		{"0", {RULE(TRANSCODE, "G722")}, "0 9", "9", "0", true},
		{"0", {RULE(TRANSCODE, "G722")}, "0 9", "0", "0", false},
		{"0", {RULE(TRANSCODE, "G722")}, "0 9", "9 0", "0", true},
		{"0 8", {RULE(TRANSCODE, "G729")}, "0 8 18", "18", "0", true},
		{"0 8", {RULE(TRANSCODE, "opus")}, "0 8 " OPUS, "96=opus/48000/2", "0", true},
		{"0", {RULE(TRANSCODE, "opus/48000/2")}, "0 " OPUS, "96=opus/48000/2", "0", true},
		{"0", {RULE(TRANSCODE, "AMR")},
			"0 96=AMR/8000;octet-align=1;mode-change-capability=2",
			"96=AMR/8000;octet-align=1", "0", true},
		/* from a codec that is not G.711, under its own number and fmtp */
		{"111=opus/48000/2;minptime=10", {RULE(TRANSCODE, "PCMU")},
			"111=opus/48000/2;minptime=10 0", "0", "111=opus/48000/2;minptime=10",
			true},
		/* PCMU and PCMA stay with the worker */
		{"0", {RULE(TRANSCODE, "PCMA")}, "0 8", "8", "0", false},
		/* removed, but transcoded */
		{"9 0", {RULE(MASK, "PCMU"), RULE(TRANSCODE, "G729")}, "9 18", "18", "9", true},
		{"9 0", {RULE(STRIP, "G722"), RULE(TRANSCODE, "G729")}, "0 18", "18", "0", true},
		{"9 0", {RULE(MASK, "all"), RULE(TRANSCODE, "G729")}, "18", "18", "9", true},
		/* accepted, although the callee rejects it */
		{"0 9", {RULE(ACCEPT, "G722")}, "0 9", "0", "0 9", true},
		{"0 9", {RULE(MASK, "G722"), RULE(ACCEPT, "G722")}, "0", "0", "0 9", true},
		/* events at the other clock rate */
		{"0 " EVENT8, {RULE(TRANSCODE, "opus")}, "0 " EVENT8 " " OPUS " " EVENT48,
			"96=opus/48000/2 " EVENT48, "0 " EVENT8, true},
		{"0 " EVENT8, {RULE(TRANSCODE, "opus")}, "0 " EVENT8 " " OPUS " " EVENT48,
			"96=opus/48000/2", "0 " EVENT8, true},
		{"0 " EVENT8, {RULE(TRANSCODE, "G722")}, "0 " EVENT8 " 9", "9 " EVENT8, "0 " EVENT8,
			true},
		/* of a browser's events those that have the clock rate of its codec */
		{BROWSER " " EVENT110 " " EVENT126, {RULE(MASK, "opus"), RULE(TRANSCODE, "PCMU")},
			EVENT126 " 0", EVENT126 " 0", BROWSER " " EVENT110, true},
		{BROWSER " " EVENT126, {RULE(TRANSCODE, "PCMU")}, BROWSER " " EVENT126 " 0",
			"0 " EVENT126, BROWSER " " EVENT126, true},
		{BROWSER " " EVENT110 " " EVENT126, {RULE(TRANSCODE, "PCMU")},
			BROWSER " " EVENT110 " " EVENT126 " 0", BROWSER " " EVENT126,
			BROWSER " " EVENT126, false},
		/* the answerer has its own number for a codec */
		{"0 " OPUS, {RULE(TRANSCODE, "G722")}, "0 " OPUS " 9", "98=opus/48000/2",
			"96=opus/48000/2;useinbandfec=1", true},
		/* a number that is taken: 96 */
		{"96=PCMU/8000", {RULE(TRANSCODE, "opus")},
			"96=PCMU/8000 97=opus/48000/2;useinbandfec=1", "97=opus/48000/2",
			"96=PCMU/8000", true},
		/* a static number that is taken */
		{"9=PCMU/8000", {RULE(TRANSCODE, "G722")}, "9 96=G722/8000", "96=G722/8000", "9",
			true},
		/* without rules nothing changes */
		{"0 9 " EVENT8, {RULE(OFFER, "G722")}, "9 0 " EVENT8, "9 " EVENT8, "9 " EVENT8,
			false},
		/* unknown to the relay */
		{"99=EVS/16000", {RULE(TRANSCODE, "PCMU")}, "99=EVS/16000", "99=EVS/16000",
			"99=EVS/16000", false},
		{"0", {RULE(TRANSCODE, "iLBC")}, "0", "0", "0", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct rig g;

		rig_start(&g);
		offer(&g, r->rule, r->offer);
		if (strcmp(said(&g), r->told))
			fail_msg("%zu: %s: told %s", i, r->offer, said(&g));
		answer(&g, r->answer);
		if (strcmp(said(&g), r->back))
			fail_msg("%zu: %s, %s: answered %s", i, r->offer, r->answer, said(&g));
		if ((session(&g, "a") != NULL) != r->sessions ||
			(session(&g, "b") != NULL) != r->sessions)
			fail_msg("%zu: %s, %s: sessions", i, r->offer, r->answer);
		assert_int_equal(stream(&g, "a")->audio != 0, r->sessions);
		rig_end(&g);
	}
}

/* The offerer keeps its telephone events; the sessions make tones of them, and the reverse. */
static void digits_of_a_terminal_without_events(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "G722"), {.name = {NULL, 0}}};
	const struct audio_cfg *a, *b;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0 " EVENT8);
	answer(&g, "9");
	a = session(&g, "a");
	b = session(&g, "b");
	assert_int_equal(a->events.type, 101);
	assert_false(a->events_to_tone || a->tone_to_events);
	assert_int_equal(b->events.type, AUDIO_NO_TYPE);
	assert_true(b->events_to_tone && b->tone_to_events);
	rig_end(&g);
	rig_start(&g);
	offer(&g, rule, "0 " EVENT8);
	answer(&g, "9 " EVENT8);
	b = session(&g, "b");
	assert_false(b->events_to_tone || b->tone_to_events);
	rig_end(&g);
}

static void both_sessions_know_their_codecs(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	const struct audio_cfg *a, *b;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "8 0 " EVENT8);
	answer(&g, "96=opus/48000/2;maxaveragebitrate=20000 97=telephone-event/48000");
	a = session(&g, "a");
	b = session(&g, "b");
	assert_int_equal(a->to, leg(&g, "b")->audio.handle);
	assert_int_equal(b->to, leg(&g, "a")->audio.handle);
	assert_int_not_equal(a->ssrc, b->ssrc);
	assert_int_equal(a->types, 2);
	assert_int_equal(a->codec.type, 8);
	assert_int_equal(a->codec.clock, 8000);
	assert_string_equal(g.a.registry->entry[a->codec.entry].about.name, "PCMA");
	assert_int_equal(a->events.type, 101);
	assert_int_equal(b->codec.type, 96);
	assert_int_equal(g.a.registry->entry[b->codec.entry].about.channels, 1);
	assert_memory_equal(b->codec.fmtp, "maxaveragebitrate=20000", b->codec.fmtp_len);
	assert_int_equal(b->events.type, 97);
	assert_int_equal(b->events.clock, 48000);
	assert_int_equal(b->type[0].type, 96);
	assert_memory_equal(b->type[0].fmtp, "useinbandfec=1", b->type[0].fmtp_len);
	assert_int_equal(stream(&g, "a")->audio, leg(&g, "a")->audio.serial);
	assert_int_equal(stream(&g, "a")->convert, 0);
	rig_end(&g);
}

static const struct audio_type *received(const struct audio_cfg *cfg, uint8_t type)
{
	for (uint32_t i = 0; i < cfg->types; i++)
		if (cfg->type[i].type == type)
			return &cfg->type[i];
	fail_msg("payload type %u is not received", type);
	return NULL;
}

/* RFC 3264 6.1: the answerer sends the payload types of the offer, and gets those of its answer. */
static void an_answerer_with_numbers_of_its_own_is_heard(void **state)
{
	static const struct sdp_codec_rule rule[] = {
		RULE(TRANSCODE, "AMR"), RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	static const char amr[] = "octet-align=1;mode-change-capability=2";
	static const uint8_t number[] = {98, 96};
	const struct audio_cfg *b;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0 " EVENT8);
	assert_string_equal(said(&g),
		"0 " EVENT8 " 96=AMR/8000;octet-align=1;mode-change-capability=2 "
		"97=opus/48000/2;useinbandfec=1 98=telephone-event/48000;0-15");
	answer(&g, "98=AMR/8000;octet-align=1 99=telephone-event/8000");
	b = session(&g, "b");
	assert_int_equal(b->codec.type, 98);
	assert_int_equal(b->events.type, 99);
	for (size_t i = 0; i < ARRAY_LEN(number); i++) {
		const struct audio_type *t = received(b, number[i]);

		assert_int_equal(t->kind, AUDIO_CODEC);
		assert_int_equal(t->entry, b->codec.entry);
		assert_int_equal(t->fmtp_len, sizeof(amr) - 1);
		assert_memory_equal(t->fmtp, amr, sizeof(amr) - 1);
	}
	assert_int_equal(received(b, 99)->kind, AUDIO_EVENTS);
	assert_int_equal(received(b, 101)->kind, AUDIO_EVENTS);
	rig_end(&g);
	/* The numbers alone are no reason to transcode. */
	rig_start(&g);
	offer(&g, NULL, "96=opus/48000/2");
	answer(&g, "98=opus/48000/2");
	assert_null(session(&g, "b"));
	rig_end(&g);
}

/* A terminal that asks for packets of a millisecond would cause twenty times the work. */
static void a_tiny_ptime_is_not_obeyed(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "G722"), {.name = {NULL, 0}}};
	static const struct {
		const char *ptime;
		uint8_t is;
	} T[] = {{"1", 10}, {"9", 10}, {"10", 10}, {"30", 30}, {"120", 120}, {"0", 0}, {"121", 0},
		{"99999999999999999999", 0}, {"0.125", 0}, {"-1", 0}};
	struct rig g;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		ptime = T[i].ptime;
		rig_start(&g);
		offer(&g, rule, "0");
		answer(&g, "9");
		assert_int_equal(session(&g, "a")->ptime, T[i].is);
		assert_int_equal(session(&g, "b")->ptime, T[i].is);
		rig_end(&g);
	}
	ptime = "20";
}

/* The bitrate of one codec is not that of the others, whichever the callee chooses. */
static void a_bitrate_stays_with_its_codec(void **state)
{
	static const struct sdp_codec_rule rule[] = {
		{.op = SDP_CODEC_TRANSCODE, .name = {"opus/48000/2", 12}, .bitrate = 24000},
		RULE(TRANSCODE, "G722"), {.name = {NULL, 0}}};
	static const struct {
		const char *answer;
		uint32_t bitrate;
	} T[] = {{"9", 0}, {"96=opus/48000/2", 24000}, {"98=opus/48000/2", 24000},
		{"9 96=opus/48000/2", 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig g;

		rig_start(&g);
		offer(&g, rule, "0");
		answer(&g, T[i].answer);
		assert_int_equal(session(&g, "b")->bitrate, T[i].bitrate);
		assert_int_equal(session(&g, "a")->bitrate, 0);
		rig_end(&g);
	}
}

/* A terminal that answers with more codecs than a session decodes still dials digits. */
static void many_codecs_leave_room_for_events(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(ACCEPT, "all"), {.name = {NULL, 0}}};
	const char many[] = "0 8 9 18 96=opus/48000/2 97=AMR/8000 98=L16/8000 99=L16/16000 "
			    "100=L16/32000 13 101=telephone-event/8000";
	const struct audio_cfg *a;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, many);
	answer(&g, "8 13 101=telephone-event/8000");
	a = session(&g, "a");
	assert_int_equal(a->types, AUDIO_TYPES);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(a->type[i].kind, AUDIO_CODEC);
	assert_int_equal(a->type[6].kind, AUDIO_CN);
	assert_int_equal(a->type[7].kind, AUDIO_EVENTS);
	assert_int_equal(a->events.type, 101);
	rig_end(&g);
}

/* What FreeSWITCH writes for Opus: 98 bytes with its blanks. */
#define SWITCH                                                                       \
	"useinbandfec=1;~maxaveragebitrate=30000;~maxplaybackrate=48000;~ptime=20;~" \
	"minptime=10;~maxptime=40"

static void a_long_fmtp_is_obeyed(void **state)
{
	static const struct sdp_codec_rule to_opus[] = {RULE(TRANSCODE, "opus"),
		{.name = {NULL, 0}}},
					   to_law[] = {
						   RULE(TRANSCODE, "PCMU"), {.name = {NULL, 0}}};
	const struct audio_type *t;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, to_opus, "0");
	answer(&g, "96=opus/48000/2;" SWITCH);
	t = &session(&g, "b")->codec;
	assert_int_equal(t->type, 96);
	assert_int_equal(t->fmtp_len, 98);
	assert_memory_equal(t->fmtp + 90, "ptime=40", 8);
	rig_end(&g);
	rig_start(&g);
	offer(&g, to_law, "111=opus/48000/2;" SWITCH);
	answer(&g, "0");
	t = &session(&g, "a")->codec;
	assert_int_equal(t->type, 111);
	assert_int_equal(t->fmtp_len, 98);
	assert_int_equal(session(&g, "a")->type[0].type, 111);
	rig_end(&g);
}

/* A codec whose fmtp is too long is not transcoded: not if it is offered, and an answer with it is
 * refused. */
static void a_too_long_fmtp_is_not_silence(void **state)
{
	static const struct sdp_codec_rule to_opus[] = {RULE(TRANSCODE, "opus"),
		{.name = {NULL, 0}}},
					   to_law[] = {RULE(TRANSCODE, "PCMU"),
						   {.name = {NULL, 0}}},
					   to_g722[] = {
						   RULE(TRANSCODE, "G722"), {.name = {NULL, 0}}};
	char fmtp[SDP_FMTP_MAX + 2], formats[SDP_FMTP_MAX + 64], *text;
	struct rig g;

	(void)state;
	memset(fmtp, 'x', sizeof(fmtp) - 1);
	fmtp[sizeof(fmtp) - 1] = 0;
	rig_start(&g);
	snprintf(formats, sizeof(formats), "111=opus/48000/2;%s", fmtp);
	offer(&g, to_law, formats);
	assert_string_equal(said(&g), formats); /* nothing was added */
	rig_end(&g);
	rig_start(&g);
	snprintf(formats, sizeof(formats), "111=opus/48000/2;%s 8", fmtp);
	offer(&g, to_g722, formats);
	answer(&g, "9");
	assert_string_equal(said(&g), "8");
	assert_int_equal(session(&g, "a")->codec.type, 8);
	rig_end(&g);
	rig_start(&g);
	offer(&g, to_opus, "0");
	snprintf(formats, sizeof(formats), "96=opus/48000/2;%s", fmtp);
	text = body(CALLEE, formats);
	talk_answer(&g.t, "a", "b", text);
	assert_string_equal(g.t.reply.error, "A codec refuses its a=fmtp");
	free(text);
	rig_end(&g);
}

static int refuse_crc(void *params, const char *text, size_t len)
{
	(void)params;
	return memmem(text, len, "crc=1", 5) ? -EINVAL : 0;
}

/* The codec refuses one fmtp of the offer, so another payload type of the offer is answered. */
static void an_fmtp_that_its_codec_refuses_is_left_out(void **state)
{
	static const struct xcipher_codec picky = {.fmtp_parse = refuse_crc};
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "G722"), {.name = {NULL, 0}}};
	static const struct {
		const char *offer, *told, *answer, *back;
	} T[] = {
		{"97=x-picky/8000;crc=1 8", "97=x-picky/8000;crc=1 8 9", "9", "8"},
		{"97=x-picky/8000;crc=1 98=x-picky/8000;a=1",
			"97=x-picky/8000;crc=1 98=x-picky/8000;a=1 9", "9", "98=x-picky/8000;a=1"},
		{"97=x-picky/8000 8", "97=x-picky/8000 8 9", "9", "97=x-picky/8000"},
		{"97=x-picky/8000;crc=1", "97=x-picky/8000;crc=1", "97=x-picky/8000;crc=1",
			"97=x-picky/8000;crc=1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig g;

		rig_start(&g);
		add(&g, "x-picky", 8000, 1, -1);
		g.a.registry->entry[g.a.registry->entries - 1].codec = &picky;
		offer(&g, rule, T[i].offer);
		assert_string_equal(said(&g), T[i].told);
		answer(&g, T[i].answer);
		assert_string_equal(said(&g), T[i].back);
		rig_end(&g);
	}
}

/* A payload type without a clock rate, or with one that no codec has, is not used, and refuses no
 * call. With 40 Hz an event of ours would never end. */
static void events_without_a_clock_are_left_out(void **state)
{
	static const char *const T[] = {"101=telephone-event/0", "101=telephone-event",
		"101=telephone-event/99999999999", "101=CN/0", "101=telephone-event/40",
		"101=telephone-event/1000000", "101=CN/1"};
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	const struct audio_cfg *b;
	char formats[64];
	struct rig g;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(T); i++) {
		rig_start(&g);
		offer(&g, rule, "0 " EVENT8);
		snprintf(formats, sizeof(formats), "96=opus/48000/2 %s", T[i]);
		answer(&g, formats);
		b = session(&g, "b");
		assert_non_null(b);
		for (uint32_t k = 0; k < b->types; k++)
			assert_int_not_equal(b->type[k].clock, 0);
		assert_int_equal(b->events.type, AUDIO_NO_TYPE);
		assert_int_equal(b->cn.type, AUDIO_NO_TYPE);
		assert_true(b->events_to_tone); /* its digits are tones */
		rig_end(&g);
	}
}

/* Phones with Opus often have telephone events of 8000 Hz and no others. */
static void events_of_another_clock_are_sent(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0 " EVENT8);
	answer(&g, "101=telephone-event/8000 96=opus/48000/2");
	assert_int_equal(session(&g, "b")->codec.type, 96);
	assert_int_equal(session(&g, "b")->events.type, 101);
	assert_int_equal(session(&g, "b")->events.clock, 8000);
	rig_end(&g);
	rig_start(&g);
	offer(&g, rule, "0 " EVENT8);
	answer(&g, "96=opus/48000/2 101=telephone-event/8000 97=telephone-event/48000");
	assert_int_equal(session(&g, "b")->events.type, 97);
	rig_end(&g);
}

static uint32_t pcm_rate(struct rig *g, const struct audio_type *t)
{
	return g->a.registry->entry[t->entry].about.rate;
}

/* Of a codec with several PCM rates the one of the other terminal's codec is used, both ways. */
static void pcm_has_the_rate_of_the_other_codec(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	static const struct {
		const char *offer;
		uint32_t rate;
	} T[] = {{"0", 8000}, {"9", 48000}};

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct rig g;

		rig_start(&g);
		offer(&g, rule, T[i].offer);
		answer(&g, "96=opus/48000/2");
		assert_int_equal(pcm_rate(&g, &session(&g, "b")->codec), T[i].rate);
		assert_int_equal(pcm_rate(&g, &session(&g, "b")->type[0]), T[i].rate);
		rig_end(&g);
	}
}

/* Without a plug-in codecs of 44,100 Hz are not transcoded, and calls go on. */
static void no_resampler(void **state)
{
	static const struct sdp_codec_rule rule[] = {
		RULE(TRANSCODE, "L16/44100"), RULE(TRANSCODE, "G729"), {.name = {NULL, 0}}};
	struct rig g;

	(void)state;
	rig_start(&g);
	g.a.registry->resampler = NULL;
	offer(&g, rule, "0");
	assert_string_equal(said(&g), "0 18");
	assert_non_null(memmem(g.t.reply.warning.s, g.t.reply.warning.len, "codec L16", 9));
	answer(&g, "18");
	assert_non_null(session(&g, "a"));
	offer(&g, NULL, "9");
	answer(&g, "9");
	assert_null(session(&g, "a"));
	rig_end(&g);
}

static uint64_t counted(struct rig *g, const char *pair)
{
	struct calls_counters n;

	calls_counters(g->t.c, &n);
	for (uint32_t i = 0; i < CALL_CODEC_PAIRS; i++)
		if (strcmp(n.transcoded[i].name, pair) == 0)
			return n.transcoded[i].n;
	return 0;
}

static void pairs_of_codecs_are_counted(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	assert_int_equal(counted(&g, "PCMU to opus"), 0);
	answer(&g, "96=opus/48000/2");
	assert_int_equal(counted(&g, "PCMU to opus"), 1);
	assert_int_equal(counted(&g, "opus to PCMU"), 1);
	offer(&g, NULL, "0");
	answer(&g, "8");
	assert_int_equal(counted(&g, "PCMU to opus"), 0);
	rig_end(&g);
}

/* A re-INVITE in mid-call: the session stays with its SSRC, and ends when it is not needed. */
static void another_codec_in_mid_call(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	uint32_t ssrc, serial;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	answer(&g, "96=opus/48000/2");
	ssrc = session(&g, "a")->ssrc;
	serial = leg(&g, "a")->audio.serial;
	offer(&g, rule, "9");
	assert_int_equal(session(&g, "a")->codec.type, 0); /* not before the answer */
	answer(&g, "96=opus/48000/2");
	assert_int_equal(session(&g, "a")->codec.type, 9);
	assert_int_equal(session(&g, "a")->ssrc, ssrc);
	assert_int_equal(leg(&g, "a")->audio.serial, serial);
	offer(&g, NULL, "0");
	answer(&g, "0");
	assert_null(session(&g, "a"));
	assert_int_equal(stream(&g, "a")->audio, 0);
	rig_end(&g);
}

/* An offer whose settings the codec refuses changes nothing. */
static void a_refused_setting_leaves_the_call(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	char *text = body(CALLEE, "96=opus/48000/2");
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	g.a.set_error = -EAGAIN;
	talk_answer(&g.t, "a", "b", text);
	assert_non_null(g.t.reply.error);
	g.a.set_error = -EINVAL;
	talk_answer(&g.t, "a", "b", text);
	assert_string_equal(g.t.reply.error, "A codec refuses its a=fmtp");
	g.a.set_error = 0;
	talk_answer(&g.t, "a", "b", text);
	assert_null(g.t.reply.error);
	assert_non_null(session(&g, "b"));
	free(text);
	rig_end(&g);
}

/* ptime resizes packets of a codec that both have. */
static void packets_are_resized(void **state)
{
	char *text = body(CALLER, "0");
	struct ng_request r = talk_request("a", "", text);
	struct rig g;

	(void)state;
	rig_start(&g);
	r.command = NG_OFFER;
	r.ptime = 40;
	r.ptime_reverse = 60;
	talk_send(&g.t, &r, false);
	free(text);
	assert_null(g.t.reply.error);
	assert_non_null(memmem(g.t.reply.sdp.s, g.t.reply.sdp.len, "a=ptime:40\r\n", 12));
	assert_null(memmem(g.t.reply.sdp.s, g.t.reply.sdp.len, "a=ptime:20\r\n", 12));
	answer(&g, "0");
	assert_non_null(memmem(g.t.reply.sdp.s, g.t.reply.sdp.len, "a=ptime:60\r\n", 12));
	assert_int_equal(session(&g, "b")->ptime, 40);
	assert_int_equal(session(&g, "a")->ptime, 60);
	offer(&g, NULL, "0");
	answer(&g, "0");
	assert_null(session(&g, "a"));
	rig_end(&g);
}

/* A session that goes on under its spare SSRC begins with a low index. So it must not be one that
 * an earlier session has used. */
static void each_session_has_its_own_spare_ssrc(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	uint32_t ssrc, spare;
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	answer(&g, "96=opus/48000/2");
	ssrc = session(&g, "a")->ssrc;
	spare = session(&g, "a")->spare;
	offer(&g, NULL, "0");
	answer(&g, "0");
	assert_null(session(&g, "a"));
	offer(&g, rule, "0");
	answer(&g, "96=opus/48000/2");
	assert_int_equal(session(&g, "a")->ssrc, ssrc);
	assert_int_not_equal(session(&g, "a")->spare, spare);
	rig_end(&g);
}

static void a_transcoded_terminal_gets_its_own_ptime(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	answer(&g, "96=opus/48000/2");
	assert_int_equal(session(&g, "a")->ptime, 20);
	assert_int_equal(session(&g, "b")->ptime, 20);
	rig_end(&g);
}

static void a_rejected_codec_may_come_all_the_same(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	char *text = body(CALLEE, "0");
	struct ng_request r = talk_request("a", "b", text);
	struct rig g;

	(void)state;
	rig_start(&g);
	offer(&g, rule, "0");
	r.flags |= 1ull << NG_FLAG_ASYMMETRIC_CODECS;
	talk_send(&g.t, &r, true);
	free(text);
	assert_null(g.t.reply.error);
	assert_int_equal(session(&g, "b")->types, 2);
	assert_int_equal(session(&g, "b")->type[1].type, 96);
	assert_int_equal(session(&g, "b")->codec.type, 0);
	rig_end(&g);
}

static uint64_t resumed_index(const struct talk *t, uint32_t ssrc)
{
	for (uint32_t i = 0; i < t->m->resumes; i++) {
		const struct media_cmd *c = &t->m->resumed[i];

		if (c->type == MEDIA_CTX_RESUME && c->ctx_resume.mark[0].ssrc == ssrc &&
			c->ctx_resume.mark[0].table == MEDIA_TX_RTP)
			return c->ctx_resume.mark[0].index;
	}
	return 0;
}

/* A restart restores both sessions, with the same SSRC above its ceiling, unless the terminal could
 * estimate a wrong roll-over counter, or the ceiling cannot be relied on. */
static void a_restored_call_is_transcoded(void **state)
{
	static const struct sdp_codec_rule rule[] = {RULE(TRANSCODE, "opus"), {.name = {NULL, 0}}};
	static const struct {
		uint64_t seconds, sent;
		int64_t set_ns; /* the clock that all nodes read was set back by so much */
		bool same, same_boot;
	} T[] = {
		/* another machine, which may send at the same time */
		{1, 60, 0, false, false}, {1, 60, 200000000, true, true},
		{1, 60, -200000000, true, true}, {1, 60, 300000000, false, true},
		{1, 60, -300000000, false, true}, {600, 29000, 0, true, true},
		{600, 60, 0, true, true},                                 /* silence */
		{700, 60, 0, false, true}, {3600, 180000, 0, true, true}, /* two roll-overs */
		{1, 100000, 0, false, true}, /* more than the ceiling allowed */
	};

	(void)state;
	profile = "RTP/SAVP";
	crypto = "a=crypto:" C80A "\r\n";
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct relay_marks marks = {.n = 1};
		const char *why = NULL;
		struct leg_audio *a;
		struct saved before;
		uint64_t first, next;
		struct rig g;
		uint32_t ssrc;

		rig_start(&g);
		g.t.now = clock_real_ns();
		g.a.now_ns = clock_mono_of(g.t.now);
		calls_save_start(g.t.c);
		offer(&g, rule, "0");
		answer(&g, "96=opus/48000/2");
		a = (struct leg_audio *)&leg(&g, "a")->audio;
		ssrc = session(&g, "a")->ssrc;
		first = a->ceiling.first;
		assert_int_equal(a->ceiling.unit_ns, 20000000 / 32 * 31);
		assert_int_equal(session(&g, "a")->index, first);
		assert_int_equal(a->ceiling.from_ns, g.a.now_ns);
		marks.mark[0].mark = (struct media_mark){
			.ssrc = ssrc, .table = MEDIA_TX_RTP, .index = first + T[i].sent};
		g.t.m->marks[leg(&g, "a")->ctx] = &marks;
		save(&g.t, &before);
		g.t.m->marks[leg(&g, "a")->ctx] = NULL;
		reborn(&g.t);
		memset(g.a.taken, 0, sizeof(g.a.taken));
		mock_audio_start(&g.a, &g.t.m->relay);
		calls_save_start(g.t.c);
		g.t.now += T[i].seconds * NS_PER_SEC;
		/* The call takes its sessions a little later. */
		g.a.now_ns += T[i].seconds * NS_PER_SEC + NS_PER_SEC / 10;
		calls_shared_clock(g.t.c, T[i].set_ns);
		assert_int_not_equal(calls_saver(g.t.c)->boot, 0);
		calls_saver(g.t.c)->boot += !T[i].same_boot;
		assert_int_equal(restore(&g.t, sbuf_view(&before.whole), STR_NONE, &why), 0);
		assert_non_null(session(&g, "a"));
		assert_int_equal(session(&g, "a")->codec.type, 0);
		assert_int_equal(session(&g, "b")->codec.type, 96);
		assert_int_not_equal(stream(&g, "a")->audio, 0);
		if ((session(&g, "a")->ssrc == ssrc) != T[i].same)
			fail_msg("case %zu", i);
		next = first + CEILING_BURST + 1 + T[i].seconds * NS_PER_SEC / (20000000 / 32 * 31);
		if (T[i].same) {
			/* Two readings of the clock may differ by a little. */
			assert_in_range(session(&g, "a")->index, next - 1, next + 1);
			assert_int_equal(resumed_index(&g.t, ssrc), session(&g, "a")->index - 1);
		} else {
			assert_int_equal(resumed_index(&g.t, ssrc), 0);
			assert_true(session(&g, "a")->index <= 0x7fff);
		}
		sbuf_fini(&before.whole);
		sbuf_fini(&before.state);
		rig_end(&g);
	}
	profile = "RTP/AVP";
	crypto = "";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_offerer_is_answered_its_own_codec),
		cmocka_unit_test(digits_of_a_terminal_without_events),
		cmocka_unit_test(both_sessions_know_their_codecs),
		cmocka_unit_test(an_answerer_with_numbers_of_its_own_is_heard),
		cmocka_unit_test(a_tiny_ptime_is_not_obeyed),
		cmocka_unit_test(a_bitrate_stays_with_its_codec),
		cmocka_unit_test(many_codecs_leave_room_for_events),
		cmocka_unit_test(a_long_fmtp_is_obeyed),
		cmocka_unit_test(a_too_long_fmtp_is_not_silence),
		cmocka_unit_test(an_fmtp_that_its_codec_refuses_is_left_out),
		cmocka_unit_test(events_without_a_clock_are_left_out),
		cmocka_unit_test(events_of_another_clock_are_sent),
		cmocka_unit_test(pcm_has_the_rate_of_the_other_codec),
		cmocka_unit_test(no_resampler),
		cmocka_unit_test(pairs_of_codecs_are_counted),
		cmocka_unit_test(another_codec_in_mid_call),
		cmocka_unit_test(a_refused_setting_leaves_the_call),
		cmocka_unit_test(packets_are_resized),
		cmocka_unit_test(a_restored_call_is_transcoded),
		cmocka_unit_test(a_transcoded_terminal_gets_its_own_ptime),
		cmocka_unit_test(each_session_has_its_own_spare_ssrc),
		cmocka_unit_test(a_rejected_codec_may_come_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
