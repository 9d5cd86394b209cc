/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reference against published examples: FIPS-197 and FIPS-180, RFC 3711 B.1 and B.2, RFC 6188
 * 7.1 and 7.3, RFC 7714 16.1.1 and 17.1. (test_engine.c runs t/vectors on it.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "hex.h"
#include "srtp/ref.h"
#include "base/bytes.h"

static void aes_is_fips_197_appendix_c(void **state)
{
	static const struct {
		unsigned key_len;
		const char *want;
	} T[] = {
		{16, "69c4e0d86a7b0430d8cdb78070b4c55a"},
		{24, "dda97ca4864cdfe06eaf70a0ec0d7191"},
		{32, "8ea2b7ca516745bfeafc49904b496089"},
	};
	uint8_t key[32], in[16], rk[240], got[16], want[16];

	(void)state;
	for (unsigned i = 0; i < 32; i++)
		key[i] = (uint8_t)i;
	for (unsigned i = 0; i < 16; i++)
		in[i] = (uint8_t)(0x11 * i);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		unhex(want, 16, T[i].want);
		srtp_ref_aes_expand(rk, key, T[i].key_len);
		srtp_ref_aes_block(got, in, rk, 6 + T[i].key_len / 4);
		assert_memory_equal(got, want, 16);
	}
}

static void sha1_of_abc_is_fips_180(void **state)
{
	static const uint32_t want[5] = {
		0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d};
	uint8_t block[64] = {'a', 'b', 'c', 0x80, [63] = 24};
	uint32_t s[5];

	(void)state;
	memcpy(s, srtp_ref_sha1_init, sizeof(s));
	srtp_ref_sha1_block(s, block);
	assert_memory_equal(s, want, sizeof(s));
}

/* Keystreams: encrypts zeroes in a slot without authentication. */
static void cm_keystreams_are_rfc_3711_b2_and_rfc_6188(void **state)
{
	static const struct {
		const char *key;
		unsigned block; /* from which block on */
		const char *want;
	} T[] = {
		{"2B7E151628AED2A6ABF7158809CF4F3C", 0,
			"E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB"
			"41E95B3BB0A2E8DD477901E4FCA894C0"},
		{"2B7E151628AED2A6ABF7158809CF4F3C", 0xfeff,
			"EC8CDF7398607CB0F2D21675EA9EA1E4362B7C3C6773516318A077D7FC5073AE"
			"6A2CC3787889374FBEB4C81B17BA6C44"},
		{"eab234764e517b2d3d160d587d8c86219740f65f99b6bcf7", 0,
			"35096cba4610028dc1b57503804ce37c5de986291dcce161d5165ec4568f5c9a"
			"474a40c77894bc17180202272a4c264d"},
		{"57f82fe3613fd170a85ec93c40b1f0922ec4cb0dc025b58272147cc438944a98", 0,
			"92bdd28a93c3f52511c677d08b5515a49da71b2378a854f67050756ded165bac"
			"63c4868b7096d88421b563b8c94c9a31"},
	};
	static uint8_t in[(0xff02 + 1) * 16], out[sizeof(in)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct xc_key keys[2] = {{.valid = XC_KEY_VALID},
			{.valid = XC_KEY_VALID, .cipher = XC_CIPHER_AES_CM}};
		struct xc_job job = {.tx_key = 1, .body_len = 16 * (T[i].block + 3)};
		uint8_t key[32], want[48];
		unsigned key_len = (unsigned)unhex(key, sizeof(key), T[i].key);

		keys[1].rounds = 6 + key_len / 4;
		srtp_ref_aes_expand(keys[1].rk, key, key_len);
		unhex(keys[1].salt, 14, "F0F1F2F3F4F5F6F7F8F9FAFBFCFD");
		unhex(want, sizeof(want), T[i].want);
		assert_int_equal(srtp_ref_job(&job, keys, in, out), XC_OK);
		assert_memory_equal(out + 16 * T[i].block, want, sizeof(want));
	}
}

static void f8_is_rfc_3711_b1(void **state)
{
	static const char *const pkt =
		"806e5cba50681de55c62159970736575646f72616e646f6d6e65737320697320"
		"746865206e6578742062657374207468696e67";
	static const char *const body =
		"019ce7a26e7854014a6366aa95d4eefd1ad4172a14f9faf455b7f1d4b62bd08f"
		"562c0eef7c4802";
	struct xc_key keys[2] = {{.valid = XC_KEY_VALID},
		{.valid = XC_KEY_VALID, .cipher = XC_CIPHER_AES_F8, .rounds = 10}};
	struct xc_job job = {.tx_key = 1, .hdr_len = 12, .body_len = 39, .ssrc = 0x5c621599};
	uint8_t in[64], out[64], want[64], key[16], rk[240];

	(void)state;
	job.tx_index = (uint64_t)0xd462564a << 16 | 0x5cba;
	unhex(key, 16, "234829008467be186c3de14aae72d62c");
	srtp_ref_aes_expand(keys[1].rk, key, 16);
	/* m = salt 32f2870d padded with 0x55 */
	key[0] ^= 0x32, key[1] ^= 0xf2, key[2] ^= 0x87, key[3] ^= 0x0d;
	for (int i = 4; i < 16; i++)
		key[i] ^= 0x55;
	srtp_ref_aes_expand(rk, key, 16);
	memcpy(keys[1].aux, rk, sizeof(keys[1].aux));
	assert_int_equal(unhex(in, sizeof(in), pkt), 51);
	assert_int_equal(unhex(want, sizeof(want), body), 39);
	assert_int_equal(srtp_ref_job(&job, keys, in, out), XC_OK);
	assert_memory_equal(out, in, 12);
	assert_memory_equal(out + 12, want, 39);
}

static void gcm_is_rfc_7714_16_1_1_and_17_1(void **state)
{
	static const struct {
		const char *plain, *want;
		uint64_t index;
		uint32_t hdr_len, flags;
	} T[] = {
		{"8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e20706172746573"
		 "2074726573",
			"8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d1"
			"9b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
			0xf17b, 12, 0},
		{"81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeef"
		 "deadbeefdeadbeef",
			"81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b"
			"4686303ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
			0x5d4, 8, XC_JOB_RTCP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct xc_key keys[2] = {{.valid = XC_KEY_VALID},
			{.valid = XC_KEY_VALID,
				.cipher = XC_CIPHER_GCM,
				.auth = XC_AUTH_GCM,
				.rounds = 10,
				.tag_len = 16}};
		struct xc_job job = {.tx_key = 1,
			.tx_index = T[i].index,
			.hdr_len = T[i].hdr_len,
			.flags = T[i].flags};
		uint8_t in[128], out[128], want[128], key[16];
		size_t in_len = unhex(in, sizeof(in), T[i].plain);
		size_t want_len = unhex(want, sizeof(want), T[i].want);

		for (int b = 0; b < 16; b++)
			key[b] = (uint8_t)b;
		srtp_ref_aes_expand(keys[1].rk, key, 16);
		srtp_ref_aes_block(keys[1].aux, keys[1].aux, keys[1].rk, 10);
		unhex(keys[1].salt, 12, "517569642070726f2071756f");
		job.body_len = (uint32_t)in_len - job.hdr_len;
		job.rx_tag_off = job.tx_tag_off = (uint32_t)in_len;
		job.ssrc = be32(in + (job.flags & XC_JOB_RTCP ? 4 : 8));
		assert_int_equal(want_len, in_len + 16 + (job.flags & XC_JOB_RTCP ? 4 : 0));
		assert_int_equal(srtp_ref_job(&job, keys, in, out), XC_OK);
		assert_memory_equal(out, want, want_len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aes_is_fips_197_appendix_c),
		cmocka_unit_test(sha1_of_abc_is_fips_180),
		cmocka_unit_test(cm_keystreams_are_rfc_3711_b2_and_rfc_6188),
		cmocka_unit_test(f8_is_rfc_3711_b1),
		cmocka_unit_test(gcm_is_rfc_7714_16_1_1_and_17_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
