/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: where a SIP message has its location. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lost_parts.h"

#define S(x) ((struct span){x, sizeof(x) - 1})

static void geolocation_headers(void **state)
{
	struct span v = S("<cid:a@b>;loc-src=x, <https://l/1> ,<http://l/2>, junk"), uri;

	(void)state;
	assert_true(geolocation_next(&v, &uri));
	assert_true(uri.len == 7 && !memcmp(uri.s, "cid:a@b", 7));
	assert_true(geolocation_next(&v, &uri));
	assert_true(span_begins(uri, "HTTPS://l/1"));
	assert_true(geolocation_next(&v, &uri));
	assert_true(span_begins(uri, "http://l/2"));
	assert_false(geolocation_next(&v, &uri));
	v = S("<cid:a@b");
	assert_false(geolocation_next(&v, &uri));
	v = (struct span){NULL, 0};
	assert_false(geolocation_next(&v, &uri));
}

static void check(struct span type, const char *body, struct span cid, const char *want)
{
	/* Without a byte to spare, so that sanitizers see reads beyond it */
	char *copy = malloc(strlen(body) + 1);
	struct span part = {NULL, 0}, b = {copy, strlen(body)}, id = S("<own@id>");
	bool found;

	memcpy(copy, body, b.len);
	found = body_part(type, id, b, cid, &part);
	assert_int_equal(found, want != NULL);
	if (want)
		assert_true(part.len == strlen(want) && !memcmp(part.s, want, part.len));
	free(copy);
}

#define MIXED S("multipart/mixed; charset=x;\r\n boundary=\"b1\"")

static void parts_by_content_id(void **state)
{
	static const char two[] =
		"preamble\r\n--b1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\r\n--b1\r\n"
		"content-type: application/pidf+xml\r\nCONTENT-ID:\r\n <a@b>\r\n\r\n<x>\r\n</x>\r\n"
		"--b1--\r\n<no/>";
	static const char nested[] =
		"--b1\nContent-Type: multipart/related;boundary=in\n\n--in\nContent-ID: "
		"<c%d>\n\n<y/>\n--in--\n\n--b1\nContent-Id: <a@b>\nContent-Transfer-Encoding: "
		"base64\n\nPHgvPg==\n--b1--";

	(void)state;
	check(MIXED, two, S("a@b"), "<x>\r\n</x>");
	check(MIXED, two, S("a%40b"), "<x>\r\n</x>");
	check(MIXED, two, S("A@b"), NULL);
	check(MIXED, two, S("a@bc"), NULL);
	check(MIXED, two, S(""), "<x>\r\n</x>");
	check(MIXED, nested, S("c%25d"), "<y/>");
	check(MIXED, nested, S("a@b"), NULL);
	check(S("application/pidf+xml"), "<x/>", S("own@id"), "<x/>");
	check(S("application/pidf+xml"), "<x/>", S("other@id"), NULL);
	check(S("multipart/mixed"), two, S("a@b"), NULL);
	check(S("multipart/mixed;boundary=\"b1"), two, S("a@b"), NULL);
	check(S("multipart/mixed;boundary="), two, S("a@b"), NULL);
	check(S("multipart/mixed;boundary=b2"), two, S("a@b"), NULL);
	check(MIXED, "--b1", S("a@b"), NULL);
	check(MIXED, "--b1\n--b1\n--b1--", S("a@b"), NULL);
	check(MIXED, "--b1\nContent-ID: <a@b>\n\nunfinished", S("a@b"), NULL);
}

static void depth_and_number_are_bounded(void **state)
{
	static const char deep[] =
		"--b1\nContent-Type: multipart/x;boundary=b1\n\n--b1\nContent-Type: "
		"multipart/x;boundary=b1\n\n--b1\n\n--b1--\n";
	char *many = malloc(100 * 32 + 100), *at = many;

	(void)state;
	check(MIXED, deep, S("a@b"), NULL);
	for (int i = 0; i < 100; i++)
		at = stpcpy(at, "--b1\nX: y\n\nz\n");
	strcpy(at, "--b1\nContent-ID: <a@b>\n\nw\n--b1--");
	check(MIXED, many, S("a@b"), NULL);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(geolocation_headers),
		cmocka_unit_test(parts_by_content_id),
		cmocka_unit_test(depth_and_number_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
