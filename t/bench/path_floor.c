/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The floor of xcipher-bench path (path_floor.h). It touches the worker's tables where media
 * touches them for an RTP packet (media_line_*()), without checks, decisions or dependent look-ups.
 * It also runs the worker's engine on the worker's own jobs. Written values are the old ones, so
 * nothing changes. */
#include "path_floor.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "batch/engine.h"
#include "media/state.h"
#include "packet/arena.h"

#define HDR 12u

enum { LINES = 6 };

/* path_load.c numbers the streams: those of a call are neighbours, and each has the context of its
 * number. */
static void lines_of(const struct media *m, uint32_t stream, void *line[LINES])
{
	uint32_t to = stream ^ 1;

	/* Written lines come last. */
	line[0] = media_line_stream(m, stream);
	line[1] = media_line_stream(m, to);
	line[2] = media_line_counters(m, stream);
	line[3] = media_line_rx(&m->ctx[stream]);
	line[4] = media_line_tx(&m->ctx[to]);
	line[5] = media_line_counters(m, to);
}

enum { FIRST_WRITTEN = 2 };

int path_floor_check(struct path *p)
{
	const struct media *m = p->w->media;

	for (uint32_t i = 0; i < p->fill; i++) {
		const uint32_t *cell = media_port_cell(m, p->d[i].local);
		const struct media_stream_cfg *c = cell ? &m->stream[*cell].cfg : NULL;

		if (!c || c->ctx != *cell || c->rtp_to != (*cell ^ 1)) {
			snprintf(p->err, sizeof(p->err),
				"the floor's loop does not know these tables");
			return -EINVAL;
		}
	}
	return 0;
}

static inline void ask(const struct media *m, const struct packet_in *in)
{
	void *line[LINES];

	lines_of(m, *media_port_cell(m, in->local), line);
	for (int k = 0; k < LINES; k++)
		if (k < FIRST_WRITTEN)
			__builtin_prefetch(line[k]);
		else
			__builtin_prefetch(line[k], 1);
}

static inline uint64_t touch(
	const struct media *m, const struct arena *a, const struct packet_in *in)
{
	uint64_t sum = 0;
	void *line[LINES];

	lines_of(m, *media_port_cell(m, in->local), line);
	for (int k = 0; k < LINES; k++) {
		volatile uint64_t *word = line[k];
		uint64_t value = *word;

		sum += value;
		if (k >= FIRST_WRITTEN)
			*word = value;
	}
	memcpy(a->out + in->in_off, a->in + in->in_off, HDR);
	return sum;
}

static uint64_t burst(const struct path *p, const struct arena *a, uint32_t n, uint32_t ahead)
{
	const struct packet_in *in = p->w->burst[0].in;
	const struct media *m = p->w->media;
	uint64_t sum = 0;

	if (ahead == 0) {
		for (uint32_t i = 0; i < n; i++)
			sum += touch(m, a, &in[i]);
		return sum;
	}
	for (uint32_t i = 0; i < min_u32(n, 2 * ahead); i++)
		__builtin_prefetch(media_port_cell(m, in[i].local));
	for (uint32_t i = 0; i < min_u32(n, ahead); i++)
		ask(m, &in[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (i + 2 * ahead < n)
			__builtin_prefetch(media_port_cell(m, in[i + 2 * ahead].local));
		if (i + ahead < n)
			ask(m, &in[i + ahead]);
		sum += touch(m, a, &in[i]);
	}
	return sum;
}

double path_floor_lines(struct path *p, uint32_t ahead)
{
	const struct arena *a = batch_runner_arena(p->w->runner);
	uint64_t start = clock_mono_ns();
	volatile uint64_t sum = 0;
	uint32_t n;

	p->at = 0;
	while ((n = path_feed(p)) > 0)
		sum = sum + burst(p, a, n, ahead);
	return (double)(clock_mono_ns() - start) / p->fill;
}

/* The worker's jobs for packets from..from+n of the checked fill, adapted to this fill, whose
 * indexes are higher. */
static void jobs_of(const struct path *p, struct xc_job *job, uint32_t from, uint32_t n)
{
	uint64_t on = p->index - p->job_index;

	for (uint32_t i = 0; i < n; i++) {
		job[i] = p->job[from + i];
		if (job[i].rx_key)
			job[i].rx_index += on;
		if (job[i].tx_key)
			job[i].tx_index += on;
	}
}

double path_floor_cipher(struct path *p)
{
	struct arena *a = batch_runner_arena(p->w->runner);
	uint64_t took = 0;
	uint32_t n;

	p->at = 0;
	while ((n = path_feed(p)) > 0) {
		struct batch b = {.job = a->job, .status = a->status, .n = n};
		uint64_t start;

		jobs_of(p, a->job, p->at - n, n);
		start = clock_mono_ns();
		batch_run(p->w->runner, &b);
		took += clock_mono_ns() - start;
		for (uint32_t i = 0; i < n; i++)
			if (a->status[i] != XC_OK)
				return -1;
	}
	return (double)took / p->fill;
}
