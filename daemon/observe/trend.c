/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See trend.h. */
#include "observe/trend.h"

#include "base/clock.h"

#define SLACK_NS (TREND_EVERY_NS / 4) /* timers may be late, and then early */

static uint64_t per_second(uint64_t now, uint64_t before, uint64_t ns)
{
	return now > before ? (uint64_t)((double)(now - before) * 1e9 / (double)ns + 0.5) : 0;
}

void trend_take(struct trend *t, const struct trend_totals *now, uint64_t mono_ns, uint64_t unix_ms)
{
	const struct trend_totals *old = &t->before;
	uint64_t ns = mono_ns - t->before_ns;

	if (t->before_ns && ns + SLACK_NS < TREND_EVERY_NS)
		return;
	if (t->before_ns && ns <= 3 * TREND_EVERY_NS)
		t->sample[t->taken++ % TREND_SAMPLES] = (struct trend_sample){.unix_ms = unix_ms,
			.packets_in = per_second(now->packets_in, old->packets_in, ns),
			.packets_out = per_second(now->packets_out, old->packets_out, ns),
			.dropped = per_second(now->dropped, old->dropped, ns),
			.bytes_not_relayed =
				per_second(now->bytes_not_relayed, old->bytes_not_relayed, ns),
			.calls = now->calls,
			.p50_us = now->p50_ns / 1000,
			.p99_us = now->p99_ns / 1000};
	t->before = *now;
	t->before_ns = mono_ns;
}

static void add(struct pool *p, struct ngval *list, const struct trend_sample *s)
{
	const uint64_t value[] = {s->unix_ms, s->calls, s->packets_in, s->packets_out, s->dropped,
		s->p50_us, s->p99_us, s->bytes_not_relayed};
	struct ngval *one = ngval_add_list(p, list, STR_NONE);

	for (size_t i = 0; i < ARRAY_LEN(value); i++)
		ngval_add_int(p, one, STR_NONE, (int64_t)value[i]);
}

void trend_fill(const struct trend *t, struct pool *p, struct ngval *dict, bool newest)
{
	struct ngval *list = ngval_add_list(p, dict, STR("samples"));
	uint64_t n = t->taken < TREND_SAMPLES ? t->taken : TREND_SAMPLES;

	if (newest && n > 1)
		n = 1;
	for (uint64_t i = t->taken - n; i < t->taken; i++)
		add(p, list, &t->sample[i % TREND_SAMPLES]);
	ngval_add_int(p, dict, STR("sample ms"), TREND_EVERY_NS / 1000000);
}
