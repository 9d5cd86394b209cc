/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects the calls to write, and their content. Changed calls are in a list, each at most once;
 * ended calls are a ring of Call-IDs. Workers report indexes in turns, every call twice a second.
 * Between two reports a stream advances by far less than the replay window at speech rates, and by
 * far less than half a cycle of sequence numbers at any rate, as restore.c requires. Pure, except
 * for the relay interface; does not know Redis. */
#include "persist/save.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/secmem.h"
#include "call/call_int.h"
#include "call/model.h"
#include "call/unsaved.h"
#include "persist/save_format.h"
#include "persist/save_write.h"

#define WORKERS_MAX 64

/* --- The list --------------------------------------------------------------------------------- */

/* --- Index reports ---------------------------------------------------------------------------- */

struct asking {
	const struct relay *relay;
	uint32_t n[WORKERS_MAX];
	uint32_t ctx[WORKERS_MAX][RELAY_ASK_MAX];
};

static void ask_flush(struct asking *a, uint32_t worker)
{
	if (a->n[worker])
		a->relay->ops->marks_ask(a->relay->arg, worker, a->ctx[worker], a->n[worker]);
	a->n[worker] = 0;
}

static void ask_call(struct asking *a, const struct call *c)
{
	for (uint32_t s = 0; s < c->sides && c->worker < WORKERS_MAX; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (!l || !l->committed)
				continue;
			a->ctx[c->worker][a->n[c->worker]++] = l->ctx;
			if (a->n[c->worker] == RELAY_ASK_MAX)
				ask_flush(a, c->worker);
		}
}

void calls_save_tick(struct calls *c, uint64_t now_ns, uint64_t renew_ns)
{
	struct saver *s = calls_saver(c);
	uint32_t n = (uint32_t)(s->table->count * CALLS_SAVE_TICK_NS / CALLS_SAVE_ROUND_NS) + 1;
	struct asking a = {.relay = s->relay};

	if (!s->on)
		return;
	/* Workers have answered the questions of the last tick by now. */
	for (struct call *call = s->asked; call && s->asked_n; call = call->next, s->asked_n--)
		if (call->id.len <= SAVE_ID_MAX)
			unsaved_add(s, call,
				renew_ns && now_ns > call->save.written_ns &&
					now_ns - call->save.written_ns > renew_ns);
	s->asked = s->cursor ? s->cursor : s->table->first;
	s->cursor = s->asked;
	for (; s->cursor && s->asked_n < n; s->cursor = s->cursor->next, s->asked_n++)
		ask_call(&a, s->cursor);
	for (uint32_t w = 0; w < WORKERS_MAX; w++)
		ask_flush(&a, w);
}

/* --- Content ---------------------------------------------------------------------------------- */

static struct save_key_use use_of(const struct saver *s, uint32_t worker, uint32_t slot)
{
	struct media_key_usage u = {0};

	if (slot && slot != SLOT_UNSET)
		s->relay->ops->key_usage(s->relay->arg, worker, slot, &u);
	return (struct save_key_use){.rtp = u.rtp, .rtcp = u.rtcp};
}

static struct stream_counts counts_of(const struct relay_stats *st)
{
	struct stream_counts c = {.packets = st->packets,
		.bytes = st->bytes,
		.errors = st->errors,
		.packets_out = st->packets_out,
		.bytes_out = st->bytes_out,
		.last_packet_ns = st->last_packet_ns};

	_Static_assert(sizeof(c.others) == sizeof(st->others), "the same");
	memcpy(c.others, st->others, sizeof(c.others));
	return c;
}

static void leg_state(
	const struct saver *s, const struct call *c, const struct leg *l, struct leg_state *out)
{
	const struct relay *r = s->relay;
	const struct relay_marks *m = r->ops->marks(r->arg, c->worker, l->ctx);
	struct relay_stats rtp, rtcp;

	out->tx_rtcp_next = m ? m->tx_rtcp_next : l->tx_rtcp_from;
	for (uint32_t i = 0; m && i < m->n; i++)
		out->mark[out->marks++] = (struct save_mark){.ssrc = m->mark[i].mark.ssrc,
			.table = m->mark[i].mark.table,
			.index = m->mark[i].mark.index,
			.roc_only = m->mark[i].mark.roc_only,
			.per_s = m->mark[i].per_s};
	leg_stats(r, c, l, false, &rtp);
	leg_stats(r, c, l, true, &rtcp);
	out->counts[0] = counts_of(&rtp);
	out->counts[1] = counts_of(&rtcp);
	out->remote = rtp.remote;
	out->confirmed = rtp.confirmed;
	out->rtcp_remote = rtcp.remote;
	out->rtcp_confirmed = rtcp.confirmed;
	for (uint32_t i = 0; i < SRTP_PARAMS_KEYS; i++)
		out->rx_use[i] = use_of(s, c->worker, l->rx_slot[i]);
	out->tx_use = use_of(s, c->worker, l->tx_slot);
}

static int state_of(
	const struct saver *s, const struct call *c, uint64_t now_ns, struct call_state *out)
{
	uint32_t legs = 0;

	*out = (struct call_state){.created_ns = c->created_ns,
		.revision = c->save.revision,
		.at_ns = now_ns + (uint64_t)s->shared_ahead_ns,
		.real_ns = now_ns,
		.mono_ns = clock_mono_of(now_ns),
		.boot = s->boot};
	for (uint32_t i = 0; i < c->sides; i++)
		legs += c->side[i]->legs;
	out->leg = calloc(legs + 1, sizeof(*out->leg));
	if (!out->leg)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t k = 0; k < c->side[i]->legs; k++) {
			const struct leg *l = c->side[i]->leg[k];

			if (!l || !l->committed)
				continue;
			out->leg[out->legs].side = i;
			out->leg[out->legs].media = k;
			leg_state(s, c, l, &out->leg[out->legs++]);
		}
	return 0;
}

/* Hashes only the marks in use, because every call is checked twice a second. */
static uint64_t hash_of(const struct saver *s, const struct call_state *state)
{
	const size_t head = offsetof(struct leg_state, mark),
		     tail = offsetof(struct leg_state, remote);
	uint64_t h[4] = {state->legs};

	for (uint32_t i = 0; i < state->legs; i++) {
		const struct leg_state *l = &state->leg[i];

		h[1] = hash_siphash(s->seed, l, head);
		h[2] = hash_siphash(s->seed, l->mark, l->marks * sizeof(l->mark[0]));
		h[3] = hash_siphash(s->seed, (const uint8_t *)l + tail, sizeof(*l) - tail);
		h[0] = hash_siphash(s->seed, h, sizeof(h));
	}
	return h[0] ? h[0] : 1;
}

/* False: unchanged since the last write. */
static bool write_call(
	struct saver *s, struct call *c, uint64_t now_ns, struct sbuf *out, enum save_what *what)
{
	const struct relay_local *locals;
	struct call_state state;
	uint32_t locals_n;
	uint64_t hash;
	bool changed;

	if (state_of(s, c, now_ns, &state)) {
		unsaved_add(s, c, c->save.whole);
		out->err = -ENOMEM;
		return true;
	}
	hash = hash_of(s, &state);
	changed = c->save.whole || hash != c->save.state;
	*what = c->save.whole ? SAVE_CALL : SAVE_STATE;
	c->save.state = hash;
	if (c->save.whole) {
		locals = s->relay->ops->locals(s->relay->arg, &locals_n);
		save_write_call(out, c, locals, locals_n, &state);
		c->save.written_ns = now_ns;
	} else if (changed) {
		save_write_state(out, &state);
	}
	c->save.whole = false;
	free(state.leg);
	return changed;
}

bool calls_save_next(struct calls *c, uint64_t now_ns, struct sbuf *out, struct save_item *item)
{
	struct saver *s = calls_saver(c);

	/* Ended calls first: their Call-IDs may be in use again. */
	if (s->ended_n) {
		struct str id = s->ended[s->ended_at];

		item->what = SAVE_ENDED;
		item->call_id_len = id.len;
		memcpy(item->call_id, id.s, id.len);
		free((void *)(uintptr_t)id.s);
		s->ended_at = (s->ended_at + 1) % SAVE_ENDED_MAX;
		s->ended_n--;
		return true;
	}
	while (s->first) {
		struct call *call = s->first;

		unsaved_remove(s, call);
		item->call_id_len = call->id.len;
		memcpy(item->call_id, call->id.s, call->id.len);
		if (write_call(s, call, now_ns, out, &item->what))
			return true;
	}
	return false;
}
