/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The addresses of this host: the table itself, and its entries from rtnetlink in a network
 * namespace of this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/socket.h>

#include "host/host.h"

static struct endpoint addr(const char *text)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse_addr(&e, str_from(text)), 0);
	e.port = 5060; /* unused here */
	return e;
}

static struct host_net net(const char *text, uint8_t bits, enum host_kind kind)
{
	return (struct host_net){.addr = addr(text), .bits = bits, .kind = (uint8_t)kind};
}

static void the_table_finds_addresses_and_networks(void **state)
{
	static const struct {
		const char *text;
		bool owned, broadcast;
	} T[] = {
		{"192.0.2.1", true, false},
		{"192.0.2.2", false, false},
		{"192.0.2.255", false, true},
		{"255.255.255.255", false, true},
		{"::ffff:192.0.2.1", true, false},
		{"::ffff:192.0.2.255", false, true},
		{"127.0.0.1", true, false},
		{"127.255.255.254", true, false},
		{"::ffff:127.0.0.9", true, false},
		{"128.0.0.1", false, false},
		{"203.0.113.9", true, false}, /* configured as ::ffff:203.0.113.0/120 */
		{"203.0.114.9", false, false},
		{"2001:db8::1", true, false},
		{"2001:db8::2", false, false},
		{"2001:db8:1:ffff::7", true, false},
		{"::1", true, false},
		{"0.0.0.0", false, false},
		{"::", false, false},
	};
	const struct host_net nets[] = {
		net("127.0.0.0", 8, HOST_LOCAL),
		net("2001:db8:1::", 48, HOST_LOCAL),
		net("192.0.2.255", 32, HOST_BROADCAST),
		net("192.0.2.1", 32, HOST_LOCAL),
		net("::1", 128, HOST_LOCAL),
		net("192.0.2.1", 32, HOST_LOCAL),
		net("2001:db8::1", 128, HOST_LOCAL),
		net("::ffff:203.0.113.0", 120, HOST_LOCAL),
	};
	const struct endpoint unset = {0};
	struct host *h;

	(void)state;
	assert_int_equal(host_create_fixed(&h, nets, ARRAY_LEN(nets)), 0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct endpoint e = addr(T[i].text);

		if (host_owns(h, &e) != T[i].owned || host_broadcasts(h, &e) != T[i].broadcast)
			fail_msg("%s", T[i].text);
	}
	assert_false(host_owns(h, &unset));
	host_destroy(h);
}

static void no_network_owns_nothing(void **state)
{
	const struct endpoint e = addr("192.0.2.1");
	struct host *h;

	(void)state;
	assert_int_equal(host_create_fixed(&h, NULL, 0), 0);
	assert_false(host_owns(h, &e));
	host_destroy(h);
}

/* --- The kernel's own tables ------------------------------------------------------------------ */

static void ip(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line), "ip %s", command);
	if (system(line)) /* NOLINT: a fixed command of the test */
		fail_msg("%s", line);
}

struct wait {
	struct loop *loop;
	struct host *host;
	struct endpoint e;
	bool owned, seen;
	int left;
};

static void look(void *arg)
{
	struct wait *w = arg;

	w->seen = host_owns(w->host, &w->e) == w->owned;
	if (w->seen || --w->left == 0)
		loop_stop(w->loop);
}

/* Runs the loop until the host owns the address, or no longer does. */
static void until(struct loop *loop, struct host *h, const char *text, bool owned)
{
	struct wait w = {loop, h, addr(text), owned, false, 3000};
	struct loop_timer *timer;

	assert_int_equal(loop_timer_add(loop, &timer, 0, 10000000, look, &w), 0);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_remove(timer);
	if (!w.seen)
		fail_msg("%s: %s", text, owned ? "not seen to come" : "not seen to go");
}

static void the_kernel_is_followed(void **state)
{
	static const char *const there[] = {"192.0.2.1", "192.0.2.9", "198.51.100.1", "10.1.2.3",
		"2001:db8::1", "127.0.0.1", "::1", "203.0.113.5", "::ffff:192.0.2.9", "10.3.0.1",
		"2001:db8:3::1"};
	static const char *const not_there[] = {
		"192.0.2.2", "203.0.113.6", "2001:db8::2", "10.2.0.1", "10.4.0.1", "10.5.0.1"};
	static const char *const casts[] = {"192.0.2.255", "198.51.100.3", "255.255.255.255"};
	struct loop *loop;
	struct host *h;
	uint32_t before;

	(void)state;
	if (unshare(CLONE_NEWNET) || system("ip link set lo up") != 0) /* NOLINT: a fixed command */
		skip();
	ip("link add wire0 type veth peer name wire1");
	ip("link set wire1 up");
	ip("link set wire0 up");
	ip("addr add 192.0.2.1/24 dev wire0");
	ip("addr add 192.0.2.9/24 dev wire0"); /* secondary */
	ip("addr add 198.51.100.1/30 brd + dev wire0");
	ip("addr add 203.0.113.5 peer 203.0.113.6 dev wire0");
	ip("addr add 2001:db8::1/64 nodad dev wire0");
	ip("route add local 10.1.0.0/16 dev lo");
	/* Other tables: local routes count, all other routes do not. */
	ip("route add local 10.3.0.0/16 dev lo table 88");
	ip("-6 route add local 2001:db8:3::/48 dev lo table 300");
	ip("route add 10.5.0.0/16 dev wire0 table 88");
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(host_create(&h, loop), 0);
	for (size_t i = 0; i < ARRAY_LEN(there); i++)
		until(loop, h, there[i], true);
	for (size_t i = 0; i < ARRAY_LEN(not_there); i++)
		until(loop, h, not_there[i], false);
	for (size_t i = 0; i < ARRAY_LEN(casts); i++) {
		const struct endpoint e = addr(casts[i]);

		assert_true(host_broadcasts(h, &e));
		assert_false(host_owns(h, &e));
	}
	before = host_generation(h);
	ip("addr add 192.0.2.77/24 dev wire0");
	until(loop, h, "192.0.2.77", true);
	assert_int_not_equal(host_generation(h), before);
	ip("addr del 192.0.2.77/24 dev wire0");
	until(loop, h, "192.0.2.77", false);
	ip("addr add 2001:db8::77/64 nodad dev wire0");
	until(loop, h, "2001:db8::77", true);
	ip("route add local 10.2.0.0/16 dev lo");
	until(loop, h, "10.2.0.1", true);
	ip("route add local 10.4.0.0/16 dev lo table 89");
	until(loop, h, "10.4.0.1", true);
	ip("route del local 10.4.0.0/16 dev lo table 89");
	until(loop, h, "10.4.0.1", false);
	ip("link set wire0 down");
	until(loop, h, "192.0.2.1", true); /* it is still ours */
	ip("link del wire0");
	until(loop, h, "192.0.2.1", false);
	host_stop(h);
	loop_destroy(loop);
	host_destroy(h);
}

/* Each announcement costs the kernel's lock of all networks, which a busy machine grants late. So
 * the sockets are made small, and a thousand announcements overrun them. */
static void make_netlink_sockets_small(void)
{
	const int bytes = 32768;
	int found = 0;

	for (int fd = 3; fd < 256; fd++) {
		socklen_t len = sizeof(int);
		int domain;

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_NETLINK)
			continue;
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
		found++;
	}
	assert_true(found > 0);
}

/* More announcements than the socket can hold, because the loop does not run meanwhile. */
static void an_overrun_loses_nothing(void **state)
{
	struct loop *loop;
	struct host *h;

	(void)state;
	if (unshare(CLONE_NEWNET) || system("ip link set lo up") != 0) /* NOLINT: a fixed command */
		skip();
	ip("link add wire0 type veth peer name wire1");
	ip("link set wire1 up");
	ip("link set wire0 up");
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(host_create(&h, loop), 0);
	make_netlink_sockets_small();
	if (system("i=0; while [ $i -lt 1000 ]; do echo addr add 10.9.$((i / 250)).$((i % 250 + 1))/32 "
		   "dev wire0; i=$((i + 1)); done | ip -batch -")) /* NOLINT: a fixed command */
		fail_msg("addresses");
	ip("addr del 10.9.3.9/32 dev wire0");
	until(loop, h, "10.9.3.250", true);
	until(loop, h, "10.9.0.1", true);
	until(loop, h, "10.9.3.9", false);
	host_stop(h);
	loop_destroy(loop);
	host_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_finds_addresses_and_networks),
		cmocka_unit_test(no_network_owns_nothing),
		cmocka_unit_test(the_kernel_is_followed),
		cmocka_unit_test(an_overrun_loses_nothing),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
