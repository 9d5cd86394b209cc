/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics for the web page in addition to ng's "statistics": the counters of each worker, and
 * whole histograms. */
#include "observe/stats.h"

#include "base/clock.h"
#include "call/call.h"

#define WORKERS_MAX 64u
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

/* Bars: how many values of the last seconds are below 2^first, then from each power of two to the
 * next. "total": since start. */
struct bars {
	const char *key;
	const struct recent *recent;
	uint32_t first, last;
};
static void add_bars(struct pool *p, struct ngval *dict, const struct bars *bars,
	const struct hist *const *h, uint32_t n)
{
	struct ngval *d = ngval_add_dict(p, dict, str_from(bars->key)), *list;
	struct hist_total t;
	struct hist values;
	const struct hist *const one[] = {&values};
	uint64_t before = 0;

	hist_total(&t, h, n);
	add(p, d, "total", t.count);
	add(p, d, "seconds", recent_values(&values, bars->recent, h, n));
	hist_total(&t, one, 1);
	add(p, d, "first", bars->first);
	list = ngval_add_list(p, d, STR("counts"));
	for (uint32_t k = bars->first; k <= bars->last; k++) {
		ngval_add_int(p, list, STR_NONE, (int64_t)(t.below[k] - before));
		before = t.below[k];
	}
	ngval_add_int(p, list, STR_NONE, (int64_t)(t.count - before));
}

static uint64_t drops_of(const struct worker *w)
{
	uint64_t drops = 0;

	for (enum packet_verdict v = PACKET_PASS + 1; v < PACKET_VERDICTS; v++)
		drops += media_drop_count(w->media, v);
	return drops;
}

static void add_worker(struct pool *p, struct ngval *list, const struct worker *w)
{
	const struct steer_counters *c = w->steer_ops->counters(w->steer);
	const struct batch_counters *b = batch_runner_counters(w->runner);
	struct ngval *d = ngval_add_dict(p, list, STR_NONE);

	add(p, d, "packets in", load(&c->recv_packets));
	add(p, d, "packets out", load(&c->send_packets));
	add(p, d, "bytes in", load(&w->bytes_in));
	add(p, d, "drops", drops_of(w));
	add(p, d, "overruns", load(&c->overruns));
	add(p, d, "batches", __atomic_load_n(&b->batches, __ATOMIC_RELAXED));
	add(p, d, "jobs", __atomic_load_n(&b->jobs, __ATOMIC_RELAXED));
	add(p, d, "engine ns", __atomic_load_n(&b->engine_ns, __ATOMIC_RELAXED));
}

static void delays(const struct stats_input *in, const struct hist **h)
{
	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->delay;
}

static void batches(const struct stats_input *in, const struct hist **h)
{
	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->batch;
}

void stats_fill_page(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	const struct hist *h[WORKERS_MAX];
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
	delays(in, h);
	add_bars(p, dict, &(struct bars){"delay", &in->recent, FIRST_POWER, LAST_POWER}, h,
		in->workers);
	batches(in, h);
	add_bars(p, dict, &(struct bars){"batch", &in->recent_batch, 1, 10}, h, in->workers);
	trend_fill(&in->trend, p, dict, true);
}

void stats_fill_history(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	trend_fill(&in->trend, p, dict, false);
}

/* --- Once a second ---------------------------------------------------------------------------- */

static void take_trend(struct stats_input *in, const struct hist *const *h)
{
	struct trend_totals t = {0};
	struct hist_summary late;
	struct calls_counters c = {0};
	uint64_t bytes = 0, relayed = 0;

	calls_counters(in->calls, &c);
	t.calls = c.current;
	for (uint32_t i = 0; i < in->workers; i++) {
		const struct worker *w = in->worker[i];
		const struct steer_counters *s = w->steer_ops->counters(w->steer);

		t.packets_in += load(&s->recv_packets);
		t.packets_out += load(&s->send_packets);
		t.dropped += drops_of(w);
		bytes += load(&w->bytes_in);
		relayed += load(&w->bytes_relayed);
	}
	t.bytes_not_relayed = bytes > relayed ? bytes - relayed : 0;
	recent_summarise(&late, &in->recent, h, in->workers);
	t.p50_ns = late.p50;
	t.p99_ns = late.p99;
	trend_take(&in->trend, &t, clock_mono_ns(), clock_real_ns() / 1000000);
}

void stats_second(struct stats_input *in)
{
	const struct hist *h[WORKERS_MAX];

	delays(in, h);
	take_trend(in, h);
	recent_look(&in->recent, h, in->workers);
	batches(in, h);
	recent_look(&in->recent_batch, h, in->workers);
}
