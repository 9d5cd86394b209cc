/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates the packets of a benchmark (bench.h). Copying them into the arena is not timed,
 * because steering does that. The serial engine protects them, and the reference must accept its
 * results. */
#include <errno.h>
#include <stdlib.h>

#include "batch/engine.h"
#include "bench.h"
#include "batch/sample.h"
#include "packet/arena.h"
#include "srtp/ref.h"

#define SCATTER 7919u /* a prime, so that neighbours in a batch are far apart in the key table */
enum { FIXED_HDR = 12, PACKETS_LEAST = 4096 };

const struct bench_class *load_class(const struct load *l, uint32_t stream)
{
	uint32_t sum = 0, at;

	for (unsigned i = 0; i < l->c.n_cls; i++)
		sum += l->c.cls[i].weight;
	at = stream % sum;
	for (unsigned i = 0;; at -= l->c.cls[i++].weight)
		if (at < l->c.cls[i].weight)
			return &l->c.cls[i];
}

uint32_t load_ssrc(uint32_t stream)
{
	return stream * 2654435761u + 1;
}

static uint32_t stream_at(const struct load *l, uint32_t at)
{
	return (uint32_t)((uint64_t)at * SCATTER % l->c.streams);
}

static void auth_remove(struct xc_key *k)
{
	k->auth = XC_AUTH_NULL;
	k->tag_len = 0;
}

static int keys_make(struct load *l)
{
	int err = 0;

	for (uint32_t i = 0; i < 2 * l->c.streams && !err; i++) {
		const struct bench_class *c = load_class(l, i / 2);
		struct xc_key *pair = &l->a.key[2 + 2 * i];

		sample_master(&l->master[i], (i & 1 ? c->tx : c->rx)->id, i + 1);
		err = srtp_key_fill(pair, &l->master[i]);
		if (l->c.no_auth) {
			auth_remove(&pair[0]);
			auth_remove(&pair[1]);
		}
		if (!err && !(i & 1))
			err = engine_serial.key_changed(l->maker_q, 2 + 2 * i);
	}
	return err;
}

/* A terminal's packet before protection (RFC 3550 5.1, 5.3.1). The payload is not initialised. */
static void plain_make(uint8_t *p, const struct xc_job *j)
{
	p[0] = j->hdr_len > FIXED_HDR ? 0x90 : 0x80;
	p[1] = 0x60;
	put_be16(p + 2, (uint16_t)j->rx_index);
	put_be32(p + 4, (uint32_t)j->rx_index * 160);
	put_be32(p + 8, j->ssrc);
	if (j->hdr_len > FIXED_HDR) {
		put_be16(p + 12, 0xbede);
		put_be16(p + 14, (uint16_t)((j->hdr_len - FIXED_HDR - 4) / 4));
	}
}

/* Job and packet for a slot. */
static void protect_start(struct load *l, uint32_t slot, uint32_t stream, uint32_t index)
{
	const struct bench_class *c = load_class(l, stream);
	uint32_t len = c->hdr_len + c->payload, off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	struct xc_job *j = &l->a.job[slot], *m = &l->maker.job[slot];

	*j = (struct xc_job){
		.rx_index = index,
		.tx_index = index,
		.in_off = off + (l->c.skewed ? stream % 16 * 4 : 0),
		.out_off = off,
		.rx_key = 2 + 4 * stream,
		.tx_key = 4 + 4 * stream,
		.hdr_len = c->hdr_len,
		.body_len = c->payload,
		.rx_tag_off = len,
		.tx_tag_off = len,
		.ssrc = load_ssrc(stream),
	};
	*m = *j;
	m->in_off = off;
	m->out_off = j->in_off;
	m->rx_key = 0;
	m->tx_key = j->rx_key;
	plain_make(l->maker.in + off, j);
}

static int protect(struct load *l, uint32_t n)
{
	struct batch b = {.job = l->maker.job, .status = l->maker.status, .n = n};
	uint32_t bad = 0;

	if (engine_serial.run(l->maker_q, &b))
		return -EIO;
	for (uint32_t i = 0; i < n; i++)
		bad |= b.status[i];
	return bad ? -EIO : 0;
}

int load_restock(struct load *l)
{
	for (uint32_t done = 0, n; done < l->packets; done += n) {
		n = l->packets - done < l->c.slots ? l->packets - done : l->c.slots;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t stream = stream_at(l, done + i);

			protect_start(l, i, stream, ++l->index[stream]);
		}
		if (protect(l, n))
			return -EIO;
		for (uint32_t i = 0; i < n; i++) {
			l->job[done + i] = l->a.job[i];
			memcpy(l->bytes + (size_t)(done + i) * l->stride,
				l->a.in + l->a.job[i].in_off, l->stride);
		}
	}
	l->at = 0;
	l->wanted = 0;
	return 0;
}

static int maker_create(struct load *l, struct bench_env *env)
{
	struct engine_config cfg = {.device = "", .flags = env->flags};
	uint64_t rnd = 1;
	char err[128];
	int res = env->serial ? 0 : engine_serial.open(&env->serial, &cfg, err, sizeof(err));

	if (res || arena_create(&l->maker, l->c.slots, 2))
		return -ENOMEM;
	for (size_t i = 0; i + 8 <= (size_t)l->c.slots * ARENA_SLOT_LEN; i += 8) {
		uint64_t x = sample_random(&rnd);

		memcpy(l->maker.in + i, &x, 8);
	}
	return 0;
}

/* The protecting load writes into a.in, with a's keys. */
static struct arena maker_arena(struct load *l)
{
	struct arena m = l->maker;

	m.out = l->a.in;
	m.key = l->a.key;
	m.key_slots = l->a.key_slots;
	return m;
}

int load_create(struct load *l, const struct load_config *c, struct bench_env *env)
{
	uint32_t longest = 0;
	int err;

	*l = (struct load){.c = *c, .batch = c->slots};
	for (unsigned i = 0; i < c->n_cls; i++)
		if (c->cls[i].hdr_len + c->cls[i].payload > longest)
			longest = c->cls[i].hdr_len + c->cls[i].payload;
	l->packets = c->streams > c->slots ? c->streams : c->slots;
	l->packets = l->packets > PACKETS_LEAST ? l->packets : PACKETS_LEAST;
	l->stride = (longest + SUITE_MAX_TAG_LEN + 63) / 64 * 64;
	err = arena_create(&l->a, c->slots, 2 + 4 * c->streams);
	if (!err)
		err = maker_create(l, env);
	l->master = calloc(2 * c->streams, sizeof(*l->master));
	l->index = calloc(c->streams, sizeof(*l->index));
	l->job = calloc(l->packets, sizeof(*l->job));
	l->bytes = calloc(l->packets, l->stride);
	l->want = calloc(c->slots, ARENA_SLOT_LEN);
	if (err || !l->master || !l->index || !l->job || !l->bytes || !l->want) {
		load_destroy(l);
		return -ENOMEM;
	}
	l->maker_arena = maker_arena(l);
	err = engine_serial.queue_create(&l->maker_q, env->serial, &l->maker_arena);
	err = err ? err : keys_make(l);
	err = err ? err : load_restock(l);
	if (err)
		load_destroy(l);
	return err;
}

void load_destroy(struct load *l)
{
	if (l->maker_q)
		engine_serial.queue_destroy(l->maker_q);
	arena_destroy(&l->maker);
	free(l->master);
	free(l->index);
	free(l->job);
	free(l->bytes);
	free(l->want);
	arena_destroy(&l->a);
	*l = (struct load){0};
}

static void load_slot(struct load *l, uint32_t slot)
{
	struct xc_job *j = &l->a.job[slot];
	uint32_t skew;

	*j = l->job[l->at];
	skew = j->in_off - j->out_off;
	j->out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	j->in_off = j->out_off + skew;
	memcpy(l->a.in + j->in_off, l->bytes + (size_t)l->at * l->stride, l->stride);
	l->a.status[slot] = XC_NOT_DONE;
	l->at++;
}

int load_next(struct load *l, bool fresh, uint32_t n)
{
	if (l->at + n > l->packets) {
		if (fresh && load_restock(l))
			return -EIO;
		l->at = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		load_slot(l, i);
	return 0;
}

int load_checked(struct load *l, bool fresh, uint32_t n)
{
	int err = fresh ? load_restock(l) : 0;

	l->at = 0;
	err = err ? err : load_next(l, fresh, n);
	if (err || l->wanted >= n)
		return err;
	for (uint32_t i = 0; i < n; i++)
		if (srtp_ref_job(&l->a.job[i], l->a.key, l->a.in, l->want) != XC_OK)
			return -EBADMSG;
	l->wanted = n;
	return 0;
}
