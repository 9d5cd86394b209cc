/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics, family by family, named as rtpengine's where they mean the same. Labels take their
 * values from tables of ours only (commands, suites, causes, stages, classes, devices up to
 * BATCH_DEVICES_MAX): nothing that a client sends becomes one, so their number is bounded. Nothing
 * is stopped to be read. */
#include "observe/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "call/call.h"
#include "observe/homer.h"
#include "base/clock.h"
#include "observe/prometheus.h"
#include "control/tcp.h"
#include "control/teardown.h"
#include "media/learn.h"

#define LABEL_LEN   192
#define WORKERS_MAX 64

#define COUNTER METRICS_COUNTER
#define GAUGE   METRICS_GAUGE

static uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static uint64_t load_plain(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

static const char *label(char out[LABEL_LEN], const char *key, const char *value)
{
	snprintf(out, LABEL_LEN, "%s=\"%s\"", key, value);
	return out;
}

/* --- Calls and ng ----------------------------------------------------------------------------- */

static const char *const limit_names[] = {[CALL_LIMIT_NONE] = "none",
#define X(id, name, message) [CALL_LIMIT_##id] = name,
	CALL_LIMITS(X)
#undef X
};

static void write_calls(const struct stats_input *in, struct sbuf *b)
{
	struct calls_counters c = {0};
	uint64_t closed, limited = 0;
	char text[LABEL_LEN];

	calls_counters(in->calls, &c);
	closed = c.total > c.current ? c.total - c.current : 0;
	metrics_one(b, "sessions", GAUGE, "Calls now.", c.current);
	metrics_one(b, "sessions_total", COUNTER, "Calls since start.", c.total);
	metrics_family(b, "closed_sessions_total", COUNTER, "Calls that ended, by reason.");
	metrics_u64(b, "closed_sessions_total", "reason=\"timeout\"", c.timeouts);
	metrics_u64(b, "closed_sessions_total", "reason=\"regular\"",
		closed > c.timeouts ? closed - c.timeouts : 0);
	metrics_one(b, "one_way_sessions_total", COUNTER,
		"Calls that ended with media from one side only.", c.ended.one_way);
	metrics_one(b, "zero_packet_streams_total", COUNTER,
		"Streams of ended calls, by side, from which no packet was received.",
		c.ended.silent_streams);
	metrics_one(b, "answered_sessions_total", COUNTER, "Calls that ended and were answered.",
		c.ended.answered);
	metrics_one_real(b, "call_duration_seconds_total", COUNTER,
		"Duration of ended calls, from the offer to the last packet or request.",
		(double)c.ended.duration_ns / 1e9);
	metrics_family(b, "rejected_sessions_total", COUNTER, "New calls refused, by limit.");
	for (int i = CALL_LIMIT_NONE + 1; i < CALL_LIMIT_COUNT; i++) {
		limited += c.limited[i];
		metrics_u64(b, "rejected_sessions_total", label(text, "limit", limit_names[i]),
			c.limited[i]);
	}
	metrics_u64(b, "rejected_sessions_total", "limit=\"other\"",
		c.refused > limited ? c.refused - limited : 0);
	metrics_family(b, "srtp_to_rtp_total", COUNTER,
		"Streams that changed from SRTP to RTP during a call, by cause.");
	metrics_u64(b, "srtp_to_rtp_total", "by=\"flags\"", c.weaker_by_order);
	metrics_u64(b, "srtp_to_rtp_total", "by=\"terminal\"", c.weaker_by_terminal);
	metrics_one(b, "emergency_sessions_total", COUNTER, "Calls marked as emergencies.",
		c.emergencies);
	metrics_family(b, "media", GAUGE, "Streams of calls, by side and crypto suite.");
	for (uint32_t i = 0; i < SUITE_COUNT; i++)
		metrics_u64(b, "media", label(text, "suite", i ? srtp_suite_get(i)->name : "plain"),
			c.suite[i]);
	metrics_one(b, "media_passed_through", GAUGE,
		"Passed-through streams, relayed unchanged under the terminals' own keys.",
		c.passed);
	metrics_one(b, "streams", GAUGE, "Local ports used by calls.", c.streams);
}

static void write_requests(const struct handler *h, struct sbuf *b)
{
	static const struct {
		const char *name, *help;
	} families[] = {
		{"requests_total",
			"ng requests, by command; none: messages that are no valid request."},
		{"errors_total", "ng requests answered with an error or a load limit."},
		{"request_seconds_total", "Time spent on ng requests."},
	};
	char text[LABEL_LEN], name[64];

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		metrics_family(b, families[f].name, COUNTER, families[f].help);
		for (int c = NG_NONE; c < NG_COMMAND_COUNT; c++) {
			struct handler_count n = handler_count(h, (enum ng_command)c);

			snprintf(name, sizeof(name), "%s", ng_command_name((enum ng_command)c));
			label(text, "command", name);
			if (f == 2)
				metrics_real(b, families[f].name, text, (double)n.ns / 1e9);
			else
				metrics_u64(b, families[f].name, text, f ? n.errors : n.requests);
		}
	}
	metrics_one(b, "repeated_requests_total", COUNTER,
		"ng requests that were answered from the cache.", handler_duplicates(h));
	metrics_family(
		b, "ng_dropped_total", COUNTER, "ng messages dropped without a reply, by reason.");
	for (int i = 0; i < NG_DROP_COUNT; i++)
		metrics_u64(b, "ng_dropped_total",
			label(text, "reason", handler_drop_name((enum ng_drop)i)),
			handler_drops(h, (enum ng_drop)i));
}

static void write_connections(const struct metrics_input *in, struct sbuf *b)
{
	if (!in->tcp && !in->proxies)
		return;
	metrics_family(b, "connections", GAUGE, "Open connections of clients.");
	if (in->tcp)
		metrics_u64(b, "connections", "transport=\"tcp\"", ng_tcp_connections(in->tcp));
	if (in->proxies)
		metrics_u64(
			b, "connections", "transport=\"unix\"", ng_tcp_connections(in->proxies));
}

static void write_homer(const struct homer *h, struct sbuf *b)
{
	struct homer_counters c;

	if (!h)
		return;
	c = homer_counters(h);
	metrics_family(b, "homer_reports_total", COUNTER, "RTCP reports for the Homer server.");
	metrics_u64(b, "homer_reports_total", "result=\"sent\"", c.sent);
	metrics_u64(b, "homer_reports_total", "result=\"failed\"", c.failed);
}

static void write_teardown(const struct teardown *t, struct sbuf *b)
{
	struct teardown_counters c;

	if (!t)
		return;
	c = teardown_counters(t);
	metrics_family(b, "teardown_messages_total", COUNTER,
		"Messages to the SIP side about calls that timed out.");
	metrics_u64(b, "teardown_messages_total", "result=\"told\"", c.told);
	metrics_u64(b, "teardown_messages_total", "result=\"failed\"", c.failed);
	metrics_u64(b, "teardown_messages_total", "result=\"dropped\"", c.dropped);
	metrics_one(b, "teardown_messages_waiting", GAUGE, "Messages that are not answered yet.",
		c.waiting);
}

static void write_limits(const struct stats_input *in, struct sbuf *b)
{
	const struct limits *l = in->limits;
	struct calls_counters c = {0};
	char text[LABEL_LEN];

	calls_counters(in->calls, &c);
	metrics_family(b, "load_limit_reached", GAUGE,
		"1 while new calls are refused because of this limit.");
	for (int i = CALL_LIMIT_NONE + 1; i < CALL_LIMIT_COUNT; i++)
		metrics_u64(b, "load_limit_reached", label(text, "limit", limit_names[i]),
			i == CALL_LIMIT_SESSIONS ? in->max_sessions && c.current >= in->max_sessions
						 : l->reached == (enum call_limit)i);
	metrics_family(b, "load_limit", GAUGE, "Configured limits; 0: no limit.");
	metrics_u64(b, "load_limit", "limit=\"sessions\"", in->max_sessions);
	metrics_real(b, "load_limit", "limit=\"cpu\"", l->cfg.cpu / 100);
	metrics_real(b, "load_limit", "limit=\"load\"", l->cfg.load);
	metrics_u64(b, "load_limit", "limit=\"bandwidth\"", l->cfg.bandwidth);
	metrics_one_real(b, "machine_cpu_ratio", GAUGE,
		"How busy the machine's processors are, 0 to 1.", l->cpu / 100);
	metrics_one_real(
		b, "machine_load", GAUGE, "The machine's load average of a minute.", l->load);
	metrics_one_real(b, "media_bytes_per_second", GAUGE, "Bytes of relayed media received.",
		l->bandwidth);
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void write_counters(const uint64_t steered[STEER_COUNTER_N], struct sbuf *b)
{
	const char *family = "";

	for (int k = 0; k < STEER_COUNTER_N; k++) {
		const struct steer_counter_row *r = &steer_counter_row[k];

		if (!*r->metric)
			continue;
		if (strcmp(r->metric, family) != 0)
			metrics_family(b, r->metric, COUNTER, r->help);
		metrics_u64(b, r->metric, *r->label ? r->label : NULL, steered[k]);
		family = r->metric;
	}
}

static void write_steering(const struct stats_input *in, struct sbuf *b)
{
	uint64_t steered[STEER_COUNTER_N] = {0}, bytes = 0, relayed = 0;

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct worker *w = in->worker[i];
		const struct steer_counters *c = w->steer_ops->counters(w->steer);

		for (int k = 0; k < STEER_COUNTER_N; k++)
			steered[k] += steer_counter_load(c, (enum steer_counter)k);
		bytes += load(&w->bytes_in);
		relayed += load(&w->bytes_relayed);
	}
	write_counters(steered, b);
	metrics_one(b, "bytes_total", COUNTER, "Bytes of media received.", bytes);
	metrics_one(b, "bytes_relayed_total", COUNTER,
		"Bytes of media received and relayed; the rest was dropped.", relayed);
}

static void write_rules(const struct stats_input *in, struct sbuf *b)
{
	struct rules_keep_usage u;

	rules_keep_usage(in->rules, &u);
	metrics_one(b, "rules_missing", GAUGE,
		"1 while netfilter rules are missing because another program removed them.",
		u.missing);
	metrics_one(b, "rules_set_again_total", COUNTER,
		"Number of times that removed netfilter rules were set again.", u.again);
}

static void write_interfaces(const struct interfaces *in, struct sbuf *b)
{
	char label[LABEL_LEN], addr[ENDPOINT_STRLEN];

	if (!in)
		return;
	metrics_family(b, "interface_up", GAUGE,
		"1 while the network interface of this local address works.");
	for (uint32_t i = 0; i < in->n; i++) {
		snprintf(label, sizeof(label), "interface=\"%s\",address=\"%s\"",
			in->one[i].local->name, endpoint_fmt_addr(&in->one[i].local->addr, addr));
		metrics_u64(b, "interface_up", label, in->one[i].state == INTERFACE_WORKS);
	}
}

static void write_kernel(const struct stats_input *in, struct sbuf *b)
{
	static const char *const names[] = {
#define X(id, name) [STEER_EVENT_##id] = name,
		STEER_EVENTS(X)
#undef X
	};
	struct kernel_watch_usage k;
	struct bridge_usage u;
	char text[LABEL_LEN];

	kernel_watch_usage(in->kernel, &k);
	bridge_usage(in->relay, &u);
	metrics_one(b, "kernel_streams", GAUGE, "Streams that nf_xcipher relays in the kernel.",
		u.offload.streams);
	metrics_one(b, "kernel_packets_total", COUNTER, "Packets that nf_xcipher relayed.",
		u.offload.packets);
	metrics_family(b, "kernel_events_total", COUNTER,
		"Events that nf_xcipher reported; flood: at most one per second and port.");
	for (int i = 0; i < STEER_EVENT_KINDS; i++)
		metrics_u64(b, "kernel_events_total", label(text, "event", names[i]), k.events[i]);
	metrics_one(b, "kernel_events_lost_total", COUNTER,
		"Number of times that such events were lost: they arrived faster than they were read.",
		k.lost);
	metrics_one(b, "kernel_module_gone", GAUGE,
		"1 while the kernel module is missing after it was unloaded in use.", k.gone);
	metrics_one(b, "kernel_module_returns_total", COUNTER,
		"Number of times that the module was loaded again and used.", k.returns);
}

static void write_handovers(const struct stats_input *in, struct sbuf *b)
{
	char text[LABEL_LEN];

	metrics_family(b, "source_handovers_total", COUNTER,
		"Confirmed media sources replaced by another source, by cause.");
	for (uint8_t cause = 1; cause < LEARN_CAUSE_N; cause++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < in->workers; i++)
			sum += media_handovers(in->worker[i]->media, cause);
		metrics_u64(b, "source_handovers_total",
			label(text, "cause", learn_cause_name((enum learn_cause)cause)), sum);
	}
}

static void write_drops(const struct stats_input *in, struct sbuf *b)
{
	uint64_t warned = 0, expired = 0;
	char text[LABEL_LEN];

	metrics_family(b, "packet_errors_total", COUNTER, "Packets that were dropped, by cause.");
	for (enum packet_verdict v = PACKET_PASS + 1; v < PACKET_VERDICTS; v++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < in->workers; i++)
			sum += media_drop_count(in->worker[i]->media, v);
		metrics_u64(
			b, "packet_errors_total", label(text, "cause", packet_drop_name(v)), sum);
	}
	for (uint32_t i = 0; i < in->workers; i++) {
		uint64_t w, e;

		media_lifetime_events(in->worker[i]->media, &w, &e);
		warned += w;
		expired += e;
	}
	metrics_family(b, "key_lifetimes_total", COUNTER,
		"Master keys whose lifetime is used up to 90 % or fully.");
	metrics_u64(b, "key_lifetimes_total", "used=\"nearly\"", warned);
	metrics_u64(b, "key_lifetimes_total", "used=\"wholly\"", expired);
}

/* Quality that terminals report by RTCP. */
static void write_quality(const struct stats_input *in, struct sbuf *b)
{
	const struct hist *jitter[WORKERS_MAX], *rtt[WORKERS_MAX], *loss[WORKERS_MAX];
	uint64_t mos[RTCP_MOS_BUCKETS] = {0}, sum = 0, n = 0;
	char text[LABEL_LEN];

	for (uint32_t i = 0; i < in->workers; i++) {
		struct media_quality_totals t;

		media_quality_totals(in->worker[i]->media, &t);
		jitter[i] = t.jitter_us;
		rtt[i] = t.rtt_us;
		loss[i] = t.loss;
		sum += t.mos_sum;
		for (int k = 0; k < RTCP_MOS_BUCKETS; k++)
			mos[k] += t.mos[k];
	}
	metrics_family(b, "rtcp_mos", METRICS_HISTOGRAM,
		"Mean opinion scores (1 to 5) estimated from RTCP, a value per report.");
	for (int k = 0; k < RTCP_MOS_BUCKETS; k++) {
		n += mos[k];
		snprintf(text, sizeof(text), "%.1f", 1.5 + k / 2.0);
		sbuf_printf(b, METRICS_PREFIX "rtcp_mos_bucket{le=\"%s\"} %" PRIu64 "\n",
			k == RTCP_MOS_BUCKETS - 1 ? "+Inf" : text, n);
	}
	metrics_real(b, "rtcp_mos_sum", NULL, (double)sum / 100);
	metrics_u64(b, "rtcp_mos_count", NULL, n);
	metrics_family(b, "rtcp_jitter_seconds", METRICS_HISTOGRAM, "Jitter in RTCP reports.");
	metrics_hist(b, "rtcp_jitter_seconds", NULL,
		&(struct metrics_buckets){jitter, in->workers, 8, 20, 1e-6});
	metrics_family(b, "rtcp_round_trip_seconds", METRICS_HISTOGRAM,
		"Round trips from terminal to terminal, from RTCP reports.");
	metrics_hist(b, "rtcp_round_trip_seconds", NULL,
		&(struct metrics_buckets){rtt, in->workers, 10, 22, 1e-6});
	metrics_family(
		b, "rtcp_loss_ratio", METRICS_HISTOGRAM, "Lost packets in RTCP reports, 0 to 1.");
	metrics_hist(b, "rtcp_loss_ratio", NULL,
		&(struct metrics_buckets){loss, in->workers, 4, 13, 1e-4});
}

/* --- Batches ---------------------------------------------------------------------------------- */

static void write_batches(const struct stats_input *in, struct sbuf *b)
{
	struct batch_counters sum = {0};

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct batch_counters *c = batch_runner_counters(in->worker[i]->runner);

		sum.batches += load_plain(&c->batches);
		sum.jobs += load_plain(&c->jobs);
		sum.device_batches += load_plain(&c->device_batches);
		sum.device_jobs += load_plain(&c->device_jobs);
		sum.engine_ns += load_plain(&c->engine_ns);
	}
	metrics_family(b, "batches_total", COUNTER, "Batches, by engine.");
	metrics_u64(b, "batches_total", "engine=\"opencl\"", sum.device_batches);
	metrics_u64(b, "batches_total", "engine=\"serial\"", sum.batches - sum.device_batches);
	metrics_family(b, "batch_packets_total", COUNTER, "Packets in these batches.");
	metrics_u64(b, "batch_packets_total", "engine=\"opencl\"", sum.device_jobs);
	metrics_u64(b, "batch_packets_total", "engine=\"serial\"", sum.jobs - sum.device_jobs);
	metrics_one_real(b, "engine_seconds_total", COUNTER, "Time spent in engines.",
		(double)sum.engine_ns / 1e9);
}

/* 2^k ns from 1 us to 1 s and packets from 1 to 1,023. */
static void write_histograms(const struct stats_input *in, struct sbuf *b)
{
	static const char *const names[] = {
#define X(id, name) name,
		WORKER_STAGE_LIST(X)
#undef X
	};
	const struct hist *h[WORKERS_MAX];
	char text[LABEL_LEN];

	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->batch;
	metrics_family(
		b, "batch_size_packets", METRICS_HISTOGRAM, "Packets per burst of a worker.");
	metrics_hist(
		b, "batch_size_packets", NULL, &(struct metrics_buckets){h, in->workers, 1, 10, 1});
	for (uint32_t i = 0; i < in->workers; i++)
		h[i] = &in->worker[i]->delay;
	metrics_family(b, "packet_delay_seconds", METRICS_HISTOGRAM,
		"From the kernel's receive stamp of a packet until its result was sent.");
	metrics_hist(b, "packet_delay_seconds", NULL,
		&(struct metrics_buckets){h, in->workers, 12, 30, 1e-9});
	metrics_family(b, "stage_seconds", METRICS_HISTOGRAM,
		"Where that time goes: queue per packet, the others per burst.");
	for (uint32_t s = 0; s < WORKER_STAGES; s++) {
		for (uint32_t i = 0; i < in->workers; i++)
			h[i] = &in->worker[i]->stage[s];
		metrics_hist(b, "stage_seconds", label(text, "stage", names[s]),
			&(struct metrics_buckets){h, in->workers, 10, 30, 1e-9});
	}
}

/* --- Devices ---------------------------------------------------------------------------------- */

static void device_sums(
	const struct stats_input *in, uint32_t at, struct batch_device_counters *sum)
{
	*sum = (struct batch_device_counters){0};
	for (uint32_t i = 0; i < in->workers; i++) {
		const struct batch_device_counters *c =
			batch_runner_device_counters(in->worker[i]->runner, at);

		sum->batches += load_plain(&c->batches);
		sum->jobs += load_plain(&c->jobs);
		sum->errors += load_plain(&c->errors);
		sum->ns += load_plain(&c->ns);
	}
}

static void write_device_counters(const struct stats_input *in, struct sbuf *b)
{
	static const struct {
		const char *name, *help;
	} families[] = {
		{"device_batches_total", "Batches dispatched to the device."},
		{"device_packets_total", "Packets in them."},
		{"device_errors_total",
			"Batches that failed on the device and were repeated by the serial engine."},
		{"device_seconds_total", "Time that the device took for its batches."},
	};
	struct batch_device_counters sum;
	char text[LABEL_LEN];

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		metrics_family(b, families[f].name, COUNTER, families[f].help);
		for (uint32_t i = 0; i < in->engines->devices; i++) {
			device_sums(in, i, &sum);
			snprintf(text, sizeof(text), "device=\"%" PRIu32 "\"", i);
			if (f == 3)
				metrics_real(b, families[f].name, text, (double)sum.ns / 1e9);
			else
				metrics_u64(b, families[f].name, text,
					f == 0           ? sum.batches
						: f == 1 ? sum.jobs
							 : sum.errors);
		}
	}
}

/* What the calibration at start measured, for a few sizes, and what follows from it. */
static void write_calibration(const struct stats_input *in, struct sbuf *b)
{
	static const uint32_t sizes[] = {0, 4, 6, 8}; /* 2^n packets */
	char text[LABEL_LEN];

	metrics_family(b, "device_minimum_batch_packets", GAUGE,
		"Smallest batch that the device is used for; +Inf: it is not used.");
	for (uint32_t i = 0; i < in->engines->devices; i++)
		for (int k = 0; k < BATCH_CLASSES; k++) {
			uint32_t min = in->engines->device[i].min[k];

			snprintf(text, sizeof(text), "device=\"%" PRIu32 "\",class=\"%s\"", i,
				batch_class_name[k]);
			if (min == BATCH_NEVER)
				sbuf_printf(b,
					METRICS_PREFIX "device_minimum_batch_packets{%s} +Inf\n",
					text);
			else
				metrics_u64(b, "device_minimum_batch_packets", text, min);
		}
	metrics_family(b, "calibration_packet_seconds", GAUGE,
		"Time per packet as measured at start, on the device and serially.");
	for (uint32_t i = 0; i < in->engines->devices; i++)
		for (int k = 0; k < BATCH_CLASSES; k++)
			for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
				const struct batch_device *d = &in->engines->device[i];
				uint32_t ns[] = {d->cost[k][sizes[s]].device_ns,
					d->cost[k][sizes[s]].serial_ns};

				for (int e = 0; e < 2 && ns[1]; e++) {
					snprintf(text, sizeof(text),
						"device=\"%" PRIu32
						"\",class=\"%s\",batch=\"%u\",engine=\"%s\"",
						i, batch_class_name[k], 1u << sizes[s],
						e ? "serial" : "device");
					metrics_real(
						b, "calibration_packet_seconds", text, ns[e] / 1e9);
				}
			}
}

static void write_devices(const struct stats_input *in, struct sbuf *b)
{
	char text[LABEL_LEN], name[LABEL_LEN / 2];

	if (!in->engines->devices)
		return;
	metrics_family(b, "device_info", GAUGE,
		"Always 1; the labels describe the device of this number.");
	for (uint32_t i = 0; i < in->engines->devices; i++) {
		const struct batch_device *d = &in->engines->device[i];

		snprintf(text, sizeof(text), "device=\"%" PRIu32 "\",name=\"%s\"", i,
			metrics_label(name, sizeof(name), d->ops->device(d->engine)));
		metrics_u64(b, "device_info", text, 1);
	}
	metrics_family(b, "device_lost", GAUGE, "1: the device failed and is no longer used.");
	for (uint32_t i = 0; i < in->engines->devices; i++) {
		snprintf(text, sizeof(text), "device=\"%" PRIu32 "\"", i);
		metrics_u64(b, "device_lost", text, atomic_load(&in->engines->device[i].lost));
	}
	write_device_counters(in, b);
	write_calibration(in, b);
}

/* Losses of recordings affect no call; only these metrics and the log show them. */
static void write_recording(const struct record *r, struct sbuf *b)
{
	struct record_stats s;

	if (!r)
		return;
	record_stats(r, &s);
	metrics_one(b, "recordings", GAUGE, "Active recordings.", s.active);
	metrics_one(b, "recordings_total", COUNTER, "Recordings started.", s.recordings);
	metrics_one(
		b, "recording_packets_total", COUNTER, "Packets that were recorded.", s.packets);
	metrics_one(b, "recording_bytes_total", COUNTER, "Bytes of recorded media.", s.bytes);
	metrics_one(b, "recording_lost_packets_total", COUNTER,
		"Packets that are missing in recordings: the disk was full or slow.", s.lost);
	metrics_one(b, "recording_errors_total", COUNTER,
		"Recordings that could not be started or written.", s.errors);
	metrics_one(b, "recording_removed_total", COUNTER,
		"Files of recordings that were removed for their age or size.", s.removed);
}

/* --- The daemon ------------------------------------------------------------------------------- */

static void write_resources(const struct stats_input *in, struct sbuf *b)
{
	struct bridge_usage u;

	bridge_usage(in->relay, &u);
	metrics_one(b, "ports_used", GAUGE, "Local ports in use or not yet released.", u.ports);
	metrics_one(b, "ports_free", GAUGE, "Local ports that are free.", u.ports_free);
	metrics_one(b, "contexts_used", GAUGE, "SRTP contexts in use.", u.contexts);
	metrics_one(b, "key_slots_used", GAUGE, "Key slots in use.", u.key_slots);
	metrics_one(b, "commands_waiting", GAUGE, "Commands that wait for room in a worker's ring.",
		u.backlog);
	metrics_one(b, "shortages_total", COUNTER,
		"Requests refused because ports, contexts or keys ran out.", u.shortages);
}

static void write_process(const struct stats_input *in, struct sbuf *b)
{
	char text[LABEL_LEN];
	struct rusage r;

	metrics_family(b, "build_info", GAUGE, "Always 1; the labels describe the program.");
	snprintf(text, sizeof(text), "version=\"%s\",engine=\"%s\",steering=\"%s\"",
		XCIPHER_VERSION, in->engines->devices ? "opencl" : "serial", in->steering);
	metrics_u64(b, "build_info", text, 1);
	metrics_one(b, "workers", GAUGE, "Packet threads.", in->workers);
	metrics_one_real(b, "uptime_seconds", GAUGE, "Since start.",
		(double)(clock_mono_ns() - in->started_mono_ns) / 1e9);
	if (getrusage(RUSAGE_SELF, &r))
		return;
	metrics_one_real(b, "cpu_seconds_total", COUNTER, "Processor time of the daemon.",
		(double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
			(double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6);
	metrics_one(b, "resident_memory_max_bytes", GAUGE,
		"Highest memory use of the daemon so far.", (uint64_t)r.ru_maxrss * 1024);
}

static void write_redis(const struct stats_input *in, struct sbuf *b)
{
	struct redis_usage u;

	if (!in->redis)
		return;
	redis_usage(in->redis, &u);
	metrics_one(b, "standby", GAUGE, "1 while another node is active.", u.standby);
	metrics_one(b, "redis_up", GAUGE, "1 while Redis replies and accepts writes.",
		u.up && !u.refusing);
	metrics_one(
		b, "redis_waiting", GAUGE, "Changed calls that are not written yet.", u.waiting);
	metrics_one(b, "redis_written_total", COUNTER, "Writes of calls and of their indexes.",
		u.written);
	metrics_one(b, "redis_errors_total", COUNTER, "Writes that Redis refused.", u.errors);
	metrics_one(b, "redis_away_total", COUNTER,
		"Number of times that Redis became unreachable.", u.times_away);
	metrics_one(b, "redis_restored_total", COUNTER, "Calls restored from Redis.", u.restored);
	metrics_one(b, "redis_skipped_total", COUNTER, "Stored calls that could not be restored.",
		u.skipped);
	metrics_one(b, "redis_refused_total", COUNTER,
		"Claims, messages and calls from Redis refused as not authentic or repeated.",
		u.refused);
	metrics_one(b, "redis_followed", GAUGE,
		"Calls of the active node that this standby follows.", u.followed);
}

void metrics_write(const struct metrics_input *in, struct sbuf *out)
{
	write_calls(in->stats, out);
	write_requests(in->handler, out);
	write_connections(in, out);
	write_homer(in->homer, out);
	write_teardown(in->teardown, out);
	write_limits(in->stats, out);
	write_steering(in->stats, out);
	write_rules(in->stats, out);
	write_interfaces(in->stats->interfaces, out);
	write_kernel(in->stats, out);
	write_drops(in->stats, out);
	write_handovers(in->stats, out);
	write_quality(in->stats, out);
	write_batches(in->stats, out);
	write_histograms(in->stats, out);
	write_devices(in->stats, out);
	write_resources(in->stats, out);
	write_redis(in->stats, out);
	write_recording(in->stats->record, out);
	write_process(in->stats, out);
}
