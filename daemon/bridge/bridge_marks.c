/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks: the last packet indexes that a worker reported for a context. A call that is restored or
 * moved continues from them. A mark whose generation is old is ignored: its indexes were reset
 * after the worker was asked. */
#include "bridge/bridge_int.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const size_t marks_head = offsetof(struct relay_marks, mark);

void bridge_marks_forget(struct bridge_site *s, uint32_t ctx, bool rx, bool tx)
{
	struct marks_known *t = &s->told[ctx];
	struct relay_marks *m = t->marks;
	uint32_t kept = 0;

	t->generation++;
	if (rx && tx) {
		free(m);
		t->marks = NULL;
		return;
	}
	for (uint32_t i = 0; m && i < m->n; i++)
		if (!(m->mark[i].mark.table == MEDIA_TX_RTP ? tx : rx))
			m->mark[kept++] = m->mark[i];
	if (m)
		m->n = kept;
}

/* Shortest time over which a rate is measured. Over less, one burst looks like thousands of packets
 * per second. After a restore the index would then be estimated too high, and packets would be
 * dropped as old. The first measurement may be shorter, for calls that end soon. */
#define RATE_NS       NS_PER_SEC
#define RATE_FIRST_NS (NS_PER_SEC / 5)

void bridge_marks_rate(struct relay_mark *now, const struct relay_mark *before, uint64_t now_ns)
{
	uint64_t dt, by, per_s;

	now->per_s = before ? before->per_s : 0;
	now->from = now->mark.index;
	now->from_ns = now->mark.roc_only ? 0 : now_ns;
	if (!before || !before->from_ns || !now->from_ns || now_ns <= before->from_ns ||
		now->mark.index < before->from)
		return;
	dt = now_ns - before->from_ns;
	if (dt < (before->per_s ? RATE_NS : RATE_FIRST_NS)) {
		now->from = before->from;
		now->from_ns = before->from_ns;
		return;
	}
	by = now->mark.index - before->from;
	per_s = by > UINT32_MAX ? UINT32_MAX : by * NS_PER_SEC / dt;
	/* A pause may end with the earlier speed, so the value falls slowly. */
	per_s = per_s > before->per_s ? per_s : (7 * (uint64_t)before->per_s + per_s) / 8;
	now->per_s = per_s > UINT32_MAX ? UINT32_MAX : (uint32_t)per_s;
}

static const struct relay_mark *mark_before(
	const struct relay_marks *before, const struct media_mark *mark)
{
	for (uint32_t i = 0; before && i < before->n; i++) {
		const struct relay_mark *b = &before->mark[i];

		if (b->mark.ssrc == mark->ssrc && b->mark.table == mark->table)
			return b;
	}
	return NULL;
}

static void told_store(struct bridge_site *s, uint32_t ctx, uint64_t at_ns)
{
	struct marks_known *t = &s->told[ctx];
	struct relay_marks *now = &s->arriving, *m;

	now->at_ns = at_ns;
	for (uint32_t i = 0; i < now->n; i++)
		bridge_marks_rate(&now->mark[i], mark_before(t->marks, &now->mark[i].mark), at_ns);
	m = realloc(t->marks, marks_head + now->n * sizeof(now->mark[0]));
	if (!m)
		return;
	memcpy(m, now, marks_head + now->n * sizeof(now->mark[0]));
	t->marks = m;
}

void bridge_marks_seed(struct bridge_site *s, const struct media_cmd *cmd)
{
	struct marks_known *t = &s->told[cmd->id];
	uint32_t n = t->marks ? t->marks->n : 0, add = 0;
	struct relay_marks *m =
		realloc(t->marks, marks_head + MEDIA_MARKS_MAX * sizeof(t->marks->mark[0]));

	if (!m)
		return;
	if (!t->marks)
		*m = (struct relay_marks){.at_ns = cmd->now_ns};
	t->marks = m;
	if (cmd->type == MEDIA_CTX_SET)
		m->tx_rtcp_next = cmd->ctx.tx_rtcp_index;
	else
		add = cmd->ctx_resume.n;
	for (uint32_t i = 0; i < add && n < MEDIA_MARKS_MAX; i++)
		m->mark[n++] = (struct relay_mark){.mark = cmd->ctx_resume.mark[i]};
	m->n = n;
}

void bridge_marks_take(struct bridge_site *s)
{
	struct worker_mark w;

	while (ring_pop(&s->w->marks, &w)) {
		bool current = w.generation == s->told[w.ctx].generation;

		if (!w.end) {
			if (s->arriving.n < MEDIA_MARKS_MAX)
				s->arriving.mark[s->arriving.n++].mark = w.mark;
			continue;
		}
		s->arriving.tx_rtcp_next = w.mark.index;
		if (current)
			told_store(s, w.ctx, w.at_ns);
		s->arriving.n = 0;
	}
}

void bridge_op_marks_ask(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n)
{
	struct bridge *r = arg;
	struct bridge_site *s = &r->site[worker];
	struct worker_cmd cmd = {.kind = WORKER_MARKS};

	_Static_assert(RELAY_ASK_MAX <= WORKER_ASK_MAX, "one command takes them all");
	cmd.ask.n = min_u32(n, RELAY_ASK_MAX);
	for (uint32_t i = 0; i < cmd.ask.n; i++) {
		cmd.ask.ctx[i] = ctx[i];
		cmd.ask.generation[i] = s->told[ctx[i]].generation;
	}
	(void)bridge_push(s, &cmd, 1);
}

const struct relay_marks *bridge_op_marks(void *arg, uint32_t worker, uint32_t ctx)
{
	struct bridge *r = arg;

	bridge_marks_take(&r->site[worker]);
	return r->site[worker].told[ctx].marks;
}
