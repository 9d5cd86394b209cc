/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP server over sockets: requests behind each other, in pieces and on connections that stay; WebSockets; and what
 * becomes of clients that are slow, silent, many or mad. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "front_rig.h"
#include "control/http.h"
#include "proto/ng_stream.h"

#define MS   1000000ull
#define PING "d7:command4:pinge"
#define PONG "d6:result4:ponge"
#define H    "Host: localhost\r\n"
#define POST "POST /ng HTTP/1.1\r\n" H "Content-Length: 19\r\n\r\n"
#define WS                                                                     \
	"GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\nConnection: Upgrade\r\n" \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
#define WS_NG WS "Sec-WebSocket-Protocol: ng.rtpengine.com\r\n\r\n"
#define M0    "\0\0\0\0"

struct rig {
	struct front_rig f;
	struct http *http;
};

static void metrics(void *arg, struct sbuf *out)
{
	size_t *len = arg;

	for (size_t i = 0; i < *len; i++)
		sbuf_put(out, "m", 1);
}

static void start(struct rig *r, struct http_config cfg)
{
	char err[256];

	memset(r, 0, sizeof(*r));
	front_start(&r->f);
	assert_int_equal(endpoint_parse_addr(&cfg.listen, STR("127.0.0.1")), 0);
	cfg.page.calls = r->f.talk.c;
	assert_int_equal(http_create(&r->http, r->f.loop, r->f.front, &cfg, err, sizeof(err)), 0);
}

static void stop(struct rig *r)
{
	http_destroy(r->http);
	front_stop(&r->f);
}

static void serve_for(struct rig *r, uint64_t ns)
{
	front_serve(&r->f, ns);
}

static int client(struct rig *r)
{
	int fd = front_client(http_local(r->http));

	serve_for(r, MS);
	return fd;
}

/* The replies' statuses and bodies, as "200:pong\n 404:..."; of a switch to WebSocket all that follows it. */
static const char *summary(struct str in, bool head)
{
	static char out[4096];
	size_t at = 0;

	out[0] = 0;
	while (in.len) {
		const char *end = memmem(in.s, in.len, "\r\n\r\n", 4), *field;
		size_t head_len, body_len = 0;

		if (!end)
			return "half a reply";
		head_len = (size_t)(end + 4 - in.s);
		field = memmem(in.s, head_len, "Content-Length: ", 16);
		if (field)
			body_len = strtoul(field + 16, NULL, 10);
		if (head || memcmp(in.s + 9, "100", 3) == 0)
			body_len = 0;
		if (memcmp(in.s + 9, "101", 3) == 0)
			body_len = in.len - head_len;
		if (head_len + body_len > in.len)
			return "half a reply";
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%.3s:%.*s", at ? " " : "",
			in.s + 9, (int)body_len, end + 4);
		in = (struct str){in.s + head_len + body_len, in.len - head_len - body_len};
	}
	return out;
}

static void expect(struct rig *r, int fd, struct str in, const char *want, bool want_closed)
{
	uint64_t start = virtual_time_real_ns();
	struct str heard = {NULL, 0};
	const char *got;
	bool closed;

	if (in.len)
		front_say(fd, in);
	do {
		serve_for(r, 3 * MS);
		heard = front_hear_more(fd, heard.len, &closed);
		got = summary(heard, in.len > 4 && memcmp(in.s, "HEAD", 4) == 0);
		if (strcmp(got, want) == 0 && closed == want_closed)
			return;
	} while (virtual_time_patient(start));
	fail_msg("%.*s\n gave: %s (%s)\n want: %s", (int)in.len, in.s, got,
		closed ? "closed" : "open", want);
}

/* So many connections, now or when what is on its way has come. */
static void expect_connections(struct rig *r, uint32_t want)
{
	uint64_t start = virtual_time_real_ns();

	while (http_connections(r->http) != want && virtual_time_patient(start))
		serve_for(r, MS);
	assert_int_equal(http_connections(r->http), want);
}

static void leave(struct rig *r, int fd)
{
	close(fd);
	expect_connections(r, 0);
}

static const struct {
	const char *in, *want;
	bool closed;
} requests[] = {
	{"GET /ping HTTP/1.1\r\n" H "\r\n", "200:pong\n", false},
	{"\r\n\r\nGET /ping HTTP/1.1\r\n" H "\r\n\r\n", "200:pong\n", false},
	{"GET /ping HTTP/1.1\r\n" H "Connection: close\r\n\r\n", "200:pong\n", true},
	{"GET /ping HTTP/1.0\r\n\r\n", "200:pong\n", true},
	{"GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200:pong\n", false},
	{"GET http://localhost/ping?x HTTP/1.1\r\n" H "\r\n", "200:pong\n", false},
	{"GET http://evil/ping HTTP/1.1\r\n" H "\r\n",
		"403:this name is not known to be ours: see --http-host\n", false},
	{"HEAD /ping HTTP/1.1\r\n" H "\r\n", "200:", false},
	{"GET /metrics HTTP/1.1\r\n" H "\r\n", "200:mmm", false},
	{"GET /a HTTP/1.1\r\n" H "\r\nGET /ng HTTP/1.1\r\n" H "\r\n",
		"404:there is nothing here\n 405:POST it\n", false},
	{"DELETE /ng HTTP/1.1\r\n" H "\r\n", "405:GET or POST\n", false},
	/* bodies, pipelined with what comes behind them */
	{POST "1 " PING "GET /ping HTTP/1.1\r\n" H "\r\n" POST "2 " PING,
		"200:1 " PONG " 200:pong\n 200:2 " PONG, false},
	{"POST /ng HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
	 "9;x\r\n1 d7:comm\r\nA\r\nand4:pinge\r\n0\r\nT: x\r\n\r\n" POST "2 " PING,
		"200:1 " PONG " 200:2 " PONG, false},
	{"POST /ng-plain HTTP/1.1\r\n" H "Content-Length: 17\r\n\r\n" PING, "200:" PONG, false},
	{"POST /ng HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 19\r\n\r\n1 " PING,
		"100: 200:1 " PONG, false},
	{"POST /ng HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello",
		"400:a cookie, a space and a dictionary are needed\n", false},
	{"POST /ng HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "400:the body is empty\n", false},
	/* the body was not read: what follows is unknown */
	{"GET /ping HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nxGET /ping HTTP/1.1\r\n\r\n",
		"200:pong\n", true},
	{"POST /a HTTP/1.1\r\n" H "Content-Length: 19\r\n\r\n1 " PING,
		"404:there is nothing here\n", true},
	{"POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"404:there is nothing here\n", true},
	{"POST /a HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "404:there is nothing here\n",
		false},
	{"POST /ng HTTP/1.1\r\n" H "\r\n", "411:a body is needed, with its length or in chunks\n",
		false},
	{"POST /ng HTTP/1.1\r\n" H "Content-Length: 262145\r\n\r\n1 ", "413:the body is too long\n",
		true},
	{"POST /ng HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n40001\r\n",
		"413:the body is too long\n", true},
	{"POST /ng HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nx\r\n",
		"400:this is no HTTP request\n", true},
	{"POST /ng HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n",
		"501:chunked is the only transfer coding that is known\n", true},
	{"POST /ng HTTP/1.1\r\n" H "Expect: x\r\n\r\n",
		"417:100-continue is all that can be expected\n", true},
	{"hello\n", "400:this is no HTTP request\n", true},
	{"GET /ping HTTP/1.1\r\n\r\n" POST, "400:this is no HTTP request\n", true},
	{"PRI * HTTP/2.0\r\n\r\n", "505:HTTP/1.1 is spoken here\n", true},
	/* WebSockets that are none */
	{"GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"426:WebSocket version 13 is spoken here\n", false},
	{WS "\r\n", "400:a WebSocket needs a sub-protocol that is known here\n", false},
	{WS "Sec-WebSocket-Protocol: ng.example\r\n\r\n",
		"400:a WebSocket needs a sub-protocol that is known here\n", false},
	{WS "Content-Length: 5\r\nSec-WebSocket-Protocol: ng.rtpengine.com\r\n\r\nhello",
		"400:this is no WebSocket\n", true},
	{"GET /ping HTTP/1.1\r\n" H "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "200:pong\n",
		false},
};

static void requests_are_answered_in_order(void **state)
{
	size_t three = 3;
	struct rig r;

	(void)state;
	start(&r, (struct http_config){.metrics = metrics, .arg = &three});
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		int fd = client(&r);

		expect(&r, fd, str_from(requests[i].in), requests[i].want, requests[i].closed);
		leave(&r, fd);
	}
	stop(&r);
}

static void a_request_may_come_byte_by_byte(void **state)
{
	size_t three = 3;
	struct rig r;

	(void)state;
	start(&r, (struct http_config){.metrics = metrics, .arg = &three});
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		size_t len = strlen(requests[i].in);
		int fd = client(&r);

		if (memcmp(requests[i].in, "HEAD", 4) == 0)
			len = 0; /* expect() would wait for a body */
		for (size_t at = 0; at < len; at++) {
			if (send(fd, requests[i].in + at, 1, MSG_NOSIGNAL) < 0)
				break;
			serve_for(&r, 1);
		}
		if (len)
			expect(&r, fd, STR(""), requests[i].want, requests[i].closed);
		leave(&r, fd);
	}
	stop(&r);
}

static void a_head_too_long_is_refused(void **state)
{
	static char big[20000];
	struct rig r;
	int fd;

	(void)state;
	start(&r, (struct http_config){0});
	memset(big, 'x', sizeof(big));
	fd = client(&r);
	expect(&r, fd, (struct str){big, 16384}, "", false);
	expect(&r, fd, STR("x"), "431:the head is too long\n", true);
	leave(&r, fd);
	fd = client(&r);
	memcpy(big, "GET /", 5);
	memcpy(big + 16000, " HTTP/1.1\r\n" H "\r\n", 31 - 1);
	expect(&r, fd, (struct str){big, 16000 + 30}, "404:there is nothing here\n", false);
	leave(&r, fd);
	stop(&r);
}

/* --- WebSockets ------------------------------------------------------------------------------------------------ */

static void open_ws(struct rig *r, int fd, struct str head)
{
	static const char accept[] = "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
	struct str got;

	front_say(fd, head);
	got = front_hear_until(&r->f, fd, str_from(accept));
	assert_non_null(memmem(got.s, got.len, accept, sizeof(accept) - 1));
}

static void a_websocket_speaks_ng(void **state)
{
	static const struct {
		struct str in, want;
		bool closed;
	} T[] = {
		{STR("\x81\x93" M0 "1 " PING),
			STR("\x81\x12"
			    "1 " PONG),
			false},
		{STR("\x82\x93" M0 "1 " PING "\x81\x93" M0 "2 " PING),
			STR("\x82\x12"
			    "1 " PONG "\x81\x12"
			    "2 " PONG),
			false},
		{STR("\x01\x82" M0 "1 \x89\x81" M0 "!\x80\x91" M0 PING),
			STR("\x8a\x01!\x81\x12"
			    "1 " PONG),
			false},
		{STR("\x81\x85" M0 "hello"), STR(""), false}, /* no cookie, no reply */
		{STR("\x8a\x80" M0), STR(""), false},
		{STR("\x82\x93" M0 "\xff " PING), STR(""),
			false}, /* neither printable nor ASCII: no cookie */
		{STR("\x88\x80" M0 "\x81\x93" M0 "1 " PING), STR("\x88\x00"), true},
		{STR("\x88\x85" M0 "\x03\xe8"
		     "bye"),
			STR("\x88\x02\x03\xe8"), true},
		{STR("\x88\x82" M0 "\x03\xed"), STR("\x88\x02\x03\xea"), true},
		{STR("\x81\x05hello"), STR("\x88\x02\x03\xea"), true},
		{STR("\x81\x81" M0 "\xff"), STR("\x88\x02\x03\xef"), true},
		{STR("\x81\xff\0\0\0\0\0\x04\0\x01" M0), STR("\x88\x02\x03\xf1"), true},
	};
	struct rig r;

	(void)state;
	start(&r, (struct http_config){0});
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		int fd = client(&r);
		uint64_t from = virtual_time_real_ns();
		struct str got = {NULL, 0};
		bool closed;

		open_ws(&r, fd, STR(WS_NG));
		front_say(fd, T[i].in);
		do {
			serve_for(&r, 3 * MS);
			got = front_hear_more(fd, got.len, &closed);
		} while ((got.len < T[i].want.len || closed != T[i].closed) &&
			virtual_time_patient(from));
		if (!str_eq(got, T[i].want) || closed != T[i].closed)
			fail_msg("%zu: %zu bytes, %s", i, got.len, closed ? "closed" : "open");
		leave(&r, fd);
	}
	stop(&r);
}

static void a_websocket_may_come_in_pieces_and_in_haste(void **state)
{
	static const char all[] =
		WS_NG "\x81\x93" M0 "1 " PING "\x01\x81" M0 "2\x80\x92" M0 " " PING;
	static const char want[] = "\x81\x12"
				   "1 " PONG "\x81\x12"
				   "2 " PONG;
	struct rig r;

	(void)state;
	start(&r, (struct http_config){0});
	for (size_t step = 1; step < 400; step += 399) {
		int fd = client(&r);
		const char *tail;
		struct str got;

		for (size_t at = 0; at < sizeof(all) - 1; at += step) {
			size_t n = sizeof(all) - 1 - at < step ? sizeof(all) - 1 - at : step;

			front_say(fd, (struct str){all + at, n});
			serve_for(&r, 1);
		}
		got = front_hear_until(&r.f, fd, (struct str){want, sizeof(want) - 1});
		tail = memmem(got.s, got.len, "\r\n\r\n", 4);
		assert_non_null(tail);
		assert_true(str_eq((struct str){tail + 4, got.len - (size_t)(tail + 4 - got.s)},
			(struct str){want, sizeof(want) - 1}));
		leave(&r, fd);
	}
	stop(&r);
}

static void the_page_is_told_no_faster_than_it_may(void **state)
{
	static const char look[] = "\x81\x8d" M0 "{\"filter\":\"\"}";
	struct rig r;
	struct str got;
	size_t told = 0;
	bool closed;
	int fd;

	(void)state;
	start(&r, (struct http_config){0});
	fd = client(&r);
	open_ws(&r, fd, STR(WS "Sec-WebSocket-Protocol: x, page.xcipher\r\n\r\n"));
	for (int i = 0; i < 50; i++) {
		front_say(fd, (struct str){look, sizeof(look) - 1});
		serve_for(&r, 5 * MS);
	}
	serve_for(&r, 120 * MS);
	got = front_hear(fd, &closed);
	assert_false(closed);
	for (const char *p = got.s; (p = memmem(p, got.len - (size_t)(p - got.s), "{\"now\"", 6));
		p++)
		told++;
	assert_in_range(told, 2, 5);
	leave(&r, fd);
	stop(&r);
}

/* --- Clients that are slow, silent, many ----------------------------------------------------------------------- */

struct probe {
	struct loop *loop;
	uint64_t served, seen, most, rounds;
};

static void count_served(void *arg, struct sbuf *out)
{
	struct probe *p = arg;

	p->served++;
	sbuf_put(out, "m", 1);
}

/* Another user of the event loop: how much is served between two of its turns. */
static void look(void *arg)
{
	struct probe *p = arg;
	struct loop_timer *t;

	if (p->served - p->seen > p->most)
		p->most = p->served - p->seen;
	p->seen = p->served;
	p->rounds++;
	assert_int_equal(loop_timer_add(p->loop, &t, 0, 0, look, p), 0);
}

static void what_many_ask_is_served_a_little_at_a_time(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n" H "\r\n";
	enum { CLIENTS = 40, EACH = 100 };
	static char many[EACH * (sizeof(get) - 1)];
	struct probe p = {0};
	struct rig r;
	int fd[CLIENTS];
	bool closed;

	(void)state;
	for (size_t i = 0; i < EACH; i++)
		memcpy(many + i * (sizeof(get) - 1), get, sizeof(get) - 1);
	start(&r, (struct http_config){.metrics = count_served, .arg = &p});
	p.loop = r.f.loop;
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client(&r);
	for (int i = 0; i < CLIENTS; i++)
		front_say(fd[i], (struct str){many, sizeof(many)});
	look(&p);
	for (int i = 0; i < 500 && p.served < CLIENTS * EACH; i++)
		serve_for(&r, 10 * MS);
	assert_int_equal(p.served, CLIENTS * EACH);
	assert_in_range(p.most, 1, 2 * 32);
	for (int i = 0; i < CLIENTS; i++) {
		assert_true(front_hear(fd[i], &closed).len > EACH * 100);
		assert_false(closed);
		close(fd[i]);
	}
	stop(&r);
}

static void who_hangs_up_after_asking_still_gets_the_replies(void **state)
{
	struct rig r;
	int fd;

	(void)state;
	start(&r, (struct http_config){0});
	fd = client(&r);
	front_say(fd, STR(POST "1 " PING POST "2 " PING POST "3"));
	shutdown(fd, SHUT_WR);
	expect(&r, fd, STR(""), "200:1 " PONG " 200:2 " PONG, true);
	expect_connections(&r, 0);
	close(fd);
	stop(&r);
}

/* Its end is what a client sees, not a reset that could overtake the reply. */
static void a_refusal_reaches_who_still_sends(void **state)
{
	static char many[100000];
	struct rig r;
	ssize_t n;
	int fd;

	(void)state;
	start(&r, (struct http_config){.linger_ns = 200 * MS});
	fd = client(&r);
	front_say(fd, STR("POST /ng HTTP/1.1\r\n" H "Content-Length: 99999999\r\n\r\n"));
	for (int i = 0; i < 20; i++) {
		n = send(fd, many, sizeof(many), MSG_NOSIGNAL);
		assert_true(n > 0 || errno == EAGAIN);
		serve_for(&r, MS);
	}
	expect(&r, fd, STR(""), "413:the body is too long\n", true);
	serve_for(&r, 320 * MS); /* but it does not go on for long */
	expect_connections(&r, 0);
	close(fd);
	stop(&r);
}

/* Requests without end and no reply is read: we stop reading too, others are served, and in the end the connection is closed. */
static void who_reads_no_replies_is_not_read_from_and_blocks_nobody(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n" H "\r\n";
	size_t len = 20000, sent = 0;
	static char many[4000 * (sizeof(get) - 1)];
	struct rig r;
	int mad, good;

	(void)state;
	for (size_t i = 0; i < 4000; i++)
		memcpy(many + i * (sizeof(get) - 1), get, sizeof(get) - 1);
	start(&r,
		(struct http_config){.metrics = metrics,
			.arg = &len,
			.request_ns = 400 * MS,
			.head_ns = 200 * MS});
	mad = client(&r);
	good = client(&r);
	for (int quiet = 0; quiet < 20;) {
		size_t off = sent % sizeof(many);
		ssize_t n = send(mad, many + off, sizeof(many) - off, MSG_NOSIGNAL);

		if (n < 0)
			assert_int_equal(errno, EAGAIN);
		quiet = n < 0 ? quiet + 1 : 0;
		sent += n > 0 ? (size_t)n : 0;
		assert_true(sent < 100u << 20);
		serve_for(&r, MS);
	}
	expect(&r, good, STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
	assert_int_equal(http_connections(r.http), 2);
	serve_for(&r, 600 * MS);
	expect_connections(&r, 1);
	expect(&r, good, STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
	assert_true(front_ends(&r.f, mad));
	close(mad);
	leave(&r, good);
	stop(&r);
}

/* The same, but the client then reads: everything that was asked is answered, in order. */
static void replies_go_on_when_the_client_reads_again(void **state)
{
	static const char get[] = "GET /metrics HTTP/1.1\r\n" H "\r\n";
	enum { N = 600 };
	size_t len = 20000, sent = 0, heard = 0, body = 0, one = 0;
	static char many[N * (sizeof(get) - 1)];
	struct rig r;
	bool closed;
	int fd;

	(void)state;
	for (size_t i = 0; i < N; i++)
		memcpy(many + i * (sizeof(get) - 1), get, sizeof(get) - 1);
	start(&r, (struct http_config){.metrics = metrics, .arg = &len});
	fd = client(&r);
	front_say(fd, (struct str){get, sizeof(get) - 1});
	serve_for(&r, 3 * MS);
	one = front_hear(fd, &closed)
		      .len; /* all replies are of this length, and so is their date */
	for (int i = 0; i < 20; i++) {
		ssize_t n = send(fd, many + sent, sizeof(many) - sent, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		serve_for(&r, MS);
	}
	for (int i = 0; i < 4000 && heard < N * one; i++) {
		ssize_t n = sent < sizeof(many)
			? send(fd, many + sent, sizeof(many) - sent, MSG_NOSIGNAL)
			: 0;
		struct str got;

		sent += n > 0 ? (size_t)n : 0;
		serve_for(&r, MS / 4);
		got = front_hear(fd, &closed);
		heard += got.len;
		for (const char *p = got.s; p < got.s + got.len; p++)
			body += *p == 'm';
	}
	assert_int_equal(heard, N * one);
	assert_true(body >= N * len);
	leave(&r, fd);
	stop(&r);
}

static void whoever_takes_too_long_is_dropped(void **state)
{
	enum { IDLE, HEAD, BODY, MESSAGE, DEAD, ALIVE, BUSY, CLIENTS };
	static const bool want[CLIENTS] = {[ALIVE] = true, [BUSY] = true};
	struct rig r;
	int fd[CLIENTS];
	bool closed;

	(void)state;
	start(&r,
		(struct http_config){.idle_ns = 500 * MS,
			.head_ns = 250 * MS,
			.request_ns = 500 * MS,
			.ping_ns = 200 * MS,
			.pong_ns = 200 * MS});
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client(&r);
	for (int i = MESSAGE; i <= ALIVE; i++)
		open_ws(&r, fd[i], STR(WS_NG));
	front_say(fd[HEAD], STR("GET /ping HTTP/1.1\r\n"));
	front_say(fd[BODY], STR(POST));
	front_say(fd[MESSAGE], STR("\x81\x93" M0));
	for (int i = 0; i < 90; i++) { /* a byte now and then does not help */
		if (i % 2 == 0) {
			(void)!send(fd[HEAD], "x", 1, MSG_NOSIGNAL);
			if (i < 40)
				(void)!send(fd[BODY], "x", 1, MSG_NOSIGNAL);
			if (i < 40)
				(void)!send(fd[MESSAGE], "x", 1, MSG_NOSIGNAL);
		}
		expect(&r, fd[BUSY], STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
		if (front_hear(fd[ALIVE], &closed).len)
			front_say(fd[ALIVE], STR("\x8a\x80" M0));
		serve_for(&r, 7 * MS);
	}
	for (int i = 0; i < CLIENTS; i++) {
		front_hear(fd[i], &closed);
		if (closed == want[i])
			fail_msg("client %d is %s", i, closed ? "closed" : "open");
		close(fd[i]);
	}
	stop(&r);
}

static void the_longest_idle_makes_room_or_the_new_one_goes(void **state)
{
	int fd[5];
	struct rig r;
	bool closed;

	(void)state;
	start(&r, (struct http_config){.connections = 3, .evict_ns = 300 * MS});
	for (int i = 0; i < 4; i++)
		fd[i] = client(&r);
	assert_true(front_ends(&r.f, fd[3])); /* nobody was idle for long */
	open_ws(&r, fd[0], STR(WS_NG));
	serve_for(&r, 320 * MS);
	expect(&r, fd[1], STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
	fd[4] = client(&r);
	expect(&r, fd[4], STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
	assert_true(front_ends(&r.f, fd[2]));
	front_hear(fd[0], &closed);
	assert_false(closed); /* a WebSocket may be silent */
	expect(&r, fd[1], STR("GET /ping HTTP/1.1\r\n" H "\r\n"), "200:pong\n", false);
	for (int i = 0; i < 5; i++)
		close(fd[i]);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_answered_in_order),
		cmocka_unit_test(a_request_may_come_byte_by_byte),
		cmocka_unit_test(a_head_too_long_is_refused),
		cmocka_unit_test(a_websocket_speaks_ng),
		cmocka_unit_test(a_websocket_may_come_in_pieces_and_in_haste),
		cmocka_unit_test(the_page_is_told_no_faster_than_it_may),
		cmocka_unit_test(what_many_ask_is_served_a_little_at_a_time),
		cmocka_unit_test(who_hangs_up_after_asking_still_gets_the_replies),
		cmocka_unit_test(a_refusal_reaches_who_still_sends),
		cmocka_unit_test(who_reads_no_replies_is_not_read_from_and_blocks_nobody),
		cmocka_unit_test(replies_go_on_when_the_client_reads_again),
		cmocka_unit_test(whoever_takes_too_long_is_dropped),
		cmocka_unit_test(the_longest_idle_makes_room_or_the_new_one_goes),
	};

	log_open("test", LOG_ERR, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
