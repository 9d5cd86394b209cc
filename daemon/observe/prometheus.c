/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes Prometheus' text format. Knows no metric by name: observe/metrics.c does. */
#include "observe/prometheus.h"

#include <inttypes.h>
#include <stdio.h>

void metrics_family(struct sbuf *b, const char *name, enum metrics_type type, const char *help)
{
	static const char *const types[] = {[METRICS_COUNTER] = "counter",
		[METRICS_GAUGE] = "gauge",
		[METRICS_HISTOGRAM] = "histogram"};

	sbuf_printf(b, "# HELP " METRICS_PREFIX "%s %s\n# TYPE " METRICS_PREFIX "%s %s\n", name,
		help, name, types[type]);
}

static void sample_name(struct sbuf *b, const char *name, const char *labels)
{
	sbuf_printf(b, METRICS_PREFIX "%s", name);
	if (labels)
		sbuf_printf(b, "{%s}", labels);
}

void metrics_u64(struct sbuf *b, const char *name, const char *labels, uint64_t value)
{
	sample_name(b, name, labels);
	sbuf_printf(b, " %" PRIu64 "\n", value);
}

void metrics_real(struct sbuf *b, const char *name, const char *labels, double value)
{
	sample_name(b, name, labels);
	sbuf_printf(b, " %.9g\n", value);
}

void metrics_one(
	struct sbuf *b, const char *name, enum metrics_type type, const char *help, uint64_t value)
{
	metrics_family(b, name, type, help);
	metrics_u64(b, name, NULL, value);
}

void metrics_one_real(
	struct sbuf *b, const char *name, enum metrics_type type, const char *help, double value)
{
	metrics_family(b, name, type, help);
	metrics_real(b, name, NULL, value);
}

static void bucket(struct sbuf *b, const char *name, const char *labels, const char *le, uint64_t n)
{
	sbuf_printf(b, METRICS_PREFIX "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name,
		labels ? labels : "", labels ? "," : "", le, n);
}

void metrics_hist(
	struct sbuf *b, const char *name, const char *labels, const struct metrics_buckets *of)
{
	struct hist_total t;
	char le[32], full[160];

	hist_total(&t, of->h, of->n);
	for (uint32_t k = of->first; k <= of->last; k++) {
		double end = (double)(1ull << k);

		snprintf(le, sizeof(le), "%.9g", of->scale == 1 ? end - 1 : end * of->scale);
		bucket(b, name, labels, le, t.below[k]);
	}
	bucket(b, name, labels, "+Inf", t.count);
	snprintf(full, sizeof(full), "%s_sum", name);
	metrics_real(b, full, labels, (double)t.sum * of->scale);
	snprintf(full, sizeof(full), "%s_count", name);
	metrics_u64(b, full, labels, t.count);
}

const char *metrics_label(char *out, size_t len, const char *value)
{
	size_t at = 0;

	for (; *value && at + 3 < len; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '"' || c == '\\')
			out[at++] = '\\';
		out[at++] = c < 0x20 || c > 0x7e ? '?' : (char)c;
	}
	out[at] = 0;
	return out;
}
