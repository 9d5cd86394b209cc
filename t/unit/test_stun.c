/* SPDX-License-Identifier: GPL-2.0-or-later */
/* STUN (RFC 8489): the samples of RFC 5769, messages written and read back, and malformed
 * packets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hex.h"
#include "ice/stun.h"

#define TXID "b7e7a701bc34d686fa87dfae"
#define REQUEST                                                            \
	"000100582112a442" TXID "802200105354554e207465737420636c69656e74" \
	"002400046e0001ff80290008932ff9b151263b36"                         \
	"000600096576746a3a68367659202020"                                 \
	"000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf"
#define RESPONSE_V4                                                \
	"0101003c2112a442" TXID "8022000b7465737420766563746f7220" \
	"002000080001a147e112a643"                                 \
	"000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96"
#define RESPONSE_V6                                                \
	"010100482112a442" TXID "8022000b7465737420766563746f7220" \
	"002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9"         \
	"00080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c"
#define PASSWORD STR("VOkJxbRl1RmTxUk/WvJxBt")

static struct endpoint at(const char *text)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

static void reads_the_samples_of_rfc_5769(void **state)
{
	uint8_t p[256];
	struct stun_msg m;
	struct stun_key key;
	struct endpoint v4 = at("192.0.2.1:32853"),
			v6 = at("[2001:db8:1234:5678:11:2233:4455:6677]:32853");
	size_t n = unhex(p, sizeof(p), REQUEST);

	(void)state;
	stun_key_init(&key, PASSWORD);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_int_equal(m.cls, STUN_REQUEST);
	assert_true(str_eq(m.username, STR("evtj:h6vY")));
	assert_int_equal(m.priority, 0x6e0001ff);
	assert_int_equal(m.role, STUN_ROLE_CONTROLLED);
	assert_true(m.tie_breaker == 0x932ff9b151263b36);
	assert_true(m.has_fingerprint && stun_verify(&m, p, &key));
	n = unhex(p, sizeof(p), RESPONSE_V4);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_int_equal(m.cls, STUN_SUCCESS);
	assert_true(m.has_mapped && endpoint_eq(&m.mapped, &v4) && stun_verify(&m, p, &key));
	n = unhex(p, sizeof(p), RESPONSE_V6);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_true(m.has_mapped && endpoint_eq(&m.mapped, &v6) && stun_verify(&m, p, &key));
	stun_key_init(&key, STR("VOkJxbRl1RmTxUk/WvJxBu"));
	assert_false(stun_verify(&m, p, &key));
}

/* RFC 2202, HMAC-SHA1 cases 1, 2 and 6: a key longer than a block */
static void hmac_of_rfc_2202(void **state)
{
	uint8_t secret[80], mac[20], want[20];
	struct hmac_sha1_key key;

	(void)state;
	memset(secret, 0x0b, 20);
	hmac_sha1_key_init(&key, secret, 20);
	hmac_sha1(mac, &key, STR("Hi "), STR("There"));
	unhex(want, 20, "b617318655057264e28bc0b6fb378c8ef146be00");
	assert_memory_equal(mac, want, 20);
	hmac_sha1_key_init(&key, "Jefe", 4);
	hmac_sha1(mac, &key, STR("what do ya want for nothing?"), STR_NONE);
	unhex(want, 20, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
	assert_memory_equal(mac, want, 20);
	memset(secret, 0xaa, 80);
	hmac_sha1_key_init(&key, secret, 80);
	hmac_sha1(
		mac, &key, STR_NONE, STR("Test Using Larger Than Block-Size Key - Hash Key First"));
	unhex(want, 20, "aa4ae5e15272d00e95705637ce8a3b55ed402112");
	assert_memory_equal(mac, want, 20);
	key.fast = false; /* as on a processor without SHA instructions */
	hmac_sha1(
		mac, &key, STR_NONE, STR("Test Using Larger Than Block-Size Key - Hash Key First"));
	assert_memory_equal(mac, want, 20);
}

static void reads_what_was_written(void **state)
{
	static const uint8_t txid[STUN_TXID_LEN] = {1, 2, 3};
	static const uint16_t types[] = {0x7001, 0x7002, 0x7003};
	struct endpoint mapped = at("[2001:db8::9]:1234");
	struct stun_key key;
	struct stun_msg m;
	uint8_t p[512];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	size_t n;

	(void)state;
	stun_key_init(&key, PASSWORD);
	stun_write_head(&w, STUN_REQUEST, txid);
	stun_write_username(&w, STR("abcde"), STR("fg"));
	stun_write_priority(&w, 0x01020304);
	stun_write_role(&w, STUN_ROLE_CONTROLLING, 0x1122334455667788);
	stun_write_use_candidate(&w);
	n = stun_write_end(&w, &key);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_true(str_eq(m.username, STR("abcde:fg")) && m.priority == 0x01020304);
	assert_true(m.role == STUN_ROLE_CONTROLLING && m.tie_breaker == 0x1122334455667788);
	assert_true(m.use_candidate && stun_verify(&m, p, &key));
	assert_memory_equal(m.txid, txid, sizeof(txid));

	stun_write_head(&w, STUN_ERROR, txid);
	stun_write_error(&w, STUN_UNKNOWN_ATTRIBUTE);
	stun_write_unknown(&w, types, 3);
	n = stun_write_end(&w, NULL);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_true(m.cls == STUN_ERROR && m.error == 420 && !m.integrity_off);

	stun_write_head(&w, STUN_SUCCESS, txid);
	stun_write_mapped(&w, &mapped);
	n = stun_write_end(&w, &key);
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_true(m.has_mapped && endpoint_eq(&m.mapped, &mapped));
	for (size_t cap = 0; cap < n; cap++) { /* never writes beyond its room */
		uint8_t *q = malloc(cap ? cap : 1);
		struct stun_writer small = {.p = q, .cap = cap};

		stun_write_head(&small, STUN_SUCCESS, txid);
		stun_write_mapped(&small, &mapped);
		assert_int_equal(stun_write_end(&small, &key), 0);
		free(q);
	}
}

static void refuses_malformed_packets(void **state)
{
	static const char *const bad[] = {
		"",
		"00010000",
		"000100002112a442" TXID "00",                       /* one byte too many */
		"000100042112a442" TXID,                            /* length beyond the packet */
		"000100002112a443" TXID,                            /* no magic cookie */
		"000200002112a442" TXID,                            /* another method */
		"400100002112a442" TXID,                            /* not STUN (RFC 7983) */
		"000100042112a442" TXID "00240004",                 /* value missing */
		"000100082112a442" TXID "0024000300000000",         /* PRIORITY of 3 bytes */
		"0001000c2112a442" TXID "000800080000000000000000", /* short integrity */
		"000100082112a442" TXID "8028000400000000",         /* wrong fingerprint */
		"0001000c2112a442" TXID "002000080003a147e112a643", /* unknown family */
		"0001000c2112a442" TXID "002000080002a147e112a643", /* IPv6 of 4 bytes */
		"000100182112a442" TXID "802900080000000000000000802a0008000000000000000000",
	};
	struct stun_msg m;
	uint8_t p[256], *exact;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		n = unhex(p, sizeof(p), bad[i]);
		exact = malloc(n ? n : 1);
		memcpy(exact, p, n);
		assert_int_equal(stun_parse(&m, exact, n), -EBADMSG);
		free(exact);
	}
	n = unhex(p, sizeof(p), REQUEST);
	for (size_t bit = 0; bit < 8 * n; bit++) { /* the fingerprint covers every bit */
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (stun_parse(&m, p, n) == 0) /* a length that hides the fingerprint */
			assert_false(m.has_fingerprint);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Attributes after the integrity are ignored, unknown ones are listed. */
static void ignores_what_is_not_protected(void **state)
{
	static const uint8_t txid[STUN_TXID_LEN];
	struct stun_key key;
	struct stun_msg m;
	uint8_t p[256];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	size_t n;

	(void)state;
	stun_key_init(&key, PASSWORD);
	stun_write_head(&w, STUN_REQUEST, txid);
	stun_write_priority(&w, 1);
	n = stun_write_end(&w, &key) - 8; /* USE-CANDIDATE where FINGERPRINT belongs */
	memcpy(p + n, "\x00\x25\x00\x00", 4);
	put_be16(p + 2, (uint16_t)(n + 4 - 20));
	assert_int_equal(stun_parse(&m, p, n + 4), 0);
	assert_true(stun_verify(&m, p, &key) && !m.use_candidate && !m.has_fingerprint);
	n = unhex(p, sizeof(p),
		"000100102112a442" TXID "7fff000400000000"
		"ffff000400000000");
	assert_int_equal(stun_parse(&m, p, n), 0);
	assert_true(m.unknown_count == 1 && m.unknown[0] == 0x7fff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_samples_of_rfc_5769),
		cmocka_unit_test(hmac_of_rfc_2202),
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(refuses_malformed_packets),
		cmocka_unit_test(ignores_what_is_not_protected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
