/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of MIKEY: all payloads written and read, and what is malformed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "hex.h"
#include "proto/mikey.h"

static struct mikey_message m; /* large: not on the stack */
static uint8_t buf[MIKEY_MESSAGE_MAX];

static int parse(const uint8_t *p, size_t len, size_t *offset)
{
	return mikey_parse(&m, (struct str){(const char *)p, len}, offset);
}

static int parse_hex(const char *hex, size_t *offset)
{
	static uint8_t b[4096];

	return parse(b, unhex(b, sizeof(b), hex), offset);
}

/* A message with one payload of each type. */
static size_t write_all(void)
{
	static const char bytes[512];
	struct mikey_header h = {.type = MIKEY_TYPE_PKE,
		.verify = true,
		.csb_id = 0x12345678,
		.sessions = 2,
		.cs = {{.ssrc = 1, .roc = 2, .policy = 3}, {.ssrc = 4, .roc = 5, .policy = 6}}};
	struct mikey_writer w;
	int len;

	mikey_write_header(&w, buf, sizeof(buf), &h);
	mikey_write_t(&w, MIKEY_TS_NTP, 0x1122334455667788);
	mikey_write_rand(&w, (struct str){bytes, 16});
	mikey_write_id(&w, MIKEY_ID_URI, STR("sip:a@b"));
	mikey_write_cert(&w, MIKEY_CERT_X509, (struct str){bytes, 300});
	mikey_write_chash(&w, MIKEY_HASH_SHA1, (struct str){bytes, 20});
	mikey_write_sp(&w, 3, STR("\0\1\1"));
	mikey_write_ext(&w, MIKEY_EXT_SDP_IDS, STR("mikey"));
	mikey_write_dh(&w, MIKEY_DH_OAKLEY1, (struct str){bytes, 96});
	mikey_write_kemac(&w, MIKEY_KEMAC_NULL, STR("data"), MIKEY_MAC_HMAC_SHA1);
	mikey_write_pke(&w, 2, (struct str){bytes, 256});
	mikey_write_err(&w, MIKEY_ERR_DT);
	mikey_write_v(&w, MIKEY_MAC_HMAC_SHA1);
	mikey_write_sign(&w, MIKEY_SIGN_RSA_PSS, 256);
	len = mikey_write_end(&w);
	assert_true(len > 0);
	return (size_t)len;
}

static void check_payload(enum mikey_payload_type type, uint8_t kind, size_t data)
{
	const struct mikey_payload *p = mikey_payload_find(&m, type, 0);

	assert_non_null(p);
	assert_int_equal(p->kind, kind);
	assert_int_equal(p->data.len, data);
	assert_null(mikey_payload_find(&m, type, 1));
}

static void test_all_payloads(void **state)
{
	size_t len = write_all(), offset;

	(void)state;
	assert_int_equal(parse(buf, len, &offset), 0);
	assert_int_equal(offset, len);
	assert_int_equal(m.payloads, 13);
	assert_int_equal(m.header.type, MIKEY_TYPE_PKE);
	assert_true(m.header.verify);
	assert_int_equal(m.header.csb_id, 0x12345678);
	assert_int_equal(m.header.sessions, 2);
	assert_int_equal(m.header.cs[1].ssrc, 4);
	assert_int_equal(m.header.cs[1].roc, 5);
	assert_int_equal(m.header.cs[1].policy, 6);
	check_payload(MIKEY_P_T, MIKEY_TS_NTP, 8);
	assert_true(mikey_payload_find(&m, MIKEY_P_T, 0)->time == 0x1122334455667788);
	check_payload(MIKEY_P_RAND, 0, 16);
	check_payload(MIKEY_P_ID, MIKEY_ID_URI, 7);
	check_payload(MIKEY_P_CERT, MIKEY_CERT_X509, 300);
	check_payload(MIKEY_P_CHASH, MIKEY_HASH_SHA1, 20);
	check_payload(MIKEY_P_SP, 0, 3);
	check_payload(MIKEY_P_EXT, MIKEY_EXT_SDP_IDS, 5);
	check_payload(MIKEY_P_DH, MIKEY_DH_OAKLEY1, 96);
	check_payload(MIKEY_P_KEMAC, MIKEY_KEMAC_NULL, 4);
	check_payload(MIKEY_P_PKE, 2, 256);
	check_payload(MIKEY_P_ERR, MIKEY_ERR_DT, 0);
	check_payload(MIKEY_P_V, MIKEY_MAC_HMAC_SHA1, 0);
	assert_int_equal(mikey_payload_find(&m, MIKEY_P_V, 0)->mac.len, MIKEY_MAC_LEN);
	check_payload(MIKEY_P_SIGN, MIKEY_SIGN_RSA_PSS, 256);
}

static void test_every_truncation(void **state)
{
	size_t len = write_all(), offset;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(parse(buf, i, &offset), -EBADMSG);
		assert_true(offset <= i);
	}
	buf[len] = 0;
	assert_int_equal(parse(buf, len + 1, &offset), -EBADMSG);
	assert_int_equal(offset, len);
}

#define HEAD(next)       \
	"0100" next "00" \
	"00000001"       \
	"00"             \
	"00"

static void test_malformed(void **state)
{
	static const struct {
		const char *hex;
		size_t offset;
	} cases[] = {
		/* clang-format off */
		{"01", 1},
		{HEAD("ff"), 10},              /* an unknown payload */
		{HEAD("14"), 10},              /* key data outside of KEMAC */
		{HEAD("05") "00030000", 10},   /* an unknown timestamp */
		{HEAD("03") "0007", 10},       /* an unknown group: its length is unknown */
		{HEAD("08") "0002", 10},       /* an unknown hash */
		{HEAD("01") "0001000002", 10}, /* an unknown MAC */
		{HEAD("09") "0002", 10},
		{HEAD("00") "00", 10},         /* a byte after the last payload */
		{HEAD("06") "06000001610000", 15}, /* the second ID is cut off */
		{HEAD("05") "050000000000000000010000" "0000000000000001", 20}, /* T twice */
		{"01000000000000012100", 10},  /* 33 crypto sessions */
		{"01000000000000010002", 10},  /* an unknown map */
		/* clang-format on */
	};
	size_t offset;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse_hex(cases[i].hex, &offset), -EBADMSG);
		assert_int_equal(offset, cases[i].offset);
	}
	assert_int_equal(parse_hex("02"
				   "000000"
				   "00000001"
				   "0000",
				 &offset),
		-EPROTONOSUPPORT);
	assert_int_equal(parse_hex(HEAD("00"), &offset), 0);
}

/* A pre-shared key message with an ID payload. Another library does not return from it. */
static void test_psk_with_an_id(void **state)
{
	size_t offset;

	(void)state;
	assert_int_equal(parse_hex(HEAD("06") "06"
					      "01"
					      "0001"
					      "61"
					      "00"
					      "01"
					      "0000",
				 &offset),
		0);
	assert_int_equal(m.payloads, 2);
	assert_int_equal(mikey_payload_find(&m, MIKEY_P_ID, 0)->data.len, 1);
	assert_int_equal(mikey_payload_find(&m, MIKEY_P_ID, 1)->data.len, 0);
}

static void test_too_many_payloads(void **state)
{
	struct mikey_header h = {.type = MIKEY_TYPE_PSK};
	struct mikey_writer w;
	size_t offset;

	(void)state;
	mikey_write_header(&w, buf, sizeof(buf), &h);
	for (uint32_t i = 0; i < MIKEY_PAYLOADS_MAX; i++)
		mikey_write_err(&w, 0);
	assert_int_equal(parse(buf, (size_t)mikey_write_end(&w), &offset), 0);
	mikey_write_err(&w, 0);
	assert_int_equal(parse(buf, (size_t)mikey_write_end(&w), &offset), -EBADMSG);
}

static void test_too_long(void **state)
{
	static const uint8_t big[MIKEY_MESSAGE_MAX + 1] = {1};
	size_t offset;

	(void)state;
	assert_int_equal(parse(big, sizeof(big), &offset), -EBADMSG);
}

static void test_key_data(void **state)
{
	struct mikey_key_data in[] = {
		{.type = MIKEY_KEY_TGK, .key = STR("0123456789abcdef")},
		{.type = MIKEY_KEY_TEK_SALT,
			.key = STR("k"),
			.salt = STR("salt"),
			.kv = {.type = MIKEY_KV_SPI, .spi = STR("\1\2")}},
		{.type = MIKEY_KEY_TEK,
			.key = STR("k"),
			.kv = {.type = MIKEY_KV_INTERVAL, .from = STR("f"), .to = STR("to")}},
	};
	struct mikey_key_list k;
	struct mikey_writer w;
	size_t offset;
	int len;

	(void)state;
	mikey_write_chain(&w, buf, sizeof(buf));
	mikey_write_sub_id(&w, MIKEY_ID_URI, STR("sip:a@b"));
	for (size_t i = 0; i < ARRAY_LEN(in); i++)
		mikey_write_key_data(&w, &in[i]);
	len = mikey_write_end(&w);
	assert_true(len > 0);
	assert_int_equal(
		mikey_keys_parse(&k, (struct str){(char *)buf, (size_t)len}, MIKEY_P_ID, &offset),
		0);
	assert_true(str_eq(k.id, STR("sip:a@b")));
	assert_int_equal(k.count, ARRAY_LEN(in));
	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		assert_int_equal(k.key[i].type, in[i].type);
		assert_true(str_eq(k.key[i].key, in[i].key));
		assert_true(str_eq(k.key[i].salt, in[i].salt));
		assert_true(str_eq(k.key[i].kv.spi, in[i].kv.spi));
		assert_true(str_eq(k.key[i].kv.from, in[i].kv.from));
		assert_true(str_eq(k.key[i].kv.to, in[i].kv.to));
	}
	for (int i = 0; i < len; i++)
		assert_int_equal(mikey_keys_parse(&k, (struct str){(char *)buf, (size_t)i},
					 MIKEY_P_ID, &offset),
			-EBADMSG);
	assert_int_equal(mikey_keys_parse(&k, STR_NONE, MIKEY_P_LAST, &offset), -EBADMSG);
}

static int policy(struct mikey_policy *p, const char *hex)
{
	static uint8_t b[256];

	return mikey_policy_parse(p, (struct str){(char *)b, unhex(b, sizeof(b), hex)});
}

static void test_policy(void **state)
{
	struct mikey_policy p;

	(void)state;
	assert_int_equal(policy(&p, ""), 0);
	assert_int_equal(p.value[MIKEY_SP_ENCR_ALG], 1);
	assert_int_equal(p.value[MIKEY_SP_TAG_LEN], 10);
	assert_int_equal(p.given, 0);
	assert_int_equal(policy(&p,
				 "000106"
				 "0b020004"),
		0);
	assert_int_equal(p.value[MIKEY_SP_ENCR_ALG], MIKEY_ENCR_GCM);
	assert_int_equal(p.value[MIKEY_SP_TAG_LEN], 4);
	assert_int_equal(p.given, 1u << MIKEY_SP_ENCR_ALG | 1u << MIKEY_SP_TAG_LEN);
	assert_int_equal(policy(&p, "0001"), -EBADMSG);
	assert_int_equal(policy(&p, "00"), -EBADMSG);
	assert_int_equal(policy(&p,
				 "000101"
				 "000106"),
		-EBADMSG); /* two values */
	assert_int_equal(policy(&p, "0d0101"), -ENOTSUP);
	assert_int_equal(policy(&p, "ff0101"), -ENOTSUP);
	assert_int_equal(policy(&p, "0000"), -ENOTSUP);
	assert_int_equal(policy(&p, "00050000000001"), -ENOTSUP);
}

static void test_writing_what_cannot_be(void **state)
{
	static const char bytes[0x4000];
	struct mikey_header h = {.sessions = MIKEY_SESSIONS_MAX + 1};
	struct mikey_writer w;

	(void)state;
	mikey_write_header(&w, buf, sizeof(buf), &h);
	assert_int_equal(mikey_write_end(&w), -EINVAL);
	h.sessions = 0;
	mikey_write_header(&w, buf, 9, &h);
	mikey_write_err(&w, 0);
	assert_int_equal(mikey_write_end(&w), -EMSGSIZE);
	mikey_write_header(&w, buf, sizeof(buf), &h);
	mikey_write_rand(&w, (struct str){bytes, 256});
	assert_int_equal(mikey_write_end(&w), -EINVAL);
	mikey_write_header(&w, buf, sizeof(buf), &h);
	mikey_write_pke(&w, 0, (struct str){bytes, 0x4000});
	assert_int_equal(mikey_write_end(&w), -EINVAL);
	mikey_write_header(&w, buf, sizeof(buf), &h);
	mikey_write_dh(&w, MIKEY_DH_OAKLEY5, (struct str){bytes, 96});
	assert_int_equal(mikey_write_end(&w), -EINVAL);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(mikey_error_text(MIKEY_ERR_AUTH), "authentication failure");
	assert_string_equal(mikey_error_text(99), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_payloads),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_psk_with_an_id),
		cmocka_unit_test(test_too_many_payloads),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_key_data),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_writing_what_cannot_be),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
