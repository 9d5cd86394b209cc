/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the web page shows beside ng's "statistics": the same of each worker, and histograms as they are. */
#include "app/stats.h"

#include "base/clock.h"

#define FIRST_POWER 10 /* delays below 1 us make one bar */
#define LAST_POWER  28

static uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void add(struct pool *p, struct ngval *dict, const char *key, uint64_t value)
{
	ngval_add_int(p, dict, str_from(key), (int64_t)value);
}

/* Bars: how many values below 2^first, then from each power of two to the next. */
static void add_bars(struct pool *p, struct ngval *dict, const char *key,
	const struct hist *const *h, uint32_t n, uint32_t first, uint32_t last)
{
	struct ngval *d = ngval_add_dict(p, dict, str_from(key)), *list;
	struct hist_total t;
	uint64_t before = 0;

	hist_total(&t, h, n);
	add(p, d, "first", first);
	list = ngval_add_list(p, d, STR("counts"));
	for (uint32_t k = first; k <= last; k++) {
		ngval_add_int(p, list, STR_NONE, (int64_t)(t.below[k] - before));
		before = t.below[k];
	}
	ngval_add_int(p, list, STR_NONE, (int64_t)(t.count - before));
}

static void add_worker(struct pool *p, struct ngval *list, const struct worker *w)
{
	const struct steer_counters *c = w->steer_ops->counters(w->steer);
	const struct batch_counters *b = batch_runner_counters(w->runner);
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);
	uint64_t drops = 0;

	for (enum media_verdict v = MEDIA_PASS + 1; v < MEDIA_VERDICTS; v++)
		drops += media_drop_count(w->media, v);
	add(p, d, "packets in", load(&c->recv_packets));
	add(p, d, "packets out", load(&c->send_packets));
	add(p, d, "bytes in", load(&w->bytes_in));
	add(p, d, "drops", drops);
	add(p, d, "overruns", load(&c->overruns));
	add(p, d, "batches", __atomic_load_n(&b->batches, __ATOMIC_RELAXED));
	add(p, d, "jobs", __atomic_load_n(&b->jobs, __ATOMIC_RELAXED));
	add(p, d, "engine ns", __atomic_load_n(&b->engine_ns, __ATOMIC_RELAXED));
}

void stats_fill_page(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	const struct hist *h[64];
	struct calls_counters c = {0};
	struct ngval *list, *d;

	stats_fill(in, p, dict);
	calls_counters(in->calls, &c);
	d = ngval_add_dict(p, dict, STR("sessions"));
	add(p, d, "current", c.current);
	add(p, d, "total", c.total);
	add(p, d, "timeouts", c.timeouts);
	add(p, d, "refused", c.refused);
	d = ngval_add_dict(p, dict, STR("suites"));
	for (uint32_t i = 0; i < SUITE_COUNT; i++)
		if (c.suite[i])
			add(p, d, i ? srtp_suite_get(i)->name : "plain", c.suite[i]);
	list = ngval_add_list(p, dict, STR("workers"));
	for (uint32_t i = 0; i < in->workers; i++)
		add_worker(p, list, in->worker[i]);
	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->delay;
	add_bars(p, dict, "delay", h, in->workers, FIRST_POWER, LAST_POWER);
	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->batch;
	add_bars(p, dict, "batch", h, in->workers, 1, 10);
}
