/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums over the keying threads, for ng's "statistics" and for Prometheus. */
#include "observe/keying.h"

#include "observe/keying_zrtp.h"
#include "observe/metrics_int.h"

struct sums {
	struct bridge_sessions_usage u;
	uint64_t handshake[DTLS_FAIL_COUNT], drop[DTLS_DROP_COUNT], retransmitted;
	uint64_t ice[ICE_COUNT_N], ice_state[ICE_STATE_N], lost, failed;
	const struct hist *h[SESSIONS_THREADS_MAX];
};

static void sum(struct sums *out, const struct bridge_sessions *s)
{
	*out = (struct sums){0};
	bridge_sessions_usage(s, &out->u);
	for (uint32_t t = 0; t < out->u.totals; t++) {
		const struct session_counts *c = out->u.total[t];

		for (int i = 0; i < DTLS_FAIL_COUNT; i++)
			out->handshake[i] += load(&c->handshake[i]);
		for (int i = 0; i < DTLS_DROP_COUNT; i++)
			out->drop[i] += load(&c->drop[i]);
		for (int i = 0; i < ICE_COUNT_N; i++)
			out->ice[i] += load(&c->ice[i]);
		for (int i = 0; i < ICE_STATE_N; i++)
			out->ice_state[i] += load(&c->ice_state[i]);
		out->retransmitted += load(&c->retransmitted);
		out->lost += load(&c->consent_lost);
		out->failed += load(&c->ice_failed);
		out->h[t] = &c->handshake_ns;
	}
}

static const char *result(int i)
{
	return i == DTLS_FAIL_NONE ? "completed" : dtls_failure_name((enum dtls_failure)i);
}

/* --- ng --------------------------------------------------------------------------------------- */

static void add(struct pool *p, struct ngval *d, const char *key, uint64_t value)
{
	ngval_add_int(p, d, str_from(key), (int64_t)value);
}

static void add_time(struct pool *p, struct ngval *dict, const struct sums *s)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("handshake time"));
	struct hist_summary t;

	hist_summarise(&t, s->h, s->u.totals);
	add(p, d, "count", t.count);
	add(p, d, "p50_us", t.p50 / 1000);
	add(p, d, "p99_us", t.p99 / 1000);
	add(p, d, "max_us", t.max / 1000);
}

void keying_stats(const struct bridge_sessions *sessions, struct pool *p, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("sessions")), *part;
	struct sums s;

	sum(&s, sessions);
	add(p, d, "in use", s.u.sessions);
	add(p, d, "commands waiting", s.u.waiting);
	add(p, d, "packets", s.u.threads.packets);
	add(p, d, "stray packets", s.u.threads.strays);
	add(p, d, "queue full", s.u.threads.waiting_full);
	part = ngval_add_dict(p, d, STR("handshakes"));
	for (int i = 0; i < DTLS_FAIL_COUNT; i++)
		add(p, part, result(i), s.handshake[i]);
	add_time(p, d, &s);
	part = ngval_add_dict(p, d, STR("DTLS drops"));
	for (int i = DTLS_DROP_NONE + 1; i < DTLS_DROP_COUNT; i++)
		add(p, part, dtls_drop_name((enum dtls_drop)i), s.drop[i]);
	add(p, d, "DTLS retransmissions", s.retransmitted);
	part = ngval_add_dict(p, d, STR("ICE"));
	for (int i = 0; i < ICE_COUNT_N; i++)
		add(p, part, ice_count_name((enum ice_count)i), s.ice[i]);
	part = ngval_add_dict(p, d, STR("ICE states"));
	for (int i = 0; i < ICE_STATE_N; i++)
		add(p, part, ice_state_name((enum ice_state)i), s.ice_state[i]);
	add(p, d, "ICE failed", s.failed);
	add(p, d, "consent lost", s.lost);
	zrtp_stats(&s.u, p, d);
}

/* --- Prometheus ------------------------------------------------------------------------------- */

static void write_dtls(const struct sums *s, struct sbuf *b)
{
	char text[LABEL_LEN];

	metrics_family(
		b, "dtls_handshakes_total", COUNTER, "DTLS handshakes that ended, by result.");
	for (int i = 0; i < DTLS_FAIL_COUNT; i++)
		metrics_u64(b, "dtls_handshakes_total", label(text, "result", result(i)),
			s->handshake[i]);
	metrics_family(b, "dtls_handshake_seconds", METRICS_HISTOGRAM,
		"From the first packet of a handshake to its keys.");
	metrics_hist(b, "dtls_handshake_seconds", NULL,
		&(struct metrics_buckets){s->h, s->u.totals, 18, 35, 1e-9});
	metrics_family(
		b, "dtls_drops_total", COUNTER, "DTLS packets that were dropped, by reason.");
	for (int i = DTLS_DROP_NONE + 1; i < DTLS_DROP_COUNT; i++)
		metrics_u64(b, "dtls_drops_total",
			label(text, "reason", dtls_drop_name((enum dtls_drop)i)), s->drop[i]);
	metrics_one(b, "dtls_retransmissions_total", COUNTER,
		"Flights of handshakes that were sent again.", s->retransmitted);
}

static void write_ice(const struct sums *s, struct sbuf *b)
{
	char text[LABEL_LEN];

	metrics_family(b, "ice_agents", GAUGE, "ICE agents by their state.");
	for (int i = 0; i < ICE_STATE_N; i++)
		metrics_u64(b, "ice_agents",
			label(text, "state", ice_state_name((enum ice_state)i)), s->ice_state[i]);
	metrics_family(b, "ice_packets_total", COUNTER, "STUN packets, by what became of them.");
	for (int i = 0; i < ICE_COUNT_N; i++)
		metrics_u64(b, "ice_packets_total",
			label(text, "result", ice_count_name((enum ice_count)i)), s->ice[i]);
	metrics_one(b, "ice_failed_total", COUNTER, "Times that no candidate pair was found.",
		s->failed);
	metrics_one(b, "ice_consent_lost_total", COUNTER,
		"Times that a terminal did not answer checks for 30 s.", s->lost);
}

void keying_metrics(const struct bridge_sessions *sessions, struct sbuf *b)
{
	struct sums s;

	sum(&s, sessions);
	metrics_one(b, "keying_sessions", GAUGE, "Legs with DTLS, ICE or ZRTP.", s.u.sessions);
	metrics_one(b, "keying_commands_waiting", GAUGE,
		"Commands that wait for room at the keying threads.", s.u.waiting);
	metrics_one(b, "keying_queue_full_total", COUNTER,
		"DTLS and ZRTP packets dropped because too many waited.", s.u.threads.waiting_full);
	write_dtls(&s, b);
	write_ice(&s, b);
	zrtp_metrics(&s.u, b);
}
