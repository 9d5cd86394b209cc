/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vectors of the implementation in Python (t/vectors/mikey): our parties take the part of bob, then
 * that of alice, and get the same keys. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hex.h"
#include "keying/mikey_int.h"
#include "keying/mikey_trust.h"

#define DIR "t/vectors/mikey/"

static struct {
	struct mikey_cert *alice, *bob;
	struct mikey_trust *trust;
	struct mikey_psk psk;
	struct mikey_id ids[2];
} who;

static json_t *load(const char *path)
{
	json_error_t err;
	json_t *j = json_load_file(path, 0, &err);

	if (!j)
		fail_msg("%s: %s", path, err.text);
	return j;
}

static size_t hex(uint8_t *out, size_t max, json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));
	size_t n;

	if (!s)
		fail_msg("no %s", key);
	n = unhex(out, max, s);
	assert_int_equal(strlen(s), 2 * n);
	return n;
}

static void test_prf(void **state)
{
	json_t *j = load(DIR "prf.json"), *v;
	uint8_t inkey[512], label[512], want[512], got[512];
	size_t i;

	(void)state;
	json_array_foreach(json_object_get(j, "prf"), i, v)
	{
		size_t in = hex(inkey, sizeof(inkey), v, "inkey");
		size_t l = hex(label, sizeof(label), v, "label");
		size_t out = hex(want, sizeof(want), v, "outkey");
		struct mikey_label ml = {.constant = be32(label),
			.cs_id = label[4],
			.csb_id = be32(label + 5),
			.rand = mikey_bytes(label + 9, l - 9)};

		assert_true(l >= 9);
		assert_true(mikey_prf(got, out, mikey_bytes(inkey, in), &ml));
		assert_memory_equal(got, want, out);
	}
	assert_true(i > 20);
	json_decref(j);
}

static struct mikey_cert *cert(json_t *j, const char *chain, const char *key)
{
	const char *c = json_string_value(json_object_get(j, chain));
	const char *k = json_string_value(json_object_get(j, key));
	struct mikey_cert *out;
	char *both;

	assert_non_null(c);
	assert_non_null(k);
	both = calloc(1, strlen(c) + strlen(k) + 1);
	assert_non_null(both);
	snprintf(both, strlen(c) + strlen(k) + 1, "%s%s", c, k);
	assert_int_equal(mikey_cert_load(&out, str_from(both), true), 0);
	free(both);
	return out;
}

static void load_parties(json_t *j)
{
	const char *roots = json_string_value(json_object_get(j, "root"));

	assert_int_equal(mikey_trust_load(&who.trust, str_from(roots), STR_NONE), 0);
	who.alice = cert(j, "alice_chain", "alice_key");
	who.bob = cert(j, "bob_chain", "bob_key");
	who.psk.len = (uint8_t)hex(who.psk.key, sizeof(who.psk.key), j, "psk");
	assert_int_equal(mikey_id_set(&who.ids[0], MIKEY_ID_URI,
				 str_from(json_string_value(json_object_get(j, "alice")))),
		0);
	assert_int_equal(mikey_id_set(&who.ids[1], MIKEY_ID_URI,
				 str_from(json_string_value(json_object_get(j, "bob")))),
		0);
}

static int find(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	(void)arg;
	assert_true(mikey_id_eq(&ask->from, &who.ids[0]));
	*mine = (struct mikey_identity){.id = who.ids[1], .cert = who.bob};
	*peer = (struct mikey_peer){.id = who.ids[0], .psk = who.psk, .trust = who.trust};
	return 0;
}

/* keys[] of the vector: 1, 3, ... of alice's streams, 2, 4, ... of bob's. */
static void check_key(const struct srtp_master *m, json_t *keys, size_t nth, json_t *v)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);
	json_t *k = json_array_get(keys, nth);
	uint8_t key[64], salt[32], mki[32];
	size_t mki_len = hex(mki, sizeof(mki), v, "mki");

	assert_string_equal(s->name, json_string_value(json_object_get(v, "suite")));
	assert_int_equal(hex(key, sizeof(key), k, "key"), s->key_len);
	assert_int_equal(hex(salt, sizeof(salt), k, "salt"), s->salt_len);
	assert_memory_equal(m->key, key, s->key_len);
	assert_memory_equal(m->salt, salt, s->salt_len);
	assert_int_equal(m->mki_len, mki_len);
	assert_memory_equal(m->mki, mki, mki_len);
}

static void check_keys(const struct mikey_keys *got, json_t *v, bool alice)
{
	json_t *keys = json_object_get(v, "keys");

	assert_int_equal(2 * got->media, json_array_size(keys));
	for (size_t i = 0; i < got->media; i++) {
		const struct mikey_medium *m = &got->medium[i];
		check_key(alice ? &m->tx : &m->rx, keys, 2 * i, v);
		check_key(alice ? &m->rx : &m->tx, keys, 2 * i + 1, v);
	}
}

static uint64_t now_of(json_t *v)
{
	double s = json_number_value(json_object_get(v, "unix_time"));

	return mikey_ntp((uint64_t)(s * 1000) * 1000000);
}

/* Its timestamp is a counter, which we refuse. */
static bool is_counter(json_t *v)
{
	return strlen(json_string_value(json_object_get(v, "t"))) == 8;
}

/* Our bob takes alice's message. */
static void respond(json_t *v, struct mikey_replay *replay)
{
	static uint8_t message[MIKEY_MESSAGE_MAX], buf[MIKEY_MESSAGE_MAX];
	size_t len = hex(message, sizeof(message), v, "i_message");
	const struct srtp_suite *s =
		srtp_suite_find(str_from(json_string_value(json_object_get(v, "suite"))));
	struct mikey_store store = {.find = find};
	struct mikey_accept accept = {
		.modes = UINT32_MAX,
		.media = (uint8_t)(json_array_size(json_object_get(v, "keys")) / 2),
		.suites = 1,
		.sdp_ids = STR("mikey"),
		.weak_dh = true,
	};
	struct mikey_answer a = {.store = &store,
		.accept = &accept,
		.replay = replay,
		.env = {.now_ntp = now_of(v)}};
	struct mikey_out out = {.buf = buf, .cap = sizeof(buf)};
	static struct mikey_run run;
	static struct mikey_keys keys;
	const char *mode = json_string_value(json_object_get(v, "mode"));

	assert_non_null(s);
	accept.suite[0] = (uint8_t)s->id;
	if (is_counter(v)) {
		assert_int_equal(mikey_respond(&run, &a, mikey_bytes(message, len), &out, &keys),
			MIKEY_FAIL_TIME);
		mikey_replay_destroy(replay);
		return;
	}
	assert_int_equal(mikey_respond(&run, &a, mikey_bytes(message, len), &out, &keys), MIKEY_OK);
	assert_string_equal(mikey_mode_name(run.mode), mode);
	/* Elsewhere the responder draws half of the secret, or all of it. */
	if (run.mode == MIKEY_PSK || run.mode == MIKEY_PKE) {
		uint8_t want[1024];
		size_t want_len = hex(want, sizeof(want), v, "r_message");

		check_keys(&keys, v, false);
		if (run.media ==
			1) { /* our V covers our SSRCs: those of the vector are set below */
			accept.stream[0].ssrc = 0x22220000;
			mikey_replay_destroy(replay);
			assert_int_equal(mikey_replay_create(&replay, 16), 0);
			a.replay = replay;
			assert_int_equal(
				mikey_respond(&run, &a, mikey_bytes(message, len), &out, &keys),
				MIKEY_OK);
			assert_int_equal(out.len, want_len);
			assert_memory_equal(out.buf, want, want_len);
		}
	}
	mikey_replay_destroy(replay);
}

/* The state of our alice after she sent the vector's message. */
static void make_run(struct mikey_run *r, json_t *v)
{
	static uint8_t message[MIKEY_MESSAGE_MAX];
	size_t len = hex(message, sizeof(message), v, "i_message"), offset;
	json_t *random = json_object_get(v, "random");
	static struct mikey_message m;
	struct mikey_transport t;
	uint8_t key[64];

	assert_int_equal(mikey_parse(&m, mikey_bytes(message, len), &offset), 0);
	memset(r, 0, sizeof(*r));
	r->layout = MIKEY_RUN_LAYOUT;
	r->state = MIKEY_SENT;
	r->mode = (uint8_t)mikey_mode_find(str_from(json_string_value(json_object_get(v, "mode"))));
	r->initiator = r->verify = true;
	r->ts_type = mikey_payload_find(&m, MIKEY_P_T, 0)->kind;
	r->time = mikey_payload_find(&m, MIKEY_P_T, 0)->time;
	r->csb_id = m.header.csb_id;
	r->rand_len = (uint8_t)hex(r->rand, sizeof(r->rand), random, "rand");
	r->sessions = m.header.sessions;
	r->media = r->sessions / 2;
	memcpy(r->cs, m.header.cs, sizeof(r->cs));
	r->suites = 1;
	r->suite[0] = (uint8_t)mikey_policy_of(&m, 0);
	memset(r->cs_suite, r->suite[0], sizeof(r->cs_suite));
	r->mine = r->idi = who.ids[0];
	r->peer = r->idr = who.ids[1];
	len = who.psk.len;
	memcpy(key, who.psk.key, len);
	if (r->mode == MIKEY_PKE)
		len = hex(key, sizeof(key), random, "env_key");
	assert_true(mikey_transport_keys(
		&t, mikey_bytes(key, len), r->csb_id, mikey_bytes(r->rand, r->rand_len)));
	memcpy(r->auth_key, t.auth, sizeof(r->auth_key));
	if (r->mode == MIKEY_PSK || r->mode == MIKEY_PKE)
		r->tgk_len = (uint8_t)hex(r->tgk, sizeof(r->tgk), random, "tgk");
	if (r->mode == MIKEY_DH || r->mode == MIKEY_DHHMAC) {
		const struct mikey_payload *dh = mikey_payload_find(&m, MIKEY_P_DH, 0);
		uint8_t mine[MIKEY_TGK_MAX];

		r->dh_group = dh->kind;
		r->secret_len = (uint8_t)hex(r->secret, sizeof(r->secret), random, "dh_i");
		r->secret[0] |= 0x80;
		r->tgk_len = (uint8_t)dh->data.len;
		memcpy(r->tgk, dh->data.s, dh->data.len);
		assert_int_equal(
			mikey_dh_public(r->dh_group, mikey_bytes(r->secret, r->secret_len), mine),
			0);
		assert_memory_equal(mine, r->tgk, r->tgk_len);
	}
}

static void finish(json_t *v)
{
	static uint8_t message[MIKEY_MESSAGE_MAX];
	size_t len = hex(message, sizeof(message), v, "r_message");
	struct mikey_identity mine = {.id = who.ids[0], .cert = who.alice};
	struct mikey_peer peer = {
		.id = who.ids[1], .psk = who.psk, .cert = who.bob, .trust = who.trust};
	struct mikey_end e = {.mine = &mine, .peer = &peer, .env = {.now_ntp = now_of(v)}};
	static struct mikey_run run;
	static struct mikey_keys keys;
	uint8_t mki[32];

	if (is_counter(v))
		return; /* our initiator sends none */
	make_run(&run, v);
	if (hex(mki, sizeof(mki), v, "mki") && (run.mode == MIKEY_PSK || run.mode == MIKEY_PKE))
		return; /* our initiator names no MKI */
	assert_int_equal(mikey_finish(&run, &e, mikey_bytes(message, len), &keys), MIKEY_OK);
	check_keys(&keys, v, true);
}

static void test_messages(void **state)
{
	json_t *j = load(DIR "messages.json"), *v;
	size_t i;

	(void)state;
	load_parties(j);
	json_array_foreach(json_object_get(j, "exchanges"), i, v)
	{
		struct mikey_replay *replay;

		assert_int_equal(mikey_replay_create(&replay, 64), 0);
		respond(v, replay);
		finish(v);
	}
	assert_true(i >= 15);
	mikey_cert_free(who.alice);
	mikey_cert_free(who.bob);
	mikey_trust_free(who.trust);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prf),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
