/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes Prometheus' text format, version 0.0.4: a family, then its samples. Labels are the text
 * between the braces, or NULL. Escape values that are not constants with metrics_label(). */
#ifndef OBSERVE_PROMETHEUS_H
#define OBSERVE_PROMETHEUS_H

#include "base/hist.h"
#include "base/sbuf.h"

#define METRICS_PREFIX "xcipher_"

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

/* name: without the prefix. */
void metrics_family(struct sbuf *b, const char *name, enum metrics_type type, const char *help);
void metrics_u64(struct sbuf *b, const char *name, const char *labels, uint64_t value);
void metrics_real(struct sbuf *b, const char *name, const char *labels, double value);
/* A family with one sample. */
void metrics_one(
	struct sbuf *b, const char *name, enum metrics_type type, const char *help, uint64_t value);
void metrics_one_real(
	struct sbuf *b, const char *name, enum metrics_type type, const char *help, double value);
/* The sum of n histograms: a bucket for each power of two from 2^first to 2^last. scale: the
 * metric's unit per count. With scale 1 values are integers, so bounds are one less than the power:
 * le="7" is exact, le="8" would not be. */
struct metrics_buckets {
	const struct hist *const *h;
	uint32_t n, first, last;
	double scale;
};
void metrics_hist(
	struct sbuf *b, const char *name, const char *labels, const struct metrics_buckets *of);
/* Escapes and cuts; returns out. */
const char *metrics_label(char *out, size_t len, const char *value);

#endif
