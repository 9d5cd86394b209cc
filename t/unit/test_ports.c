/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pool of port pairs and each worker's part of the range, on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "steer/ports.h"

#define HOLD_NS 1000u
#define BASE    41200

static struct steer_config config(uint16_t min, uint16_t max, uint32_t workers)
{
	struct steer_config cfg = {
		.locals = 2, .port_min = min, .port_max = max, .workers = workers, .burst_max = 16};

	assert_int_equal(endpoint_parse_addr(&cfg.local[0], STR("127.0.0.1")), 0);
	assert_int_equal(endpoint_parse_addr(&cfg.local[1], STR("::1")), 0);
	return cfg;
}

static void workers_share_the_range_by_pairs(void **state)
{
	static const struct {
		uint16_t min, max;
		uint32_t workers;
		uint32_t pairs; /* of all workers */
	} T[] = {
		{30000, 39999, 1, 5000},
		{30000, 39999, 3, 5000},
		{30001, 39999, 2, 4999}, /* begins at the next even port */
		{30000, 40000, 2, 5000}, /* the last port has no odd partner */
		{30000, 30001, 4, 1},    /* more workers than pairs */
		{30000, 30000, 1, 0},
		{0, 65535, 7, 32767}, /* port 0 is not usable */
		{65534, 65535, 1, 1},
		{40000, 30000, 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct steer_config cfg = config(T[i].min, T[i].max, T[i].workers);
		uint32_t pairs = 0, next = 0;

		for (uint32_t w = 0; w < T[i].workers; w++) {
			uint16_t min, max;

			steer_worker_ports(&cfg, w, &min, &max);
			if (max < min)
				continue;
			assert_int_equal(min % 2, 0);
			assert_int_equal(max % 2, 1);
			assert_true(min >= T[i].min && max <= T[i].max && min > 0);
			if (pairs)
				assert_int_equal(min, next);
			next = max + 1u;
			pairs += (max - min + 1u) / 2;
		}
		assert_int_equal(pairs, T[i].pairs);
	}
}

static void pair_close(const struct ports_pair *p)
{
	close(p->rtp_fd);
	close(p->rtcp_fd);
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct endpoint e;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_int_equal(endpoint_from_sockaddr(&e, &sa), 0);
	return e.port;
}

static int option(int fd, int level, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	assert_int_equal(getsockopt(fd, level, name, &v, &len), 0);
	return v;
}

static void a_pair_is_even_odd_bound_and_configured(void **state)
{
	struct steer_config cfg = config(BASE, BASE + 7, 2);
	struct ports_pair v4, v6;
	struct ports *p;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0xb8, HOLD_NS), 0);
	assert_int_equal(ports_free_count(p), 8); /* 4 pairs on each address */
	assert_int_equal(ports_take(p, 0, 1, 0, &v4), 0);
	assert_int_equal(ports_take(p, 1, 0, 0, &v6), 0);
	assert_int_equal(v4.rtp.port % 2, 0);
	assert_int_equal(v4.rtcp.port, v4.rtp.port + 1);
	assert_true(v4.rtp.port >= BASE + 4); /* worker 1's half */
	assert_true(v6.rtp.port < BASE + 4);
	assert_int_equal(v6.rtp.addr, 1);
	assert_int_equal(bound_port(v4.rtp_fd), v4.rtp.port);
	assert_int_equal(bound_port(v4.rtcp_fd), v4.rtcp.port);
	assert_int_equal(bound_port(v6.rtcp_fd), v6.rtcp.port);
	assert_int_equal(option(v4.rtp_fd, IPPROTO_IP, IP_TOS), 0xb8);
	assert_int_equal(option(v6.rtp_fd, IPPROTO_IPV6, IPV6_TCLASS), 0xb8);
	assert_int_equal(option(v6.rtp_fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	assert_int_equal(option(v4.rtp_fd, SOL_SOCKET, SO_TIMESTAMPNS), 1);
	assert_int_equal(ports_used_count(p), 2);
	assert_int_equal(ports_free_count(p), 6);
	/* Both ports of the pair are ours until the pool may give them to others. */
	assert_true(ports_has(p, v4.rtp) && ports_has(p, v4.rtcp) && ports_has(p, v6.rtp));
	assert_false(ports_has(p, (struct local_port){.port = v4.rtp.port, .addr = 1}));
	assert_false(ports_has(p, (struct local_port){.port = BASE + 8, .addr = 0}));
	assert_false(ports_has(p, (struct local_port){.port = v4.rtp.port, .addr = 2}));
	assert_true(ports_given(p, v4.rtp) && ports_given(p, v4.rtcp) && ports_given(p, v6.rtp));
	assert_false(ports_given(p, (struct local_port){.port = v4.rtp.port, .addr = 1}));
	assert_false(ports_given(p, (struct local_port){.port = BASE + 8, .addr = 0}));
	assert_false(ports_given(p, (struct local_port){.port = v4.rtp.port, .addr = 2}));
	ports_put(p, v4.rtp, 0);
	assert_true(ports_has(p, v4.rtcp));
	assert_false(ports_given(p, v4.rtcp)); /* its socket is closed */
	pair_close(&v4);
	pair_close(&v6);
	ports_destroy(p);
}

static void all_pairs_are_given_once_then_none(void **state)
{
	enum { PAIRS = 8 };
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 1);
	struct ports_pair pair[PAIRS], more;
	bool seen[PAIRS] = {false};
	struct ports *p;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(ports_take(p, 0, 0, 0, &pair[i]), 0);
		assert_false(seen[(pair[i].rtp.port - BASE) / 2]);
		seen[(pair[i].rtp.port - BASE) / 2] = true;
	}
	assert_int_equal(ports_take(p, 0, 0, 0, &more), -ENOSPC);
	/* The other address has its own. */
	assert_int_equal(ports_take(p, 1, 0, 0, &more), 0);
	pair_close(&more);
	for (int i = 0; i < PAIRS; i++)
		pair_close(&pair[i]);
	ports_destroy(p);
}

/* After a restart, calls get their former ports. */
static void a_pair_can_be_asked_for(void **state)
{
	enum { PAIRS = 8 };
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 2);
	struct local_port at = {.port = BASE + 12, .addr = 0}, odd = {.port = BASE + 1, .addr = 0},
			  far = {.port = BASE + 2 * PAIRS, .addr = 0};
	struct ports_pair pair, blocked, rest[PAIRS];
	struct ports *p, *other;
	uint32_t worker = 99, n = 0;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_create(&other, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_take_at(p, odd, &worker, &pair), -ERANGE);
	assert_int_equal(ports_take_at(p, far, &worker, &pair), -ERANGE);
	assert_int_equal(ports_take_at(p, at, &worker, &pair), 0);
	assert_int_equal(worker, 1);
	assert_int_equal(bound_port(pair.rtp_fd), BASE + 12);
	assert_int_equal(bound_port(pair.rtcp_fd), BASE + 13);
	assert_int_equal(ports_take_at(p, at, &worker, &blocked), -EADDRINUSE);     /* ours */
	assert_int_equal(ports_take_at(other, at, &worker, &blocked), -EADDRINUSE); /* others' */
	while (ports_take(p, 0, 1, 0, &rest[n]) == 0) /* and no other call gets it */
		assert_int_not_equal(rest[n++].rtp.port, BASE + 12);
	assert_int_equal(n, PAIRS / 2 - 1);
	/* A released pair is held back, but not from its former owner. */
	pair_close(&pair);
	ports_put(p, at, 0);
	assert_int_equal(ports_take_at(p, at, &worker, &pair), 0);
	assert_int_equal(ports_take(p, 0, 1, 2 * HOLD_NS, &blocked), -ENOSPC);
	pair_close(&pair);
	while (n)
		pair_close(&rest[--n]);
	ports_destroy(p);
	ports_destroy(other);
}

static void a_freed_pair_is_held_back_while_there_are_others(void **state)
{
	struct steer_config cfg = config(BASE, BASE + 3, 1);
	struct ports_pair a, b, c;
	struct ports *p;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_take(p, 0, 0, 5000, &a), 0);
	pair_close(&a);
	ports_put(p, a.rtp, 6000);
	ports_put(p, a.rtp, 6000); /* taking it twice has no further effect */
	assert_int_equal(ports_used_count(p), 0);
	assert_int_equal(ports_free_count(p), 4);
	assert_int_equal(ports_take(p, 0, 0, 6000, &b), 0);
	assert_int_not_equal(b.rtp.port, a.rtp.port); /* the other address */
	assert_int_equal(ports_take(p, 0, 0, 6001, &c), 0);
	assert_int_equal(c.rtp.port, a.rtp.port); /* nothing else is left */
	pair_close(&b);
	pair_close(&c);
	ports_put(p, b.rtp, 7000);
	ports_put(p, c.rtp, 7001);
	assert_int_equal(ports_take(p, 0, 0, 7002, &a), 0);
	assert_int_equal(a.rtp.port, b.rtp.port); /* the oldest */
	pair_close(&a);
	ports_destroy(p);
}

static void what_others_hold_is_skipped(void **state)
{
	struct steer_config cfg = config(BASE, BASE + 3, 1);
	struct ports_pair foreign, mine, none;
	struct ports *other, *p;

	(void)state;
	assert_int_equal(ports_create(&other, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_take(other, 0, 0, 0, &foreign), 0);
	/* Only the odd port of a pair is in use elsewhere: the pair cannot be taken. */
	close(foreign.rtp_fd);
	assert_int_equal(ports_take(p, 0, 0, 0, &mine), 0);
	assert_int_not_equal(mine.rtp.port, foreign.rtp.port);
	assert_int_equal(ports_take(p, 0, 0, 0, &none), -ENOSPC);
	close(foreign.rtcp_fd);
	assert_int_equal(ports_take(p, 0, 0, 0, &none), 0);
	assert_int_equal(none.rtp.port, foreign.rtp.port);
	pair_close(&mine);
	pair_close(&none);
	ports_destroy(other);
	ports_destroy(p);
}

static void the_order_is_shuffled_and_long_use_loses_nothing(void **state)
{
	enum { PAIRS = 32 };
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 1);
	struct ports_pair pair;
	bool seen[PAIRS] = {false};
	uint16_t last = 0;
	struct ports *p;
	int rising = 0;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	for (uint64_t i = 0; i < 20 * PAIRS; i++) {
		assert_int_equal(ports_take(p, 0, 0, i * HOLD_NS / 4, &pair), 0);
		rising += pair.rtp.port == last + 2;
		last = pair.rtp.port;
		seen[(pair.rtp.port - BASE) / 2] = true;
		pair_close(&pair);
		ports_put(p, pair.rtp, i * HOLD_NS / 4);
	}
	/* In order, neighbouring pairs would be frequent. */
	assert_true(rising < 5 * PAIRS);
	for (int i = 0; i < PAIRS; i++)
		assert_true(seen[i]);
	assert_int_equal(ports_free_count(p), 2 * PAIRS);
	ports_destroy(p);
}

static void an_address_that_is_not_ours_is_an_error(void **state)
{
	struct steer_config cfg = config(BASE, BASE + 3, 1);
	struct ports_pair pair;
	struct ports *p;

	(void)state;
	assert_int_equal(endpoint_parse_addr(&cfg.local[0], STR("192.0.2.77")), 0);
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	assert_int_equal(ports_take(p, 0, 0, 0, &pair), -EADDRNOTAVAIL);
	assert_int_equal(ports_take(p, 2, 0, 0, &pair), -EINVAL);
	assert_int_equal(ports_take(p, 0, 1, 0, &pair), -EINVAL);
	assert_int_equal(ports_free_count(p), 4);
	ports_destroy(p);
}

/* Limits the process to the descriptors already open, and a few more. */
static struct rlimit scarce(void)
{
	struct rlimit old, few = {320, 320};

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return old;
}

static void without_descriptors_a_pair_is_refused(void **state)
{
	enum { PAIRS = 300 };
	static struct ports_pair pair[PAIRS];
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 1);
	struct rlimit old = scarce();
	uint32_t n = 0, promised;
	struct ports *p;
	int err = 0, fd;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	promised = ports_descriptors_count(p);
	while (n < PAIRS && (err = ports_take(p, 0, 0, 0, &pair[n])) == 0)
		n++;
	/* Other users still get descriptors. */
	fd = dup(0);
	assert_true(fd >= 0);
	close(fd);
	assert_true(n > 60 && n < 128);
	/* The test's own descriptors may not be the lowest. */
	assert_in_range(n, promised - 2, promised);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(ports_used_count(p), n);
	assert_in_range(ports_descriptors_count(p), 0, 2);
	for (uint32_t i = 0; i < n; i++) {
		pair_close(&pair[i]);
		ports_put(p, pair[i].rtp, 0);
	}
	assert_int_equal(ports_free_count(p), 2 * PAIRS);
	ports_destroy(p);
	setrlimit(RLIMIT_NOFILE, &old);
}

/* Ordinary calls leave the reserve of pairs and descriptors free; pairs that are held back count as
 * free. */
static void a_reserve_is_left_to_emergency_calls(void **state)
{
	enum { PAIRS = 40 };
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 1);
	static struct ports_pair pair[PAIRS];
	struct ports *p;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
	ports_reserve(p, 10);
	while (n < PAIRS && ports_take_ordinary(p, 0, 0, 0, &pair[n]) == 0)
		n++;
	assert_int_equal(n, PAIRS - PAIRS / 10);
	while (n < PAIRS && ports_take(p, 0, 0, 0, &pair[n]) == 0)
		n++;
	assert_int_equal(n, PAIRS);
	for (uint32_t i = 0; i < PAIRS; i++) {
		assert_int_equal(ports_take_ordinary(p, 0, 0, 0, &pair[0]), -ENOSPC);
		pair_close(&pair[i]);
		ports_put(p, pair[i].rtp, 0);
		if (i >= PAIRS / 10)
			break;
	}
	assert_int_equal(ports_take_ordinary(p, 0, 0, 0, &pair[0]), 0);
	pair_close(&pair[0]);
	for (uint32_t i = PAIRS / 10 + 1; i < PAIRS; i++)
		pair_close(&pair[i]);
	ports_destroy(p);
}

/* Optional pairs leave half of all pairs free, or the reserve if it is larger. */
static void plenty_is_more_than_half(void **state)
{
	enum { PAIRS = 40 };
	static const uint32_t reserve[] = {0, 10, 75}, given[] = {20, 20, 10};
	struct steer_config cfg = config(BASE, BASE + 2 * PAIRS - 1, 1);
	static struct ports_pair pair[PAIRS];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(given); i++) {
		struct ports *p;
		uint32_t n = 0;

		assert_int_equal(ports_create(&p, &cfg, 0, HOLD_NS), 0);
		ports_reserve(p, reserve[i]);
		while (n < PAIRS && ports_take_plenty(p, 0, 0, 0, &pair[n]) == 0)
			n++;
		assert_int_equal(n, given[i]);
		assert_int_equal(ports_take_plenty(p, 0, 0, 0, &pair[n]), -ENOSPC);
		while (n)
			pair_close(&pair[--n]);
		ports_destroy(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_share_the_range_by_pairs),
		cmocka_unit_test(a_pair_is_even_odd_bound_and_configured),
		cmocka_unit_test(all_pairs_are_given_once_then_none),
		cmocka_unit_test(a_pair_can_be_asked_for),
		cmocka_unit_test(a_freed_pair_is_held_back_while_there_are_others),
		cmocka_unit_test(what_others_hold_is_skipped),
		cmocka_unit_test(the_order_is_shuffled_and_long_use_loses_nothing),
		cmocka_unit_test(an_address_that_is_not_ours_is_an_error),
		cmocka_unit_test(without_descriptors_a_pair_is_refused),
		cmocka_unit_test(a_reserve_is_left_to_emergency_calls),
		cmocka_unit_test(plenty_is_more_than_half),
	};

	return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
