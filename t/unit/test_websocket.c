/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WebSocket frames: to messages, however they come, and what a client must not do. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "proto/websocket.h"

#define MAX 300

struct heard { /* as text: "1:hello 9: " */
	char text[4096];
	int end;
};

/* All of it, step bytes at a time. */
static void read_all(struct heard *h, struct str in, size_t step)
{
	struct ws_reader r = {.max = MAX};
	uint8_t *buf = malloc(in.len + 1);
	size_t len = 0, taken = 0, at = 0;

	*h = (struct heard){0};
	do {
		size_t n = in.len - taken < step ? in.len - taken : step;

		memcpy(buf + len, in.s + taken, n);
		taken += n;
		len += n;
		while ((h->end = ws_read(&r, buf, &len)) > 0) {
			bool message = h->end < WS_CLOSE;

			at += (size_t)snprintf(h->text + at, sizeof(h->text) - at, "%d:%.*s ",
				h->end, (int)(message ? r.len : r.control_len),
				(const char *)(message ? buf : r.control));
			if (message)
				ws_reader_next(&r);
		}
		assert_true(h->end < 0 || len <= MAX + WS_HEAD_MAX + WS_CONTROL_MAX);
	} while (h->end == 0 && taken < in.len);
	free(buf);
}

#define M0 "\0\0\0\0" /* a mask that changes nothing */

static void frames_become_messages(void **state)
{
	static const struct {
		struct str in;
		const char *want;
		int end;
	} T[] = {
		/* RFC 6455 5.7 */
		{STR("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "1:Hello ", 0},
		{STR("\x01\x83" M0 "Hel\x80\x82" M0 "lo"), "1:Hello ", 0},
		{STR("\x01\x83" M0 "Hel\x89\x82" M0 "hi\x00\x80" M0 "\x80\x82" M0 "lo"),
			"9:hi 1:Hello ", 0},
		{STR("\x81\x80" M0 "\x82\x80" M0 "\x8a\x80" M0), "1: 2: 10: ", 0},
		{STR("\x01\x80" M0 "\x80\x80" M0 "\x82\x81" M0 "x"), "1: 2:x ", 0},
		{STR("\x88\x82" M0 "\x03\xe8"), "8:\x03\xe8 ", 0},
		{STR("\x81\x85" M0 "hell"), "", 0},
		{STR("\x81"), "", 0},
		/* not masked */
		{STR("\x81\x05hello"), "", -1002},
		/* reserved bits and opcodes */
		{STR("\xc1\x80" M0), "", -1002},
		{STR("\xa1\x80" M0), "", -1002},
		{STR("\x91\x80" M0), "", -1002},
		{STR("\x83\x80" M0), "", -1002},
		{STR("\x87\x80" M0), "", -1002},
		{STR("\x8b\x80" M0), "", -1002},
		{STR("\x8f\x80" M0), "", -1002},
		/* control frames in pieces, or too long */
		{STR("\x09\x80" M0), "", -1002},
		{STR("\x89\xfe\x00\x7e" M0), "", -1002},
		/* a continuation of nothing, and none where one must be */
		{STR("\x80\x80" M0), "", -1002},
		{STR("\x81\x80" M0 "\x00\x80" M0), "1: ", -1002},
		{STR("\x01\x80" M0 "\x81\x80" M0), "", -1002},
		{STR("\x01\x80" M0 "\x02\x80" M0), "", -1002},
		/* lengths that are longer than need be, or have the highest bit */
		{STR("\x82\xfe\x00\x7d" M0), "", -1002},
		{STR("\x82\xff\0\0\0\0\0\0\xff\xff" M0), "", -1002},
		{STR("\x82\xff\x80\0\0\0\0\1\0\0" M0), "", -1002},
		/* too big, at once */
		{STR("\x82\xfe\x01\x2d" M0), "", -1009},
		{STR("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" M0), "", -1009},
		{STR("\x02\x81" M0 "x\x80\xfe\x01\x2c" M0), "", -1009},
		/* text */
		{STR("\x81\x82" M0 "\xc3\xa4"), "1:\xc3\xa4 ", 0},
		{STR("\x01\x81" M0 "\xc3\x80\x81" M0 "\xa4"), "1:\xc3\xa4 ", 0},
		{STR("\x81\x81" M0 "\xc3"), "", -1007},
		{STR("\x81\x83" M0 "\xed\xa0\x80"), "", -1007},
		{STR("\x81\x82" M0 "\xc0\x80"), "", -1007},
		{STR("\x82\x81" M0 "\xc3"), "2:\xc3 ", 0},
	};
	struct heard h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (size_t step = 1; step <= 400; step += step < 10 ? 1 : 390) {
			read_all(&h, T[i].in, step);
			if (strcmp(h.text, T[i].want) || h.end != T[i].end)
				fail_msg("%zu by %zu: %s%d", i, step, h.text, h.end);
		}
}

/* What one writes, without its mask, the other reads. */
static void every_length_has_its_head(void **state)
{
	static const size_t lengths[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
	static uint8_t frame[70000 + WS_HEAD_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct ws_reader r = {.max = 70000};
		size_t n = ws_write_head(frame, WS_BINARY, lengths[i]), len = n + 4 + lengths[i];

		frame[1] |= 0x80;
		memcpy(frame + n, "\1\2\3\4", 4);
		for (size_t k = 0; k < lengths[i]; k++)
			frame[n + 4 + k] = (uint8_t)(k ^ ((k & 3) + 1));
		assert_int_equal(ws_read(&r, frame, &len), WS_BINARY);
		assert_int_equal(r.len, lengths[i]);
		for (size_t k = 0; k < r.len; k++)
			assert_int_equal(frame[k], k & 255);
	}
}

static void closing_codes_are_those_that_may_be_sent(void **state)
{
	static const struct {
		struct str payload;
		int want;
	} T[] = {
		{STR(""), 1005},
		{STR("\x03"), -1002},
		{STR("\x03\xe8"), 1000},
		{STR("\x03\xe9"
		     "bye"),
			1001},
		{STR("\x03\xe9\xff"), -1007},
		{STR("\x03\xe7"), -1002},
		{STR("\x03\xec"), -1002}, /* 1004 to 1006 */
		{STR("\x03\xed"), -1002},
		{STR("\x03\xee"), -1002},
		{STR("\x03\xf6"), 1014},
		{STR("\x03\xf7"), -1002},
		{STR("\x0b\xb7"), -1002}, /* 2999 */
		{STR("\x0b\xb8"), 3000},
		{STR("\x13\x87"), 4999},
		{STR("\x13\x88"), -1002},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		assert_int_equal(ws_close_code((const uint8_t *)T[i].payload.s, T[i].payload.len),
			T[i].want);
}

static void the_key_is_answered_as_the_standard_has_it(void **state)
{
	static const char *const bad[] = {"", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ",
		"dGhlIHNhbXBsZSBub25jZQ=!", "dGhlIHNhbXBsZSBub25jZTEy", "????????????????????????"};
	char out[WS_ACCEPT_LEN];

	(void)state;
	assert_int_equal(ws_accept(out, STR("dGhlIHNhbXBsZSBub25jZQ==")), 0);
	assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(ws_accept(out, str_from(bad[i])), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_become_messages),
		cmocka_unit_test(every_length_has_its_head),
		cmocka_unit_test(closing_codes_are_those_that_may_be_sent),
		cmocka_unit_test(the_key_is_answered_as_the_standard_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
