/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of Redis: the short form of rtpengine, and URLs. */
#include "persist/redis_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void good_ones(void **state)
{
	static const struct {
		const char *text, *addr, *name, *user, *password;
		uint32_t db;
		bool tls;
	} T[] = {
		{"127.0.0.1:6379", "127.0.0.1:6379", "", "", "", 0, false},
		{"127.0.0.1:6380/5", "127.0.0.1:6380", "", "", "", 5, false},
		{"se:cr@et@127.0.0.1:1/2", "127.0.0.1:1", "", "", "se:cr@et", 2, false},
		{"a%41@[::1]:1", "[::1]:1", "", "", "a%41", 0, false},
		{"redis://127.0.0.1", "127.0.0.1:6379", "", "", "", 0, false},
		{"redis://127.0.0.1/", "127.0.0.1:6379", "", "", "", 0, false},
		{"rediss://[2001:db8::1]/3", "[2001:db8::1]:6379", "", "", "", 3, true},
		{"rediss://[2001:db8::1]:7/3", "[2001:db8::1]:7", "", "", "", 3, true},
		{"rediss://xcipher@192.0.2.1:7", "192.0.2.1:7", "", "xcipher", "", 0, true},
		{"rediss://x:p%40%3Aw:@192.0.2.1", "192.0.2.1:6379", "", "x", "p@:w:", 0, true},
		{"rediss://:pw@192.0.2.1", "192.0.2.1:6379", "", "", "pw", 0, true},
		{"rediss://u@redis.example.org:6390/1", NULL, "redis.example.org", "u", "", 1,
			true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		char addr[ENDPOINT_STRLEN];
		struct redis_server s;

		if (redis_server_parse(&s, str_from(T[i].text)))
			fail_msg("%s", T[i].text);
		assert_true(redis_server_is_set(&s));
		if (T[i].addr)
			assert_string_equal(endpoint_fmt(&s.addr, addr), T[i].addr);
		else
			assert_int_equal(s.addr.family, 0);
		assert_string_equal(s.name, T[i].name);
		assert_string_equal(s.user, T[i].user);
		assert_string_equal(s.password, T[i].password);
		assert_int_equal(s.db, T[i].db);
		assert_int_equal(s.tls, T[i].tls);
	}
}

static void bad_ones(void **state)
{
	static const char *const T[] = {"", "redis", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:6379/",
		"127.0.0.1:6379/x", "@127.0.0.1:6379", "redis.example.org:6379", "rediss://",
		"rediss://u@", "rediss://host:0", "rediss://host:65536", "rediss://host/65536",
		"rediss://host/x", "rediss://u%4@host", "rediss://u%00@host", "rediss://ho st",
		"http://host", "rediss:///1"};
	struct redis_server s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (redis_server_parse(&s, str_from(T[i])) != -EINVAL)
			fail_msg("\"%s\" was taken", T[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_ones),
		cmocka_unit_test(bad_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
