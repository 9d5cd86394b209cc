/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prometheus' text format, and histograms whose values lie in the right buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "observe/prometheus.h"

static void a_bucket_holds_all_that_is_not_larger(void **state)
{
	static struct hist a, b;
	const struct hist *const both[] = {&a, &b};
	static const uint64_t values[] = {
		0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 255, 256, 257, 1000000, 1ull << 41};
	struct hist_total t;
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		hist_add(i % 2 ? &a : &b, values[i]);
		sum += values[i];
	}
	hist_total(&t, both, 2);
	assert_int_equal(t.count, ARRAY_LEN(values));
	assert_int_equal(t.sum, sum);
	for (uint32_t k = 0; k < HIST_POWERS; k++) {
		uint64_t want = 0;

		for (size_t i = 0; i < ARRAY_LEN(values); i++)
			want += values[i] < 1ull << k;
		assert_int_equal(t.below[k], want);
	}
}

static void families_and_samples_are_written_as_prometheus_reads_them(void **state)
{
	static struct hist h;
	const struct hist *const one[] = {&h};
	char out[64];
	struct sbuf b;

	(void)state;
	hist_add(&h, 3);
	hist_add(&h, 1000);
	sbuf_init(&b, 0);
	metrics_one(&b, "a_total", METRICS_COUNTER, "Help.", UINT64_MAX);
	metrics_one_real(&b, "b_seconds", METRICS_GAUGE, "Help.", 0.25);
	metrics_family(&b, "c_packets", METRICS_HISTOGRAM, "Help.");
	metrics_hist(&b, "c_packets", NULL, &(struct metrics_buckets){one, 1, 2, 3, 1});
	metrics_hist(&b, "d_seconds", "x=\"y\"", &(struct metrics_buckets){one, 1, 10, 10, 1e-9});
	assert_string_equal(b.p,
		"# HELP xcipher_a_total Help.\n# TYPE xcipher_a_total counter\n"
		"xcipher_a_total 18446744073709551615\n"
		"# HELP xcipher_b_seconds Help.\n# TYPE xcipher_b_seconds gauge\n"
		"xcipher_b_seconds 0.25\n"
		"# HELP xcipher_c_packets Help.\n# TYPE xcipher_c_packets histogram\n"
		"xcipher_c_packets_bucket{le=\"3\"} 1\nxcipher_c_packets_bucket{le=\"7\"} 1\n"
		"xcipher_c_packets_bucket{le=\"+Inf\"} 2\n"
		"xcipher_c_packets_sum 1003\nxcipher_c_packets_count 2\n"
		"xcipher_d_seconds_bucket{x=\"y\",le=\"1.024e-06\"} 2\n"
		"xcipher_d_seconds_bucket{x=\"y\",le=\"+Inf\"} 2\n"
		"xcipher_d_seconds_sum{x=\"y\"} 1.003e-06\nxcipher_d_seconds_count{x=\"y\"} 2\n");
	sbuf_fini(&b);
	assert_string_equal(metrics_label(out, sizeof(out), "a\"b\\c\nd\xff"), "a\\\"b\\\\c?d?");
	assert_string_equal(metrics_label(out, 6, "abcdefgh"), "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_holds_all_that_is_not_larger),
		cmocka_unit_test(families_and_samples_are_written_as_prometheus_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
