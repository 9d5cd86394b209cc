/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over TCP: message boundaries, and clients that are slow, silent, numerous or malicious. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "dispatch_rig.h"
#include "control/tcp.h"
#include "proto/ng_stream.h"

#define MS   1000000ull
#define PING "d7:command4:pinge"
#define PONG "d6:result4:ponge"

/* --- Ends of messages ---------------------------------------------------------------------- */

static void messages_end_where_their_dictionary_does(void **state)
{
	static const struct {
		const char *in;
		int want;
		size_t start, end;
	} T[] = {
		{"1 " PING, 1, 0, 2 + 17},
		{"1 " PING "2 ", 1, 0, 2 + 17},
		{"\r\n 1  \n" PING "x", 1, 3, 3 + 4 + 17},
		{"1 de", 1, 0, 4},
		{"1 d1:ali5eei-7ee", 1, 0, 16},
		{"1 d3:abe0:e", 1, 0, 11},
		{"1 d0:0:e", 1, 0, 8},
		{"1 d5:aae", 0, 0, 8},
		{"1 {}", 1, 0, 4},
		{"1 {\"a\":[{\"b\":\"}]\\\"\\\\\"}]}{", 1, 0, 24},
		{"1 {\"a\":\"\\", 0, 0, 9},
		{"1 {[}}", 1, 0, 6},
		{"", 0, 0, 0},
		{"\n\n", 0, 2, 2},
		{"cookie", 0, 0, 6},
		{"1 hello", -EPROTO, 0, 2},
		{"1 l", -EPROTO, 0, 2},
		{"1 d7:commandx", -EBADMSG, 0, 12},
		{"1 d1x", -EBADMSG, 0, 4},
		{"1 di5x", -EBADMSG, 0, 5},
		{"1 d262145:", -EMSGSIZE, 0, 8},
		{"1 d99999999999999999999999999999:", -EMSGSIZE, 0, 8},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (size_t step = 1; step <= 100; step += 99) {
			struct ng_stream s = {0};
			struct str all = str_from(T[i].in);
			int got = 0;

			for (size_t have = 0; got == 0 && have < all.len;) {
				have = have + step < all.len ? have + step : all.len;
				got = ng_stream_walk(&s, (struct str){all.s, have});
			}
			if (got != T[i].want || s.at != T[i].end || s.start != T[i].start)
				fail_msg("%s: %d, %zu to %zu", T[i].in, got, s.start, s.at);
		}
}

static void a_message_has_a_longest_length(void **state)
{
	static char big[NG_STREAM_MAX + 100];

	(void)state;
	for (size_t total = NG_STREAM_MAX - 1; total <= NG_STREAM_MAX + 1; total++) {
		struct ng_stream s = {0};
		int n = snprintf(big, sizeof(big), "1 d0:%zu:", total - 13);

		memset(big + n, 'x', sizeof(big) - (size_t)n);
		big[total - 1] = 'e';
		assert_int_equal(ng_stream_walk(&s, (struct str){big, total}),
			total <= NG_STREAM_MAX ? 1 : -EMSGSIZE);
	}
	memset(big, 'c', sizeof(big));
	assert_int_equal(
		ng_stream_walk(&(struct ng_stream){0}, (struct str){big, sizeof(big)}), -ENOMSG);
	memset(big, '{', sizeof(big));
	big[1] = ' ';
	assert_int_equal(
		ng_stream_walk(&(struct ng_stream){0}, (struct str){big, sizeof(big)}), -EMSGSIZE);
}

/* --- With sockets -------------------------------------------------------------------------- */

struct rig {
	struct dispatch_rig f;
	struct ng_tcp *tcp;
};

static void start(struct rig *r, struct ng_tcp_config cfg)
{
	char err[256];

	memset(r, 0, sizeof(*r));
	dispatch_start(&r->f);
	assert_int_equal(endpoint_parse_addr(&cfg.listen, STR("127.0.0.1")), 0);
	assert_int_equal(
		ng_tcp_create(&r->tcp, r->f.loop, r->f.dispatch, &cfg, err, sizeof(err)), 0);
}

static void stop(struct rig *r)
{
	ng_tcp_destroy(r->tcp);
	dispatch_stop(&r->f);
}

static void serve_for(struct rig *r, uint64_t ns)
{
	dispatch_serve(&r->f, ns);
}

static int client(struct rig *r)
{
	int fd = dispatch_client(ng_tcp_local(r->tcp));

	serve_for(r, MS);
	return fd;
}

static void expect(struct rig *r, int fd, const char *in, const char *want, bool want_closed)
{
	uint64_t start = virtual_time_real_ns();
	struct str got = {NULL, 0};
	bool closed;

	if (*in)
		dispatch_send(fd, str_from(in));
	do {
		serve_for(r, 3 * MS);
		got = dispatch_receive_more(fd, got.len, &closed);
		if (strcmp(got.s, want) == 0 && closed == want_closed)
			return;
	} while (virtual_time_patient(start));
	fail_msg("%s\n gave: %s (%s)\n want: %s", in, got.s, closed ? "closed" : "open", want);
}

/* Checks that this many connections are open, now or once pending data has arrived. */
static void expect_connections(struct rig *r, uint32_t want)
{
	uint64_t start = virtual_time_real_ns();

	while (ng_tcp_connections(r->tcp) != want && virtual_time_patient(start))
		serve_for(r, MS);
	assert_int_equal(ng_tcp_connections(r->tcp), want);
}

#define ERROR(len, reason) "d6:result5:error12:error-reason" #len ":" reason "e"

static void requests_are_answered_in_order_and_garbage_ends_the_connection(void **state)
{
	static const struct {
		const char *in, *want;
		bool closed;
	} T[] = {
		{"1 " PING, "1 " PONG, false},
		{"1 " PING "2 " PING "\n3 {\"command\":\"ping\"}",
			"1 " PONG "2 " PONG "3 {\"result\":\"pong\"}", false},
		{"1 d3:ab", "", false},
		{"1 de", "1 " ERROR(36, "Dictionary contains no key \"command\""), false},
		{"1 " PING "2 hello", "1 " PONG "2 " ERROR(22, "Invalid NG data format"), true},
		{"1 dx", "1 " ERROR(35, "Could not decode bencode dictionary"), true},
		{"1 d999999:", "1 " ERROR(19, "Message is too long"), true},
	};
	struct rig r;

	(void)state;
	start(&r, (struct ng_tcp_config){0});
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		int fd = client(&r);

		expect(&r, fd, T[i].in, T[i].want, T[i].closed);
		close(fd);
		expect_connections(&r, 0);
	}
	stop(&r);
}

static void a_big_message_may_come_in_pieces(void **state)
{
	static char big[NG_STREAM_MAX];
	size_t len, at, piece;
	bool closed;
	struct rig r;
	int fd;

	(void)state;
	start(&r, (struct ng_tcp_config){0});
	fd = client(&r);
	len = (size_t)snprintf(big, sizeof(big), "x d7:command4:ping3:sdp250000:");
	memset(big + len, 'e', 250000);
	len += 250000;
	big[len++] = 'e';
	for (at = 0; at < len; at += piece) {
		piece = len - at < 1400 ? len - at : 1400;
		assert_string_equal(dispatch_receive(fd, &closed).s, "");
		dispatch_send(fd, (struct str){big + at, piece});
		serve_for(&r, MS / 20);
	}
	expect(&r, fd, "", "x " PONG, false);
	close(fd);
	stop(&r);
}

/* Sends a request whose reply may be stored. Returns how many replies came from the cache. */
static void a_repeated_cookie_is_answered_from_the_cache(void **state)
{
	struct str got, what;
	struct rig r;
	int one, two;

	(void)state;
	start(&r, (struct ng_tcp_config){0});
	one = client(&r);
	two = client(&r);
	expect(&r, one, "1 " PING "1 " PING "1 de", "1 " PONG "1 " PONG "1 " PONG, false);
	expect(&r, two, "1 " PING, "1 " PONG, false);
	dispatch_send(one, STR("2 d7:command10:statisticse"));
	what = STR("totalduplicatecounti2e");
	got = dispatch_receive_until(&r.f, one, what);
	assert_non_null(memmem(got.s, got.len, what.s, what.len));
	close(one);
	close(two);
	stop(&r);
}

static void who_hangs_up_after_asking_still_gets_the_replies(void **state)
{
	struct rig r;
	int fd;

	(void)state;
	start(&r, (struct ng_tcp_config){0});
	fd = client(&r);
	dispatch_send(fd, STR("1 " PING "2 " PING "3 d"));
	shutdown(fd, SHUT_WR);
	expect(&r, fd, "", "1 " PONG "2 " PONG, true);
	close(fd);
	expect_connections(&r, 0);
	stop(&r);
}

/* A client sends millions of requests and reads no reply. The server stops reading it, serves
 * others, and finally closes the connection. */
static void who_reads_no_replies_is_not_read_from_and_blocks_nobody(void **state)
{
	static char many[19 * 1000];
	struct rig r;
	size_t sent = 0;
	int mad, good;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(many + 19 * i, "1 " PING, 19);
	start(&r,
		(struct ng_tcp_config){
			.stall_ns = 1000 * MS}); /* a processor may not be free at once */
	mad = client(&r);
	good = client(&r);
	for (int round = 0, quiet = 0; quiet < 10; round++) {
		size_t off = sent % 19;
		ssize_t n = send(mad, many + off, sizeof(many) - off, MSG_NOSIGNAL);

		if (n < 0)
			assert_int_equal(errno, EAGAIN);
		quiet = n < 0 ? quiet + 1 : 0;
		sent += n > 0 ? (size_t)n : 0;
		assert_true(sent < 200u << 20);
		serve_for(&r, MS);
	}
	expect(&r, good, "2 " PING, "2 " PONG, false);
	assert_int_equal(ng_tcp_connections(r.tcp), 2);
	for (int round = 0; ng_tcp_connections(r.tcp) == 2 && round < 100; round++)
		serve_for(&r, 50 * MS);
	assert_int_equal(ng_tcp_connections(r.tcp), 1);
	expect(&r, good, "3 " PING, "3 " PONG, false);
	assert_true(dispatch_ends(&r.f, mad));
	close(mad);
	close(good);
	stop(&r);
}

/* The same, but the client reads in the end: every request gets its reply. */
static void replies_go_on_when_the_client_reads_again(void **state)
{
	static char many[19 * 20000];
	size_t answered = 0, sent = 0;
	struct rig r;
	bool closed;
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(many) / 19; i++)
		memcpy(many + 19 * i, "1 " PING, 19);
	start(&r, (struct ng_tcp_config){0});
	fd = client(&r);
	for (int quiet = 0; sent < sizeof(many) && quiet < 10;) {
		ssize_t n = send(fd, many + sent, sizeof(many) - sent, MSG_NOSIGNAL);

		quiet = n < 0 ? quiet + 1 : 0;
		sent += n > 0 ? (size_t)n : 0;
		serve_for(&r, MS);
	}
	for (int i = 0; i < 2000 && answered / 18 < sizeof(many) / 19; i++) {
		ssize_t n = sent < sizeof(many)
			? send(fd, many + sent, sizeof(many) - sent, MSG_NOSIGNAL)
			: 0;

		sent += n > 0 ? (size_t)n : 0;
		serve_for(&r, MS);
		answered += strlen(dispatch_receive(fd, &closed).s);
	}
	assert_int_equal(answered, 18 * (sizeof(many) / 19));
	close(fd);
	stop(&r);
}

static void silence_and_half_messages_end_connections(void **state)
{
	struct rig r;
	int silent, half, busy;
	bool closed;

	(void)state;
	start(&r, (struct ng_tcp_config){.idle_ns = 400 * MS, .stall_ns = 100 * MS});
	silent = client(&r);
	half = client(&r);
	busy = client(&r);
	for (int i = 0; i < 25; i++) { /* a byte now and then does not count as activity */
		dispatch_send(busy, STR("1 " PING));
		if (i < 4)
			dispatch_send(half, i ? STR("x") : STR("1 d100:"));
		serve_for(&r, 10 * MS);
	}
	assert_true(dispatch_ends(&r.f, half));
	assert_int_equal(ng_tcp_connections(r.tcp), 2);
	for (int i = 0; i < 25; i++) {
		dispatch_send(busy, STR("1 " PING));
		serve_for(&r, 10 * MS);
	}
	assert_true(dispatch_ends(&r.f, silent));
	dispatch_receive(busy, &closed);
	assert_false(closed);
	close(silent);
	close(half);
	close(busy);
	stop(&r);
}

static void the_longest_silent_makes_room_or_the_new_one_goes(void **state)
{
	int fd[4];
	struct rig r;

	(void)state;
	start(&r, (struct ng_tcp_config){.connections = 2, .evict_ns = 100 * MS});
	fd[0] = client(&r);
	fd[1] = client(&r);
	fd[2] = client(&r);
	serve_for(&r, MS);
	assert_true(dispatch_ends(&r.f, fd[2])); /* none was silent for long */
	serve_for(&r, 120 * MS);
	expect(&r, fd[0], "1 " PING, "1 " PONG, false);
	fd[3] = client(&r);
	expect(&r, fd[3], "1 " PING, "1 " PONG, false);
	assert_true(dispatch_ends(&r.f, fd[1]));
	expect(&r, fd[0], "2 " PING, "2 " PONG, false);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	stop(&r);
}

/* Connects a client with this source address. */
static int client_from(struct rig *r, const char *addr)
{
	struct endpoint e, to = ng_tcp_local(r->tcp);
	struct sockaddr_storage sa;
	socklen_t len;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_int_equal(endpoint_parse_addr(&e, str_from(addr)), 0);
	len = endpoint_to_sockaddr(&e, &sa);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	len = endpoint_to_sockaddr(&to, &sa);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	serve_for(r, MS);
	return fd;
}

/* All were just active, so none is closed for silence. */
static void an_address_with_all_connections_gives_some_to_another(void **state)
{
	int crowd[4], one, two, three;
	struct rig r;
	bool closed;

	(void)state;
	start(&r, (struct ng_tcp_config){.connections = 4});
	for (int i = 0; i < 4; i++) {
		crowd[i] = client_from(&r, "127.0.0.2");
		expect(&r, crowd[i], "1 " PING, "1 " PONG, false);
	}
	one = client_from(&r, "127.0.0.1");
	expect(&r, one, "1 " PING, "1 " PONG, false);
	assert_true(dispatch_ends(&r.f, crowd[0]));
	two = client_from(&r, "127.0.0.1");
	expect(&r, two, "1 " PING, "1 " PONG, false);
	assert_true(dispatch_ends(&r.f, crowd[1]));
	/* two connections each: a third of either is refused */
	three = client_from(&r, "127.0.0.1");
	assert_true(dispatch_ends(&r.f, three));
	expect(&r, one, "2 " PING, "2 " PONG, false);
	dispatch_receive(crowd[3], &closed);
	assert_false(closed);
	close(one);
	close(two);
	close(three);
	for (int i = 0; i < 4; i++)
		close(crowd[i]);
	stop(&r);
}

/* Any input gets a reply, or ends only its own connection. */
static void random_bytes_do_no_harm(void **state)
{
	static const char words[][12] = {
		"d", "e", "l", "i5e", "4:ping", "7:command", " ", "{", "}", "\"", "1", "0:", "\n"};
	struct rig r;
	int good;

	(void)state;
	srandom(1);
	start(&r, (struct ng_tcp_config){0});
	good = client(&r);
	for (int i = 0; i < 100; i++) {
		int fd = client(&r);
		bool closed;

		for (int k = 0; k < 30; k++) {
			char raw = (char)random();
			struct str s = random() % 8 ? str_from(words[random() % 13])
						    : (struct str){&raw, 1};

			if (send(fd, s.s, s.len, MSG_NOSIGNAL) < 0)
				break;
		}
		serve_for(&r, MS / 2);
		dispatch_receive(fd, &closed);
		close(fd);
	}
	expect(&r, good, "1 " PING, "1 " PONG, false);
	expect_connections(&r, 1);
	close(good);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_end_where_their_dictionary_does),
		cmocka_unit_test(a_message_has_a_longest_length),
		cmocka_unit_test(requests_are_answered_in_order_and_garbage_ends_the_connection),
		cmocka_unit_test(a_big_message_may_come_in_pieces),
		cmocka_unit_test(a_repeated_cookie_is_answered_from_the_cache),
		cmocka_unit_test(who_hangs_up_after_asking_still_gets_the_replies),
		cmocka_unit_test(who_reads_no_replies_is_not_read_from_and_blocks_nobody),
		cmocka_unit_test(replies_go_on_when_the_client_reads_again),
		cmocka_unit_test(silence_and_half_messages_end_connections),
		cmocka_unit_test(the_longest_silent_makes_room_or_the_new_one_goes),
		cmocka_unit_test(an_address_with_all_connections_gives_some_to_another),
		cmocka_unit_test(random_bytes_do_no_harm),
	};

	log_set_level(LOG_CRIT); /* refused requests are intended here and would flood the log */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
