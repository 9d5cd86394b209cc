/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-1 of two messages by AVX2 and BMI2, compared with libcrypto. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <openssl/sha.h>

#include "srtp/sha1_pair.h"

enum { BLOCKS = 9, SKEW = 63 };

static void check(uint32_t skew, uint32_t blocks)
{
	uint8_t p[64 * BLOCKS + SKEW], q[64 * BLOCKS + SKEW];
	SHA_CTX x = {0}, y = {0};
	uint32_t h[5], g[5],
			       *const want[2][5] = {{&x.h0, &x.h1, &x.h2, &x.h3, &x.h4},
				       {&y.h0, &y.h1, &y.h2, &y.h3, &y.h4}};

	for (size_t i = 0; i < sizeof(p); i++) {
		p[i] = (uint8_t)random();
		q[i] = (uint8_t)random();
	}
	for (int i = 0; i < 5; i++) {
		*want[0][i] = h[i] = (uint32_t)(random() << 1);
		*want[1][i] = g[i] = (uint32_t)(random() << 1);
	}
	sha1_pair(h, g, p + skew, q + SKEW - skew, blocks);
	for (uint32_t i = 0; i < blocks; i++) {
		SHA1_Transform(&x, p + skew + (size_t)64 * i);
		SHA1_Transform(&y, q + SKEW - skew + (size_t)64 * i);
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(h[i], *want[0][i]);
		assert_int_equal(g[i], *want[1][i]);
	}
}

static void two_messages_at_any_address_hash_as_by_libcrypto(void **state)
{
	(void)state;
	if (!sha1_pair_usable())
		skip();
	srandom(1);
	for (uint32_t blocks = 0; blocks <= BLOCKS; blocks++)
		for (uint32_t skew = 0; skew <= SKEW; skew++)
			check(skew, blocks);
}

static void one_message_may_be_both(void **state)
{
	uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}, g[5];
	/* FIPS 180-2 A.1: "abc" */
	const uint8_t block[64] = {'a', 'b', 'c', 0x80, [63] = 24};
	const uint32_t digest[5] = {0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d};

	(void)state;
	if (!sha1_pair_usable())
		skip();
	memcpy(g, h, sizeof(g));
	sha1_pair(h, g, block, block, 1);
	assert_memory_equal(h, digest, sizeof(digest));
	assert_memory_equal(g, digest, sizeof(digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_messages_at_any_address_hash_as_by_libcrypto),
		cmocka_unit_test(one_message_may_be_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
