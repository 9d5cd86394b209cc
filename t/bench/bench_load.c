/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packets that are ciphered in a benchmark (bench.h). Copying them into the arena is not timed: steering does that. */
#include <errno.h>
#include <stdlib.h>

#include "bench.h"
#include "batch/sample.h"
#include "srtp/ref.h"

#define SCATTER 7919u /* a prime: neighbours in a batch are no neighbours in the key table */

/* A made-up mixture for --payload=mixed: comfort noise, G.729, G.711, wide-band audio, video. */
static uint32_t payload_of(const struct load *l, uint32_t stream)
{
	static const uint16_t mixed[] = {
		1, 20, 40, 160, 160, 160, 160, 160, 70, 90, 320, 1100, 1200};

	return l->c.mixed ? mixed[(stream * 2654435761u >> 8) % ARRAY_LEN(mixed)] : l->c.payload;
}

static struct sample sample_of(const struct load *l, uint32_t stream, uint32_t index)
{
	return (struct sample){
		.rx_key = 2 + 4 * stream,
		.tx_key = 4 + 4 * stream,
		.hdr_len = 12,
		.body_len = payload_of(l, stream),
		.rx_index = index,
		.tx_index = index,
		.seed = stream, /* the SSRC: one per stream */
	};
}

static int keys_make(struct load *l)
{
	int err = 0;

	for (uint32_t i = 0; i < 2 * l->c.streams && !err; i++) {
		sample_master(&l->master[i], (i & 1 ? l->c.tx : l->c.rx)->id, i + 1);
		err = srtp_key_fill(&l->a.key[2 + 2 * i], &l->master[i]);
	}
	return err;
}

static uint32_t stream_at(const struct load *l, uint32_t at)
{
	return (uint32_t)((uint64_t)at * SCATTER % l->c.streams);
}

static void packets_make(struct load *l)
{
	for (uint32_t i = 0; i < l->packets; i++) {
		struct sample s = sample_of(l, stream_at(l, i), 1 + i / l->c.streams);

		sample_make(&l->job[i], &l->a, 0, &s);
		memcpy(l->bytes + (size_t)i * l->stride, l->a.in + l->job[i].in_off, l->stride);
	}
}

int load_create(struct load *l, const struct bench_case *c)
{
	*l = (struct load){.c = *c};
	l->packets = c->streams > c->batch ? c->streams : c->batch;
	l->stride = (12 + c->payload + 16 + 63) / 64 * 64;
	if (arena_create(&l->a, c->batch, 2 + 4 * c->streams))
		return -ENOMEM;
	l->master = calloc(2 * c->streams, sizeof(*l->master));
	l->index = calloc(c->streams, sizeof(*l->index));
	l->job = calloc(l->packets, sizeof(*l->job));
	l->bytes = calloc(l->packets, l->stride);
	l->want = calloc(c->batch, ARENA_SLOT_LEN);
	if (!l->master || !l->index || !l->job || !l->bytes || !l->want || keys_make(l)) {
		load_destroy(l);
		return -ENOMEM;
	}
	packets_make(l);
	return 0;
}

void load_destroy(struct load *l)
{
	free(l->master);
	free(l->index);
	free(l->job);
	free(l->bytes);
	free(l->want);
	arena_destroy(&l->a);
	*l = (struct load){0};
}

static void load_made(struct load *l, uint32_t slot)
{
	struct xc_job *j = &l->a.job[slot];

	*j = l->job[l->at];
	j->in_off = j->out_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	memcpy(l->a.in + j->in_off, l->bytes + (size_t)l->at * l->stride, l->stride);
	l->at = (l->at + 1) % l->packets;
}

static void load_fresh(struct load *l, uint32_t slot)
{
	uint32_t stream = stream_at(l, l->at);
	struct sample s = sample_of(l, stream, ++l->index[stream]);

	sample_make(&l->a.job[slot], &l->a, slot, &s);
	l->at = (l->at + 1) % l->packets;
}

void load_next(struct load *l, bool fresh)
{
	for (uint32_t i = 0; i < l->c.batch; i++) {
		if (fresh)
			load_fresh(l, i);
		else
			load_made(l, i);
		l->a.status[i] = XC_NOT_DONE;
	}
}

void load_want(struct load *l)
{
	for (uint32_t i = 0; i < l->c.batch; i++)
		(void)srtp_ref_job(&l->a.job[i], l->a.key, l->a.in, l->want);
}
