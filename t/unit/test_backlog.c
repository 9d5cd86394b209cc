/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backlog of ng datagrams: sources take turns, and the datagrams of each source are bounded. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "control/backlog.h"

static struct ng_peer peer(const char *from)
{
	struct ng_peer p = {0};

	assert_int_equal(endpoint_parse(&p.from, str_from(from)), 0);
	return p;
}

static struct backlog *make(void)
{
	static const uint8_t key[16] = {5};
	struct backlog *b = NULL;

	assert_int_equal(backlog_create(&b, key), 0);
	return b;
}

static void put(struct backlog *b, const char *from, const char *text, int want)
{
	struct ng_peer p = peer(from);
	uint32_t dropped;

	assert_int_equal(backlog_put(b, &p, str_from(text), &dropped), want);
	assert_int_equal(dropped, want != 0);
}

static void expect(struct backlog *b, const char *text)
{
	struct waiting *w = backlog_take(b);

	assert_non_null(w);
	assert_true(str_eq((struct str){w->bytes, w->len}, str_from(text)));
	waiting_free(w);
}

static void sources_take_turns(void **state)
{
	struct backlog *b = make();

	(void)state;
	assert_true(backlog_empty(b));
	assert_null(backlog_take(b));
	put(b, "192.0.2.1:1", "a1", 0);
	put(b, "192.0.2.1:2", "a2", 0); /* another port of the same host */
	put(b, "192.0.2.1:1", "a3", 0);
	put(b, "192.0.2.2:1", "b1", 0);
	put(b, "[2001:db8::1]:1", "c1", 0);
	put(b, "192.0.2.2:1", "", 0);
	expect(b, "a1");
	expect(b, "b1");
	expect(b, "c1");
	expect(b, "a2");
	put(b, "[2001:db8::1]:9", "c2", 0);
	expect(b, "");
	expect(b, "a3");
	expect(b, "c2");
	assert_true(backlog_empty(b));
	put(b, "127.0.0.1:1", "x1", 0);
	put(b, "127.0.0.1:1", "x2", 0);
	put(b, "127.0.0.1:2", "y1", 0); /* on loopback the port identifies the program */
	expect(b, "x1");
	expect(b, "y1");
	assert_false(backlog_empty(b));
	backlog_destroy(b); /* holding one request */
	backlog_destroy(NULL);
}

static void a_source_may_have_so_many_waiting(void **state)
{
	struct backlog *b = make();

	(void)state;
	for (uint32_t i = 0; i < BACKLOG_SOURCE; i++)
		put(b, "192.0.2.1:1", "a", 0);
	put(b, "192.0.2.1:2", "a", -ENOBUFS);
	put(b, "192.0.2.2:1", "b", 0);
	expect(b, "a");
	expect(b, "b");
	put(b, "192.0.2.1:2", "a", 0);
	put(b, "192.0.2.1:2", "a", -ENOBUFS);
	backlog_destroy(b);
}

static void bytes_are_bounded_too_and_the_longest_queue_pays(void **state)
{
	static char big[65001];
	struct backlog *b = make();
	uint32_t kept, dropped, lost = 0;
	struct waiting *w;

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	put(b, "192.0.2.100:1", "small", 0);
	/* six sources share the space of four */
	for (uint32_t i = 0; i < 600; i++) {
		struct ng_peer p = peer("192.0.2.1:1");

		p.from.addr[3] = (uint8_t)(1 + i % 6);
		(void)backlog_put(b, &p, str_from(big), &dropped);
		lost += dropped;
	}
	expect(b, "small");
	for (kept = 0; (w = backlog_take(b)); kept++)
		waiting_free(w);
	assert_in_range(kept, BACKLOG_ALL / sizeof(big) - 2, BACKLOG_ALL / sizeof(big));
	assert_int_equal(kept + lost, 600);
	backlog_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_take_turns),
		cmocka_unit_test(a_source_may_have_so_many_waiting),
		cmocka_unit_test(bytes_are_bounded_too_and_the_longest_queue_pays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
