/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP requests from bytes: what is one, what is refused and how, and where bodies end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/http.h"

#define H "Host: a\r\n"

static void heads_that_two_could_read_in_two_ways_are_refused(void **state)
{
	static const struct {
		const char *in;
		int want;
	} T[] = {
		{"GET / HTTP/1.1\r\n" H "\r\n", 0},
		{"GET / HTTP/1.0\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\n\r\n", 400}, /* RFC 9112 3.2 */
		{"GET / HTTP/1.1\r\n" H H "\r\n", 400},
		{"GET / HTTP/1.7\r\n" H "\r\n", 0},
		{"GET / HTTP/2.0\r\n" H "\r\n", 505},
		{"PRI * HTTP/2.0\r\n\r\n", 505},
		{"GET / HTTP/1.10\r\n" H "\r\n", 400},
		{"GET / http/1.1\r\n" H "\r\n", 400},
		{"GET / \r\n\r\n", 400},
		{"GET /\r\n\r\n", 400},
		{"GET  / HTTP/1.1\r\n" H "\r\n", 400},
		{"GET / HTTP/1.1 \r\n" H "\r\n", 400},
		{"GET /a b HTTP/1.1\r\n" H "\r\n", 400},
		{"GET /\xff HTTP/1.1\r\n" H "\r\n", 400},
		{"GET /\t HTTP/1.1\r\n" H "\r\n", 400},
		{"G@T / HTTP/1.1\r\n" H "\r\n", 400},
		{" / HTTP/1.1\r\n" H "\r\n", 400},
		{"GET a HTTP/1.1\r\n" H "\r\n", 400},
		{"GET * HTTP/1.1\r\n" H "\r\n", 400},
		{"OPTIONS * HTTP/1.1\r\n" H "\r\n", 0},
		{"GET http:// HTTP/1.1\r\n" H "\r\n", 400},
		{"GET / HTTP/1.1\r\n" H " folded: x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "a : x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H ": x\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "no colon\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "a: x\ry\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "a: x\x01y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "a: x\ty\xff\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\n" H "a:\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n" H "content-length:\t5 \r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", 0},
		{"POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", 501},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", 501},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
			400},
		{"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n",
			400},
		{"POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n" H "Expect: tea\r\n\r\n", 417},
		{"GET / HTTP/1.1\r\n" H "Origin: a\r\nOrigin: b\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: b\r\n\r\n", 400},
	};
	struct http_head h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct str in = str_from(T[i].in);
		size_t line = 0;

		assert_int_equal(http_head_end(in, &line), in.len);
		if (http_head_parse(&h, in) != T[i].want)
			fail_msg("%s: %d", T[i].in, http_head_parse(&h, in));
	}
}

static void a_head_says_what_it_wants(void **state)
{
	static const struct {
		const char *in, *path, *host;
		bool keep, websocket, expects;
		uint64_t length;
	} T[] = {
		{"GET /a?b=/c HTTP/1.1\r\nHost: x:80\r\n\r\n", "/a", "x:80", true, false, false, 0},
		{"GET / HTTP/1.1\r\n" H "Connection: te, Close\r\n\r\n", "/", "a", false, false,
			false, 0},
		{"GET / HTTP/1.0\r\n\r\n", "/", "", false, false, false, 0},
		{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "/", "", true, false, false,
			0},
		/* a whole URI is more than the field */
		{"GET http://x/y?z HTTP/1.1\r\n" H "\r\n", "/y", "x", true, false, false, 0},
		{"GET HTTPS://x:1 HTTP/1.1\r\n" H "\r\n", "/", "x:1", true, false, false, 0},
		{"GET http://a@evil?/ HTTP/1.1\r\n" H "\r\n", "/", "a@evil", true, false, false, 0},
		{"GET / HTTP/1.1\r\n" H "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade"
		 "\r\n\r\n",
			"/", "a", true, true, false, 0},
		{"GET / HTTP/1.1\r\n" H "Upgrade: h2c,websocket\r\nConnection: x\r\n"
		 "Connection: ,,upgrade\r\n\r\n",
			"/", "a", true, true, false, 0},
		{"GET / HTTP/1.1\r\n" H "Upgrade: websocket\r\n\r\n", "/", "a", true, false, false,
			0},
		{"GET / HTTP/1.0\r\n" H "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n", "/",
			"a", false, false, false, 0},
		{"POST / HTTP/1.1\r\n" H "Upgrade: websocket\r\nConnection: upgrade\r\n\r\n", "/",
			"a", true, false, false, 0},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 007\r\nExpect: 100-continue\r\n\r\n", "/",
			"a", true, false, true, 7},
		{"POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551616\r\n\r\n", "/", "a",
			true, false, false, UINT64_MAX},
	};
	struct http_head h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(http_head_parse(&h, str_from(T[i].in)), 0);
		if (!str_eq(h.path, str_from(T[i].path)) || !str_eq(h.host, str_from(T[i].host)) ||
			h.keep != T[i].keep || h.websocket != T[i].websocket ||
			h.expects != T[i].expects || h.length != T[i].length)
			fail_msg("%s: " STR_FMT " at " STR_FMT, T[i].in, STR_ARG(h.path),
				STR_ARG(h.host));
	}
}

static void a_head_ends_at_its_empty_line_however_it_comes(void **state)
{
	static const char head[] = "GET / HTTP/1.1\r\n" H "\r\nGET";
	static char big[HTTP_HEAD_MAX + 100];
	size_t line = 0, len;

	(void)state;
	for (size_t have = 0; have <= sizeof(head) - 4; have++)
		assert_int_equal(http_head_end((struct str){head, have}, &line),
			have < sizeof(head) - 4 ? 0 : sizeof(head) - 4);
	line = 0;
	assert_int_equal(http_head_end(STR("GET / HTTP/1.1\n"), &line), -EBADMSG);
	line = 0;
	assert_int_equal(http_head_end(STR("GET / HTTP/1.1\r\na: b\n"), &line), -EBADMSG);
	line = 0;
	assert_int_equal(http_head_end(STR("\n"), &line), -EBADMSG);
	for (size_t total = HTTP_HEAD_MAX - 1; total <= HTTP_HEAD_MAX + 1; total++) {
		len = (size_t)snprintf(big, sizeof(big), "GET / HTTP/1.1\r\na: ");
		memset(big + len, 'x', total - len);
		memcpy(big + total - 4, "\r\n\r\n", 4);
		line = 0;
		assert_int_equal(http_head_end((struct str){big, total}, &line),
			total <= HTTP_HEAD_MAX ? (int)total : -EMSGSIZE);
	}
	memset(big, 'x', sizeof(big));
	line = 0;
	assert_int_equal(http_head_end((struct str){big, HTTP_HEAD_MAX}, &line), 0);
	assert_int_equal(http_head_end((struct str){big, HTTP_HEAD_MAX + 1}, &line), -EMSGSIZE);
}

static void a_head_has_so_many_fields(void **state)
{
	struct http_head h;
	char text[2048];

	(void)state;
	for (uint32_t n = HTTP_FIELDS_MAX - 1; n <= HTTP_FIELDS_MAX; n++) {
		int len = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H);

		for (uint32_t i = 0; i < n; i++)
			len += snprintf(text + len, sizeof(text) - (size_t)len, "a: %u\r\n", i);
		len += snprintf(text + len, sizeof(text) - (size_t)len, "\r\n");
		assert_int_equal(http_head_parse(&h, (struct str){text, (size_t)len}),
			n < HTTP_FIELDS_MAX ? 0 : 431);
	}
}

/* --- Bodies ---------------------------------------------------------------------------------------------------- */

#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
#define FIVE    "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"
#define MAX     20

static const struct {
	const char *head, *in, *body, *rest;
	int want;
} bodies[] = {
	{FIVE, "hello", "hello", "", 1},
	{FIVE, "helloGET", "hello", "GET", 1},
	{FIVE, "hell", "", "", 0},
	{FIVE, "", "", "", 0},
	{"GET / HTTP/1.1\r\n" H "\r\n", "GET", "", "GET", 1},
	{"POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", "GET", "", "GET", 1},
	{"POST / HTTP/1.1\r\n" H "Content-Length: 21\r\n\r\n", "", "", "", -EMSGSIZE},
	{CHUNKED, "5\r\nhello\r\n0\r\n\r\n", "hello", "", 1},
	{CHUNKED, "5\r\nhello\r\n0\r\n\r\n5\r\n", "hello", "5\r\n", 1},
	{CHUNKED, "0\r\n\r\n", "", "", 1},
	{CHUNKED, "3;a=b\r\nhel\r\n02 ; c\r\nlo\r\n000;x\r\nA: b\r\n\r\nGET", "hello", "GET", 1},
	{CHUNKED, "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", "", 1},
	{CHUNKED, "A\r\n0123456789\r\nb\r\n", "", "", -EMSGSIZE},
	{CHUNKED, "fffffffffffffff\r\n", "", "", -EMSGSIZE},
	{CHUNKED, "ffffffffffffffff\r\n", "", "", -EBADMSG},
	{CHUNKED, "5\r\nhello0\r\n\r\n", "", "", -EBADMSG},
	{CHUNKED, "5\r\nhello\n0\r\n\r\n", "", "", -EBADMSG},
	{CHUNKED, "5\nhello\r\n0\r\n\r\n", "", "", -EBADMSG},
	{CHUNKED, "5\r\rhello\r\n", "", "", -EBADMSG},
	{CHUNKED, " 5\r\n", "", "", -EBADMSG},
	{CHUNKED, "0x5\r\n", "", "", -EBADMSG},
	{CHUNKED, "-5\r\n", "", "", -EBADMSG},
	{CHUNKED, "\r\n", "", "", -EBADMSG},
	{CHUNKED, ";a\r\n", "", "", -EBADMSG},
	{CHUNKED, "5;\x01\r\n", "", "", -EBADMSG},
	{CHUNKED, "0\r\nA: b\n\r\n", "", "", -EBADMSG},
	{CHUNKED, "0\r\nA: b\r\n", "", "", 0},
};

static void bodies_end_where_their_length_or_chunks_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		for (size_t step = 1; step <= 100; step += 99) {
			size_t all = strlen(bodies[i].in), taken = 0, len = 0;
			char *buf = malloc(all + 1);
			struct http_head h;
			struct http_body b;
			int got;

			assert_int_equal(http_head_parse(&h, str_from(bodies[i].head)), 0);
			http_body_init(&b, &h, MAX);
			got = http_body_read(&b, buf, &len);
			while (got == 0 && taken < all) {
				size_t n = all - taken < step ? all - taken : step;

				memcpy(buf + len, bodies[i].in + taken, n);
				taken += n;
				len += n;
				got = http_body_read(&b, buf, &len);
			}
			if (got == 1) { /* what was not given yet is behind it too */
				memcpy(buf + len, bodies[i].in + taken, all - taken);
				len += all - taken;
			}
			if (got != bodies[i].want)
				fail_msg("%s by %zu: %d", bodies[i].in, step, got);
			if (got == 1 &&
				(!str_eq((struct str){buf, b.len}, str_from(bodies[i].body)) ||
					!str_eq((struct str){buf + b.at, len - b.at},
						str_from(bodies[i].rest))))
				fail_msg("%s by %zu: %.*s", bodies[i].in, step, (int)b.len, buf);
			free(buf);
		}
}

/* Chunks of one byte, each with an extension, and a trailer: no more is kept than the body and a line. */
static void what_surrounds_a_body_is_bounded(void **state)
{
	static char buf[8192];
	struct http_head h;
	struct http_body b;
	size_t len = 0;

	(void)state;
	assert_int_equal(http_head_parse(&h, STR(CHUNKED)), 0);
	http_body_init(&b, &h, MAX);
	for (int i = 0; i < MAX; i++) {
		len += (size_t)sprintf(buf + len, "1;%200s\r\nx\r\n", "y");
		assert_int_equal(http_body_read(&b, buf, &len), 0);
		assert_int_equal(len, i + 1);
	}
	len += (size_t)sprintf(buf + len, "0\r\n");
	for (size_t sum = 0, n = 0; sum < 8000; sum += n) {
		int got;

		n = (size_t)sprintf(buf + len, "a: %200s\r\n", "b");
		len += n;
		got = http_body_read(&b, buf, &len);
		if (sum + n > 4096) {
			assert_int_equal(got, -EBADMSG);
			break;
		}
		assert_int_equal(got, 0);
	}
	http_body_init(&b, &h, MAX);
	memset(buf, '1', 300);
	len = 300;
	assert_int_equal(http_body_read(&b, buf, &len), -EBADMSG);
}

static void dates_are_as_the_standard_has_them(void **state)
{
	char out[HTTP_DATE_LEN];

	(void)state;
	assert_string_equal(http_date(out, 784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
	assert_string_equal(http_reason(405), "Method Not Allowed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_that_two_could_read_in_two_ways_are_refused),
		cmocka_unit_test(a_head_says_what_it_wants),
		cmocka_unit_test(a_head_ends_at_its_empty_line_however_it_comes),
		cmocka_unit_test(a_head_has_so_many_fields),
		cmocka_unit_test(bodies_end_where_their_length_or_chunks_say),
		cmocka_unit_test(what_surrounds_a_body_is_bounded),
		cmocka_unit_test(dates_are_as_the_standard_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
