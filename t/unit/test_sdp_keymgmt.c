/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=key-mgmt (RFC 4567 3.1): values by table, which level applies, and the list of protocols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <errno.h>
#include <cmocka.h>

#include "proto/sdp_keymgmt.h"

#define HEAD  "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
#define SRTP  "m=audio 4000 RTP/SAVP 0\r\n"
#define RTP   "m=audio 4000 RTP/AVP 0\r\n"
#define KM(x) "a=key-mgmt:" x "\r\n"

static void values(void **state)
{
	static const struct {
		const char *value, *protocol, *data;
	} T[] = {
		{"mikey AQAF", "mikey", "AQAF"},
		{" mikey AQ==", "mikey", "AQ=="},
		{"MIKEY a+/0", "MIKEY", "a+/0"},
		{"mikey  AQAF ", "mikey", "AQAF"},
		{"mikey", NULL, NULL},
		{"mikey ", NULL, NULL},
		{"", NULL, NULL},
		{" AQAF", NULL, NULL},
		{"mi-key AQAF", NULL, NULL},
		{"mikey AQ AF", NULL, NULL},
		{"mikey A=AF", NULL, NULL},
		{"mikey ==", NULL, NULL},
		{"mikey ===", NULL, NULL},
		{"abcdefghijklmnopqrstuvwxyz0123456 AQAF", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdp_keymgmt k;
		int err = sdp_keymgmt_parse(&k, str_from(T[i].value));

		if (!T[i].protocol) {
			assert_int_equal(err, -EBADMSG);
			continue;
		}
		assert_int_equal(err, 0);
		assert_true(str_eq(k.protocol, str_from(T[i].protocol)));
		assert_true(str_eq(k.data, str_from(T[i].data)));
	}
}

static void levels(void **state)
{
	static const struct {
		const char *body;
		uint32_t media, n, place, places;
		bool session, malformed;
		const char *ids;
	} T[] = {
		{HEAD SRTP KM("mikey AA"), 0, 1, 0, 1, false, false, "mikey"},
		{HEAD KM("mikey AA") SRTP, 0, 1, 0, 1, true, false, "mikey"},
		/* The m-line's own lines replace those of the session. */
		{HEAD KM("mikey AA") KM("k2 BB") SRTP KM("k3 CC") SRTP, 0, 1, 0, 1, false, false,
			"k3"},
		{HEAD KM("mikey AA") KM("k2 BB") SRTP KM("k3 CC") SRTP, 1, 2, 0, 1, true, false,
			"mikey;k2"},
		/* A session's message has keys for m-lines of SRTP. */
		{HEAD KM("mikey AA") SRTP RTP SRTP, 2, 1, 1, 2, true, false, "mikey"},
		{HEAD KM("mikey") SRTP, 0, 0, 0, 1, true, true, ""},
		{HEAD SRTP, 0, 0, 0, 1, true, false, ""},
		{HEAD SRTP KM("a A") KM("b A") KM("c A") KM("d A") KM("e A") KM("f A") KM("g A")
				KM("h A") KM("i A"),
			0, 8, 0, 1, false, true, "a;b;c;d;e;f;g;h"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdp_keymgmt_lines lines;
		struct sdp *s;
		struct pool *p;

		assert_int_equal(pool_create(&p, 1 << 20), 0);
		s = pool_alloc(p, sizeof(*s));
		assert_int_equal(sdp_parse(s, p, str_from(T[i].body), NULL), SDP_OK);
		sdp_keymgmt_read(&lines, s, &s->media[T[i].media]);
		assert_int_equal(lines.n, T[i].n);
		assert_int_equal(lines.place, T[i].place);
		assert_int_equal(lines.places, T[i].places);
		assert_int_equal(lines.session, T[i].session);
		assert_int_equal(lines.malformed, T[i].malformed);
		assert_true(str_eq(sdp_keymgmt_ids(&lines, p), str_from(T[i].ids)));
		assert_int_equal(sdp_keymgmt_find(&lines, STR("mikey")) != NULL,
			strstr(T[i].ids, "mikey") != NULL);
		assert_null(sdp_keymgmt_find(&lines, STR("MIKEY")));
		pool_destroy(p);
	}
}

static void written_lines_are_read(void **state)
{
	struct sdp_keymgmt k;
	struct pool *p;
	struct str line;

	(void)state;
	assert_int_equal(pool_create(&p, 4096), 0);
	line = sdp_keymgmt_write(p, STR("mikey"), STR("\1\0\5"));
	assert_true(str_eq(line, STR("key-mgmt:mikey AQAF")));
	(void)str_cut(&line, ':');
	assert_int_equal(sdp_keymgmt_parse(&k, line), 0);
	assert_null(sdp_keymgmt_write(p, STR("mikey"), (struct str){"", 1 << 20}).s);
	pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(levels),
		cmocka_unit_test(written_lines_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
