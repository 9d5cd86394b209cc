/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audio_rig.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/rtp.h"

/* --- The rig ---------------------------------------------------------------------------------- */

static struct audio_packet *place(void *arg, uint32_t id, bool rtcp)
{
	struct audio_rig_end *e = &((struct audio_rig *)arg)->end[id];

	if (e->full)
		return NULL;
	memset(&e->got[e->gots % RIG_GOT], 0, sizeof(e->got[0]));
	return rtcp ? &e->report : &e->got[e->gots % RIG_GOT];
}

static void placed(void *arg, uint32_t id)
{
	struct audio_rig_end *e = &((struct audio_rig *)arg)->end[id];

	/* One of the two was written. */
	if (e->got[e->gots % RIG_GOT].len)
		e->gots++;
	else
		e->reports++;
}

static uint16_t entry(const struct audio_rig *r, const char *name, uint32_t clock)
{
	const struct codec_entry *e = codec_registry_find(r->codecs, name, clock, 1);

	assert_non_null(e);
	return (uint16_t)(e - r->codecs->entry);
}

static struct audio_type type_of(const struct audio_rig *r, uint8_t type)
{
	struct audio_type t = {.type = type, .kind = AUDIO_CODEC, .clock = 8000};

	t.entry = type == RIG_PCMU ? entry(r, "PCMU", 8000)
		: type == RIG_PCMA ? entry(r, "PCMA", 8000)
		: type == RIG_G722 ? entry(r, "G722", 8000)
				   : entry(r, "L16", 44100);
	t.clock = r->codecs->entry[t.entry].about.clock;
	return t;
}

struct audio_cfg audio_rig_cfg(const struct audio_rig *r, uint32_t end, uint8_t type)
{
	struct audio_cfg c = {.types = 3,
		.type = {type_of(r, type),
			{.type = RIG_EVENTS, .kind = AUDIO_EVENTS, .clock = 8000},
			{.type = RIG_CN, .kind = AUDIO_CN, .clock = 8000}},
		.cn = {.type = AUDIO_NO_TYPE},
		.to = !end,
		.ssrc = 0x1000 + end,
		.index = 70000 + end,
		.cname = "rig"};

	c.codec = c.type[0];
	c.events = c.type[1];
	return c;
}

void audio_rig_set(struct audio_rig *r, uint32_t end, const struct audio_cfg *cfg)
{
	struct audio_rig_end *e = &r->end[end];
	struct audio_order *o;
	const struct audio_cfg *before = audio_session_cfg(e->s);
	struct codec_stream_cfg coder = {.can = CODEC_DECODES | CODEC_ENCODES};

	assert_int_equal(audio_order_create(&o, r->codecs, cfg, before->ssrc ? before : NULL), 0);
	audio_session_set(e->s, o, r->now_ns);
	e->type = cfg->codec.type;
	e->codec = &r->codecs->entry[cfg->codec.entry];
	codec_stream_close(e->coder);
	assert_int_equal(codec_stream_open(&e->coder, e->codec, &coder), 0);
}

struct audio_rig *audio_rig_new(uint8_t a, uint8_t b)
{
	struct audio_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(codec_registry_create(&r->codecs), 0);
	r->env =
		(struct audio_env){.codecs = r->codecs, .place = place, .placed = placed, .arg = r};
	r->env.real_ahead_ns = 1700000000ull * RIG_SECOND_NS;
	r->now_ns = RIG_SECOND_NS;
	for (uint32_t i = 0; i < 2; i++) {
		struct audio_cfg cfg = audio_rig_cfg(r, i, i ? b : a);

		r->end[i].s = audio_session_alloc();
		assert_non_null(r->end[i].s);
		audio_session_init(r->end[i].s, &r->env, i, 7 + i, r->now_ns);
		r->end[i].ssrc = 0xaa + i;
		r->end[i].seq = (uint16_t)(65530 + i);
		r->end[i].ts = 0xffffff00u;
		r->end[i].step_ms = 20;
		r->end[i].hertz = 1000;
		audio_rig_set(r, i, &cfg);
	}
	return r;
}

void audio_rig_free(struct audio_rig *r)
{
	for (uint32_t i = 0; i < 2; i++) {
		audio_session_free(r->end[i].s);
		codec_stream_close(r->end[i].coder);
	}
	codec_registry_destroy(r->codecs);
	free(r);
}

struct audio_packet audio_rig_packet(struct audio_rig *r, uint32_t end, uint8_t type, bool marker,
	const void *payload, uint32_t len)
{
	struct audio_rig_end *e = &r->end[end];
	struct audio_packet p = {.len = (uint16_t)(RTP_FIXED_LEN + len)};

	p.bytes[0] = 0x80;
	p.bytes[1] = (uint8_t)(marker << 7 | type);
	put_be16(p.bytes + 2, e->seq++);
	put_be32(p.bytes + 4, e->ts);
	put_be32(p.bytes + 8, e->ssrc);
	if (len)
		memcpy(p.bytes + RTP_FIXED_LEN, payload, len);
	return p;
}

struct audio_packet audio_rig_say(struct audio_rig *r, uint32_t end)
{
	struct audio_rig_end *e = &r->end[end];
	uint32_t n = e->codec->about.rate * e->step_ms / 1000;
	int16_t pcm[AUDIO_PCM];
	uint8_t payload[AUDIO_PACKET_MAX];
	struct audio_packet p;
	int len;

	for (uint32_t i = 0; i < n; i++) {
		pcm[i] = (int16_t)(8000 * sin(e->phase));
		e->phase += 2 * M_PI * e->hertz / e->codec->about.rate;
	}
	len = codec_stream_encode(e->coder, pcm, n, payload, sizeof(payload) - RTP_FIXED_LEN);
	assert_true(len > 0);
	p = audio_rig_packet(r, end, e->type, false, payload, (uint32_t)len);
	e->ts += e->codec->about.clock * e->step_ms / 1000;
	return p;
}

void audio_rig_carry(struct audio_rig *r, uint32_t end, const struct audio_packet *p)
{
	struct audio_packet in = *p;

	in.t_ns = r->now_ns + r->env.real_ahead_ns;
	audio_session_take(r->end[end].s, r->end[!end].s, &in, r->now_ns);
}

void audio_rig_wait(struct audio_rig *r, uint64_t ns)
{
	uint64_t until = r->now_ns + ns;

	for (;;) {
		uint64_t at[2] = {
			audio_session_deadline(r->end[0].s), audio_session_deadline(r->end[1].s)};
		uint32_t who = at[1] < at[0];

		if (at[who] > until)
			break;
		r->now_ns = at[who] > r->now_ns ? at[who] : r->now_ns;
		audio_session_tick(r->end[who].s, r->end[!who].s, r->now_ns);
		assert_true(audio_session_deadline(r->end[who].s) > r->now_ns);
	}
	r->now_ns = until;
}

const struct audio_packet *audio_rig_got(const struct audio_rig *r, uint32_t end, uint32_t back)
{
	const struct audio_rig_end *e = &r->end[end];

	assert_true(e->gots > back && back < RIG_GOT);
	return &e->got[(e->gots - 1 - back) % RIG_GOT];
}

uint32_t audio_rig_listen(
	struct audio_rig *r, uint32_t end, uint64_t from, int16_t *pcm, uint32_t cap)
{
	struct audio_rig_end *e = &r->end[end];
	uint32_t n = 0;

	assert_true(e->gots - from < RIG_GOT);
	for (; from < e->gots; from++) {
		const struct audio_packet *p = &e->got[from % RIG_GOT];
		int got;

		if ((p->bytes[1] & 0x7f) != e->type)
			continue;
		got = codec_stream_decode(e->coder, p->bytes + RTP_FIXED_LEN,
			p->len - RTP_FIXED_LEN, pcm + n, cap - n);
		assert_true(got >= 0);
		n += (uint32_t)got;
	}
	return n;
}

double audio_rig_snr(const int16_t *pcm, uint32_t n, uint32_t rate, double hertz)
{
	double s = 0, c = 0, all = 0, tone;

	for (uint32_t i = 0; i < n; i++) {
		double w = 2 * M_PI * hertz * i / rate;

		s += pcm[i] * sin(w);
		c += pcm[i] * cos(w);
		all += (double)pcm[i] * pcm[i];
	}
	tone = 2 * (s * s + c * c) / n;
	return 10 * log10(tone / (all - tone > 1 ? all - tone : 1));
}
