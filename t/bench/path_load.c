/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker, its calls and its packets for xcipher-bench path (path_load.h). All code is the
 * daemon's except the steering. Receiving copies packets into the arena, as a network card's DMA
 * would. Sending counts them; in a check it decrypts and compares every packet. */
#include "path_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "batch/engine.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/g711.h"
#include "srtp/kdf.h"
#include "srtp/preauth.h"
#include "srtp/ref.h"

#define SCATTER 7919u /* a prime, so that neighbours in a burst are far apart in every table */
#define HDR     12u

enum { SIDES = 2, KEYS_PER_SIDE = 2, SLOTS_PER_CALL = 2 * SIDES * KEYS_PER_SIDE };

/* --- Steering in memory ----------------------------------------------------------------------- */

struct steer { /* the interface's type for the whole state of the bench */
	struct path *p;
	struct steer_counters counters;
	int fd;
};

static void mem_destroy(struct steer *s)
{
	close(s->fd);
	free(s);
}

static int mem_create(struct steer **out, const struct steer_config *cfg, uint32_t worker,
	char *err, size_t err_len)
{
	struct steer *s = calloc(1, sizeof(*s));

	(void)cfg, (void)worker, (void)err, (void)err_len;
	if (!s)
		return -ENOMEM;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*out = s;
	return s->fd < 0 ? -errno : 0;
}

static int mem_fd(const struct steer *s)
{
	return s->fd;
}

static int mem_port_add(struct steer *s, struct local_port local, int fd)
{
	(void)s, (void)local, (void)fd;
	return 0;
}

static void mem_port_del(struct steer *s, struct local_port local)
{
	(void)s, (void)local;
}

static void feed(struct path *p, const struct arena *a, uint32_t slot, struct packet_in *in)
{
	*in = p->d[p->at];
	in->slot = slot;
	in->in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	memcpy(a->in + in->in_off, p->bytes + (size_t)p->at * p->stride, p->stride);
	p->at++;
}

static uint32_t mem_recv(
	struct steer *s, const struct arena *a, uint32_t first, struct packet_in *in, uint32_t max)
{
	uint32_t n = min_u32(max, s->p->fill - s->p->at);

	for (uint32_t i = 0; i < n; i++)
		feed(s->p, a, first + i, &in[i]);
	return n;
}

static void check_out(struct path *p, const struct arena *a, const struct packet_out *out);

static void mem_send(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	struct path *p = s->p;

	/* One batch at a time, so the jobs are still there, in order. */
	if (p->check && p->sent + n <= p->fill)
		memcpy(p->job + p->sent, a->job, n * sizeof(*p->job));
	for (uint32_t i = 0; i < n; i++) {
		out[i].failed = 0;
		if (p->check)
			check_out(p, a, &out[i]);
	}
	p->sent += n;
}

static void mem_verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	(void)s, (void)in, (void)n;
}

static const struct steer_counters *mem_counters(const struct steer *s)
{
	return &s->counters;
}

static const struct steer_ops steer_mem = {
	.name = "memory",
	.create = mem_create,
	.destroy = mem_destroy,
	.fd = mem_fd,
	.port_add = mem_port_add,
	.port_del = mem_port_del,
	.recv = mem_recv,
	.send = mem_send,
	.verdict = mem_verdict,
	.counters = mem_counters,
};

/* --- Packets ---------------------------------------------------------------------------------- */

static const struct srtp_suite *suite_of(const struct path *p, uint32_t stream)
{
	return stream % SIDES ? p->c.b : p->c.a;
}

/* Key slots; 0 on a side with plain RTP. */
static uint32_t slot_rx(const struct path *p, uint32_t stream)
{
	return suite_of(p, stream)->id ? 2 + stream * 2 * KEYS_PER_SIDE : 0;
}

static uint32_t slot_tx(const struct path *p, uint32_t stream)
{
	return suite_of(p, stream)->id ? slot_rx(p, stream) + 2 : 0;
}

/* Slots for the keys of SRTP+, after all others. */
static uint32_t preauth_rx(const struct path *p, uint32_t stream)
{
	return 2 + p->c.calls * SLOTS_PER_CALL + stream * 2 * KEYS_PER_SIDE;
}

static uint32_t preauth_tx(const struct path *p, uint32_t stream)
{
	return preauth_rx(p, stream) + 2;
}

static bool has_tags(const struct path *p, uint32_t stream)
{
	return p->c.preauth && suite_of(p, stream)->id;
}

static uint32_t tag_of(
	const struct path *p, uint32_t slot, uint32_t ssrc, uint32_t index, const uint8_t *packet)
{
	const struct preauth_key *k =
		(const struct preauth_key *)&batch_runner_arena(p->w->runner)->key[slot];
	uint32_t tag;

	if (preauth_is_header(k->scheme))
		return preauth_header(k, packet);
	preauth_sequence(k, ssrc, index, &tag, 1);
	return tag & (uint32_t)((1ull << preauth_bits(k->scheme)) - 1);
}

static enum preauth_scheme scheme_of(const struct path *p)
{
	return (enum preauth_scheme)(p->c.preauth - 1);
}

/* Bytes of the tag behind packets of this stream, and of the block in their payloads. */
static uint32_t tag_len(const struct path *p, uint32_t stream)
{
	return has_tags(p, stream) ? preauth_tag_len(scheme_of(p)) : 0;
}

static uint32_t block_len(const struct path *p, uint32_t stream)
{
	return has_tags(p, stream) && preauth_is_chain(scheme_of(p))
		? preauth_chain_len(scheme_of(p))
		: 0;
}

static void block_write(
	const struct path *p, uint32_t slot, uint32_t ssrc, uint32_t index, uint8_t *to)
{
	const struct preauth_key *k =
		(const struct preauth_key *)&batch_runner_arena(p->w->runner)->key[slot];
	struct preauth_chain c = preauth_chain_of(k->scheme);
	uint32_t tag[PREAUTH_NEXT_MAX];

	preauth_sequence(k, ssrc, index + 1, tag, c.next);
	preauth_chain_pack(c.width, to, tag, c.next);
}

static uint32_t tag_read(const uint8_t *end, uint32_t len)
{
	return len == 1 ? end[-1] : be32(end - PREAUTH_TAG_MAX);
}

static uint8_t payload_byte(uint32_t stream, uint32_t index, uint32_t at)
{
	return (uint8_t)(stream * 31 + index * 7 + at);
}

static uint8_t type_of(const struct path *p, uint32_t stream)
{
	return p->c.convert && stream % SIDES ? 8 : 0;
}

static uint32_t law_of(const struct path *p, uint32_t stream)
{
	return !p->c.convert ? XC_LAW_KEEP : stream % SIDES ? XC_LAW_A_TO_U : XC_LAW_U_TO_A;
}

static void plain(const struct path *p, uint8_t *to, uint32_t stream, uint32_t index)
{
	to[0] = 0x80;
	to[1] = type_of(p, stream);
	put_be16(to + 2, (uint16_t)index);
	put_be32(to + 4, index * 160);
	put_be32(to + 8, stream + 1);
	for (uint32_t i = 0; i < p->c.payload; i++)
		to[HDR + i] = payload_byte(stream, index, i);
}

static struct endpoint terminal(uint32_t stream)
{
	struct endpoint e = {.family = AF_INET, .port = 5004};

	put_be32(e.addr, 0x0a000000u + stream);
	return e;
}

static struct local_port port_of(uint32_t stream)
{
	return (struct local_port){
		.port = (uint16_t)(1024 + 2 * (stream / SIDES)), .addr = (uint8_t)(stream % SIDES)};
}

/* The stream of the k-th packet of a round. */
static uint32_t stream_at(const struct path *p, uint32_t k)
{
	return (uint32_t)((uint64_t)k * SCATTER % (p->c.calls * SIDES));
}

static void add_tag(struct path *p, uint32_t at, uint32_t stream, uint32_t index)
{
	uint8_t *packet = p->bytes + (size_t)at * p->stride, *end = packet + p->d[at].len;
	uint32_t tag;

	if (!has_tags(p, stream))
		return;
	tag = tag_of(p, preauth_rx(p, stream), stream + 1, index, packet);
	if (tag_len(p, stream) == 1)
		*end = (uint8_t)tag;
	else
		put_be32(end, tag);
	p->d[at].len += tag_len(p, stream);
}

static int fill_batch(struct path *p, uint32_t from, uint32_t n)
{
	struct arena *a = batch_runner_arena(p->w->runner);
	struct batch b = {.job = a->job, .status = a->status, .n = n};
	uint32_t streams = p->c.calls * SIDES;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = from + i, stream = stream_at(p, k), index = p->index + k / streams;
		uint32_t off = i * ARENA_SLOT_LEN + ARENA_HEADROOM;
		uint32_t body = p->c.payload + block_len(p, stream);

		plain(p, a->in + off, stream, index);
		if (block_len(p, stream))
			block_write(p, preauth_rx(p, stream), stream + 1, index,
				a->in + off + HDR + p->c.payload);
		a->job[i] = (struct xc_job){.tx_index = index,
			.in_off = off,
			.out_off = off,
			.tx_key = slot_rx(p, stream),
			.hdr_len = HDR,
			.body_len = body,
			.rx_tag_off = HDR + body,
			.tx_tag_off = HDR + body,
			.ssrc = stream + 1};
	}
	batch_run(p->w->runner, &b);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stream = stream_at(p, from + i);

		if (a->status[i] != XC_OK)
			return -EIO;
		memcpy(p->bytes + (size_t)(from + i) * p->stride, a->out + a->job[i].out_off,
			p->stride);
		p->d[from + i] = (struct packet_in){.src = terminal(stream),
			.local = port_of(stream),
			.len = HDR + p->c.payload + block_len(p, stream) +
				suite_of(p, stream)->rtp_tag_len,
			.t_ns = clock_real_ns(),
			.dev = 2 /* as from xdp: source and interface count */};
		add_tag(p, from + i, stream, (uint32_t)a->job[i].tx_index);
	}
	return 0;
}

int path_fill(struct path *p)
{
	uint32_t slots = batch_runner_arena(p->w->runner)->slots;
	int err = 0;

	for (uint32_t k = 0; k < p->fill && !err; k += slots)
		err = fill_batch(p, k, min_u32(slots, p->fill - k));
	p->index += p->fill / (p->c.calls * SIDES);
	if (p->check)
		p->job_index = p->index;
	p->at = p->sent = 0;
	return err;
}

uint32_t path_feed(struct path *p)
{
	const struct arena *a = batch_runner_arena(p->w->runner);
	uint32_t n = min_u32(p->c.batch, p->fill - p->at);

	for (uint32_t i = 0; i < n; i++)
		feed(p, a, i, &p->w->burst[0].in[i]);
	return n;
}

void path_feed_only(struct path *p)
{
	p->at = 0;
	while (path_feed(p))
		;
	p->at = 0;
}

/* A packet toward a terminal is the other one's, under the receiver's key and to its address. */
static void check_out(struct path *p, const struct arena *a, const struct packet_out *out)
{
	uint32_t to = (out->local.port - 1024u) / 2 * SIDES + out->local.addr, from = to ^ 1;
	struct endpoint want = terminal(to);
	uint8_t expect[ARENA_MAX_PACKET], in[ARENA_SLOT_LEN], got[ARENA_SLOT_LEN];
	/* The last index created, or the nearest one before it with this sequence number. */
	uint16_t back = (uint16_t)(p->index - 1 - be16(a->out + out->out_off + 2));
	uint32_t index = p->index - 1 - back, len = HDR + p->c.payload + block_len(p, to);
	struct xc_job j = {.rx_index = index,
		.rx_key = slot_tx(p, to),
		.hdr_len = HDR,
		.body_len = len - HDR,
		.rx_tag_off = len,
		.tx_tag_off = len,
		.ssrc = from + 1};

	plain(p, expect, from, index);
	if (block_len(p, to))
		block_write(p, preauth_tx(p, to), from + 1, index, expect + HDR + p->c.payload);
	expect[1] = type_of(p, to);
	g711_convert(expect + HDR, p->c.payload, law_of(p, from));
	memcpy(in, a->out + out->out_off, out->len);
	if (has_tags(p, to) &&
		tag_read(in + out->len, tag_len(p, to)) !=
			tag_of(p, preauth_tx(p, to), from + 1, index, in))
		p->wrong++;
	if (out->len != len + suite_of(p, to)->rtp_tag_len + tag_len(p, to) ||
		!endpoint_eq(&out->dst, &want) || srtp_ref_job(&j, a->key, in, got) != XC_OK ||
		memcmp(got, expect, len) != 0)
		p->wrong++;
}

/* --- The worker ------------------------------------------------------------------------------- */

static int push(struct path *p, const struct worker_cmd *cmd)
{
	int err = ring_push(&p->w->cmds, cmd, 1);

	/* The ring is short, and no other thread empties it. */
	if (err) {
		(void)worker_round(p->w);
		err = ring_push(&p->w->cmds, cmd, 1);
	}
	return err;
}

static struct media_crypto crypto(const struct srtp_suite *s, uint32_t slot)
{
	struct media_crypto c = {.suite = s->id};

	c.key[0].slot = slot;
	c.keys = slot != 0;
	return c;
}

static int key_set(struct path *p, uint32_t slot, const struct srtp_suite *s)
{
	struct worker_cmd cmd = {.kind = WORKER_KEY_SET, .id = slot};
	struct srtp_master m;

	if (!slot)
		return 0;
	sample_master(&m, s->id, slot);
	if (srtp_key_fill(&batch_runner_arena(p->w->runner)->key[slot], &m))
		return -EIO;
	return push(p, &cmd);
}

static int preauth_set(
	const struct path *p, struct media_crypto *c, uint32_t slot, uint32_t master_slot)
{
	struct xc_key *key = batch_runner_arena(p->w->runner)->key;
	struct srtp_master m;

	sample_master(&m, c->suite, master_slot);
	c->preauth = p->c.preauth;
	c->preauth_slot = slot;
	return preauth_key_init(
		(struct preauth_key *)&key[slot], (enum preauth_scheme)(p->c.preauth - 1), &m);
}

static int side_set(struct path *p, uint32_t stream)
{
	struct worker_cmd ctx = {.kind = WORKER_MEDIA}, set = {.kind = WORKER_MEDIA};
	const struct srtp_suite *s = suite_of(p, stream);
	int err;

	ctx.media = (struct media_cmd){.type = MEDIA_CTX_SET,
		.id = stream,
		.ctx = {.rx = crypto(s, slot_rx(p, stream)),
			.tx = crypto(s, slot_tx(p, stream)),
			.rx_new = true,
			.tx_new = true}};
	set.media = (struct media_cmd){.type = MEDIA_STREAM_SET,
		.id = stream,
		.now_ns = clock_real_ns(),
		.stream = {.local = port_of(stream),
			.rtp = true,
			.rtcp = true,
			.ctx = stream,
			.rtp_to = stream ^ 1,
			.rtcp_to = stream ^ 1,
			.convert = MEDIA_CONVERT(
				type_of(p, stream), type_of(p, stream ^ 1), law_of(p, stream)),
			.remote = terminal(stream),
			.relearn = true,
			.learning = MEDIA_LEARN_HEURISTIC,
			.strict_source = true}};
	if (has_tags(p, stream) &&
		(preauth_set(p, &ctx.media.ctx.rx, preauth_rx(p, stream), slot_rx(p, stream)) ||
			preauth_set(
				p, &ctx.media.ctx.tx, preauth_tx(p, stream), slot_tx(p, stream))))
		return -EINVAL;
	err = key_set(p, slot_rx(p, stream), s);
	err = err ? err : key_set(p, slot_tx(p, stream), s);
	err = err ? err : push(p, &ctx);
	return err ? err : push(p, &set);
}

static int worker_make(struct path *p)
{
	uint32_t streams = p->c.calls * SIDES;
	static const struct steer_config steer = {.locals = SIDES, .workers = 1};
	struct media_config media = {.max_ctx = streams,
		.max_stream = streams,
		.port_min = 1024,
		.port_max = UINT16_MAX,
		.local_addrs = SIDES,
		.burst_max = p->c.batch};
	struct batch_runner_config batch = {.device = &p->device,
		.devices = p->device.engine ? 1 : 0,
		.serial = p->serial,
		.slots = p->c.batch,
		.key_slots = 2 + p->c.calls * SLOTS_PER_CALL * (p->c.preauth ? 2 : 1)};
	struct worker_config cfg = {.steer_ops = &steer_mem,
		.steer = &steer,
		.media = &media,
		.batch = &batch,
		.batch_max = p->c.batch,
		.ack_fd = p->ack_fd};
	int err = worker_create(&p->w, &cfg, p->err, sizeof(p->err));

	if (err)
		return err;
	p->w->steer->p = p;
	for (uint32_t i = 0; i < streams && !err; i++)
		err = side_set(p, i);
	/* Each round executes some of them. */
	while (!ring_empty(&p->w->cmds))
		(void)worker_round(p->w);
	if (!err && atomic_load(&p->w->command_errors))
		err = -EINVAL;
	return err;
}

int path_create(struct path *p, const struct path_case *c)
{
	uint32_t streams = c->calls * SIDES;
	struct engine_config ec = {.device = c->device};
	int err;

	*p = (struct path){.c = *c, .index = 1};
	p->ack_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->stride = (HDR + c->payload + (c->preauth ? PREAUTH_BLOCK_MAX : 0) + SUITE_MAX_TAG_LEN +
			    PREAUTH_TAG_MAX + 63) /
		64 * 64;
	p->fill = (c->packets + streams - 1) / streams * streams;
	p->bytes = calloc(p->fill, p->stride);
	p->d = calloc(p->fill, sizeof(*p->d));
	p->job = calloc(p->fill, sizeof(*p->job));
	if (p->ack_fd < 0 || !p->bytes || !p->d || !p->job) {
		snprintf(p->err, sizeof(p->err), "out of memory");
		return -ENOMEM;
	}
	p->device = (struct batch_device){
		.ops = &engine_opencl, .weight = 1, .fixed_min = c->device_min};
	err = engine_serial.open(&p->serial, &ec, p->err, sizeof(p->err));
	if (!err && c->opencl)
		err = engine_opencl.open(&p->device.engine, &ec, p->err, sizeof(p->err));
	if (err)
		return err;
	snprintf(p->err, sizeof(p->err), "the worker could not be set up");
	return worker_make(p);
}

void path_destroy(struct path *p)
{
	worker_destroy(p->w);
	if (p->device.engine)
		engine_opencl.close(p->device.engine);
	if (p->serial)
		engine_serial.close(p->serial);
	if (p->ack_fd >= 0)
		close(p->ack_fd);
	free(p->bytes);
	free(p->d);
	free(p->job);
	*p = (struct path){.ack_fd = -1};
}
