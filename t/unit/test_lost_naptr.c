/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: URLs of LoST servers in DNS replies, and replies that are damaged or lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../module/lost/naptr.c"

#define HEADER 12

static uint8_t message[2048];
static size_t size;
static struct naptr found;

static void put(const void *p, size_t n)
{
	assert_true(size + n <= sizeof(message));
	memcpy(message + size, p, n);
	size += n;
}

static void put16(unsigned v)
{
	put((uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

static void put_text(const char *s)
{
	put((uint8_t[]){(uint8_t)strlen(s)}, 1);
	put(s, strlen(s));
}

/* A name of two labels. */
static void put_name(const char *one, const char *two)
{
	put_text(one);
	put_text(two);
	put("", 1);
}

static int begin_test(void **state)
{
	(void)state;
	size = 0;
	put((uint8_t[HEADER]){0, 1, 0x81, 0x80, 0, 1}, HEADER);
	put_name("a", "test");
	put16(35);
	put16(1);
	return 0;
}

/* replacement: the first label of a name below "test", or NULL. */
static void add(
	unsigned order, unsigned preference, const char *const text[3], const char *replacement)
{
	size_t at;

	message[7]++;
	put_name("a", "test");
	put16(35);
	put16(1);
	put16(0);
	put16(300);
	at = size;
	put16(0);
	put16(order);
	put16(preference);
	for (int i = 0; i < 3; i++)
		put_text(text[i]);
	if (replacement)
		put_name(replacement, "test");
	else
		put("", 1);
	message[at] = (uint8_t)((size - at - 2) >> 8);
	message[at + 1] = (uint8_t)(size - at - 2);
}

static void add_url(unsigned order, unsigned preference, const char *regexp)
{
	add(order, preference, (const char *const[]){"u", "LoST:https", regexp}, NULL);
}

static int read_it(void)
{
	return naptr_read(message, size, &found);
}

static void the_best_record_counts(void **state)
{
	(void)state;
	add_url(100, 20, "!.*!https://two/!");
	add_url(100, 10, "!.*!https://one/lost!");
	add_url(200, 1, "!.*!https://three/!");
	add(50, 1, (const char *const[]){"u", "LoST:http", "!.*!http://plain/!"}, NULL);
	add(50, 1, (const char *const[]){"s", "SIP+D2T", ""}, "sip");
	assert_int_equal(read_it(), 0);
	assert_string_equal(found.url, "https://one/lost");
	assert_int_equal(found.ttl, 300);
}

static void records_lead_to_names(void **state)
{
	(void)state;
	add(1, 1, (const char *const[]){"", "lost:HTTPS", ""}, "b");
	add_url(2, 1, "#.*#https://one/#");
	assert_int_equal(read_it(), 0);
	assert_string_equal(found.url, "");
	assert_string_equal(found.next, "b.test");
}

static void records_that_are_refused(void **state)
{
	static const char *const regexps[] = {"", "!", "!.*!", "!.*!!", "!.*!https://!",
		"!.*!http://a/!", "!^.*$!https://a/!", "!.*!https://a/\\1!", "!.*!https://a/!i",
		"!.*!https://a b/!", "!.*!https://a!b/!", "https://a/", "!.*#https://a/!"};

	(void)state;
	for (size_t i = 0; i < sizeof(regexps) / sizeof(*regexps); i++)
		add_url(1, 1, regexps[i]);
	add(1, 1, (const char *const[]){"u", "LoST:httpsx", "!.*!https://a/!"}, NULL);
	add(1, 1, (const char *const[]){"s", "LoST:https", "!.*!https://a/!"}, NULL);
	add(1, 1, (const char *const[]){"", "LoST:https", ""}, NULL);
	assert_int_equal(read_it(), -1);
	/* Its name is that of the next record. */
	add(1, 1, (const char *const[]){"", "LoST:https", ""}, NULL);
	size--;
	message[size - FIXED - sizeof("\0\12LoST:https\0")]--;
	add_url(9, 9, "!.*!https://good/!");
	assert_int_equal(read_it(), 0);
	assert_string_equal(found.url, "https://good/");
}

/* Cut at any octet, or with any octet changed, a reply reads nothing outside of it. */
static void damaged_replies(void **state)
{
	uint8_t *copy;

	(void)state;
	add(1, 1, (const char *const[]){"", "LoST:https", ""}, "b");
	add_url(2, 1, "!.*!https://one/!");
	for (size_t n = 0; n < size; n++) {
		copy = malloc(n ? n : 1);
		memcpy(copy, message, n);
		assert_int_equal(naptr_read(copy, n, &found), -1);
		free(copy);
	}
	copy = malloc(size);
	for (size_t n = 0; n < size; n++)
		for (int v = 0; v < 256; v++) {
			memcpy(copy, message, size);
			copy[n] = (uint8_t)v;
			if (!naptr_read(copy, size, &found))
				assert_true(strlen(found.url) < sizeof(found.url));
		}
	free(copy);
}

#define TEST(f) cmocka_unit_test_setup(f, begin_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_best_record_counts),
		TEST(records_lead_to_names),
		TEST(records_that_are_refused),
		TEST(damaged_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
