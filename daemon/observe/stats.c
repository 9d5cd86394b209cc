/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums over workers. Counters are relaxed: the sums may be a packet apart from each other, never
 * wrong by more. */
#include "observe/stats.h"

#include "batch/calibrate.h"
#include "observe/keying.h"
#include "observe/mikey.h"
#include "base/clock.h"
#include "batch/engine.h"
#include "call/call.h"

static uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static uint64_t load_plain(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

static void add(struct pool *p, struct ngval *dict, const char *key, uint64_t value)
{
	ngval_add_int(p, dict, str_from(key), (int64_t)value);
}

static void add_text(struct pool *p, struct ngval *dict, const char *key, const char *value)
{
	ngval_add_str(p, dict, str_from(key), str_from(value));
}

static void fill_batches(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct batch_counters sum = {0};
	uint32_t device_min =
		in->engines->devices ? in->engines->device[0].min[BATCH_CM] : BATCH_NEVER;

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct batch_counters *c = batch_runner_counters(in->worker[i]->runner);

		sum.batches += load_plain(&c->batches);
		sum.jobs += load_plain(&c->jobs);
		sum.device_batches += load_plain(&c->device_batches);
		sum.device_jobs += load_plain(&c->device_jobs);
		sum.device_errors += load_plain(&c->device_errors);
		sum.overlapped += load_plain(&c->overlapped);
		sum.engine_ns += load_plain(&c->engine_ns);
	}
	add(p, dict, "batches", sum.batches);
	add(p, dict, "jobs", sum.jobs);
	ngval_add_str(p, dict, STR("mean batch"),
		pool_printf(p, "%.2f", sum.batches ? (double)sum.jobs / (double)sum.batches : 0.0));
	add(p, dict, "device batches", sum.device_batches);
	add(p, dict, "device jobs", sum.device_jobs);
	add(p, dict, "device errors", sum.device_errors);
	add(p, dict, "device batches overlapped", sum.overlapped);
	add(p, dict, "device minimum batch", device_min);
	add(p, dict, "engine ns per packet", sum.jobs ? sum.engine_ns / sum.jobs : 0);
}

/* For each class of batches: the smallest batch the device is used for, and the measurements. */
static void fill_classes(const struct batch_device *d, struct pool *p, struct ngval *dict)
{
	for (int kind = 0; kind < BATCH_CLASSES; kind++) {
		struct ngval *c = ngval_add_dict(p, dict, str_from(batch_class_name[kind])), *list;

		if (d->min[kind] == BATCH_NEVER)
			add_text(p, c, "from batch", "never");
		else
			add(p, c, "from batch", d->min[kind]);
		list = ngval_add_list(p, c, STR("measured"));
		for (uint32_t i = 0; i < BATCH_SIZES; i++) {
			struct ngval *m;

			if (!d->cost[kind][i].serial_ns)
				continue;
			m = ngval_add_dict(p, list, STR_NONE);
			add(p, m, "batch", 1u << i);
			add(p, m, "device ns", d->cost[kind][i].device_ns);
			add(p, m, "serial ns", d->cost[kind][i].serial_ns);
		}
	}
}

static void fill_device(
	const struct stats_input *in, uint32_t at, struct pool *p, struct ngval *dict)
{
	const struct batch_device *d = &in->engines->device[at];
	struct batch_device_counters sum = {0};

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct batch_device_counters *c =
			batch_runner_device_counters(in->worker[i]->runner, at);

		sum.batches += load_plain(&c->batches);
		sum.jobs += load_plain(&c->jobs);
		sum.errors += load_plain(&c->errors);
		sum.ns += load_plain(&c->ns);
	}
	add_text(p, dict, "name", d->ops->device(d->engine));
	add_text(p, dict, "state", atomic_load(&d->lost) ? "lost" : "ok");
	add(p, dict, "weight", d->weight);
	add(p, dict, "batches", sum.batches);
	add(p, dict, "jobs", sum.jobs);
	add(p, dict, "errors", sum.errors);
	add(p, dict, "ns per packet", sum.jobs ? sum.ns / sum.jobs : 0);
	add_text(p, dict, "minimum", d->fixed_min ? "configured" : "measured");
	fill_classes(d, p, ngval_add_dict(p, dict, STR("classes")));
}

static void fill_devices(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct ngval *list = ngval_add_list(p, dict, STR("devices"));

	for (uint32_t i = 0; i < in->engines->devices; i++)
		fill_device(in, i, p, ngval_add_dict(p, list, STR_NONE));
}

static void fill_rules(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct rules_keep_usage u;
	struct ngval *d = ngval_add_dict(p, dict, STR("rules"));

	rules_keep_usage(in->rules, &u);
	add(p, d, "missing", u.missing);
	add(p, d, "set again", u.again);
}

static void fill_steering(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	static const char *const names[] = {
#define X(id, name) [STEER_EVENT_##id] = name,
		STEER_EVENTS(X)
#undef X
	};
	struct kernel_watch_usage kernel;
	struct ngval *events;
	struct bridge_usage usage;
	uint64_t steered[STEER_COUNTER_N] = {0}, bursts = 0, command_errors = 0, pierced = 0,
		 bytes = 0, relayed = 0;

	bridge_usage(in->relay, &usage);
	for (uint32_t i = 0; i < in->workers; i++) {
		const struct worker *w = in->worker[i];
		const struct steer_counters *c = w->steer_ops->counters(w->steer);

		for (int k = 0; k < STEER_COUNTER_N; k++)
			steered[k] += steer_counter_load(c, (enum steer_counter)k);
		bursts += load(&w->bursts);
		command_errors += load(&w->command_errors);
		pierced += load(&w->pierced);
		bytes += load(&w->bytes_in);
		relayed += load(&w->bytes_relayed);
	}
	add(p, dict, "bursts", bursts);
	add(p, dict, "bytes received", bytes);
	add(p, dict, "bytes not relayed", bytes > relayed ? bytes - relayed : 0);
	kernel_watch_usage(in->kernel, &kernel);
	steered[STEER_COUNTER_source_limit] += kernel.over_source_rate;
	for (int k = 0; k < STEER_COUNTER_N; k++)
		add(p, dict, steer_counter_row[k].key, steered[k]);
	add(p, dict, "command errors", command_errors);
	add(p, dict, "pierce packets", pierced);
	add(p, dict, "streams relayed by the kernel", usage.offload.streams);
	add(p, dict, "packets relayed by the kernel", usage.offload.packets);
	add(p, dict, "moves to the kernel and back", usage.offload.moves);
	add(p, dict, "kernel module gone", kernel.gone);
	add(p, dict, "kernel module returns", kernel.returns);
	events = ngval_add_dict(p, dict, STR("kernel events"));
	for (int i = 0; i < STEER_EVENT_KINDS; i++)
		add(p, events, names[i], kernel.events[i]);
}

static void add_us(struct pool *p, struct ngval *dict, const char *key, uint64_t ns)
{
	ngval_add_str(p, dict, str_from(key), pool_printf(p, "%.1f", (double)ns / 1000.0));
}

#define WORKERS_MAX 64

static void add_times(struct pool *p, struct ngval *dict, const char *key,
	const struct hist *const *h, uint32_t workers)
{
	struct ngval *d = ngval_add_dict(p, dict, str_from(key));
	struct hist_summary s;

	hist_summarise(&s, h, workers);
	add(p, d, "count", s.count);
	add_us(p, d, "mean_us", s.mean);
	add_us(p, d, "p50_us", s.p50);
	add_us(p, d, "p90_us", s.p90);
	add_us(p, d, "p99_us", s.p99);
	add_us(p, d, "max_us", s.max);
}

/* The same for the last ten seconds, because values since the start hide a present problem. */
static void add_recent(struct pool *p, struct ngval *dict, const struct stats_input *in,
	const struct hist *const *h)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("latency now"));
	struct hist_summary s;

	add(p, d, "seconds", recent_summarise(&s, &in->recent, h, in->workers));
	add(p, d, "count", s.count);
	add_us(p, d, "p50_us", s.p50);
	add_us(p, d, "p99_us", s.p99);
	add_us(p, d, "max_us", s.max);
}

/* latency: from the moment the kernel received a packet until the send call for its result came
 * back. stages: where that time goes; "queue" is per packet, the others are per burst. */
static void fill_latency(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	static const char *const names[] = {
#define X(id, name) name,
		WORKER_STAGE_LIST(X)
#undef X
	};
	const struct hist *h[WORKERS_MAX];
	struct ngval *stages;

	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->delay;
	add_times(p, dict, "latency", h, in->workers);
	add_recent(p, dict, in, h);
	stages = ngval_add_dict(p, dict, STR("stages"));
	for (uint32_t s = 0; s < WORKER_STAGES; s++) {
		for (uint32_t i = 0; i < in->workers; i++)
			h[i] = &in->worker[i]->stage[s];
		add_times(p, stages, names[s], h, in->workers);
	}
}

static void fill_burst_sizes(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	const struct hist *h[WORKERS_MAX];
	struct hist_summary s;
	struct ngval *size = ngval_add_dict(p, dict, STR("burst size"));

	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->batch;
	hist_summarise(&s, h, in->workers);
	add(p, size, "p50", s.p50);
	add(p, size, "p90", s.p90);
	add(p, size, "p99", s.p99);
	add(p, size, "max", s.max);
}

static void add_quantiles(struct pool *p, struct ngval *dict, const char *key, const struct hist *h)
{
	struct ngval *d = ngval_add_dict(p, dict, str_from(key));
	struct hist_summary s;

	hist_summarise(&s, &h, 1);
	add(p, d, "p50", s.p50);
	add(p, d, "p99", s.p99);
	add(p, d, "max", s.max);
}

/* The same counters for each worker: calls are not distributed evenly. */
static void fill_workers(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	static const char *const names[] = {
#define X(id, name) name " ns",
		WORKER_STAGE_LIST(X)
#undef X
	};
	struct ngval *list = ngval_add_list(p, dict, STR("each worker"));

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct worker *w = in->worker[i];
		const struct steer_counters *c = w->steer_ops->counters(w->steer);
		struct ngval *d = ngval_add_dict(p, list, STR_NONE);

		for (int k = 0; k < STEER_COUNTER_N; k++)
			if (steer_counter_row[k].each)
				add(p, d, steer_counter_row[k].key,
					steer_counter_load(c, (enum steer_counter)k));
		add_quantiles(p, d, "burst size", &w->batch);
		for (uint32_t s = 0; s < WORKER_STAGES; s++)
			add_quantiles(p, d, names[s], &w->stage[s]);
	}
}

static void fill_drops(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct ngval *drops = ngval_add_dict(p, dict, STR("drops"));

	for (enum packet_verdict v = PACKET_PASS + 1; v < PACKET_VERDICTS; v++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < in->workers; i++)
			sum += media_drop_count(in->worker[i]->media, v);
		add(p, drops, packet_drop_name(v), sum);
	}
}

/* Packets that the keying threads took, by kind. */
static void fill_side(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct ngval *side = ngval_add_dict(p, dict, STR("keying packets"));

	for (enum side_kind k = 0; k < SIDE_KINDS_N; k++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < in->workers; i++)
			sum += media_side_count(in->worker[i]->media, k);
		add(p, side, side_kind_name(k), sum);
	}
}

/* Streams that receive more forged packets than true ones. */
static void fill_attacks(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	uint64_t begun = 0, now = 0, left_out = 0;

	for (uint32_t i = 0; i < in->workers; i++) {
		begun += media_attacks(in->worker[i]->media);
		now += media_attacked(in->worker[i]->media);
		left_out += media_attacks_left_out(in->worker[i]->media);
	}
	add(p, dict, "attacks", begun);
	add(p, dict, "attacks without a guard", left_out);
	add(p, dict, "streams under attack", now);
}

/* Master keys that came near the end of their lifetime, and that reached it. */
static void fill_lifetimes(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	uint64_t warned = 0, expired = 0;

	for (uint32_t i = 0; i < in->workers; i++) {
		uint64_t w, e;

		media_lifetime_events(in->worker[i]->media, &w, &e);
		warned += w;
		expired += e;
	}
	add(p, dict, "keys nearly used up", warned);
	add(p, dict, "keys used up", expired);
}

static void fill_recording(const struct record *r, struct pool *p, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("recording"));
	struct record_stats s;

	record_stats(r, &s);
	add(p, d, "recordings", s.recordings);
	add(p, d, "active", s.active);
	add(p, d, "packets", s.packets);
	add(p, d, "bytes", s.bytes);
	add(p, d, "lost", s.lost);
	add(p, d, "errors", s.errors);
	add(p, d, "removed", s.removed);
	add(p, d, "skipped", s.skipped);
}

/* The limit that refuses new calls now, the measured values, and the number of calls that each
 * limit refused. */
void stats_fill_limits(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	static const char *const names[] = {[CALL_LIMIT_NONE] = "none",
#define X(id, name, message) [CALL_LIMIT_##id] = name,
		CALL_LIMITS(X)
#undef X
	};
	const struct limits *l = in->limits;
	struct ngval *d = ngval_add_dict(p, dict, STR("limits"));
	struct calls_counters c = {0};
	struct {
		double now, max;
	} v[CALL_LIMIT_COUNT] = {
		[CALL_LIMIT_CPU] = {l->cpu, l->cfg.cpu},
		[CALL_LIMIT_LOAD] = {l->load, l->cfg.load},
		[CALL_LIMIT_BANDWIDTH] = {l->bandwidth, (double)l->cfg.bandwidth},
	};

	calls_counters(in->calls, &c);
	v[CALL_LIMIT_SESSIONS].now = (double)c.current;
	v[CALL_LIMIT_SESSIONS].max = in->max_sessions;
	add_text(p, d, "reached",
		names[in->max_sessions && c.current >= in->max_sessions ? CALL_LIMIT_SESSIONS
									: l->reached]);
	add(p, d, "emergency calls", c.emergencies);
	for (int i = CALL_LIMIT_NONE + 1; i < CALL_LIMIT_COUNT; i++) {
		struct ngval *one = ngval_add_dict(p, d, str_from(names[i]));

		ngval_add_str(p, one, STR("now"), pool_printf(p, "%.2f", v[i].now));
		ngval_add_str(p, one, STR("limit"),
			v[i].max > 0 ? pool_printf(p, "%.2f", v[i].max) : STR("none"));
		add(p, one, "refused", c.limited[i]);
	}
}

/* Of all reports: number, sum of their values, and mean, in the unit that clients of ng expect. */
static void add_samples(struct pool *p, struct ngval *d, const char *name, uint64_t n, double sum)
{
	ngval_add_str(p, d, pool_printf(p, "%s_total", name), pool_printf(p, "%.6f", sum));
	ngval_add_int(p, d, pool_printf(p, "%s_samples_total", name), (int64_t)n);
	ngval_add_str(p, d, pool_printf(p, "%s_average", name),
		pool_printf(p, "%.6f", n ? sum / (double)n : 0.0));
}

/* Quality that terminals report by RTCP: MOS, jitter in ms, round trips in us, loss in percent. */
static void fill_quality(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	const struct hist *jitter[WORKERS_MAX], *rtt[WORKERS_MAX], *loss[WORKERS_MAX];
	struct ngval *d = ngval_add_dict(p, dict, STR("mos"));
	uint64_t sum = 0, n = 0;
	struct hist_total t;

	for (uint32_t i = 0; i < in->workers; i++) {
		struct media_quality_totals q;

		media_quality_totals(in->worker[i]->media, &q);
		jitter[i] = q.jitter_us;
		rtt[i] = q.rtt_us;
		loss[i] = q.loss;
		sum += q.mos_sum;
		n += q.reports;
	}
	add_samples(p, d, "mos", n, (double)sum / 100);
	d = ngval_add_dict(p, dict, STR("voip_metrics"));
	hist_total(&t, jitter, in->workers);
	add_samples(p, d, "jitter", t.count, (double)t.sum / 1000);
	hist_total(&t, rtt, in->workers);
	add_samples(p, d, "rtt_e2e", t.count, (double)t.sum);
	hist_total(&t, loss, in->workers);
	add_samples(p, d, "packetloss", t.count, (double)t.sum / 100);
}

void stats_fill(const struct stats_input *in, struct pool *p, struct ngval *dict)
{
	struct ngval *x = ngval_add_dict(p, dict, STR("xcipher"));
	struct bridge_usage u;

	bridge_usage(in->relay, &u);
	add_text(p, x, "version", XCIPHER_VERSION);
	add_text(p, x, "engine", in->engines->devices ? "opencl" : "serial");
	add_text(p, x, "device",
		in->engines->devices ? engine_opencl.device(in->engines->device[0].engine)
				     : engine_serial.device(in->engines->serial));
	add_text(p, x, "steering", in->steering);
	add_text(p, x, "socket calls", in->socket_calls);
	add(p, x, "workers", in->workers);
	add(p, x, "uptime", (clock_mono_ns() - in->started_mono_ns) / NS_PER_SEC);
	add(p, x, "ports used", u.ports);
	add(p, x, "ports free", u.ports_free);
	add(p, x, "streams used", u.streams);
	add(p, x, "contexts used", u.contexts);
	add(p, x, "key slots used", u.key_slots);
	add(p, x, "commands waiting", u.backlog);
	add(p, x, "shortages", u.shortages);
	fill_batches(in, p, x);
	fill_devices(in, p, x);
	fill_steering(in, p, x);
	fill_rules(in, p, x);
	fill_burst_sizes(in, p, x);
	fill_latency(in, p, x);
	fill_workers(in, p, x);
	fill_drops(in, p, x);
	fill_side(in, p, x);
	fill_attacks(in, p, x);
	fill_lifetimes(in, p, x);
	stats_fill_limits(in, p, x);
	if (in->redis)
		redis_stats(in->redis, p, x);
	if (in->sessions)
		keying_stats(in->sessions, p, x);
	if (in->mikey)
		mikey_stats(in->mikey, p, x);
	if (in->record)
		fill_recording(in->record, p, x);
	fill_quality(in, p, dict);
}
