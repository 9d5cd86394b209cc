/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Floods at a worker: forged SRTP, ClientHellos of strangers, and forged Hellos of ZRTP. The worker
 * has the daemon's code and the serial engine; receiving and sending are left out, which all floods
 * need alike. A ClientHello goes through the side channel to the gate, and a HelloVerifyRequest
 * comes back; a Hello goes to the exchange, and a HelloACK comes back. One thread does the work of
 * both, and their wake-ups are left out. */
#include "bench_flood.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "batch/engine.h"
#include "bench.h"
#include "keying/dtls_gate.h"
#include "keying/zrtp.h"
#include "keying/zrtp_wire.h"
#include "media/state.h"
#include "packet/side.h"

enum { ROUNDS = 21, BURSTS = 512, BURST = SIDE_SHARE_STRANGER, PACKET = 172, KEY = 2 };
enum { SRTP, DTLS, ZRTP, TO, STREAMS };
enum { HELLOS = 256, H3 = 32 };

struct zrtp_hellos { /* each has another H3, and a right checksum */
	/* Without an announced hash; with one; and after the Hello with that hash has arrived. */
	struct zrtp *of[3];
	uint8_t p[HELLOS][ZRTP_PACKET_MAX];
	uint32_t len, next;
};

struct flood {
	struct media *m;
	struct arena a;
	struct packet_in in[BURST];
	struct packet_out out[BURST];
	struct engine *engine;
	struct engine_queue *queue;
	struct side_channel channel;
	struct dtls_gate *gate;
	struct side_packet packet;
	const uint8_t *hello;
	uint32_t hello_len, sources, replies, acks;
	struct zrtp_hellos zrtp;
	uint32_t exchange; /* place in zrtp.of */
};

static bool set_stream(struct flood *f, uint32_t id, uint32_t ctx, uint32_t to, uint8_t side)
{
	struct media_cmd c = {.type = MEDIA_STREAM_SET, .id = id, .now_ns = 1};

	c.stream = (struct media_stream_cfg){.local = {.port = (uint16_t)(30000 + id)},
		.ctx = ctx,
		.rtp_to = to,
		.rtcp_to = MEDIA_NONE,
		.rtp = true,
		.strict_source = true,
		.side = side,
		.side_serial = side};
	c.stream.remote =
		(struct endpoint){.family = AF_INET, .port = 4000, .addr = {192, 0, 2, 1}};
	return media_command(f->m, &c) == 0;
}

static bool set_ctx(struct flood *f, uint32_t id, bool srtp, bool awaited)
{
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = id};

	if (srtp) {
		c.ctx.rx.suite = SUITE_AES_CM_128_80;
		c.ctx.rx.keys = 1;
		c.ctx.rx.key[0].slot = KEY;
	}
	c.ctx.rx.awaited = c.ctx.tx.awaited = awaited;
	c.ctx.rx_new = c.ctx.tx_new = true;
	return media_command(f->m, &c) == 0;
}

/* The Hello of another exchange with this configuration. Returns its length. */
static int hello_of(uint8_t p[ZRTP_PACKET_MAX], const struct zrtp_config *c)
{
	struct zrtp *sender = NULL;
	int n = 0;

	if (zrtp_create(&sender, c) == 0) {
		zrtp_start(sender, 1);
		n = zrtp_next(sender, p, ZRTP_PACKET_MAX);
	}
	zrtp_destroy(sender);
	return n;
}

static bool start_zrtp(struct zrtp_hellos *z)
{
	struct zrtp_config c = {.ssrc = 1, .seed = {1}}, own = {.ssrc = 2};
	uint8_t p[ZRTP_PACKET_MAX];
	struct zrtp_msg m;
	int n = hello_of(p, &c);

	if (n <= 0 || zrtp_hello_hash(own.bound_hash, &c))
		return false;
	for (int i = 0; i < 3; i++) {
		own.bound = i > 0;
		if (zrtp_create(&z->of[i], &own))
			return false;
		zrtp_start(z->of[i], 1);
	}
	if (zrtp_take(z->of[2], p, (size_t)n, 1))
		return false;
	m.len = (uint16_t)((uint32_t)n - ZRTP_HEADER - ZRTP_CRC);
	memcpy(m.b, p + ZRTP_HEADER, m.len);
	for (uint32_t i = 0; i < HELLOS; i++) {
		put_be32(m.b + H3, i);
		z->len = zrtp_wrap(z->p[i], &m, (uint16_t)i, 9);
	}
	for (int i = 0; i < 3; i++)
		while (zrtp_next(z->of[i], p, sizeof(p)) > 0)
			continue;
	return true;
}

static bool start(struct flood *f)
{
	const struct srtp_master key = {.suite = SUITE_AES_CM_128_80, .key = {1}, .salt = {2}};
	const struct media_config cfg = {.max_ctx = STREAMS,
		.max_stream = STREAMS,
		.port_min = 30000,
		.port_max = 30000 + STREAMS,
		.local_addrs = 1,
		.burst_max = BURST,
		.key_slots = 4,
		.side = &f->channel};
	char err[128];

	return side_init(&f->channel) == 0 && dtls_gate_create(&f->gate, 1) == 0 &&
		media_create(&f->m, &cfg) == 0 && arena_create(&f->a, BURST, 4) == 0 &&
		srtp_key_fill(&f->a.key[KEY], &key) == 0 &&
		engine_serial.open(&f->engine, &(struct engine_config){0}, err, sizeof(err)) == 0 &&
		engine_serial.queue_create(&f->queue, f->engine, &f->a) == 0 &&
		engine_serial.key_changed(f->queue, KEY) == 0 && set_ctx(f, SRTP, true, false) &&
		set_ctx(f, DTLS, false, true) && set_ctx(f, ZRTP, false, true) &&
		set_ctx(f, TO, false, false) && start_zrtp(&f->zrtp) &&
		set_stream(f, TO, TO, SRTP, 0) && set_stream(f, SRTP, SRTP, TO, 0) &&
		set_stream(f, DTLS, DTLS, TO, SIDE_BIT(SIDE_DTLS)) &&
		set_stream(f, ZRTP, ZRTP, TO, SIDE_BIT(SIDE_ZRTP));
}

static void stop(struct flood *f)
{
	if (f->queue)
		engine_serial.queue_destroy(f->queue);
	if (f->engine)
		engine_serial.close(f->engine);
	media_destroy(f->m);
	arena_destroy(&f->a);
	dtls_gate_destroy(f->gate);
	for (int i = 0; i < 3; i++)
		zrtp_destroy(f->zrtp.of[i]);
	side_fini(&f->channel);
}

/* A burst at this stream, and what the worker does with it. */
static void burst(struct flood *f, uint32_t stream, const uint8_t *p, uint32_t len)
{
	uint32_t jobs;

	for (uint32_t i = 0; i < BURST; i++) {
		struct packet_in *in = &f->in[i];

		*in = (struct packet_in){.local = {.port = (uint16_t)(30000 + stream)},
			.src = {.family = AF_INET, .port = 4000, .addr = {192, 0, 2, 1}},
			.slot = i,
			.in_off = i * ARENA_SLOT_LEN + ARENA_HEADROOM,
			.len = len,
			.t_ns = 1000};
		if (stream == DTLS)
			put_be32(in->src.addr, 0x0a000000 + ++f->sources % 0xffffff);
		if (stream == ZRTP)
			p = f->zrtp.p[f->zrtp.next++ % HELLOS];
		memcpy(f->a.in + in->in_off, p, len);
	}
	jobs = media_prepare(f->m, &f->a, f->in, BURST, f->a.job);
	if (jobs)
		(void)engine_serial.run(f->queue,
			&(struct batch){.job = f->a.job, .status = f->a.status, .n = jobs});
	(void)media_complete(f->m, &f->a, f->in,
		&(struct batch){.job = f->a.job, .status = f->a.status, .n = jobs}, f->out);
}

static void forged(struct flood *f)
{
	uint8_t p[PACKET + 10] = {0x80, 0, 1, 2};

	burst(f, SRTP, p, sizeof(p));
}

/* The keying thread's part, and the worker's part of the answers. */
static void answer(struct flood *f)
{
	struct side_packet *p = &f->packet;
	struct dtls_gate_reply reply;
	uint32_t n = 0;

	while (side_read(&f->channel, p)) {
		if (dtls_gate_take(f->gate, &p->peer, p->bytes, p->len, 1, &reply) !=
			DTLS_GATE_REPLY)
			continue;
		memcpy(p->bytes, reply.p, reply.len);
		p->len = (uint16_t)reply.len;
		(void)side_give(&f->channel, p);
	}
	while (n < BURST && side_next(&f->channel, p)) {
		enum media_side_result r = media_side_out(f->m, &f->a, n, p, &f->out[n]);

		n += r == MEDIA_SIDE_SENDS;
	}
	f->replies += n;
}

/* Likewise, of an exchange of ZRTP. */
static void answer_zrtp(struct flood *f)
{
	struct zrtp *z = f->zrtp.of[f->exchange];
	struct side_packet *p = &f->packet;
	uint32_t n = 0;
	int len;

	while (side_read(&f->channel, p)) {
		(void)zrtp_take(z, p->bytes, p->len, 1);
		while ((len = zrtp_next(z, p->bytes, sizeof(p->bytes))) > 0) {
			p->len = (uint16_t)len;
			(void)side_give(&f->channel, p);
		}
	}
	while (n < BURST && side_next(&f->channel, p))
		n += media_side_out(f->m, &f->a, n, p, &f->out[n]) == MEDIA_SIDE_SENDS;
	f->acks += n;
}

static void zrtp_burst(struct flood *f, uint32_t exchange)
{
	f->exchange = exchange;
	burst(f, ZRTP, NULL, f->zrtp.len);
	answer_zrtp(f);
}

static void zrtp_hellos(struct flood *f)
{
	zrtp_burst(f, 0);
}

static void zrtp_wrong_hellos(struct flood *f)
{
	zrtp_burst(f, 1);
}

static void zrtp_late_hellos(struct flood *f)
{
	zrtp_burst(f, 2);
}

static void hellos(struct flood *f)
{
	burst(f, DTLS, f->hello, f->hello_len);
	answer(f);
}

/* The stream's share of the side channel is used up, as in a flood. */
static void refused(struct flood *f)
{
	burst(f, DTLS, f->hello, f->hello_len);
}

static double processor_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

bool bench_flood(const uint8_t *hello, uint32_t len)
{
	static void (*const what[])(struct flood *) = {
		forged, hellos, refused, zrtp_hellos, zrtp_wrong_hellos, zrtp_late_hellos};
	static const char *const name[] = {"forged SRTP, 172 bytes, AES_CM_128_HMAC_SHA1_80",
		"ClientHello of a stranger, answered by a cookie",
		"ClientHello beyond the stream's share, dropped",
		"Hello of ZRTP from the terminal's address, answered",
		"Hello of ZRTP with another hash than announced",
		"the same, after the announced one has arrived"};
	static struct flood f;
	double ns[ARRAY_LEN(what)][ROUNDS];
	bool ok;

	f.hello = hello;
	f.hello_len = len;
	ok = start(&f);
	for (uint32_t r = 0; ok && r < ROUNDS; r++)
		for (size_t k = 0; k < ARRAY_LEN(what); k++) {
			double t0 = processor_ns();

			for (uint32_t i = 0; i < BURSTS; i++)
				what[k](&f);
			ns[k][r] = (processor_ns() - t0) / (BURSTS * BURST);
			answer(&f); /* leaves the ring empty */
		}
	for (size_t k = 0; ok && k < ARRAY_LEN(what); k++) {
		struct quartiles q = bench_quartiles(ns[k], ROUNDS);

		printf("%-52s %5.0f ns (%.0f to %.0f)\n", name[k], q.median, q.low, q.high);
	}
	ok = ok && f.replies >= ROUNDS * BURSTS * BURST && f.acks == ROUNDS * BURSTS * BURST &&
		media_drop_count(f.m, PACKET_DROP_BAD_TAG) == ROUNDS * BURSTS * BURST;
	stop(&f);
	return ok;
}
