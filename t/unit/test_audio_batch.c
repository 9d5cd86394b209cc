/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions whose packets are decoded and encoded together send, byte for byte, what they send
 * without that: random calls with loss, other orders, events, new settings and ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audio/ahead.h"
#include "audio/tx_batch.h"
#include "base/bytes.h"
#include "proto/rtp.h"

enum { CALLS = 24, LEGS = 2 * CALLS, ROUNDS = 400, EVENTS = 101, ROUND_NS = 10000000 };

struct leg {
	struct audio_session *s;
	struct audio_cfg cfg;
	uint32_t ssrc, ts;
	uint16_t seq;
	uint64_t sum;  /* of all that it got */
	uint16_t last; /* sequence number that it got */
	uint32_t got, reports;
};

struct world {
	struct audio_env env;
	struct codec_registry *codecs;
	struct audio_tx_batch batch;
	struct audio_ahead ahead;
	struct leg leg[LEGS];
	struct audio_packet out;
	struct audio_packet in[AHEAD_MOST];
	uint32_t from[AHEAD_MOST], n; /* in */
	uint32_t random, foreseen, counted;
	uint64_t now_ns;
	uint32_t full; /* percent of the rounds in which the ring to the worker is full */
	bool is_full;
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->random = w->random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)w->random * below >> 32);
}

static struct audio_packet *place(void *arg, uint32_t id, bool rtcp)
{
	struct world *w = arg;

	(void)id, (void)rtcp;
	memset(&w->out, 0, sizeof(w->out));
	return w->is_full ? NULL : &w->out;
}

static void placed(void *arg, uint32_t id)
{
	struct world *w = arg;
	struct leg *l = &w->leg[id];

	for (uint32_t i = 0; i < w->out.len; i++)
		l->sum = (l->sum ^ w->out.bytes[i]) * 0x100000001b3u;
	l->sum = (l->sum ^ w->out.t_ns) * 0x100000001b3u;
	if (!w->out.rtcp) {
		assert_true(!l->got || be16(w->out.bytes + 2) == (uint16_t)(l->last + 1));
		l->last = be16(w->out.bytes + 2);
		l->got++;
	}
	l->reports += w->out.rtcp;
}

static void counted(void *arg, uint32_t id)
{
	(void)id;
	((struct world *)arg)->counted++;
}

/* --- Settings --------------------------------------------------------------------------------- */

/* Legs with an odd number speak G.722, of which one in four as PCM of 16 kHz, which has no
 * batches. */
static struct audio_type codec_of(const struct world *w, uint32_t leg)
{
	const struct codec_entry *e =
		codec_registry_find(w->codecs, leg % 2 ? "G722" : "PCMU", 8000, 1);
	struct audio_type t = {.type = leg % 2 ? 9 : 0, .kind = AUDIO_CODEC, .clock = 8000};

	assert_non_null(e);
	if (leg % 8 != 7)
		e = codec_registry_variant(w->codecs, e, 8000);
	t.entry = (uint16_t)(e - w->codecs->entry);
	return t;
}

static void set(struct world *w, uint32_t leg)
{
	struct leg *l = &w->leg[leg];
	const struct audio_cfg *before = audio_session_cfg(l->s);
	struct audio_order *o;

	assert_int_equal(
		audio_order_create(&o, w->codecs, &l->cfg, before->ssrc ? before : NULL), 0);
	audio_session_set(l->s, o, w->now_ns);
}

static void begin(struct world *w, uint32_t leg)
{
	struct leg *l = &w->leg[leg];

	l->cfg = (struct audio_cfg){.types = 2,
		.type = {codec_of(w, leg), {.type = EVENTS, .kind = AUDIO_EVENTS, .clock = 8000}},
		.cn = {.type = AUDIO_NO_TYPE},
		.to = leg ^ 1,
		.ssrc = 1 + draw(w, 1u << 30),
		.index = 60000 + leg,
		.cname = "batch"};
	l->cfg.codec = l->cfg.type[0];
	l->cfg.events = l->cfg.type[1];
	l->s = audio_session_alloc();
	assert_non_null(l->s);
	audio_session_init(l->s, &w->env, leg, 7 + leg, w->now_ns);
	l->ssrc = draw(w, UINT32_MAX);
	l->seq = (uint16_t)draw(w, 65536);
	l->last = (uint16_t)(l->cfg.index - 1);
	set(w, leg);
}

/* Something happens to a leg. Packets of it may wait in the batch. */
static void change(struct world *w, uint32_t leg)
{
	struct leg *l = &w->leg[leg];

	switch (draw(w, 6)) {
	case 0:
		l->cfg.ptime = draw(w, 2) ? 20 : 40;
		set(w, leg);
		break;
	case 1:
		l->cfg.gate = (uint8_t)(draw(w, 2) ? AUDIO_GATE_QUIET : draw(w, 2));
		set(w, leg);
		break;
	case 2:
		l->cfg.ssrc++;
		set(w, leg);
		l->last = (uint16_t)(l->cfg.index - 1);
		break;
	case 3:
		l->ssrc++;
		break;
	case 4:
		audio_session_bye(l->s, w->now_ns);
		audio_session_free(l->s);
		begin(w, leg);
		break;
	default:
		l->seq += (uint16_t)draw(w, 5000);
	}
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void say(struct world *w, uint32_t leg)
{
	struct leg *l = &w->leg[leg];
	struct audio_packet *p = &w->in[w->n];
	bool event = draw(w, 50) == 0;
	uint32_t len = event ? 4 : 160;

	l->seq++;
	l->ts += 160;
	if (draw(w, 30) == 0 || w->n == AHEAD_MOST) /* lost */
		return;
	*p = (struct audio_packet){.len = (uint16_t)(RTP_FIXED_LEN + len)};
	p->bytes[0] = 0x80;
	p->bytes[1] = event ? EVENTS : l->cfg.codec.type;
	put_be16(p->bytes + 2, l->seq);
	put_be32(p->bytes + 4, l->ts);
	put_be32(p->bytes + 8, l->ssrc);
	for (uint32_t i = 0; i < len; i++)
		p->bytes[RTP_FIXED_LEN + i] = (uint8_t)draw(w, 256);
	if (event)
		p->bytes[RTP_FIXED_LEN] = 5;
	w->from[w->n++] = leg;
}

static void swap(struct world *w)
{
	uint32_t a = draw(w, w->n), b = draw(w, w->n), from = w->from[a];
	struct audio_packet p = w->in[a];

	w->in[a] = w->in[b];
	w->from[a] = w->from[b];
	w->in[b] = p;
	w->from[b] = from;
}

static struct audio_session *other(const struct world *w, uint32_t leg)
{
	return w->leg[leg ^ 1].s;
}

/* As a codec thread does. */
static void round_of(struct world *w)
{
	for (uint32_t i = 0; w->env.batch && i < w->n; i++)
		audio_ahead_add(&w->ahead, w->leg[w->from[i]].s, other(w, w->from[i]), &w->in[i]);
	audio_ahead_run(&w->ahead);
	w->foreseen += w->ahead.n;
	for (uint32_t i = 0; i < w->n; i++) {
		audio_session_take(
			w->leg[w->from[i]].s, other(w, w->from[i]), &w->in[i], w->now_ns);
		audio_ahead_taken(&w->ahead, &w->in[i]);
		memset(&w->in[i], 0xee, sizeof(w->in[i]));
	}
	audio_ahead_end(&w->ahead);
	for (uint32_t i = 0; i < LEGS; i++)
		if (audio_session_deadline(w->leg[i].s) <= w->now_ns)
			audio_session_tick(w->leg[i].s, other(w, i), w->now_ns);
	if (draw(w, 4) == 0)
		change(w, draw(w, LEGS));
	audio_tx_run(&w->env);
}

static struct world *run(const struct g722_device_ops *device, bool batch, uint32_t full)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(codec_registry_create(&w->codecs), 0);
	w->now_ns = 1000000000;
	w->full = full;
	w->env = (struct audio_env){.codecs = w->codecs,
		.place = place,
		.placed = placed,
		.counted = counted,
		.arg = w,
		.batch = batch ? &w->batch : NULL,
		.g722 = device};
	for (uint32_t i = 0; i < LEGS; i++)
		begin(w, i);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		w->now_ns += ROUND_NS;
		w->n = 0;
		w->is_full = w->full && draw(w, 100) < w->full;
		for (uint32_t i = 0; i < LEGS; i++)
			if (i / 2 % 2 == round % 2)
				say(w, i);
		for (uint32_t i = 0; i < LEGS && draw(w, 4) == 0; i++)
			say(w, i); /* a second packet of the same leg */
		if (w->n && draw(w, 3) == 0)
			swap(w);
		round_of(w);
	}
	return w;
}

static void end(struct world *w)
{
	for (uint32_t i = 0; i < LEGS; i++)
		audio_session_free(w->leg[i].s);
	codec_registry_destroy(w->codecs);
	free(w);
}

static void batches_change_nothing(void **state)
{
	struct world *one = run(NULL, false, 0), *many = run(NULL, true, 0);
	uint32_t got = 0;

	(void)state;
	for (uint32_t i = 0; i < LEGS; i++) {
		const struct audio_stats *a = audio_session_stats(one->leg[i].s),
					 *b = audio_session_stats(many->leg[i].s);

		assert_int_equal(one->leg[i].got, many->leg[i].got);
		assert_int_equal(one->leg[i].reports, many->leg[i].reports);
		assert_true(one->leg[i].sum == many->leg[i].sum);
		assert_int_equal(a->decoded, b->decoded);
		assert_int_equal(a->sent, b->sent);
		assert_int_equal(a->broken, b->broken);
		got += many->leg[i].got;
	}
	/* The paths were taken. */
	print_message("%u packets, %u of %u decoded ahead, %u encoded together\n", got,
		many->foreseen, got / 2, many->counted);
	assert_true(got > LEGS * ROUNDS / 4);
	assert_true(many->foreseen > got / 5);
	assert_true(many->counted > got / 5);
	assert_int_equal(one->foreseen + one->counted, 0);
	end(one);
	end(many);
}

/* A device that fails every fifth time. */
struct device {
	uint32_t encoded, decoded, failed;
};

static bool device_fails(struct device *d)
{
	bool fails = (d->encoded + d->decoded + d->failed) % 5 == 4;

	d->failed += fails;
	return fails;
}

static int device_encode(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	struct device *d = device;

	if (device_fails(d))
		return -EIO;
	for (uint32_t i = 0; i < lanes; i++)
		g722_encode_low(
			lane[i].g, (const int16_t *)(const void *)lane[i].in, n, lane[i].out);
	d->encoded++;
	return 0;
}

static int device_decode(void *device, const struct g722_lane *lane, uint32_t lanes, size_t n)
{
	struct device *d = device;

	if (device_fails(d))
		return -EIO;
	for (uint32_t i = 0; i < lanes; i++)
		g722_decode_low(lane[i].g, lane[i].in, n, (int16_t *)(void *)lane[i].out);
	d->decoded++;
	return 0;
}

static void a_device_changes_nothing(void **state)
{
	struct device d = {0};
	const struct g722_device_ops helper = {.device = &d,
		.least_encode = 2,
		.least_decode = 2,
		.encode = device_encode,
		.decode = device_decode};
	struct world *one = run(NULL, false, 0), *many = run(&helper, true, 0);

	(void)state;
	for (uint32_t i = 0; i < LEGS; i++) {
		assert_int_equal(one->leg[i].got, many->leg[i].got);
		assert_true(one->leg[i].sum == many->leg[i].sum);
	}
	print_message("%u batches encoded on it, %u decoded, %u failed\n", d.encoded, d.decoded,
		d.failed);
	assert_true(d.encoded > 10);
	assert_true(d.decoded > 10);
	assert_true(d.failed > 10);
	end(one);
	end(many);
}

/* placed() checks the sequence numbers. */
static void a_full_ring_uses_no_sequence_number(void **state)
{
	struct world *w = run(NULL, true, 30);
	uint64_t unsent = 0;

	(void)state;
	for (uint32_t i = 0; i < LEGS; i++)
		unsent += audio_session_stats(w->leg[i].s)->unsent;
	assert_true(unsent > LEGS);
	end(w);
}

/* Jobs of a batch have a state each, so of two equal packets one is decoded ahead. */
static void a_doubled_packet_is_decoded_ahead_once(void **state)
{
	struct world *w = run(NULL, true, 0);
	uint32_t leg = 0;

	(void)state;
	for (; leg < LEGS && !w->ahead.n; leg++) {
		w->n = 0;
		say(w, leg);
		if (w->n)
			audio_ahead_add(&w->ahead, w->leg[leg].s, other(w, leg), &w->in[0]);
	}
	assert_int_equal(w->ahead.n, 1);
	w->in[1] = w->in[0];
	audio_ahead_add(&w->ahead, w->leg[leg - 1].s, other(w, leg - 1), &w->in[1]);
	assert_int_equal(w->ahead.n, 1);
	audio_ahead_end(&w->ahead);
	end(w);
}

static int decode_pair(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	(void)dec, (void)in;
	memset(pcm, 0, 2 * len * sizeof(*pcm));
	return len <= cap ? (int)len : -ENOSPC;
}

static void decode_pairs(struct xcipher_codec_job *job, size_t n)
{
	for (size_t i = 0; i < n; i++)
		job[i].result = decode_pair(job[i].state, job[i].in, job[i].in_len,
			(int16_t *)(void *)job[i].out, job[i].out_cap);
}

/* A place for samples that were decoded ahead has room for one channel of a packet. */
static void stereo_is_not_decoded_ahead(void **state)
{
	struct xcipher_codec codec = {.size = sizeof(codec),
		.flags = XCIPHER_CODEC_PLAIN_STATE,
		.dec_size = 1,
		.align = 1,
		.decode = decode_pair,
		.decode_batch = decode_pairs};
	struct codec_entry e = {.codec = &codec, .about = {.can = CODEC_DECODES, .rate = 8000}};
	const struct codec_stream_cfg cfg = {.can = CODEC_DECODES};
	struct codec_stream *s;

	(void)state;
	for (uint32_t channels = 1; channels <= 2; channels++) {
		e.about.channels = codec.channels = (uint8_t)channels;
		assert_int_equal(codec_stream_open(&s, &e, &cfg), 0);
		assert_int_equal(codec_stream_foresees(s), channels == 1);
		codec_stream_close(s);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_change_nothing),
		cmocka_unit_test(a_device_changes_nothing),
		cmocka_unit_test(a_full_ring_uses_no_sequence_number),
		cmocka_unit_test(a_doubled_packet_is_decoded_ahead_once),
		cmocka_unit_test(stereo_is_not_decoded_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
