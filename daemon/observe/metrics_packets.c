/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of the packet side (observe/metrics.h): steering, rules, interfaces, the kernel, drops,
 * quality, batches, devices, recordings. */
#include "observe/metrics_int.h"

#include <inttypes.h>

#include "batch/calibrate.h"
#include "media/learn.h"

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
	struct kernel_watch_usage kernel;

	for (uint32_t i = 0; i < in->workers; i++) {
		const struct worker *w = in->worker[i];
		const struct steer_counters *c = w->steer_ops->counters(w->steer);

		for (int k = 0; k < STEER_COUNTER_N; k++)
			steered[k] += steer_counter_load(c, (enum steer_counter)k);
		bytes += load(&w->bytes_in);
		relayed += load(&w->bytes_relayed);
	}
	kernel_watch_usage(in->kernel, &kernel);
	steered[STEER_COUNTER_source_limit] += kernel.over_source_rate;
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

static void write_attacks(const struct stats_input *in, struct sbuf *b)
{
	uint64_t begun = 0, now = 0, left_out = 0;

	for (uint32_t i = 0; i < in->workers; i++) {
		begun += media_attacks(in->worker[i]->media);
		now += media_attacked(in->worker[i]->media);
		left_out += media_attacks_left_out(in->worker[i]->media);
	}
	metrics_one(b, "attacks_total", COUNTER,
		"Streams that began to receive more forged packets than true ones.", begun);
	metrics_one(b, "attacks_left_out_total", COUNTER,
		"Seconds in which a stream was under attack, but got no guard: other streams had all.",
		left_out);
	metrics_one(b, "streams_attacked", GAUGE,
		"Streams under attack: implausible packets are dropped before any cipher.", now);
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

static void write_side(const struct stats_input *in, struct sbuf *b)
{
	char text[LABEL_LEN];

	metrics_family(b, "keying_packets_total", COUNTER,
		"STUN, DTLS and ZRTP packets given to the keying threads, by protocol.");
	for (enum side_kind k = 0; k < SIDE_KINDS_N; k++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < in->workers; i++)
			sum += media_side_count(in->worker[i]->media, k);
		metrics_u64(
			b, "keying_packets_total", label(text, "protocol", side_kind_name(k)), sum);
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

/* Results of the calibration at start, for a few sizes, and the choice that follows. */
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
	metrics_family(b, "device_lost", GAUGE, "1 if the device failed. It is not used any more.");
	for (uint32_t i = 0; i < in->engines->devices; i++) {
		snprintf(text, sizeof(text), "device=\"%" PRIu32 "\"", i);
		metrics_u64(b, "device_lost", text, atomic_load(&in->engines->device[i].lost));
	}
	write_device_counters(in, b);
	write_calibration(in, b);
}

/* Losses of recordings affect no call; only these metrics and the log show them. */
void metrics_write_recording(const struct record *r, struct sbuf *b)
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
	metrics_one(b, "recording_skipped_packets_total", COUNTER,
		"Recorded packets whose audio was not decoded for audio files.", s.skipped);
	metrics_one(b, "recording_removed_total", COUNTER,
		"Files of recordings that were removed for their age or size.", s.removed);
}

void metrics_write_packets(const struct stats_input *in, struct sbuf *out)
{
	write_steering(in, out);
	write_rules(in, out);
	write_interfaces(in->interfaces, out);
	write_kernel(in, out);
	write_drops(in, out);
	write_side(in, out);
	write_handovers(in, out);
	write_attacks(in, out);
	write_quality(in, out);
	write_batches(in, out);
	write_histograms(in, out);
	write_devices(in, out);
}
