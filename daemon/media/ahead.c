/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a burst will look up is asked of memory beforehand: with thousands of calls nothing of a packet's stream, contexts, keys
 * and counters is in the cache, and each look-up needs the one before it. So a group of packets is on its way for several groups'
 * time: while one is prepared, the next is asked for the other side's context, the one after it for its own, and so on; nothing waits. Reads
 * only, decides nothing: what a packet turns out to be does not matter here. Session keys are asked for by the engine. */
#include "media/int.h"

enum { PORTS, STREAMS, CONTEXTS, TARGETS };

/* gcc 12 takes a function that does nothing but prefetch for one without any effect, and leaves its calls out. */
#define ASK static inline __attribute__((always_inline)) void

ASK ask(const void *p)
{
	__builtin_prefetch(p);
}

/* Will be written, too. */
ASK ask_write(const void *p)
{
	__builtin_prefetch(p, 1);
}

/* The one line that packets use, and their counters. */
ASK ask_stream(const struct media *m, uint32_t stream)
{
	ask_write((const uint8_t *)&m->stream[stream] + MEDIA_STREAM_HOT);
	ask_write(&m->counters[stream]);
}

static const struct media_ctx *ctx_of(const struct media *m, uint32_t stream)
{
	return &m->ctx[m->stream[stream].cfg.ctx];
}

void media_ahead_again(const struct media *m, const struct note *n)
{
	ask_stream(m, n->stream);
	ask_write(&n->rx->rx);
	if (n->to == MEDIA_NONE)
		return;
	ask_stream(m, n->to);
	ask_write(&n->tx->tx);
}

/* Each step needs what the one before it asked for. Always inline, so that each step is a loop of its own, without a question
 * per packet which one it is. */
ASK take_step(struct media *m, const struct media_in *in, uint32_t n, uint32_t at, const int step)
{
	uint32_t end = at < n ? at + min_u32(n - at, MEDIA_AHEAD) : at;

	for (uint32_t i = at; i < end; i++) {
		uint32_t stream, to;

		if (step <= STREAMS) {
			const uint32_t *cell = media_port_cell(m, in[i].local);

			if (step == PORTS) {
				if (cell)
					ask(cell);
				continue;
			}
			m->in_stream[i] = stream = cell ? *cell : MEDIA_NONE;
			if (stream != MEDIA_NONE)
				ask_stream(m, stream);
			continue;
		}
		stream = m->in_stream[i];
		if (stream == MEDIA_NONE)
			continue;
		to = m->stream[stream].cfg.rtp_to;
		if (step == CONTEXTS)
			ask_write(&ctx_of(m, stream)->rx);
		if (to == MEDIA_NONE)
			continue;
		if (step == CONTEXTS)
			ask_stream(m, to);
		else
			ask_write(&ctx_of(m, to)->tx);
	}
}

void media_ahead(struct media *m, const struct media_in *in, uint32_t n, uint32_t at)
{
	const uint32_t g = MEDIA_AHEAD;

	/* A packet or two would only pay for it. */
	if (n <= 2) {
		take_step(m, in, n, at, STREAMS);
		return;
	}
	/* To get going: the first groups' first steps. */
	if (at == 0) {
		take_step(m, in, n, 0, PORTS);
		take_step(m, in, n, g, PORTS);
		take_step(m, in, n, 0, STREAMS);
		take_step(m, in, n, 2 * g, PORTS);
		take_step(m, in, n, g, STREAMS);
		take_step(m, in, n, 0, CONTEXTS);
		take_step(m, in, n, 3 * g, PORTS);
		take_step(m, in, n, 2 * g, STREAMS);
		take_step(m, in, n, g, CONTEXTS);
		take_step(m, in, n, 0, TARGETS);
	}
	take_step(m, in, n, at + 4 * g, PORTS);
	take_step(m, in, n, at + 3 * g, STREAMS);
	take_step(m, in, n, at + 2 * g, CONTEXTS);
	take_step(m, in, n, at + g, TARGETS);
}
