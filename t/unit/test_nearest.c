/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The name that a mistyped word probably meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/nearest.h"

static const char *const names[] = {"interface", "listen-ng", "timeout", "silent-timeout", "tos"};

static const char *name(const void *arg, size_t i)
{
	(void)arg;
	return names[i];
}

static const char *guess(const char *word)
{
	return nearest(word, name, NULL, sizeof(names) / sizeof(names[0]));
}

static void test_distances(void **state)
{
	static const struct {
		const char *a, *b;
		size_t limit, want;
	} rows[] = {
		{"tos", "tos", 3, 0}, {"tso", "tos", 3, 1}, /* neighbours swapped */
		{"", "tos", 3, 3}, {"tos", "", 3, 3}, {"kitten", "sitting", 9, 3},
		{"kitten", "sitting", 1, 2}, /* above the limit */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(
			nearest_distance(rows[i].a, rows[i].b, rows[i].limit), rows[i].want);
}

static void test_guesses(void **state)
{
	char longest[200];

	(void)state;
	assert_string_equal(guess("interfaces"), "interface");
	assert_string_equal(guess("listen_ng"), "listen-ng");
	assert_string_equal(guess("tiemout"), "timeout");
	assert_string_equal(guess("silenttimeout"), "silent-timeout");
	assert_null(guess("redis"));
	assert_null(guess(""));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_null(guess(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_guesses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
