/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that may use the HTTP server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "web/guard.h"

static void names_that_others_could_have_are_refused(void **state)
{
	static const struct {
		const char *host, *names;
		bool known, loopback;
	} T[] = {
		{"", "", true, false},
		{"127.0.0.1", "", true, true},
		{"127.9.9.9:8080", "", true, true},
		{"192.0.2.1:80", "", true, false},
		{"[::1]", "", true, true},
		{"[::1]:8080", "", true, true},
		{"[2001:db8::1]:8080", "", true, false},
		{"localhost:8080", "", true, true},
		{"LocalHost", "", true, true},
		{"relay1", "", true, false},
		{"relay1:80", "", true, false},
		{"relay1.evil.example", "", false, false},
		{"localhost.evil.example", "", false, false},
		{"127.0.0.1.evil.example", "", false, false},
		{"evil.example", "a.example,b.example", false, false},
		{"b.example:9", "a.example, b.example", true, false},
		{"B.Example", "a.example,b.example", true, false},
		{"?", "", false, false},
		{",", ",", false, false},
		{":80", ",", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str host = str_from(T[i].host);

		if (http_host_known(host, STR("relay1"), str_from(T[i].names)) != T[i].known ||
			http_host_loopback(host) != T[i].loopback)
			fail_msg("%s", T[i].host);
	}
}

static void requests_of_other_sites_are_refused(void **state)
{
	static const struct {
		const char *origin, *host;
		bool ours;
	} T[] = {
		{"", "a:80", true}, {"http://a:80", "a:80", true}, {"https://a:80", "a:80", true},
		{"http://A:80", "a:80", true}, {"http://a", "a:80", false},
		{"http://b:80", "a:80", false}, {"http://a:80.evil.example", "a:80", false},
		{"null", "a:80", false}, {"null", "null", false}, {"file://", "", false},
		{"http://", "", true}, /* not a browser's header */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (http_origin_ours(str_from(T[i].origin), str_from(T[i].host)) != T[i].ours)
			fail_msg("%s at %s", T[i].origin, T[i].host);
}

static void a_token_is_known_as_a_whole(void **state)
{
	static const struct {
		const char *said;
		bool ok;
	} T[] = {
		{"Bearer 0123456789abcdef", true},
		{"bearer  0123456789abcdef ", true},
		{"Bearer 0123456789abcde", false},
		{"Bearer 0123456789abcdef0", false},
		{"Bearer 0123456789abcdeF", false},
		{"Bearer ", false},
		{"Bearer", false},
		{"Basic 0123456789abcdef", false},
		{"0123456789abcdef", false},
		{"", false},
	};
	struct http_token none = {0}, t = {0};
	char longest[300];

	(void)state;
	assert_int_equal(http_token_set(&t, STR("0123456789abcdef")), 0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		if (http_authorized(&t, str_from(T[i].said)) != T[i].ok)
			fail_msg("%s", T[i].said);
		assert_true(http_authorized(&none, str_from(T[i].said)));
	}
	assert_false(http_token_is(&none, STR_NONE));
	memset(longest, 'x', sizeof(longest));
	assert_false(http_token_is(&t, (struct str){longest, sizeof(longest)}));
	assert_int_equal(http_token_set(&t, (struct str){longest, 255}), 0);
	assert_true(http_token_is(&t, (struct str){longest, 255}));
	assert_false(http_token_is(&t, (struct str){longest, 254}));
	assert_int_not_equal(http_token_set(&t, (struct str){longest, 256}), 0);
	assert_int_not_equal(http_token_set(&t, STR("0123456789abcde")), 0);
	assert_int_not_equal(http_token_set(&t, STR("0123456789 abcdef")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_others_could_have_are_refused),
		cmocka_unit_test(requests_of_other_sites_are_refused),
		cmocka_unit_test(a_token_is_known_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
