/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Key derivation of ZRTP against another implementation (t/zrtp/reference.py, in Python): each hash
 * with each agreement, with Multistream and Preshared mode and with sets of shared secrets, and
 * each cipher. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hex.h"
#include "keying/zrtp_int.h"

#define FILE_NAME "t/vectors/zrtp.json"
#define BYTES_MAX 512u

static size_t bytes(uint8_t out[BYTES_MAX], json_t *v, const char *key)
{
	const char *s = json_string_value(json_object_get(v, key));

	if (!s)
		fail_msg("no %s", key);
	return unhex(out, BYTES_MAX, s);
}

static void take(void *out, size_t len, json_t *v, const char *key)
{
	uint8_t b[BYTES_MAX];

	assert_true(bytes(b, v, key) <= len);
	memcpy(out, b, bytes(b, v, key));
}

static void take_message(struct zrtp_msg *m, json_t *v, const char *key)
{
	uint8_t b[BYTES_MAX];

	m->len = (uint16_t)bytes(b, v, key);
	assert_true(m->len <= sizeof(m->b));
	memcpy(m->b, b, m->len);
}

static uint8_t algorithm(json_t *v, enum zrtp_kind kind, const char *key)
{
	const char *name = json_string_value(json_object_get(v, key));

	for (uint8_t i = 0; name && zrtp_alg_name(kind, i)[0]; i++)
		if (strcmp(zrtp_alg_name(kind, i), name) == 0)
			return i;
	fail_msg("unknown %s", key);
	return 0;
}

static bool is_shared(json_t *v, const char *name)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(v, "shared"), i, e)
	{
		if (strcmp(json_string_value(e), name) == 0)
			return true;
	}
	return false;
}

/* The exchange of one of its two parties, after all messages. */
static void prepare(struct zrtp *z, json_t *v, bool initiator)
{
	struct zrtp_party *i = initiator ? &z->me : &z->peer, *r = initiator ? &z->peer : &z->me;

	memset(z, 0, sizeof(*z));
	z->initiator = initiator;
	z->alg[ZRTP_K_HASH] = algorithm(v, ZRTP_K_HASH, "hash");
	z->alg[ZRTP_K_CIPHER] = algorithm(v, ZRTP_K_CIPHER, "cipher");
	z->alg[ZRTP_K_AGREEMENT] = algorithm(v, ZRTP_K_AGREEMENT, "agreement");
	z->alg[ZRTP_K_SAS] = ZRTP_B32;
	take(i->zid, ZRTP_ZID, v, "zid_i");
	take(r->zid, ZRTP_ZID, v, "zid_r");
	take_message(&i->hello, v, "hello_i");
	take_message(&r->hello, v, "hello_r");
	take_message(&i->commit, v, "commit");
	take_message(&r->dhpart, v, "dhpart1");
	take_message(&i->dhpart, v, "dhpart2");
	take(z->secrets.rs1, ZRTP_SECRET, v, "rs1");
	take(z->secrets.rs2, ZRTP_SECRET, v, "rs2");
	take(z->secrets.aux, ZRTP_SECRET, v, "aux");
	take(z->secrets.pbx, ZRTP_SECRET, v, "pbx");
	z->has_secrets = true;
	z->secrets.has_rs1 = is_shared(v, "rs1");
	z->secrets.has_aux = z->matched_aux = is_shared(v, "aux");
	z->secrets.has_pbx = z->matched_pbx = is_shared(v, "pbx");
	z->matched = z->secrets.has_rs1 ? ZRTP_RS1 : -1;
	take(z->multi_sess, sizeof(z->multi_sess), v, "session");
}

static void compare(const void *got, size_t len, json_t *v, const char *key)
{
	uint8_t want[BYTES_MAX];

	if (bytes(want, v, key) != len || memcmp(got, want, len) != 0)
		fail_msg("another %s: %s, %s", key,
			json_string_value(json_object_get(v, "agreement")),
			json_string_value(json_object_get(v, "hash")));
}

static void compare_all(const struct zrtp *z, json_t *v)
{
	const struct zrtp_session *s = &z->s;
	uint32_t digest = zrtp_digest_len((enum zrtp_hash)z->alg[ZRTP_K_HASH]);
	uint32_t key = zrtp_key_len((enum zrtp_cipher)z->alg[ZRTP_K_CIPHER]);
	static const char *const of[2][4] = {{"srtp_key_r", "srtp_salt_r", "mac_key_r", "key_r"},
		{"srtp_key_i", "srtp_salt_i", "mac_key_i", "key_i"}};

	for (int i = 0; i < 2; i++) {
		compare(s->srtp_key[i], key, v, of[i][0]);
		compare(s->srtp_salt[i], 14, v, of[i][1]);
		compare(s->mac_key[i], digest, v, of[i][2]);
		compare(s->key[i], key, v, of[i][3]);
	}
	compare(s->sas_hash, 32, v, "sas_hash");
	assert_string_equal(s->sas, json_string_value(json_object_get(v, "sas")));
	compare(s->rs1, ZRTP_SECRET, v, "new_rs1");
	compare(s->sess, digest, v, "new_session");
	compare(s->pbx, ZRTP_SECRET, v, "new_pbx");
}

static void compare_ids(struct zrtp *z, json_t *v)
{
	uint8_t ids[ZRTP_SECRETS_N][ZRTP_ID], hvi[32], key[ZRTP_DIGEST_MAX], id[ZRTP_ID];
	const struct zrtp_party *i = z->initiator ? &z->me : &z->peer;
	const struct zrtp_party *r = z->initiator ? &z->peer : &z->me;

	if (z->alg[ZRTP_K_AGREEMENT] == ZRTP_PRSH) {
		assert_int_equal(zrtp_preshared(z, key, id), 0);
		compare(id, sizeof(id), v, "key_id");
	}
	assert_int_equal(
		zrtp_hvi(hvi, (enum zrtp_hash)z->alg[ZRTP_K_HASH], &i->dhpart, &r->hello), 0);
	compare(hvi, sizeof(hvi), v, "hvi");
	z->secrets.has_rs1 = z->secrets.has_rs2 = z->secrets.has_aux = z->secrets.has_pbx = true;
	for (int of_initiator = 0; of_initiator < 2; of_initiator++) {
		assert_int_equal(zrtp_ids(ids, z, of_initiator), 0);
		compare(ids, sizeof(ids), v, of_initiator ? "ids_i" : "ids_r");
	}
}

static void another_implementation_derives_the_same(void **state)
{
	json_error_t err;
	json_t *all = json_load_file(FILE_NAME, 0, &err), *v;
	struct zrtp *z = test_malloc(sizeof(*z));
	uint8_t result[BYTES_MAX];
	size_t i;

	(void)state;
	if (!all)
		fail_msg("%s: %s", FILE_NAME, err.text);
	json_array_foreach(all, i, v)
	{
		uint32_t n = (uint32_t)bytes(result, v, "result");

		for (int initiator = 0; initiator < 2; initiator++) {
			prepare(z, v, initiator);
			assert_int_equal(zrtp_derive(z, n ? result : NULL, n), 0);
			compare_all(z, v);
			compare_ids(z, v);
		}
	}
	assert_int_equal(i, 2 * (5 * 4 + 4));
	test_free(z);
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_implementation_derives_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
