/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=crypto (RFC 4568): lines that are read, lines that are refused and why. Writing returns the
 * line that was read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/base64.h"
#include "proto/sdes.h"

#define K30  "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz" /* RFC 4568 4, example */
#define K30B "PS1uQCVeeCFCanVmcjkpPj1cNWhxXkB3XnAqLW1u"
#define K46  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLQ"
#define K38  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw" /* 28 bytes, 00..1b */
#define K44  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKis"
#define A80  "AES_CM_128_HMAC_SHA1_80 "

static void reads_and_refuses(void **state)
{
	static const struct {
		const char *line;
		enum sdes_err want;
		const char *again; /* as written back; NULL = the same */
	} T[] = {
		{"1 " A80 "inline:" K30 "|2^20|1:4", SDES_OK, NULL},
		{"2 F8_128_HMAC_SHA1_80 inline:" K30 "|2^20|1:4", SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|1:17", SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|340282366920938463463374607431768211455:128", SDES_OK,
			NULL},
		{"1 " A80 "inline:" K30 "|7:128;inline:" K30B "|8:128", SDES_OK, NULL},
		{"1 AES_CM_256_HMAC_SHA1_80 inline:" K46, SDES_OK, NULL},
		{"1 aes_cm_256_hmac_sha1_80 inline:" K46, SDES_OK,
			"1 AES_CM_256_HMAC_SHA1_80 inline:" K46},
		{"1 AES_256_CM_HMAC_SHA1_80 inline:" K46, SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|2^20|1:4 UNENCRYPTED_SRTCP UNAUTHENTICATED_SRTP", SDES_OK,
			NULL},
		{"1 " A80 "inline:" K30, SDES_OK, NULL},
		{"123456789 " A80 "inline:" K30 "|1048577|66051:3 UNENCRYPTED_SRTP WSH=128",
			SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|256:2", SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|2^48|340282366920938463463374607431768211455:16", SDES_OK,
			NULL},
		{"1 aes_cm_128_hmac_sha1_80\tINLINE:" K30, SDES_OK, "1 " A80 "inline:" K30},
		{"1 " A80 "inline:" K30 "  KDR=0 -X=1", SDES_OK, "1 " A80 "inline:" K30},
		{"1 AEAD_AES_128_GCM inline:" K38, SDES_OK, NULL},
		{"1 AEAD_AES_128_GCM inline:" K38 "==", SDES_OK, "1 AEAD_AES_128_GCM inline:" K38},
		{"1 AEAD_AES_256_GCM inline:" K44, SDES_OK, NULL},
		{"1 AEAD_AES_256_GCM inline:" K44 "=", SDES_OK, "1 AEAD_AES_256_GCM inline:" K44},
		{"", SDES_ERR_SYNTAX, NULL},
		{"x " A80 "inline:" K30, SDES_ERR_SYNTAX, NULL},
		{"1234567890 " A80 "inline:" K30, SDES_ERR_SYNTAX, NULL},
		{"1 " A80, SDES_ERR_SYNTAX, NULL},
		{"1 " A80 "inline", SDES_ERR_SYNTAX, NULL},
		{"1 SUPER_CIPHER inline:" K30, SDES_ERR_SUITE, NULL},
		{"1 " A80 "uri:" K30, SDES_ERR_KEY_METHOD, NULL},
		{"1 " A80 "inline:" K38, SDES_ERR_KEY, NULL},
		{"1 " A80 "inline:" K30 "A", SDES_ERR_KEY, NULL},
		{"1 " A80 "inline:" K44, SDES_ERR_KEY, NULL},
		{"1 " A80 "inline:*VNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz", SDES_ERR_KEY, NULL},
		{"1 AEAD_AES_128_GCM inline:" K38 "=", SDES_ERR_KEY, NULL},
		{"1 " A80 "inline:" K30 "|2^20|1:4;inline:" K30B "|2^20|2:4", SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|1:1;inline:" K30B "|3|2:1;inline:" K30
		 "|2^48|3:1;inline:" K30 "|0:1 KDR=24 UNENCRYPTED_SRTP",
			SDES_OK, NULL},
		{"1 " A80 "inline:" K30 "|1:4;", SDES_OK, "1 " A80 "inline:" K30 "|1:4"},
		{"1 " A80 "inline:" K30 "|1:1;inline:" K30 "|2:1;inline:" K30 "|3:1;inline:" K30
		 "|4:1;inline:" K30 "|5:1",
			SDES_ERR_MANY_KEYS, NULL},
		{"1 " A80 "inline:" K30 ";inline:" K30B, SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1:4;inline:" K30B, SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 ";inline:" K30B "|1:4", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1:4;inline:" K30B "|2:3", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1:4;inline:" K30B "|2:4;inline:" K30 "|1:4", SDES_ERR_MKI,
			NULL},
		{"1 " A80 "inline:" K30 "|1:4;;inline:" K30B "|2:4", SDES_ERR_SYNTAX, NULL},
		{"1 " A80 "inline:" K30 "|1:4;uri:" K30B "|2:4", SDES_ERR_KEY_METHOD, NULL},
		{"1 " A80 "inline:" K30 "|1:4;inline:" K38 "|2:4", SDES_ERR_KEY, NULL},
		{"1 " A80 "inline:" K30 "|1:4; inline:" K30B "|2:4", SDES_ERR_PARAM, NULL},
		{"1 " A80 "inline:" K30 " KDR=1", SDES_OK, NULL},
		{"1 " A80 "inline:" K30 " KDR=25", SDES_ERR_PARAM, NULL},
		{"1 " A80 "inline:" K30 " KDR=", SDES_ERR_PARAM, NULL},
		{"1 " A80 "inline:" K30 " -KDR=25 -", SDES_OK, "1 " A80 "inline:" K30},
		{"1 AEAD_AES_128_GCM inline:" K38 " UNAUTHENTICATED_SRTP", SDES_ERR_PARAM, NULL},
		{"1 " A80 "inline:" K30 "|2^49", SDES_ERR_LIFETIME, NULL},
		{"1 " A80 "inline:" K30 "|281474976710657", SDES_ERR_LIFETIME, NULL},
		{"1 " A80 "inline:" K30 "|0", SDES_ERR_LIFETIME, NULL},
		{"1 " A80 "inline:" K30 "||1:4", SDES_ERR_LIFETIME, NULL},
		{"1 " A80 "inline:" K30 "|256:1", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1:0", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1:129", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|340282366920938463463374607431768211456:16", SDES_ERR_MKI,
			NULL},
		{"1 " A80 "inline:" K30 "|340282366920938463463374607431768211456:128",
			SDES_ERR_MKI, NULL}, /* 2^128: larger than the stored value */
		{"1 " A80 "inline:" K30 "|:4", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|1x:4", SDES_ERR_MKI, NULL},
		{"1 " A80 "inline:" K30 "|2^20|1:4|", SDES_ERR_SYNTAX, NULL},
		{"1 " A80 "inline:" K30 " FEC_ORDER=FEC_SRTP", SDES_ERR_FEC, NULL},
		{"1 " A80 "inline:" K30 " FEC_KEY=inline:" K30, SDES_ERR_FEC, NULL},
		{"1 " A80 "inline:" K30 " WSH=x", SDES_ERR_PARAM, NULL},
		{"1 " A80 "inline:" K30 " MANDATORY", SDES_ERR_PARAM, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct sdes_bag bag = {0};
		struct sdes s, untouched;
		struct sbuf b;
		enum sdes_err err;

		memset(&s, 0x5a, sizeof(s));
		untouched = s;
		err = sdes_parse(&s, &bag, str_from(T[i].line));
		if (err != T[i].want)
			fail_msg("%s: %s", T[i].line, sdes_err_text(err));
		if (err) {
			assert_memory_equal(&s, &untouched, sizeof(s));
			assert_int_equal(bag.n, 0);
			continue;
		}
		sbuf_init(&b, 0);
		sdes_write(&b, &s, &bag, false, false);
		assert_string_equal(b.p, T[i].again ? T[i].again : T[i].line);
		sbuf_fini(&b);
	}
}

static void values_land_where_they_belong(void **state)
{
	static const uint8_t mki[4] = {0, 1, 2, 3};
	struct sdes s;
	struct sbuf b;

	(void)state;
	assert_int_equal(SDES_OK,
		sdes_parse(&s, NULL, STR("7 AEAD_AES_128_GCM inline:" K38 "|2^31|66051:4 WSH=64")));
	assert_int_equal(s.tag, 7);
	assert_int_equal(s.master.suite, SUITE_AEAD_AES_128_GCM);
	for (unsigned i = 0; i < 28; i++)
		assert_int_equal(i < 16 ? s.master.key[i] : s.master.salt[i - 16], i);
	assert_int_equal(s.master.lifetime, 1ull << 31);
	assert_int_equal(s.master.mki_len, 4);
	assert_memory_equal(s.master.mki, mki, 4);
	assert_int_equal(s.wsh, 64);
	s.master.lifetime = 0;
	s.wsh = 0;
	s.master.mki_len = 0;
	sbuf_init(&b, 0);
	sdes_write(&b, &s, NULL, true, true);
	assert_string_equal(b.p, "7 AEAD_AES_128_GCM inline:" K38 "==|2^31");
	sbuf_fini(&b);
}

/* Lines share the bag. A line without room is refused entirely, as is one without a bag. */
static void further_keys_go_into_the_bag(void **state)
{
	static const char three[] =
		"1 " A80 "inline:" K30 "|1:2;inline:" K30B "|9|2:2;inline:" K30 "|3:2";
	struct sdes_bag bag = {0};
	struct sdes s, t, u;

	(void)state;
	assert_int_equal(sdes_parse(&s, NULL, str_from(three)), SDES_ERR_MANY_KEYS);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sdes_parse(i ? &t : &s, &bag, str_from(three)), SDES_OK);
	assert_int_equal(sdes_parse(&u, &bag, str_from(three)), SDES_ERR_MANY_KEYS);
	assert_int_equal(bag.n, 8);
	assert_int_equal(s.more, 2);
	assert_int_equal(s.more_at, 0);
	assert_int_equal(t.more_at, 6);
	assert_int_equal(bag.master[6].lifetime, 9);
	assert_int_equal(bag.master[6].suite, SUITE_AES_CM_128_80);
	assert_int_equal(bag.master[6].mki[1], 2);
	assert_int_equal(bag.master[7].mki[1], 3);
	assert_memory_not_equal(bag.master[6].key, s.master.key, 16);
	assert_memory_equal(bag.master[7].key, s.master.key, 16);
}

static void base64_as_rfc4648(void **state)
{
	static const struct {
		const char *plain, *text;
	} T[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	uint8_t all[256], back[256];
	char text[BASE64_LEN(256)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		size_t len = strlen(T[i].plain);
		size_t n = base64_encode(text, (const uint8_t *)T[i].plain, len, true);

		assert_int_equal(n, strlen(T[i].text));
		assert_memory_equal(text, T[i].text, n);
		assert_int_equal(base64_decode(back, sizeof(back), str_from(T[i].text)), len);
		assert_memory_equal(back, T[i].plain, len);
	}
	for (unsigned c = 0; c < 256; c++) { /* exactly the 64 letters of the alphabet are valid */
		char four[4] = {(char)c, 'A', 'A', 'A'};
		bool ok = c &&
			strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			       "0123456789+/",
				(int)c);

		all[c] = (uint8_t)c;
		assert_int_equal(base64_decode(back, 3, (struct str){four, 4}), ok ? 3 : -EINVAL);
	}
	assert_int_equal(base64_encode(text, all, 256, false), 342);
	assert_int_equal(base64_decode(back, 256, (struct str){text, 342}), 256);
	assert_memory_equal(back, all, 256);
	assert_int_equal(base64_decode(back, 255, (struct str){text, 342}), -EINVAL);
	assert_int_equal(base64_decode(back, 256, STR("Zm8==")), -EINVAL);
	assert_int_equal(base64_decode(back, 256, STR("Z")), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_refuses),
		cmocka_unit_test(values_land_where_they_belong),
		cmocka_unit_test(further_keys_go_into_the_bag),
		cmocka_unit_test(base64_as_rfc4648),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
