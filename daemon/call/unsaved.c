/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls that changed or ended since they were saved: a list and a ring. persist/ writes them.
 * Pure. */
#include "call/unsaved.h"
#include <errno.h>
#include <stdlib.h>
#include "base/boot.h"
#include "base/clock.h"
#include "base/secmem.h"
#include "call/call_int.h"
#include "call/model.h"
#include "call/table.h"

struct saver *calls_saver(struct calls *c)
{
	return &c->saver;
}

int saver_init(struct saver *s, struct call_table *table, const struct relay *relay)
{
	*s = (struct saver){.table = table, .relay = relay, .boot = boot_number()};
	return secmem_random(s->seed, sizeof(s->seed));
}

void saver_fini(struct saver *s)
{
	for (uint32_t i = 0; i < s->ended_n; i++)
		free((void *)(uintptr_t)s->ended[(s->ended_at + i) % SAVE_ENDED_MAX].s);
	free(s->ended);
	*s = (struct saver){0};
}

void unsaved_add(struct saver *s, struct call *c, bool whole)
{
	c->save.whole |= whole;
	if (c->save.listed)
		return;
	c->save.listed = true;
	c->save.next = NULL;
	c->save.prev = s->last;
	*(s->last ? &s->last->save.next : &s->first) = c;
	s->last = c;
}

void unsaved_remove(struct saver *s, struct call *c)
{
	if (!c->save.listed)
		return;
	*(c->save.prev ? &c->save.prev->save.next : &s->first) = c->save.next;
	*(c->save.next ? &c->save.next->save.prev : &s->last) = c->save.prev;
	c->save.prev = c->save.next = NULL;
	c->save.listed = false;
}

void save_changed(struct saver *s, struct call *prev, struct call *next)
{
	if (prev && prev != next) {
		unsaved_remove(s, prev);
		s->cursor = s->cursor == prev ? next : s->cursor;
		s->asked = s->asked == prev ? next : s->asked;
	}
	s->too_long += !prev && next->id.len > SAVE_ID_MAX;
	if (!s->on || next->id.len > SAVE_ID_MAX)
		return;
	next->save.revision++;
	unsaved_add(s, next, true);
}

static void ended_push(struct saver *s, struct str id)
{
	struct str *at;

	if (!s->ended)
		s->ended = calloc(SAVE_ENDED_MAX, sizeof(*s->ended));
	if (!s->ended || s->ended_n == SAVE_ENDED_MAX) {
		s->ended_lost++;
		return;
	}
	at = &s->ended[(s->ended_at + s->ended_n) % SAVE_ENDED_MAX];
	*at = STR_NONE;
	if (str_replace(at, id))
		s->ended_lost++;
	else
		s->ended_n++;
}

void save_ended(struct saver *s, struct call *call)
{
	unsaved_remove(s, call);
	s->cursor = s->cursor == call ? call->next : s->cursor;
	s->asked = s->asked == call ? call->next : s->asked;
	if (s->on && call->id.len <= SAVE_ID_MAX)
		ended_push(s, call->id);
}

void calls_save_gone(struct calls *c, struct str call_id)
{
	struct saver *s = calls_saver(c);

	if (s->on && call_id.len <= SAVE_ID_MAX && !call_table_find(s->table, call_id))
		ended_push(s, call_id);
}

void calls_save_all(struct calls *c)
{
	struct saver *s = calls_saver(c);

	for (struct call *call = s->table->first; call && s->on; call = call->next)
		if (call->id.len <= SAVE_ID_MAX)
			unsaved_add(s, call, true);
}

void calls_shared_clock(struct calls *c, int64_t ahead_ns)
{
	struct saver *s = calls_saver(c);
	int64_t by;
	bool far = __builtin_sub_overflow(ahead_ns, s->shared_ahead_ns, &by);

	s->shared_ahead_ns = ahead_ns;
	/* Restoring compares the times of a call's two records, so both must have the new clock. */
	if (far || by > CLOCK_STEP_NS || by < -CLOCK_STEP_NS)
		calls_save_all(c);
}

void calls_save_start(struct calls *c)
{
	calls_saver(c)->on = true;
	calls_save_all(c);
}

void calls_save_usage(struct calls *c, struct calls_save_usage *out)
{
	const struct saver *s = calls_saver(c);

	*out = (struct calls_save_usage){
		.ended = s->ended_n, .ended_lost = s->ended_lost, .too_long = s->too_long};
	for (const struct call *call = s->first; call; call = call->save.next)
		out->waiting++;
}
