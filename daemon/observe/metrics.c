/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics, family by family, with rtpengine's names where they mean the same. Label values come
 * only from our own tables (commands, suites, causes, stages, classes, up to BATCH_DEVICES_MAX
 * devices). Nothing that a client sends becomes a label, so their number is bounded. Reading stops
 * no thread. */
#include "observe/metrics_int.h"

#include "observe/keying.h"
#include "observe/mikey.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "call/call.h"
#include "observe/homer.h"
#include "base/clock.h"
#include "control/tcp.h"
#include "control/teardown.h"

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
	metrics_one(b, "keying_fallbacks_total", COUNTER,
		"Streams whose keying failed and that use RTP or another keying, as the request allows.",
		c.keying_fallbacks);
	metrics_one(b, "digits_heard_total", COUNTER,
		"Digits that transcoded terminals sent, as telephone events or as tones for a party with events.",
		c.digits);
	metrics_one(b, "emergency_sessions_total", COUNTER, "Calls marked as emergencies.",
		c.emergencies);
	metrics_family(b, "media", GAUGE, "Streams of calls, by side and crypto suite.");
	for (uint32_t i = 0; i < SUITE_COUNT; i++)
		metrics_u64(b, "media", label(text, "suite", i ? srtp_suite_get(i)->name : "plain"),
			c.suite[i]);
	metrics_one(b, "media_passed_through", GAUGE,
		"Passed-through streams, relayed unchanged under the terminals' own keys.",
		c.passed);
	metrics_family(b, "media_transcoded", GAUGE,
		"Streams whose packets are transcoded, by side and pair of codecs.");
	for (int i = 0; i < CALL_CODEC_PAIRS; i++)
		if (c.transcoded[i].name[0])
			metrics_u64(b, "media_transcoded",
				label(text, "codecs", c.transcoded[i].name), c.transcoded[i].n);
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

static void write_codec_threads(const struct bridge_audio *a, struct sbuf *b)
{
	struct bridge_audio_usage u;

	bridge_audio_usage(a, &u);
	metrics_one(b, "codec_sessions", GAUGE, "Audio sessions of codec threads.", u.sessions);
	metrics_one(b, "codec_packets_total", COUNTER,
		"Packets that codec threads received from workers.", u.packets);
	metrics_one_real(b, "codec_cpu_seconds_total", COUNTER, "Processor time of codec threads.",
		(double)u.cpu_ns / 1e9);
	metrics_one(b, "codec_broken_sessions_total", COUNTER,
		"Sessions that stopped transcoding because a codec's process failed too often.",
		u.broken);
	metrics_family(b, "codec_dropped_packets_total", COUNTER,
		"Packets between workers and codec threads that were dropped, by reason.");
	metrics_u64(b, "codec_dropped_packets_total", "reason=\"ended\"", u.strays + u.stale);
	metrics_u64(b, "codec_dropped_packets_total", "reason=\"full\"", u.back_full);
}

/* By pair of codecs: from the terminal's to the other one's. */
static void write_codec_pairs(const struct bridge_audio *a, struct sbuf *b)
{
	static const struct {
		const char *name, *help;
		size_t at;
	} family[] = {
		{"transcoded_packets_total", "Packets that were decoded, by pair of codecs.",
			offsetof(struct audio_stats, decoded)},
		{"transcoded_passed_packets_total",
			"Packets whose payload passed, or was converted without PCM, by pair of codecs.",
			offsetof(struct audio_stats, passed)},
		{"transcoded_lost_packets_total", "Packets that did not arrive, by pair of codecs.",
			offsetof(struct audio_stats, lost)},
		{"transcoded_concealed_packets_total",
			"Lost packets that were concealed or recovered, by pair of codecs.",
			offsetof(struct audio_stats, concealed)},
		{"transcoded_late_packets_total",
			"Packets that arrived after they were given up, by pair of codecs.",
			offsetof(struct audio_stats, late)},
	};
	struct audio_pairs p;
	char text[LABEL_LEN];

	bridge_audio_pairs(a, &p);
	for (size_t i = 0; i < ARRAY_LEN(family); i++) {
		metrics_family(b, family[i].name, COUNTER, family[i].help);
		for (uint32_t k = 0; k < p.n; k++)
			metrics_u64(b, family[i].name, label(text, "codecs", p.at[k].name),
				*(const uint64_t *)(const void *)((const char *)&p.at[k].sum +
					family[i].at));
	}
	metrics_family(b, "transcoded_cpu_seconds_total", COUNTER,
		"CPU time of decoder and encoder, estimated from one of 64 calls, by pair of codecs.");
	for (uint32_t k = 0; k < p.n; k++)
		metrics_real(b, "transcoded_cpu_seconds_total", label(text, "codecs", p.at[k].name),
			(double)p.at[k].sum.cpu_ns / 1e9);
}

void metrics_write(const struct metrics_input *in, struct sbuf *out)
{
	write_calls(in->stats, out);
	write_requests(in->handler, out);
	write_connections(in, out);
	write_homer(in->homer, out);
	write_teardown(in->teardown, out);
	write_limits(in->stats, out);
	metrics_write_packets(in->stats, out);
	write_resources(in->stats, out);
	if (in->audio) {
		write_codec_threads(in->audio, out);
		write_codec_pairs(in->audio, out);
	}
	write_redis(in->stats, out);
	if (in->stats->sessions)
		keying_metrics(in->stats->sessions, out);
	if (in->stats->mikey)
		mikey_metrics(in->stats->mikey, out);
	metrics_write_recording(in->stats->record, out);
	write_process(in->stats, out);
}
