/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Source addresses that the kernel accepts at an interface, in a network namespace of this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <net/if.h>
#include <sched.h>

#include "base/clock.h"
#include "host/judge.h"

static const char SET_UP[] =
	"set -e; ip link set lo up\n"
	"for i in 0 1; do ip link add wire$i type veth peer name far$i; ip link set wire$i up; ip link set far$i up; done\n"
	"ip addr add 192.0.2.1/24 dev wire0; ip addr add 198.51.100.1/24 dev wire1\n"
	"ip addr add 2001:db8::1/64 nodad dev wire0; ip addr add 2001:db8:1::1/64 nodad dev wire1\n";

struct rig {
	struct loop *loop;
	struct host *host;
	struct host_judge *judge;
	uint32_t dev;
	uint64_t now_ns;
};

static void sh(const char *script)
{
	if (system(script)) /* NOLINT: a fixed command of the test */
		fail_msg("%s", script);
}

static void start(struct rig *r, bool strict_local)
{
	*r = (struct rig){.now_ns = NS_PER_SEC};
	if (unshare(CLONE_NEWNET) || system("ip link set lo up") != 0) /* NOLINT: a fixed command */
		skip();
	sh(SET_UP);
	r->dev = if_nametoindex("wire0");
	assert_int_equal(loop_create(&r->loop), 0);
	assert_int_equal(host_create(&r->host, r->loop), 0);
	assert_int_equal(host_judge_create(&r->judge, r->host, strict_local), 0);
}

static void stop(struct rig *r)
{
	host_judge_destroy(r->judge);
	host_stop(r->host);
	loop_destroy(r->loop);
	host_destroy(r->host);
}

static enum host_belief believes(struct rig *r, const char *src, const char *dst)
{
	struct host_claim c = {.dev = r->dev};

	assert_int_equal(endpoint_parse_addr(&c.src, str_from(src)), 0);
	assert_int_equal(endpoint_parse_addr(&c.dst, str_from(dst)), 0);
	c.src.port = 4000;
	r->now_ns += 3 * NS_PER_SEC; /* ask again */
	return host_believes(r->judge, &c, r->now_ns);
}

#define ALL(n) "sysctl -qw net.ipv4.conf.all.rp_filter=" #n
enum { NO, YES, LAST };

static void the_table(void **state)
{
	/* accepted with rp_filter 0, 1, 2 */
	static const struct {
		const char *src;
		bool by[3];
		const char *why;
	} T[] = {
		{"192.0.2.7", {YES, YES, YES}, "a neighbour"},
		{"198.51.100.7", {YES, NO, YES}, "the other interface's neighbour"},
		{"203.0.113.7", {YES, NO, NO}, "no route"},
		{"240.0.0.1", {YES, NO, NO}, "Linux takes 240/4 as unicast"},
		{"127.0.0.1", {NO, NO, NO}, "loopback"},
		{"0.0.0.0", {NO, NO, NO}, "unspecified"},
		{"0.1.2.3", {NO, NO, NO}, "this network (RFC 1122 3.2.1.3)"},
		{"224.0.0.1", {NO, NO, NO}, "multicast"},
		{"239.255.255.255", {NO, NO, NO}, "multicast"},
		{"255.255.255.255", {NO, NO, NO}, "broadcast"},
		{"192.0.2.255", {NO, NO, NO}, "directed broadcast"},
		{"198.51.100.255", {NO, NO, NO}, "the other network's"},
		{"192.0.2.1", {NO, NO, NO}, "our own address"},
		{"198.51.100.1", {NO, NO, NO}, "our other one"},
	};
	static const struct {
		const char *src;
		bool yes;
	} V6[] = {{"2001:db8::7", YES}, {"2001:db8:9::1", YES}, {"fe80::7", YES}, {"::1", NO},
		{"::", NO}, {"ff02::1", NO}, {"::ffff:192.0.2.7", NO}, {"::192.0.2.7", NO},
		{"2001:db8::1", NO}, {"2001:db8:1::1", NO}};
	static const char *const set[] = {ALL(0), ALL(1), ALL(2)};
	struct rig r;

	(void)state;
	start(&r, false);
	for (size_t by = 0; by < ARRAY_LEN(set); by++) {
		sh(set[by]);
		for (size_t i = 0; i < ARRAY_LEN(T); i++) {
			enum host_belief b = believes(&r, T[i].src, "192.0.2.1");

			if ((b == HOST_BELIEVED) != T[i].by[by])
				fail_msg("rp_filter %zu, %s, %s: %d", by, T[i].src, T[i].why, b);
			if (b != believes(&r, T[i].src, "0.0.0.0"))
				fail_msg("%s, to a wildcard address", T[i].src);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(V6); i++)
		if ((believes(&r, V6[i].src, "2001:db8::1") == HOST_BELIEVED) != V6[i].yes)
			fail_msg("%s", V6[i].src);
	stop(&r);
}

static void accept_local_holds_unless_it_is_for_our_own_sake(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct rig r;

		start(&r, strict);
		sh("sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.wire0.accept_local=1");
		assert_int_equal(believes(&r, "198.51.100.1", "192.0.2.1"),
			strict ? HOST_MARTIAN : HOST_BELIEVED);
		assert_int_equal(believes(&r, "127.0.0.1", "192.0.2.1"), HOST_MARTIAN);
		stop(&r);
	}
}

/* Number of n new sources that are accepted at this time. */
static uint32_t flood(struct rig *r, uint32_t n, uint32_t from, bool expected)
{
	struct host_claim c = {.dev = r->dev, .src = {.family = AF_INET}, .expected = expected};
	uint32_t yes = 0;

	assert_int_equal(endpoint_parse_addr(&c.dst, STR("192.0.2.1")), 0);
	for (uint32_t i = 0; i < n; i++) {
		enum host_belief b;

		put_be32(c.src.addr, 0x0a000000 + from + i);
		b = host_believes(r->judge, &c, r->now_ns);
		assert_int_not_equal(b, HOST_MARTIAN);
		yes += b == HOST_BELIEVED;
	}
	return yes;
}

static void questions_are_bounded(void **state)
{
	struct rig r;

	(void)state;
	start(&r, false);
	sh(ALL(0));
	assert_int_equal(flood(&r, 2000, 0, false), 500);
	assert_int_equal(flood(&r, 2000, 5000, false), 0);
	/* Signalled sources have their own budget. Known sources need no look-up. */
	assert_int_equal(flood(&r, 100, 10000, true), 100);
	assert_in_range(flood(&r, 100, 10000, false), 90, 100); /* some may have been evicted */
	r.now_ns += NS_PER_SEC / 10;
	assert_int_equal(flood(&r, 2000, 20000, false), 100);
	r.now_ns += 10 * NS_PER_SEC;
	assert_int_equal(flood(&r, 2000, 30000, false), 500);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table),
		cmocka_unit_test(accept_local_holds_unless_it_is_for_our_own_sake),
		cmocka_unit_test(questions_are_bounded),
	};

	return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
