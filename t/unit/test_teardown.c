/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports of timeouts to the SIP side: the posted requests, retries, and giving up, all without
 * blocking the loop. The server runs in the same loop, and time is virtual, also for libcurl. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/tick.h"
#include "call/timeout_report.h"
#include "control/teardown.h"
#include "proto/xmlrpc.h"
#include "virtual_time.h"

#define DONE \
	"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\n\r\n<?xml version=\"1.0\"?>\n"
#define OK \
	DONE "<methodResponse><params><param><value>done</value></param></params></methodResponse>"
#define FAULT(text)                                                                                                       \
	DONE "<methodResponse><fault><value><struct><member><name>faultCode</name><value><int>500</int></value></member>" \
	     "<member><name>faultString</name><value><string>" text                                                       \
	     "</string></value></member></struct></value></fault></methodResponse>"
#define BUSY "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define MOVED \
	"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define MAX_SEEN 32

/* --- Events of calls -------------------------------------------------------------------------- */

struct calls {
	void (*timeout)(void *arg, const struct call_timeout *t);
	void *arg;
};

void calls_on_timeout(
	struct calls *c, void (*timeout)(void *arg, const struct call_timeout *t), void *arg)
{
	c->timeout = timeout;
	c->arg = arg;
}

static struct call_timeout two_parties(const char *whom)
{
	struct call_timeout t = {.call_id = STR("c<1>&2@example.org"),
		.tag = {STR("from"), STR("to")},
		.tags = 2,
		.pair = {{0, 1}},
		.pairs = 1};

	assert_int_equal(endpoint_parse_addr(&t.whom, str_from(whom)), 0);
	return t;
}

/* --- A server --------------------------------------------------------------------------------- */

struct server {
	struct loop *loop;
	struct loop_io *io;
	int fd;
	uint16_t port;
	/* the reply to the n-th request; NULL: the one before; "": none */
	const char *reply[MAX_SEEN];
	char seen[MAX_SEEN][1024];
	uint32_t n;
	struct conn {
		struct server *s;
		struct loop_io *io;
		int fd;
		size_t len;
		char text[2048];
	} conn[64];
	uint32_t conns;
};

static void on_conn(void *arg, uint32_t events)
{
	struct conn *c = arg;
	struct server *s = c->s;
	const char *reply = OK;
	ssize_t n = read(c->fd, c->text + c->len, sizeof(c->text) - 1 - c->len);

	(void)events;
	if (n > 0)
		c->len += (size_t)n;
	c->text[c->len] = 0;
	if (n > 0 && !strstr(c->text, "</methodCall>"))
		return;
	if (n > 0 && s->n < MAX_SEEN) {
		snprintf(s->seen[s->n], sizeof(s->seen[0]), "%.1023s", c->text);
		for (uint32_t i = 0; i <= s->n; i++)
			reply = s->reply[i] ? s->reply[i] : reply;
		s->n++;
		if (!reply[0])
			return;
		assert_int_equal(write(c->fd, reply, strlen(reply)), (ssize_t)strlen(reply));
	}
	loop_io_remove(c->io);
	c->io = NULL;
	close(c->fd);
	c->fd = -1;
}

static void on_listen(void *arg, uint32_t events)
{
	struct server *s = arg;
	struct conn *c = &s->conn[s->conns];

	(void)events;
	if (s->conns == ARRAY_LEN(s->conn)) { /* a busy machine lets many attempts time out */
		close(accept(s->fd, NULL, NULL));
		return;
	}
	s->conns++;
	*c = (struct conn){.s = s, .fd = accept(s->fd, NULL, NULL)};
	assert_true(c->fd >= 0);
	assert_int_equal(loop_io_add(s->loop, &c->io, c->fd, EPOLLIN, on_conn, c), 0);
}

struct rig {
	struct loop *loop;
	struct calls calls;
	struct server server;
	struct teardown *t;
	struct teardown_counters want;
	uint64_t end_ns;
	uint32_t turns, turns_max; /* turns_max: stop after so many; 0 = no limit */
};

static void serve(struct rig *r)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(sa);
	struct server *s = &r->server;

	s->loop = r->loop;
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(s->fd, 64), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&sa, &len), 0);
	s->port = ntohs(sa.sin_port);
	assert_int_equal(loop_io_add(r->loop, &s->io, s->fd, EPOLLIN, on_listen, s), 0);
}

static void rig_start_asking(struct rig *r, const char *host, enum teardown_format format,
	bool (*may_connect)(void *arg, const struct endpoint *e), void *arg)
{
	char url[128];
	struct teardown_config cfg = {.calls = &r->calls,
		.format = format,
		.may_connect = may_connect,
		.may_connect_arg = arg,
		.retry_ns = 1000000,
		.timeout_ns = NS_PER_SEC};

	memset(r, 0, sizeof(*r));
	assert_int_equal(loop_create(&r->loop), 0);
	serve(r);
	snprintf(url, sizeof(url), "http://%s:%u/RPC2", host, r->server.port);
	assert_null(teardown_url_wrong(url));
	cfg.loop = r->loop;
	cfg.url = url;
	assert_int_equal(teardown_create(&r->t, &cfg), 0);
	assert_non_null(r->calls.timeout);
}

static void rig_start(struct rig *r, const char *host, enum teardown_format format)
{
	rig_start_asking(r, host, format, NULL, NULL);
}

static void rig_end(struct rig *r)
{
	teardown_destroy(r->t);
	assert_null(r->calls.timeout);
	for (uint32_t i = 0; i < r->server.conns; i++)
		if (r->server.conn[i].fd >= 0) {
			loop_io_remove(r->server.conn[i].io);
			close(r->server.conn[i].fd);
		}
	loop_io_remove(r->server.io);
	close(r->server.fd);
	loop_destroy(r->loop);
}

static void on_turn(void *arg)
{
	struct rig *r = arg;
	struct teardown_counters c = teardown_counters(r->t);

	r->turns++;
	if (c.waiting == 0 || clock_mono_ns() > r->end_ns || r->turns == r->turns_max)
		loop_stop(r->loop);
}

/* Runs until no report is pending. */
static struct teardown_counters run(struct rig *r)
{
	struct loop_timer *timer;

	r->end_ns = clock_mono_ns() + 60 * NS_PER_SEC;
	assert_int_equal(
		loop_timer_add(r->loop, &timer, NS_PER_SEC / 500, NS_PER_SEC / 500, on_turn, r), 0);
	assert_int_equal(loop_run(r->loop), 0);
	loop_timer_remove(timer);
	assert_int_equal(teardown_counters(r->t).waiting, 0);
	return teardown_counters(r->t);
}

static void time_out(struct rig *r, const struct call_timeout *t)
{
	r->calls.timeout(r->calls.arg, t);
}

/* --- Tests ------------------------------------------------------------------------------------ */

#define STRING(x) "<param><value><string>" x "</string></value></param>"
#define CALL_ID   "c&lt;1&gt;&amp;2@example.org"

static void each_format_calls_what_its_server_knows(void **state)
{
	static const struct {
		enum teardown_format format;
		const char *call[2];
	} T[] = {
		{TEARDOWN_SEMS,
			{"<methodName>di</methodName><params>" STRING("sbc") STRING(
				 "postControlCmd") STRING("from") STRING("teardown") "</params>",
				"<methodName>di</methodName><params>" STRING("sbc")
					STRING("postControlCmd") STRING("to")
						STRING("teardown") "</params>"}},
		{TEARDOWN_CALL_ID,
			{"<methodName>teardown</methodName><params>" STRING(CALL_ID) "</params>"}},
		{TEARDOWN_KAMAILIO,
			{"<methodName>dlg.terminate_dlg</methodName><params>" STRING(CALL_ID)
					STRING("from") STRING("to") "</params>"}},
	};
	struct call_timeout over = two_parties("192.0.2.9");
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint32_t n = T[i].call[1] ? 2 : 1;

		rig_start(&r, "127.0.0.1", T[i].format);
		time_out(&r, &over);
		assert_int_equal(run(&r).told, n);
		assert_int_equal(r.server.n, n);
		for (uint32_t k = 0; k < n; k++) {
			bool found = strstr(r.server.seen[0], T[i].call[k]) ||
				strstr(r.server.seen[1], T[i].call[k]);

			assert_true(found);
			assert_int_equal(
				strncmp(r.server.seen[k], "POST /RPC2 HTTP/1.1\r\n", 21), 0);
			assert_non_null(strstr(r.server.seen[k], "Content-Type: text/xml\r\n"));
		}
		rig_end(&r);
	}
}

static void the_address_is_put_into_the_url(void **state)
{
	static const char *const whom[] = {"127.0.0.1", "127.0.0.2"};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(whom); i++) {
		struct call_timeout over = two_parties(whom[i]);
		struct teardown_counters c;

		rig_start(&r, "%%", TEARDOWN_CALL_ID);
		time_out(&r, &over);
		c = run(&r);
		/* the server listens on the first address only */
		assert_int_equal(c.told, i == 0);
		assert_int_equal(c.failed, i == 1);
		if (i == 0)
			assert_non_null(strstr(r.server.seen[0], "Host: 127.0.0.1:"));
		rig_end(&r);
	}
}

static bool never(void *arg, const struct endpoint *e)
{
	uint32_t *asked = arg;

	assert_int_equal(e->addr[0], e->family == AF_INET ? 127 : 0);
	(*asked)++;
	return false;
}

/* The operator has named addresses and localhost. */
static void what_a_name_means_is_looked_at(void **state)
{
	static const struct {
		const char *host;
		bool asked;
	} T[] = {{"127.0.0.1", false}, {"localhost", false}, {"proxy.localhost", true}};
	struct call_timeout over = two_parties("192.0.2.9");
	struct teardown_counters c;
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint32_t asked = 0;

		rig_start_asking(&r, T[i].host, TEARDOWN_CALL_ID, never, &asked);
		time_out(&r, &over);
		c = run(&r);
		assert_int_equal(asked != 0, T[i].asked);
		assert_int_equal(c.told, !T[i].asked);
		assert_int_equal(c.failed, T[i].asked);
		rig_end(&r);
	}
}

static void what_may_pass_is_tried_again_what_is_refused_is_not(void **state)
{
	static const struct {
		const char *reply[4];
		uint32_t requests, told, failed;
	} T[] = {
		{{BUSY, BUSY, OK}, 3, 1, 0},
		{{BUSY}, 3, 0, 1},
		{{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}, 1, 0,
			1},
		{{FAULT("Dialog not found")}, 1, 1, 0},
		{{FAULT("Couldnt find callid in dialog")}, 1, 1, 0},
		{{FAULT("Operation failed")}, 1, 0, 1},
		{{DONE "<html>hello</html>"}, 1, 0, 1},
		{{DONE}, 1, 0, 1},
		{{""}, 3, 0, 1}, /* does not reply: a second each */
		{{"nonsense\r\n\r\n", OK}, 2, 1, 0},
	};
	struct call_timeout over = two_parties("192.0.2.9");
	struct rig r;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct teardown_counters c;

		rig_start(&r, "127.0.0.1", TEARDOWN_CALL_ID);
		for (int k = 0; k < 4; k++)
			r.server.reply[k] = T[i].reply[k];
		time_out(&r, &over);
		c = run(&r);
		if (r.server.n != T[i].requests || c.told != T[i].told || c.failed != T[i].failed)
			fail_msg("row %zu: %u requests, %u told, %u failed", i, r.server.n,
				(unsigned)c.told, (unsigned)c.failed);
		rig_end(&r);
	}
}

static void a_redirection_is_not_followed(void **state)
{
	struct call_timeout over = two_parties("192.0.2.9");
	char moved[256];
	struct rig r;

	(void)state;
	rig_start(&r, "127.0.0.1", TEARDOWN_CALL_ID);
	snprintf(moved, sizeof(moved), MOVED, (unsigned)r.server.port);
	r.server.reply[0] = moved;
	time_out(&r, &over);
	assert_int_equal(run(&r).failed, 1);
	assert_int_equal(r.server.n, 1);
	rig_end(&r);
}

/* Without replies the loop continues; reports beyond the full queue are dropped. */
static void a_dead_server_holds_nothing_up_and_the_queue_is_bounded(void **state)
{
	struct call_timeout over = two_parties("192.0.2.9");
	struct teardown_counters c;
	struct loop_timer *timer;
	struct rig r;

	(void)state;
	rig_start(&r, "127.0.0.1", TEARDOWN_CALL_ID);
	r.server.reply[0] = "";
	for (int i = 0; i < 4200; i++)
		time_out(&r, &over);
	c = teardown_counters(r.t);
	assert_int_equal(c.waiting, 4096 + 16);
	assert_int_equal(c.dropped, 4200 - 4096 - 16);
	/* The loop continues during the retries. */
	r.end_ns = clock_mono_ns() + 60 * NS_PER_SEC;
	r.turns = 0;
	r.turns_max = 20;
	assert_int_equal(
		loop_timer_add(r.loop, &timer, NS_PER_SEC / 1000, NS_PER_SEC / 1000, on_turn, &r),
		0);
	assert_int_equal(loop_run(r.loop), 0);
	assert_int_equal(r.turns, 20);
	assert_true(teardown_counters(r.t).waiting > 0);
	loop_timer_remove(timer);
	rig_end(&r);
}

/* Replaces the C library's resolver in libcurl's threads: lookups of SLOW block until the test
 * releases them. */
#define SLOW "slow.invalid"
static sem_t may_answer;

int getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	(void)service;
	(void)hints;
	(void)out;
	while (name && strcmp(name, SLOW) == 0 && sem_wait(&may_answer))
		;
	return EAI_AGAIN;
}

/* A look-up may take long, and the loop must not wait for it: neither when the report's time is
 * over, nor when the daemon ends. A loop that waits hangs until the alarm, because the look-ups end
 * only after it. */
static void a_dead_name_server_holds_nothing_up(void **state)
{
	struct call_timeout over = two_parties("192.0.2.9");
	struct teardown_counters c;
	struct rig r;

	(void)state;
	assert_int_equal(sem_init(&may_answer, 0, 0), 0);
	alarm(600);
	rig_start(&r, SLOW, TEARDOWN_CALL_ID);
	time_out(&r, &over);
	c = run(&r);
	assert_int_equal(c.failed, 1);
	assert_int_equal(r.server.n, 0);
	time_out(&r, &over);
	assert_int_equal(teardown_counters(r.t).waiting, 1);
	rig_end(&r);
	alarm(0);
	for (int i = 0; i < 16; i++) /* more than the limit */
		sem_post(&may_answer);
}

static void only_http_is_a_url(void **state)
{
	static const struct {
		const char *url;
		bool right;
	} T[] = {
		{"http://127.0.0.1:8090", true},
		{"http://%%:5060/RPC2", true},
		{"https://proxy.example.org/rpc?x=1", true},
		{"http://[2001:db8::1]:80/", true},
		{"file:///etc/passwd", false},
		{"gopher://127.0.0.1:6379/_x", false},
		{"ftp://127.0.0.1/", false},
		{"127.0.0.1:8090", false},
		{"http://", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (!teardown_url_wrong(T[i].url) != T[i].right)
			fail_msg("%s", T[i].url);
}

static void replies_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *fault;
	} T[] = {
		{"<methodResponse><params/></methodResponse>", 0, ""},
		{"<methodResponse><params><param><value><int>1</int></value></param></params></methodResponse>",
			0, ""},
		{"<?xml version='1.0'?>\n<methodResponse>\n<fault><value><struct>"
		 "<member>\n<name>faultString</name>\n<value> <string>no & way</string></value></member></struct>",
			-EREMOTEIO, "no & way"},
		{"<methodResponse><fault><name>faultString</name><value>bare</value>", -EREMOTEIO,
			"bare"},
		{"<methodResponse><fault><name>faultString</name><value", -EREMOTEIO, ""},
		{"<methodResponse><fault>", -EREMOTEIO, ""},
		{"<methodResponse>", -EBADMSG, ""},
		{"<html><body>It works</body></html>", -EBADMSG, ""},
		{"", -EBADMSG, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str fault;

		assert_int_equal(xmlrpc_read_reply(str_from(T[i].text), &fault), T[i].err);
		assert_true(str_eq(fault, str_from(T[i].fault)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_calls_what_its_server_knows),
		cmocka_unit_test(the_address_is_put_into_the_url),
		cmocka_unit_test(what_a_name_means_is_looked_at),
		cmocka_unit_test(what_may_pass_is_tried_again_what_is_refused_is_not),
		cmocka_unit_test(a_redirection_is_not_followed),
		cmocka_unit_test(a_dead_server_holds_nothing_up_and_the_queue_is_bounded),
		cmocka_unit_test(a_dead_name_server_holds_nothing_up),
		cmocka_unit_test(only_http_is_a_url),
		cmocka_unit_test(replies_are_told_apart),
	};

	log_open("test", LOG_CRIT, 1);
	virtual_time_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
