/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over the Unix socket: the lines before messages, and the cost of a proxy that breaks the
 * protocol. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "control/listen.h"
#include "control/tcp.h"
#include "dispatch_rig.h"
#include "proto/ng_proxy.h"
#include "proto/ng_stream.h"

#define MS    1000000ull
#define HELLO "xcipher-ng 1 open\n"
#define PING  "d7:command4:pinge"
#define PONG  "d6:result4:ponge"

/* --- Lines ------------------------------------------------------------------------------------ */

static void requests_are_read_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *in;
		int want;
		bool plain, token;
		size_t len;
	} T[] = {
		{"plain none - 17\n", 16, true, false, 17},
		{"plain none - 17\nplain", 16, true, false, 17},
		{"cookie token 192.0.2.1:5 0\n", 27, false, true, 0},
		{"cookie none [2001:db8::1]:65535 262144\n", 39, false, false, 262144},
		{"", 0, false, false, 0},
		{"plain none - 17", 0, true, false, 0},
		{"\n", -EBADMSG, false, false, 0},
		{"plain none - \n", -EBADMSG, false, false, 0},
		{"plain none - -1\n", -EBADMSG, false, false, 0},
		{"plain none - 262145\n", -EBADMSG, false, false, 0},
		{"plain none - 99999999999999999999999\n", -EBADMSG, false, false, 0},
		{"plain none 17\n", -EBADMSG, false, false, 0},
		{"plain maybe - 17\n", -EBADMSG, false, false, 0},
		{"other none - 17\n", -EBADMSG, false, false, 0},
		{"plain none localhost:1 17\n", -EBADMSG, false, false, 0},
		{"plain none - 17 \n", -EBADMSG, false, false, 0},
		{"plain  none - 17\n", -EBADMSG, false, false, 0},
	};
	char endless[NG_PROXY_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ng_proxy_request r;
		int got = ng_proxy_read_request(&r, str_from(T[i].in), NG_STREAM_MAX);

		if (got != T[i].want)
			fail_msg("%s: %d", T[i].in, got);
		if (got > 0) {
			assert_int_equal(r.plain, T[i].plain);
			assert_int_equal(r.token, T[i].token);
			assert_int_equal(r.len, T[i].len);
		}
	}
	memset(endless, 'x', sizeof(endless));
	for (size_t len = 0; len <= sizeof(endless); len++)
		assert_int_equal(ng_proxy_read_request(&(struct ng_proxy_request){0},
					 (struct str){endless, len}, NG_STREAM_MAX),
			len < sizeof(endless) ? 0 : -EBADMSG);
}

static void what_is_written_is_read(void **state)
{
	struct ng_proxy_request in = {.plain = false, .token = true, .len = 12345}, out;
	struct ng_proxy_hello hello;
	struct sbuf b;

	(void)state;
	sbuf_init(&b, 0);
	assert_int_equal(endpoint_parse(&in.client, STR("[2001:db8::7]:4711")), 0);
	ng_proxy_write_request(&b, &in);
	assert_int_equal(ng_proxy_read_request(&out, sbuf_view(&b), NG_STREAM_MAX), b.len);
	assert_true(endpoint_eq(&in.client, &out.client));
	assert_true(out.token && !out.plain && out.len == in.len);
	for (int i = 0; i < NG_PROXY_STATUS_COUNT; i++) {
		struct ng_proxy_reply said = {(enum ng_proxy_status)i, NG_PROXY_REPLY_MAX}, got;

		b.len = 0;
		ng_proxy_write_reply(&b, &said);
		assert_int_equal(ng_proxy_read_reply(&got, sbuf_view(&b)), b.len);
		assert_true(got.status == said.status && got.len == said.len);
	}
	for (int keys = 0; keys <= 1; keys++) {
		b.len = 0;
		ng_proxy_write_hello(&b, &(struct ng_proxy_hello){.keys = keys});
		assert_int_equal(ng_proxy_read_hello(&hello, sbuf_view(&b)), b.len);
		assert_int_equal(hello.keys, keys);
	}
	assert_int_equal(ng_proxy_read_hello(&hello, STR("xcipher-ng 2 open\n")), -EBADMSG);
	assert_int_equal(
		ng_proxy_read_reply(&(struct ng_proxy_reply){0}, STR("ok 1048577\n")), -EBADMSG);
	sbuf_fini(&b);
}

/* --- With sockets ----------------------------------------------------------------------------- */

struct rig {
	struct dispatch_rig f;
	struct ng_tcp *server;
	char folder[32], path[64];
};

static void start(struct rig *r)
{
	struct ng_tcp_config cfg = {.group = LISTEN_NO_GROUP, .connections = 2};
	char err[256];

	memset(r, 0, sizeof(*r));
	strcpy(r->folder, "/tmp/xc-unix-XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	snprintf(r->path, sizeof(r->path), "%s/ng", r->folder);
	cfg.path = r->path;
	dispatch_start(&r->f);
	assert_int_equal(
		ng_tcp_create(&r->server, r->f.loop, r->f.dispatch, &cfg, err, sizeof(err)), 0);
}

static void stop(struct rig *r)
{
	ng_tcp_destroy(r->server);
	dispatch_stop(&r->f);
	assert_int_equal(rmdir(r->folder), 0); /* the socket is closed */
}

static int client(struct rig *r)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, r->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	dispatch_serve(&r->f, MS);
	return fd;
}

static void requests_are_answered_in_order(void **state)
{
	static const struct {
		const char *in, *want;
		bool closed;
	} T[] = {
		{"", HELLO, false},
		{"plain none - 17\n" PING "cookie none 192.0.2.1:5 19\n1 " PING,
			HELLO "ok 16\n" PONG "ok 18\n1 " PONG, false},
		/* a malformed message has a length, so the next request is still read */
		{"cookie none 192.0.2.1:5 5\nhelloplain none - 3\nd1xplain none - 17\n" PING,
			HELLO "dropped 0\nok 82\nd6:result5:error12:error-reason47:Could not "
			      "decode bencode dictionary (at byte 2)eok 16\n" PONG,
			false},
		{"plain none - 0\nplain none - 17\n" PING,
			HELLO "ok 61\n{\"result\":\"error\",\"error-reason\":\"Invalid data (no "
			      "payload)\"}ok 16\n" PONG,
			false},
		{"plain none - 17\n" PING "what\nplain none - 17\n" PING, HELLO "ok 16\n" PONG,
			true},
	};
	struct rig r;

	(void)state;
	start(&r);
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (size_t step = 1; step <= 1000; step += 999) {
			size_t len = strlen(T[i].in);
			uint64_t began = virtual_time_real_ns();
			int fd = client(&r);
			struct str got = {NULL, 0};
			bool closed;

			for (size_t at = 0; at < len; at += step) {
				(void)!send(fd, T[i].in + at, len - at < step ? len - at : step,
					MSG_NOSIGNAL);
				dispatch_serve(&r.f, 1);
			}
			do {
				dispatch_serve(&r.f, MS);
				got = dispatch_receive_more(fd, got.len, &closed);
			} while ((!str_eq(got, str_from(T[i].want)) || closed != T[i].closed) &&
				virtual_time_patient(began));
			assert_string_equal(got.s, T[i].want);
			assert_int_equal(closed, T[i].closed);
			close(fd);
			dispatch_serve(&r.f, MS);
		}
	stop(&r);
}

/* A second program does not take over the socket of a running one, but replaces that of a dead
 * one. */
static void the_socket_is_private_and_has_one_owner(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct ng_tcp_config cfg = {.group = LISTEN_NO_GROUP};
	struct ng_tcp *second;
	char err[256];
	struct stat st;
	struct rig r;
	int fd;

	(void)state;
	start(&r);
	cfg.path = r.path;
	assert_int_equal(stat(r.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ng_tcp_create(&second, r.f.loop, r.f.dispatch, &cfg, err, sizeof(err)),
		-EADDRINUSE);
	assert_non_null(strstr(err, r.path));
	ng_tcp_destroy(r.server);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(at.sun_path, r.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	assert_int_equal(
		ng_tcp_create(&r.server, r.f.loop, r.f.dispatch, &cfg, err, sizeof(err)), 0);
	ng_tcp_destroy(r.server);
	assert_int_equal(close(creat(r.path, 0600)), 0);
	assert_int_equal(
		ng_tcp_create(&r.server, r.f.loop, r.f.dispatch, &cfg, err, sizeof(err)), -EEXIST);
	r.server = NULL;
	unlink(r.path);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_whole_or_not_at_all),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(requests_are_answered_in_order),
		cmocka_unit_test(the_socket_is_private_and_has_one_owner),
	};

	log_open("test", LOG_ERR, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
