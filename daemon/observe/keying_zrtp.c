/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of ZRTP, for ng's "statistics" and for Prometheus. */
#include "observe/keying_zrtp.h"

#include "observe/metrics_int.h"

struct sums {
	uint64_t result[ZRTP_FAIL_COUNT], absent, drop[ZRTP_DROP_COUNT], retransmitted;
	const struct hist *h[SESSIONS_THREADS_MAX];
	uint32_t n;
};

static void sum(struct sums *out, const struct bridge_sessions_usage *u)
{
	*out = (struct sums){.n = u->totals};
	for (uint32_t t = 0; t < u->totals; t++) {
		const struct session_counts *c = u->total[t];

		for (int i = 0; i < ZRTP_FAIL_COUNT; i++)
			out->result[i] += load(&c->zrtp[i]);
		for (int i = 0; i < ZRTP_DROP_COUNT; i++)
			out->drop[i] += load(&c->zrtp_drop[i]);
		out->absent += load(&c->zrtp_absent);
		out->retransmitted += load(&c->zrtp_retransmitted);
		out->h[t] = &c->zrtp_ns;
	}
}

static const char *result(int i)
{
	return i == ZRTP_FAIL_NONE ? "completed" : zrtp_failure_name((enum zrtp_failure)i);
}

static void add(struct pool *p, struct ngval *d, const char *key, uint64_t value)
{
	ngval_add_int(p, d, str_from(key), (int64_t)value);
}

void zrtp_stats(const struct bridge_sessions_usage *u, struct pool *p, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("ZRTP")), *part;
	struct hist_summary time;
	struct sums s;

	sum(&s, u);
	part = ngval_add_dict(p, d, STR("exchanges"));
	for (int i = 0; i < ZRTP_FAIL_COUNT; i++)
		add(p, part, result(i), s.result[i]);
	add(p, part, "no answer", s.absent);
	part = ngval_add_dict(p, d, STR("exchange time"));
	hist_summarise(&time, s.h, s.n);
	add(p, part, "count", time.count);
	add(p, part, "p50_us", time.p50 / 1000);
	add(p, part, "p99_us", time.p99 / 1000);
	add(p, part, "max_us", time.max / 1000);
	part = ngval_add_dict(p, d, STR("drops"));
	for (int i = 0; i < ZRTP_DROP_COUNT; i++)
		add(p, part, zrtp_drop_name((enum zrtp_drop)i), s.drop[i]);
	add(p, d, "retransmissions", s.retransmitted);
}

void zrtp_metrics(const struct bridge_sessions_usage *u, struct sbuf *b)
{
	char text[LABEL_LEN];
	struct sums s;

	sum(&s, u);
	metrics_family(b, "zrtp_exchanges_total", COUNTER, "ZRTP exchanges that ended, by result.");
	for (int i = 0; i < ZRTP_FAIL_COUNT; i++)
		metrics_u64(
			b, "zrtp_exchanges_total", label(text, "result", result(i)), s.result[i]);
	metrics_u64(b, "zrtp_exchanges_total", label(text, "result", "no answer"), s.absent);
	metrics_family(b, "zrtp_exchange_seconds", METRICS_HISTOGRAM,
		"From the first packet of a terminal's exchange to its keys.");
	metrics_hist(b, "zrtp_exchange_seconds", NULL,
		&(struct metrics_buckets){s.h, s.n, 18, 35, 1e-9});
	metrics_family(
		b, "zrtp_drops_total", COUNTER, "ZRTP packets that were dropped, by reason.");
	for (int i = 0; i < ZRTP_DROP_COUNT; i++)
		metrics_u64(b, "zrtp_drops_total",
			label(text, "reason", zrtp_drop_name((enum zrtp_drop)i)), s.drop[i]);
	metrics_one(b, "zrtp_retransmissions_total", COUNTER,
		"Messages of exchanges that were sent again.", s.retransmitted);
}
