/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leaf: slices, endpoints, pool, buffer, ring, hash. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <malloc.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/bigmem.h"
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/hash.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/ring.h"
#include "base/sbuf.h"
#include <sys/mman.h>
#include "base/secmem.h"

static void slices_are_cut_without_losing_a_byte(void **state)
{
	struct str rest = STR("a:bb::c"), part;
	static const char *const want[] = {"a", "bb", "", "c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		part = str_cut(&rest, ':');
		assert_true(str_eq(part, str_from(want[i])));
	}
	assert_null(rest.s);
	assert_true(str_eq(str_trim(STR(" \t x y\r\n")), STR("x y")));
	assert_true(str_eq_nocase(STR("Ab-1"), STR("aB-1")));
	assert_false(str_eq_nocase(STR("Ab"), STR("Abc")));
}

static void numbers_are_whole_or_refused(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		int err;
		uint64_t want;
	} T[] = {
		{"0", 10, 0, 0},
		{"10", 10, 0, 10},
		{"11", 10, -ERANGE, 0},
		{"", 10, -EINVAL, 0},
		{"1x", 10, -EINVAL, 0},
		{"-1", 10, -EINVAL, 0},
		{"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
		{"18446744073709551616", UINT64_MAX, -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t v = 0;

		assert_int_equal(str_to_u64(&v, str_from(T[i].text), T[i].max), T[i].err);
		assert_true(v == T[i].want);
	}
}

static void addresses_are_in_their_networks(void **state)
{
	static const struct {
		const char *net, *addr;
		bool in;
	} T[] = {
		{"192.0.2.0/24", "192.0.2.255", true},
		{"192.0.2.0/24", "192.0.3.0", false},
		{"192.0.2.128/25", "192.0.2.127", false},
		{"192.0.2.129/25", "192.0.2.254", true},
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"0.0.0.0/0", "203.0.113.9", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"2001:db8::1/128", "2001:db8::1", true},
	};
	static const char *const wrong[] = {
		"", "/", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "x/8", "::/129"};
	struct endpoint net, e;
	uint8_t bits;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_int_equal(endpoint_parse_net(&net, &bits, str_from(T[i].net)), 0);
		assert_int_equal(endpoint_parse_addr(&e, str_from(T[i].addr)), 0);
		if (endpoint_in_net(&e, &net, bits) != T[i].in)
			fail_msg("%s in %s", T[i].addr, T[i].net);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(endpoint_parse_net(&net, &bits, str_from(wrong[i])), -EINVAL);
}

static void endpoints_survive_text_and_sockaddr(void **state)
{
	static const struct {
		const char *text;
		const char *want; /* NULL: refused */
	} T[] = {
		{"192.0.2.1:5000", "192.0.2.1:5000"},
		{"[2001:db8::1]:7", "[2001:db8::1]:7"},
		{"2001:db8::1:7", NULL},
		{"192.0.2.1", NULL},
		{"192.0.2.1:0", NULL},
		{"192.0.2.1:65536", NULL},
		{"host:1", NULL},
		{":1", NULL},
		{"1.2.3:4", NULL},
		{"", NULL},
	};
	char buf[ENDPOINT_STRLEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct endpoint e, back;
		struct sockaddr_storage sa;
		int err = endpoint_parse(&e, str_from(T[i].text));

		assert_int_equal(err, T[i].want ? 0 : -EINVAL);
		if (err)
			continue;
		assert_string_equal(endpoint_fmt(&e, buf), T[i].want);
		endpoint_to_sockaddr(&e, &sa);
		assert_int_equal(endpoint_from_sockaddr(&back, &sa), 0);
		assert_true(endpoint_eq(&e, &back));
	}
}

static void pool_refuses_beyond_its_limit(void **state)
{
	struct pool *p;

	(void)state;
	assert_int_equal(pool_create(&p, 40000), 0);
	assert_non_null(pool_alloc(p, 39000));
	assert_string_equal(pool_printf(p, "%d-%s", 7, "x").s, "7-x");
	assert_false(pool_failed(p));
	assert_null(pool_alloc(p, 2000));
	assert_null(pool_alloc(p, SIZE_MAX));
	assert_true(pool_failed(p));
	pool_destroy(p);
	pool_destroy(NULL);
}

static void sbuf_keeps_its_first_error(void **state)
{
	struct sbuf b;

	(void)state;
	sbuf_init(&b, 1000);
	for (int i = 0; i < 100; i++)
		sbuf_printf(&b, "%09d ", i);
	assert_int_equal(b.err, 0);
	assert_int_equal(b.len, 1000);
	assert_memory_equal(b.p + 990, "000000099 ", 11);
	sbuf_put(&b, "x", 1);
	assert_int_equal(b.err, -EMSGSIZE);
	assert_int_equal(b.len, 1000);
	sbuf_fini(&b);
}

static void ring_takes_a_group_whole_or_not_at_all(void **state)
{
	struct ring r;
	uint32_t in[5] = {1, 2, 3, 4, 5}, v;

	(void)state;
	assert_int_equal(ring_init(&r, 4, sizeof(v)), 0);
	for (int round = 0; round < 1000; round++) {
		assert_int_equal(ring_push(&r, in, 5), -ENOSPC);
		assert_int_equal(ring_push(&r, in, 3), 0);
		assert_int_equal(ring_push(&r, in, 2), -ENOSPC);
		assert_int_equal(ring_push(&r, in + 3, 1), 0);
		for (uint32_t i = 1; i <= 4; i++) {
			assert_true(ring_pop(&r, &v));
			assert_int_equal(v, i);
		}
		assert_false(ring_pop(&r, &v));
	}
	for (size_t i = 0; i < 4 * sizeof(v); i++)
		assert_int_equal(r.mem[i], 0); /* popped entries are wiped */
	ring_fini(&r);
}

/* Entries that are written and read in place, of different lengths. */
static void a_ring_lends_its_entries(void **state)
{
	enum { LEN = 100 };
	uint8_t *place;
	struct ring r;

	(void)state;
	assert_int_equal(ring_init(&r, 4, LEN), 0);
	assert_null(ring_oldest(&r));
	for (uint32_t i = 1; i <= 40; i++) {
		for (uint32_t k = 0; k < 4; k++) {
			place = ring_place(&r);
			assert_non_null(place);
			for (uint32_t b = 0; b < LEN; b++)
				assert_int_equal(place[b], 0);
			memset(place, (int)i, i + k);
			ring_publish(&r);
		}
		assert_null(ring_place(&r));
		for (uint32_t k = 0; k < 4; k++) {
			place = ring_oldest(&r);
			assert_non_null(place);
			assert_int_equal(place[i + k - 1], i);
			assert_int_equal(place[i + k], 0);
			ring_release(&r, i + k);
		}
		assert_null(ring_oldest(&r));
	}
	ring_fini(&r);
}

/* SipHash with 128 bits, compared with OpenSSL's. */
static void wide_siphash_is_openssls(void **state)
{
	uint8_t key[16], msg[100], got[16], want[16];
	size_t size = sizeof(want), len = 0;
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
	const OSSL_PARAM param[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
		OSSL_PARAM_construct_end()};

	(void)state;
	for (uint8_t i = 0; i < sizeof(msg); i++)
		msg[i] = (uint8_t)(i * 7);
	memcpy(key, msg + 3, sizeof(key));
	for (size_t n = 0; n <= sizeof(msg); n++) {
		hash_siphash128(got, key, msg, n);
		assert_int_equal(EVP_MAC_init(c, key, sizeof(key), param), 1);
		assert_int_equal(EVP_MAC_update(c, msg, n), 1);
		assert_int_equal(EVP_MAC_final(c, want, &len, sizeof(want)), 1);
		assert_int_equal(len, sizeof(want));
		assert_memory_equal(got, want, sizeof(want));
	}
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
}

static void siphash_is_the_published_one(void **state)
{
	uint8_t key[16], msg[15];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	for (uint8_t i = 0; i < 15; i++)
		msg[i] = i;
	/* Appendix A of the SipHash paper. */
	assert_true(hash_siphash(key, msg, 15) == 0xa129ca6149be45e5ull);
}

static void repeated_causes_are_counted_not_written(void **state)
{
	struct log_limit l = {0};
	uint64_t held = 99;

	(void)state;
	assert_true(log_limit_pass(&l, 1000, 500, &held));
	assert_int_equal(held, 0);
	assert_false(log_limit_pass(&l, 1100, 500, &held));
	assert_false(log_limit_pass(&l, 1499, 500, &held));
	assert_true(log_limit_pass(&l, 1500, 500, &held));
	assert_int_equal(held, 2);
}

static void comparison_sees_every_byte(void **state)
{
	uint8_t a[33] = {0}, b[33] = {0};

	(void)state;
	for (size_t len = 0; len <= sizeof(a); len++)
		for (size_t i = 0; i < sizeof(a); i++) {
			assert_true(secmem_equal(a, b, len));
			b[i] = i % 2 ? 0x80 : 1;
			assert_int_equal(secmem_equal(a, b, len), i >= len);
			b[i] = 0;
		}
}

static void memory_for_keys_is_there_only_where_it_is_used(void **state)
{
	enum { PAGES = 8192, PAGE = 4096 };
	static uint8_t there[PAGES];
	uint8_t *p = secmem_alloc((size_t)PAGES * PAGE);
	uint32_t n = 0;

	(void)state;
	assert_non_null(p);
	p[5 * PAGE] = 1;
	assert_int_equal(mincore(p, (size_t)PAGES * PAGE, there), 0);
	assert_true(there[5] & 1);
	for (int i = 0; i < PAGES; i++)
		n += there[i] & 1;
	assert_true(n <= 2 * 512); /* a huge page, or two */
	secmem_free(p, (size_t)PAGES * PAGE);
}

static void a_clock_that_was_set_is_found_out(void **state)
{
	static const struct {
		int64_t real_s, mono_s, step_s;
		const char *why;
	} T[] = {
		{1000000, 50, 0, "nothing to compare with"},
		{1000001, 51, 0, "both went on"},
		{1000031, 81, 0, "we came late"},
		{1000033, 82, 0, "slewed, or asked between two readings"},
		{1003633, 82, 3600, "set forward"},
		{1003634, 83, 0, "told once"},
		{34, 84, -1003601, "set back"},
		{35, 85, 0, "told once"},
		{8 * 3600, 86, 8 * 3600 - 36, "the machine was suspended"},
	};
	struct clock_pair c = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (clock_step(&c, (uint64_t)T[i].real_s * NS_PER_SEC,
			    (uint64_t)T[i].mono_s * NS_PER_SEC) !=
			T[i].step_s * (int64_t)NS_PER_SEC)
			fail_msg("%s", T[i].why);
}

/* Allocations of other sizes come in between, as in the daemon. */
static void memory_of_its_own_shares_no_cache_line(void **state)
{
	void *other[200], *own[100];

	(void)state;
	srandom(9);
	for (int i = 0; i < 200; i++)
		other[i] = malloc((size_t)random() % 300);
	for (int i = 0; i < 200; i += 2)
		free(other[i]);
	for (int i = 0; i < 100; i++) {
		size_t len = 1 + (size_t)random() % 300;
		uint8_t *p = own[i] = lines_alloc(1 + len / 8, 8);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % CACHE_LINE, 0);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xff, len);
#ifndef __SANITIZE_ADDRESS__
		assert_true(
			malloc_usable_size(p) >= (len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
#endif
	}
	for (int i = 0; i < 100; i++)
		free(own[i]);
	for (int i = 1; i < 200; i += 2)
		free(other[i]);
	assert_null(lines_alloc(SIZE_MAX, 2));
	assert_null(lines_alloc(SIZE_MAX / 2 + 1, 1));
}

/* Only touched elements of a large table get memory. Their values stay. */
static void memory_is_touched_before_it_is_used(void **state)
{
	enum { N = 4096, SIZE = 512, FROM = 1000, TO = 3000 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = N * SIZE / page;
	uint8_t *p = bigmem_alloc(N, SIZE), *in = malloc(pages);
	bool can;

	(void)state;
	assert_non_null(p);
	assert_non_null(in);
	/* Small pages, so that it shows which ones there are. */
	assert_int_equal(madvise(p, N * SIZE, MADV_NOHUGEPAGE), 0);
	p[FROM * SIZE] = 7;
	can = madvise(p, page, MADV_POPULATE_WRITE) == 0;
	bigmem_touch(p, SIZE, FROM, FROM);
	bigmem_touch(p, SIZE, TO, FROM);
	bigmem_touch(p, SIZE, FROM, TO);
	assert_int_equal(mincore(p, N * SIZE, in), 0);
	for (size_t i = 1; i < pages; i++) {
		bool wanted = i * page < TO * SIZE && (i + 1) * page > FROM * SIZE;

		if (can || !wanted)
			assert_int_equal(in[i] & 1, wanted);
	}
	assert_int_equal(p[FROM * SIZE], 7);
	assert_int_equal(p[TO * SIZE - 1], 0);
	bigmem_free(p, N, SIZE);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_its_own_shares_no_cache_line),
		cmocka_unit_test(slices_are_cut_without_losing_a_byte),
		cmocka_unit_test(numbers_are_whole_or_refused),
		cmocka_unit_test(endpoints_survive_text_and_sockaddr),
		cmocka_unit_test(addresses_are_in_their_networks),
		cmocka_unit_test(pool_refuses_beyond_its_limit),
		cmocka_unit_test(sbuf_keeps_its_first_error),
		cmocka_unit_test(ring_takes_a_group_whole_or_not_at_all),
		cmocka_unit_test(a_ring_lends_its_entries),
		cmocka_unit_test(siphash_is_the_published_one),
		cmocka_unit_test(wide_siphash_is_openssls),
		cmocka_unit_test(repeated_causes_are_counted_not_written),
		cmocka_unit_test(comparison_sees_every_byte),
		cmocka_unit_test(memory_for_keys_is_there_only_where_it_is_used),
		cmocka_unit_test(memory_is_touched_before_it_is_used),
		cmocka_unit_test(a_clock_that_was_set_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
