/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Audio sessions of calls by a given clock: random packets, settings, clips, digits, pauses, ends.
 * The first two have random settings. The others speak codecs that have batches: packets are
 * decoded ahead and encoded together, and sessions change or end while packets wait. Under one SSRC
 * no sequence number is sent twice, nothing is sent before a terminal spoke or something was
 * played, and no deadline stays in the past.
 *
 * Input: steps, each a byte that says what to do and of which session, then its bytes. */
#include <stdlib.h>
#include <string.h>

#include "audio/ahead.h"
#include "audio/clip.h"
#include "audio/player.h"
#include "audio/session.h"
#include "audio/source.h"
#include "audio/tx_batch.h"
#include "base/bytes.h"
#include "codec/registry.h"
#include "proto/rtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { STEPS = 64, PER_STEP = 400, TICKS = 16, LEGS = 8, BURST = 24, CODEC = 2 /* a type */ };
/* Bits of a step's first byte. */
enum { RENEWS = 0x20, LEAVES_BATCH = 0x40 };
#define MS 1000000ull

struct input {
	const uint8_t *at, *end;
};

struct rig {
	struct audio_env env;
	struct audio_tx_batch batch;
	struct audio_ahead ahead;
	struct audio_session *s[LEGS];
	struct audio_packet out[LEGS], burst[BURST];
	bool spoke;
	uint32_t ssrc[LEGS], sent; /* sent: packets of this step */
	uint32_t ssrcs;            /* drawn so far */
	uint16_t next[LEGS];
	bool begun[LEGS];
	uint16_t seq[LEGS];
	uint32_t ts[LEGS];
	uint64_t now_ns;
};

static unsigned byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static uint32_t word(struct input *in)
{
	return byte(in) | byte(in) << 8 | byte(in) << 16 | (uint32_t)byte(in) << 24;
}

static struct audio_packet *place(void *arg, uint32_t id, bool rtcp)
{
	struct rig *r = arg;

	(void)rtcp;
	return r->now_ns % 97 == 0 ? NULL : &r->out[id]; /* sometimes there is no room */
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void placed(void *arg, uint32_t id)
{
	struct rig *r = arg;
	const struct audio_packet *p = &r->out[id];
	const struct audio_cfg *cfg = audio_session_cfg(r->s[id]);

	must(p->len <= AUDIO_PACKET_MAX && p->len >= 8);
	must(++r->sent < PER_STEP);
	must(r->spoke);
	if (p->rtcp)
		return;
	must(be32(p->bytes + 8) == cfg->ssrc);
	must(!r->begun[id] || r->ssrc[id] != cfg->ssrc || be16(p->bytes + 2) == r->next[id]);
	r->begun[id] = true;
	r->ssrc[id] = cfg->ssrc;
	r->next[id] = (uint16_t)(be16(p->bytes + 2) + 1);
}

/* --- Settings --------------------------------------------------------------------------------- */

static struct audio_type type_of(struct input *in, const struct codec_registry *codecs)
{
	struct audio_type t = {.type = (uint8_t)(byte(in) % 4),
		.kind = (uint8_t)(byte(in) % 3),
		.entry = (uint16_t)(byte(in) % codecs->entries)};
	static const uint32_t clock[] = {8000, 16000, 48000, 1, 1000000, 44100};

	t.clock = t.kind == AUDIO_CODEC ? codecs->entry[t.entry].about.clock
					: clock[byte(in) % ARRAY_LEN(clock)];
	return t;
}

static void settings(struct rig *r, struct input *in, uint32_t id)
{
	const struct codec_registry *codecs = r->env.codecs;
	const struct audio_cfg *before = audio_session_cfg(r->s[id]);
	struct audio_cfg cfg = {.types = byte(in) % (AUDIO_TYPES + 1),
		.codec = {.type = AUDIO_NO_TYPE},
		.events = {.type = AUDIO_NO_TYPE},
		.cn = {.type = AUDIO_NO_TYPE},
		.ptime = (uint8_t)(byte(in) % 121),
		.to = id ^ 1,
		.ssrc = before->ssrc,
		.index = word(in),
		.gate = (uint8_t)(byte(in) % 16),
		.cover = {.mode = (uint8_t)(byte(in) % AUDIO_COVER_MODES),
			.digit = (uint8_t)(byte(in) % 16),
			.volume = (uint8_t)(byte(in) % 64),
			.listen = byte(in) & 1,
			.hz = 440},
		.cname = "f"};
	unsigned new_ssrc = byte(in) & 1, which = byte(in);
	struct audio_order *o;

	/* The relay draws a new SSRC at random, so an old one does not return. */
	if (new_ssrc || !before->ssrc)
		cfg.ssrc = ++r->ssrcs;
	for (uint32_t i = 0; i < cfg.types; i++)
		cfg.type[i] = type_of(in, codecs);
	if (which & 1) {
		cfg.codec = type_of(in, codecs);
		cfg.codec.kind = AUDIO_CODEC;
		cfg.codec.clock = codecs->entry[cfg.codec.entry].about.clock;
		cfg.events = (struct audio_type){
			.type = 101, .kind = AUDIO_EVENTS, .clock = cfg.codec.clock};
		cfg.cn =
			(struct audio_type){.type = 13, .kind = AUDIO_CN, .clock = cfg.codec.clock};
	}
	if (!(which & 2))
		cfg.events = (struct audio_type){.type = AUDIO_NO_TYPE};
	if (!(which & 4))
		cfg.cn = (struct audio_type){.type = AUDIO_NO_TYPE};
	if (!audio_order_create(&o, codecs, &cfg, before->ssrc ? before : NULL))
		audio_session_set(r->s[id], o, r->now_ns);
}

/* One leg of a call has G.722 as PCM of 8 kHz, the other PCMU. */
static void fixed(struct rig *r, uint32_t id)
{
	const struct codec_registry *codecs = r->env.codecs;
	const struct codec_entry *e =
		codec_registry_find(codecs, id % 2 ? "G722" : "PCMU", 8000, 1);
	struct audio_cfg cfg = {.types = 1,
		.events = {.type = AUDIO_NO_TYPE},
		.cn = {.type = AUDIO_NO_TYPE},
		.to = id ^ 1,
		.ssrc = ++r->ssrcs,
		.cname = "f"};
	struct audio_order *o;

	e = codec_registry_variant(codecs, e, 8000);
	cfg.type[0] = cfg.codec = (struct audio_type){.type = CODEC,
		.kind = AUDIO_CODEC,
		.clock = 8000,
		.entry = (uint16_t)(e - codecs->entry)};
	if (!audio_order_create(&o, codecs, &cfg, NULL))
		audio_session_set(r->s[id], o, r->now_ns);
}

static void begin(struct rig *r, struct input *in, uint32_t id)
{
	r->s[id] = audio_session_alloc();
	must(r->s[id]);
	audio_session_init(r->s[id], &r->env, id, 1, r->now_ns);
	if (id < 2)
		settings(r, in, id);
	else
		fixed(r, id);
}

/* Another session takes the place of this one, of which a packet may wait. */
static void renew(struct rig *r, struct input *in, uint32_t id)
{
	if (byte(in) & 1)
		audio_session_bye(r->s[id], r->now_ns);
	audio_session_free(r->s[id]);
	r->begun[id] = false;
	begin(r, in, id);
}

/* --- Packets ---------------------------------------------------------------------------------- */

static struct audio_packet packet_of(struct rig *r, struct input *in, uint32_t id)
{
	struct audio_packet p = {.t_ns = r->now_ns + r->env.real_ahead_ns};
	unsigned how = byte(in);
	uint32_t n = byte(in) << (how >> 6);
	uint32_t len = RTP_FIXED_LEN + (n < 1400 ? n : 1400);

	p.rtcp = (how & 15) == 15;
	r->seq[id] = (uint16_t)(how & 16 ? word(in) : r->seq[id] + 1u);
	r->ts[id] = how & 32 ? word(in) : r->ts[id] + 160;
	p.bytes[0] = (uint8_t)(0x80 | (how & 8 ? byte(in) & 0x3f : 0));
	p.bytes[1] = (uint8_t)byte(in);
	put_be16(p.bytes + 2, p.rtcp ? (uint16_t)(len / 4 - 1) : r->seq[id]);
	put_be32(p.bytes + 4, p.rtcp ? 5 : r->ts[id]);
	put_be32(p.bytes + 8, how & 4 ? word(in) : 5);
	for (uint32_t i = RTP_FIXED_LEN; i < len; i++)
		p.bytes[i] = (uint8_t)byte(in);
	p.len = (uint16_t)(p.rtcp ? len / 4 * 4 : len);
	r->spoke = true;
	return p;
}

static void packet(struct rig *r, struct input *in, uint32_t id)
{
	struct audio_packet p = packet_of(r, in, id);

	audio_session_take(r->s[id], r->s[id ^ 1], &p, r->now_ns);
}

/* A packet in order, whose length is that of most others. */
static struct audio_packet usual(struct rig *r, struct input *in, uint32_t id)
{
	struct audio_packet p = {
		.t_ns = r->now_ns + r->env.real_ahead_ns, .len = RTP_FIXED_LEN + 160};

	p.bytes[0] = 0x80;
	p.bytes[1] = CODEC;
	put_be16(p.bytes + 2, ++r->seq[id]);
	put_be32(p.bytes + 4, r->ts[id] += 160);
	put_be32(p.bytes + 8, 5);
	memset(p.bytes + RTP_FIXED_LEN, (int)byte(in), 160);
	r->spoke = true;
	return p;
}

/* As a codec thread does it in one round. */
static void burst(struct rig *r, struct input *in)
{
	uint32_t id[BURST], n = 1 + byte(in) % BURST;

	for (uint32_t i = 0; i < n; i++) {
		unsigned how = byte(in);

		id[i] = how % LEGS;
		r->burst[i] = how & 64 ? packet_of(r, in, id[i]) : usual(r, in, id[i]);
		if (how & 128) /* the next one of this leg has the same number */
			r->seq[id[i]]--;
		audio_ahead_add(&r->ahead, r->s[id[i]], r->s[id[i] ^ 1], &r->burst[i]);
	}
	audio_ahead_run(&r->ahead);
	for (uint32_t i = 0; i < n; i++) {
		r->sent = 0;
		audio_session_take(r->s[id[i]], r->s[id[i] ^ 1], &r->burst[i], r->now_ns);
		audio_ahead_taken(&r->ahead, &r->burst[i]);
		memset(&r->burst[i], 0xee, sizeof(r->burst[i]));
	}
	audio_ahead_end(&r->ahead);
}

static void play(struct rig *r, struct input *in, uint32_t id)
{
	static const uint32_t rates[] = {4000, 8000, 11025, 48000, 192000};
	struct audio_clip *c = audio_clip_create(rates[byte(in) % ARRAY_LEN(rates)], 1 + byte(in));
	struct audio_play p = {.clip = c,
		.start = byte(in),
		.repeat = byte(in) & 1 ? UINT32_MAX : byte(in),
		.limit_ms = byte(in),
		.mix = byte(in) & 1,
		.id = byte(in) % 4};

	memset(c->pcm, 0x11, c->samples * sizeof(c->pcm[0]));
	r->spoke = true;
	if (audio_session_play(r->s[id], &p, r->now_ns))
		audio_clip_unref(c);
}

static void digits(struct rig *r, struct input *in, uint32_t id)
{
	struct audio_digit d[3];

	for (uint32_t i = 0; i < 3; i++)
		d[i] = (struct audio_digit){.event = (uint8_t)(byte(in) % 17),
			.volume = (uint8_t)(byte(in) % 64),
			.ms = (uint16_t)word(in),
			.pause_ms = (uint16_t)word(in)};
	r->spoke = true;
	(void)audio_session_digits(r->s[id], d, 1 + byte(in) % 3, r->now_ns);
}

/* Advances the clock to the next deadline, or by some time. */
static void pass_time(struct rig *r, struct input *in)
{
	uint64_t until = r->now_ns + (uint64_t)byte(in) * MS * (byte(in) & 1 ? 1 : 50);

	r->now_ns = until;
	for (uint32_t id = 0; id < LEGS; id++) {
		struct audio_ended ended;
		uint32_t n = 0;

		while (audio_session_deadline(r->s[id]) <= r->now_ns && n++ < TICKS)
			audio_session_tick(r->s[id], r->s[id ^ 1], r->now_ns);
		audio_session_ended(r->s[id], &ended);
		/* Comfort noise catches up to one second, 20 ms at a time. */
		for (n = 0; audio_session_deadline(r->s[id]) <= r->now_ns; n++) {
			must(n < 64);
			audio_session_tick(r->s[id], r->s[id ^ 1], r->now_ns);
		}
	}
}

static void step(struct rig *r, struct input *in)
{
	unsigned what = byte(in);
	uint32_t id = what >> 7;

	r->sent = 0;
	switch (what % 8) {
	case 0:
		settings(r, in, id);
		break;
	case 1:
		play(r, in, id);
		break;
	case 2:
		digits(r, in, id);
		break;
	case 3:
		audio_session_stop(r->s[id], byte(in) % 4);
		break;
	case 4:
		pass_time(r, in);
		break;
	case 6:
		burst(r, in);
		break;
	default:
		if (what & RENEWS)
			renew(r, in, byte(in) % LEGS);
		else
			packet(r, in, id);
	}
	if (!(what & LEAVES_BATCH))
		audio_tx_run(&r->env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct codec_registry *codecs;
	static struct rig r;
	struct input in = {data, data + len};

	if (!codecs && codec_registry_create(&codecs))
		return 0;
	memset(&r, 0, sizeof(r));
	r.env = (struct audio_env){.codecs = codecs,
		.place = place,
		.placed = placed,
		.batch = &r.batch,
		.arg = &r,
		.real_ahead_ns = 1700000000000000000ull};
	r.now_ns = 1000 * MS;
	for (uint32_t id = 0; id < LEGS; id++)
		begin(&r, &in, id);
	for (uint32_t i = 0; i < STEPS && in.at < in.end; i++)
		step(&r, &in);
	for (uint32_t id = 0; id < LEGS; id++)
		audio_session_free(r.s[id]);
	return 0;
}
