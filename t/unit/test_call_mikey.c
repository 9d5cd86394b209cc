/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+ with keys of MIKEY: two daemons in a row, of which the first offers MIKEY with a pre-shared
 * key. Their terminals have SDES. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "keying/keying.h"
#include "keying/mikey_host.h"
#include "proto/base64.h"
#include "proto/sdp_keymgmt.h"
#include "save_talk.h"

#define PLUS  "a=xcipher-preauth:"
#define ONE   "sip:one@example.com"
#define TWO   "sip:two@example.com"
#define CHAIN "chain/8/16/128"

/* The leg between the daemons. */
struct rig {
	struct talk one, two;
	struct mikey_host host_one, host_two;
	char folder[32];
	bool established;
};

static uint64_t seconds = 1800000000;

static uint64_t now_ns(void)
{
	return seconds * NS_PER_SEC;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static struct mikey_config *config_of(const char *folder, const char *own, const char *peer)
{
	char path[64], text[300], err[300] = "";
	struct mikey_config *c = NULL;

	snprintf(path, sizeof(path), "%s/psk", folder);
	write_file(path, "a key that both of them know\n");
	snprintf(path, sizeof(path), "%s/config", folder);
	snprintf(text, sizeof(text),
		"[self]\nidentity = %s\n[peer %s]\nmodes = psk\npsk-file = psk\n", own, peer);
	write_file(path, text);
	assert_int_equal(mikey_config_load(&c, path, err, sizeof(err)), 0);
	return c;
}

static void daemon_start(struct talk *t, struct mikey_host *h, struct mikey_config *c)
{
	talk_start(t);
	calls_destroy(t->c);
	assert_int_equal(mikey_host_init(h, c, MIKEY_USE_ACCEPT,
				 &(struct mikey_clocks){.real = now_ns, .mono = now_ns}),
		0);
	t->policy.mikey = h;
	t->policy.sdes.accept = ((1u << SUITE_COUNT) - 1) & ~(1u << SUITE_PLAIN);
	t->policy.sdes.preauth =
		(struct preauth_policy){.use = PREAUTH_USE_ACCEPT, .scheme = PREAUTH_SEQUENCE_AES};
	assert_int_equal(calls_create(&t->c, &t->policy, &t->m->relay), 0);
	calls_save_start(t->c);
}

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->folder, sizeof(r->folder), "/tmp/test_mikey_XXXXXX");
	assert_non_null(mkdtemp(r->folder));
	daemon_start(&r->one, &r->host_one, config_of(r->folder, ONE, TWO));
	daemon_start(&r->two, &r->host_two, config_of(r->folder, TWO, ONE));
}

static void end(struct rig *r)
{
	char path[64];

	talk_end(&r->one);
	talk_end(&r->two);
	mikey_host_fini(&r->host_one);
	mikey_host_fini(&r->host_two);
	snprintf(path, sizeof(path), "%s/psk", r->folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/config", r->folder);
	unlink(path);
	rmdir(r->folder);
}

static struct ng_request request(const struct rig *r, const char *body)
{
	return talk_request("a", r->established ? "b" : "", body);
}

/* The SDP of a daemon, at another address: both have the same one, and refuse media to their
 * own. */
static const char *from_elsewhere(struct str sdp)
{
	static char text[2][8192];
	static unsigned turn;
	char *to = text[turn++ % 2];

	assert_true(sdp.len < sizeof(text[0]));
	memcpy(to, sdp.s, sdp.len);
	to[sdp.len] = 0;
	for (char *at = to; (at = strstr(at, "203.0.113.9")) != NULL; at++)
		memcpy(at, "203.0.113.8", 11);
	return to;
}

/* The first daemon offers MIKEY to the second, which offers SDES. use: preauth of the request to
 * the first daemon; accept: of that to the second. */
static void offers(
	struct rig *r, enum ng_preauth use, enum preauth_scheme s, enum ng_preauth accept)
{
	struct ng_request q;

	seconds++;
	q = request(
		r, talk_body(&r->one, "198.51.100.1", 4000, "RTP/SAVP", "a=crypto:" C80A "\r\n"));
	q.transport = STR("RTP/SAVP");
	q.mikey = NG_MIKEY_REQUIRE;
	q.mikey_mode[0] = 1 + MIKEY_PSK;
	q.mikey_peer = STR(TWO);
	q.preauth = use;
	q.preauth_scheme = use == NG_PREAUTH_OFFER ? (uint8_t)(1 + s) : 0;
	talk_send(&r->one, &q, false);
	assert_null(r->one.reply.error);
	assert_non_null(strstr(r->one.reply.sdp.s, "a=key-mgmt:mikey "));
	q = request(r, from_elsewhere(r->one.reply.sdp));
	q.transport = STR("RTP/SAVP");
	q.preauth = accept;
	talk_send(&r->two, &q, false);
	assert_null(r->two.reply.error);
	assert_null(strstr(r->two.reply.sdp.s, "preauth")); /* not passed on */
}

/* The answer of the second daemon's terminal. */
static struct ng_request sdes_answer(struct rig *r)
{
	return talk_request("a", "b",
		talk_body(&r->two, "198.51.100.2", 5000, "RTP/SAVP", "a=crypto:" C80A "\r\n"));
}

/* One invitation, with the arguments of offers(). Returns whether the offer and the answer between
 * the daemons have this scheme. */
static bool invite(struct rig *r, enum ng_preauth use, const char *name, enum ng_preauth accept)
{
	enum preauth_scheme s = PREAUTH_SEQUENCE_AES;
	struct ng_request q;
	char line[100];
	bool offered, answered;

	assert_true(preauth_find(&s, str_from(name)));
	snprintf(line, sizeof(line), PLUS "%s\r\n", name);
	offers(r, use, s, accept);
	offered = strstr(r->one.reply.sdp.s, line) != NULL;
	assert_int_equal(strstr(r->one.reply.sdp.s, PLUS) != NULL, offered);

	q = sdes_answer(r);
	q.preauth = accept;
	talk_send(&r->two, &q, true);
	assert_null(r->two.reply.error);
	answered = strstr(r->two.reply.sdp.s, line) != NULL;
	assert_int_equal(strstr(r->two.reply.sdp.s, PLUS) != NULL, answered);

	q = talk_request("a", "b", from_elsewhere(r->two.reply.sdp));
	talk_send(&r->one, &q, true);
	assert_null(r->one.reply.error);
	assert_null(strstr(r->one.reply.sdp.s, "preauth"));
	r->established = true;
	return offered && answered;
}

/* How many of a daemon's legs have tags; all of this scheme, with a key. */
static uint32_t tagged(const struct talk *t, uint8_t scheme)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MOCK_MAX; i++) {
		const struct media_ctx_cfg *c = &t->m->ctx_cfg[i];

		if (!t->m->ctx_set[i] || !(c->rx.preauth || c->tx.preauth))
			continue;
		assert_int_equal(c->rx.preauth, scheme);
		assert_int_equal(c->tx.preauth, scheme);
		assert_int_equal(t->m->preauth[c->rx.preauth_slot / 2], scheme);
		assert_int_equal(t->m->preauth[c->tx.preauth_slot / 2], scheme);
		n++;
	}
	return n;
}

static void restart(struct talk *t)
{
	const char *why = NULL;
	struct saved s;

	save(t, &s);
	reborn(t);
	calls_save_start(t->c);
	assert_int_equal(restore(t, sbuf_view(&s.whole), STR_NONE, &why), 0);
	sbuf_fini(&s.whole);
	sbuf_fini(&s.state);
}

/* Both ends of the leg between the daemons have tags, the terminals' legs have none. */
static void the_leg_between_has_tags(void **state)
{
	static const char *const names[] = {"sequence-aes", "header-siphash", "chain", CHAIN};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		enum preauth_scheme s = PREAUTH_SEQUENCE_AES;
		struct rig r;

		assert_true(preauth_find(&s, str_from(names[i])));
		start(&r);
		assert_true(invite(&r, NG_PREAUTH_OFFER, names[i], NG_PREAUTH_DEFAULT));
		assert_int_equal(tagged(&r.one, (uint8_t)(1 + s)), 1);
		assert_int_equal(tagged(&r.two, (uint8_t)(1 + s)), 1);
		end(&r);
	}
}

/* The second daemon does not want them: MIKEY works as before. */
static void a_daemon_may_decline(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	assert_false(invite(&r, NG_PREAUTH_OFFER, "sequence-aes", NG_PREAUTH_OFF));
	assert_int_equal(tagged(&r.one, 0), 0);
	assert_int_equal(tagged(&r.two, 0), 0);
	end(&r);
}

static void a_re_invite_keeps_and_ends_them(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	assert_true(invite(&r, NG_PREAUTH_OFFER, "sequence-aes", NG_PREAUTH_DEFAULT));
	assert_true(invite(&r, NG_PREAUTH_DEFAULT, "sequence-aes", NG_PREAUTH_DEFAULT));
	assert_int_equal(tagged(&r.one, 1 + PREAUTH_SEQUENCE_AES), 1);
	assert_int_equal(tagged(&r.two, 1 + PREAUTH_SEQUENCE_AES), 1);
	assert_false(invite(&r, NG_PREAUTH_OFF, "sequence-aes", NG_PREAUTH_DEFAULT));
	assert_int_equal(tagged(&r.one, 0), 0);
	assert_int_equal(tagged(&r.two, 0), 0);
	end(&r);
}

/* Both daemons restart: the leg has the same tags, and the next re-INVITE keeps them. */
static void a_restart_keeps_them(void **state)
{
	enum preauth_scheme s = PREAUTH_CHAIN;
	struct rig r;

	(void)state;
	assert_true(preauth_find(&s, STR(CHAIN)));
	start(&r);
	assert_true(invite(&r, NG_PREAUTH_OFFER, CHAIN, NG_PREAUTH_DEFAULT));
	restart(&r.one);
	restart(&r.two);
	assert_int_equal(tagged(&r.one, (uint8_t)(1 + s)), 1);
	assert_int_equal(tagged(&r.two, (uint8_t)(1 + s)), 1);
	assert_true(invite(&r, NG_PREAUTH_DEFAULT, CHAIN, NG_PREAUTH_DEFAULT));
	assert_int_equal(tagged(&r.one, (uint8_t)(1 + s)), 1);
	assert_int_equal(tagged(&r.two, (uint8_t)(1 + s)), 1);
	end(&r);
}

/* An offer of MIKEY gets no answer in clear: neither after a restart, which forgets the exchange,
 * nor if the request ignores MIKEY. */
static void no_answer_in_clear(void **state)
{
	(void)state;
	for (int restarted = 0; restarted < 2; restarted++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		offers(&r, NG_PREAUTH_OFF, PREAUTH_SEQUENCE_AES, NG_PREAUTH_OFF);
		if (restarted)
			restart(&r.two);
		q = sdes_answer(&r);
		q.mikey = restarted ? NG_MIKEY_DEFAULT : NG_MIKEY_OFF;
		talk_send(&r.two, &q, true);
		assert_ptr_equal(r.two.reply.error, NGE_SUITE);
		end(&r);
	}
}

/* How many of a daemon's legs have keys of this suite. */
static uint32_t keyed(const struct talk *t, uint8_t suite)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MOCK_MAX; i++) {
		const struct media_ctx_cfg *c = &t->m->ctx_cfg[i];

		n += t->m->ctx_set[i] && c->rx.keys &&
			mock_master(t->m, c->rx.key[0].slot)->suite == suite;
	}
	return n;
}

/* The first daemon offers MIKEY alone, with a pre-shared key. only: the suite; 0: any. */
static void offers_mikey(struct rig *r, uint8_t only)
{
	struct ng_request q = request(r, talk_body(&r->one, "198.51.100.1", 4000, "RTP/AVP", ""));

	seconds++;
	q.transport = STR("RTP/SAVP");
	q.mikey = NG_MIKEY_REQUIRE;
	q.mikey_mode[0] = 1 + MIKEY_PSK;
	q.mikey_peer = STR(TWO);
	q.sdes.only = only ? 1u << only : 0;
	talk_send(&r->one, &q, false);
	assert_null(r->one.reply.error);
}

/* Of all suites that both accept, the one that the offer has. */
static void each_suite_is_agreed_on(void **state)
{
	(void)state;
	for (uint8_t suite = SUITE_PLAIN + 1; suite < SUITE_COUNT; suite++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		offers_mikey(&r, suite);
		q = request(&r, from_elsewhere(r.one.reply.sdp));
		q.transport = STR("RTP/AVP");
		talk_send(&r.two, &q, false);
		assert_null(r.two.reply.error);
		q = talk_request("a", "b", talk_body(&r.two, "198.51.100.2", 5000, "RTP/AVP", ""));
		talk_send(&r.two, &q, true);
		assert_null(r.two.reply.error);
		q = talk_request("a", "b", from_elsewhere(r.two.reply.sdp));
		talk_send(&r.one, &q, true);
		assert_null(r.one.reply.error);
		assert_int_equal(keyed(&r.one, suite), 1);
		assert_int_equal(keyed(&r.two, suite), 1);
		end(&r);
	}
}

/* --- No room for an exchange ------------------------------------------------------------------ */

static void fill(struct mikey_host *h)
{
	char name[32];

	for (uint32_t i = 0; h->talks < MIKEY_TALKS_MAX; i++) {
		struct mikey_talk *t;

		snprintf(name, sizeof(name), "other %u", i / 64);
		assert_int_equal(mikey_talk_create(&t, h, str_from(name), 0), MIKEY_OK);
		mikey_talk_add(h, t, 4 + i);
	}
}

static const char *take_offer(struct rig *r, const char *sdp)
{
	struct ng_request q = request(r, sdp);

	q.transport = STR("RTP/AVP");
	talk_send(&r->two, &q, false);
	return r->two.reply.error;
}

/* A message that found no room was not answered, so it may come again when there is room. Once
 * answered, it is in use. */
static void no_room_remembers_no_message(void **state)
{
	struct mikey_host *h;
	const char *sdp;
	struct rig r;

	(void)state;
	start(&r);
	h = &r.host_two;
	offers_mikey(&r, 0);
	sdp = from_elsewhere(r.one.reply.sdp);
	fill(h);
	assert_ptr_equal(take_offer(&r, sdp), NGE_MIKEY);
	assert_non_null(strstr(r.two.reply.detail.s, "too many exchanges"));
	assert_int_equal(h->count[MIKEY_MODE_COUNT][false][MIKEY_FAIL_FULL], 1);
	assert_int_equal(h->talks, MIKEY_TALKS_MAX);
	keying_call_ended(h, STR("other 0"));
	assert_null(take_offer(&r, sdp));
	assert_int_equal(h->count[MIKEY_PSK][false][MIKEY_OK], 1);
	end(&r);
}

static void take_answer(struct rig *r)
{
	struct ng_request q =
		talk_request("a", "b", talk_body(&r->two, "198.51.100.2", 5000, "RTP/AVP", ""));

	talk_send(&r->two, &q, true);
	assert_null(r->two.reply.error);
}

/* Between a re-INVITE with the message in force and its answer, the exchange gives its place to
 * another call's: the keys stay. */
static void a_lost_place_loses_no_keys(void **state)
{
	static char sdp[8192];
	struct mikey_talk *t;
	struct rig r;

	(void)state;
	start(&r);
	offers_mikey(&r, SUITE_AES_CM_128_80);
	snprintf(sdp, sizeof(sdp), "%s", from_elsewhere(r.one.reply.sdp));
	assert_null(take_offer(&r, sdp));
	take_answer(&r);
	assert_non_null(strstr(r.two.reply.sdp.s, "a=key-mgmt:mikey "));
	seconds += MIKEY_KEEP_SECONDS + 1;
	mikey_host_tick(&r.host_two);
	r.established = true;
	assert_null(take_offer(&r, sdp));
	fill(&r.host_two);
	assert_int_equal(mikey_talk_create(&t, &r.host_two, STR("new"), 0), MIKEY_OK);
	mikey_talk_add(&r.host_two, t, 3);
	take_answer(&r);
	assert_null(strstr(r.two.reply.sdp.s, "a=key-mgmt:mikey "));
	assert_int_equal(keyed(&r.two, SUITE_AES_CM_128_80), 1);
	end(&r);
}

/* A message of ours that is not sent takes no room. */
static void no_offer_no_room(void **state)
{
	struct ng_request q;
	struct rig r;

	(void)state;
	start(&r);
	fill(&r.host_one);
	q = request(&r, talk_body(&r.one, "198.51.100.1", 4000, "RTP/AVP", ""));
	q.transport = STR("RTP/SAVP");
	q.mikey = NG_MIKEY_REQUIRE;
	q.mikey_peer = STR(TWO);
	talk_send(&r.one, &q, false);
	assert_ptr_equal(r.one.reply.error, NGE_MIKEY);
	assert_int_equal(r.host_one.count[MIKEY_PSK][true][MIKEY_FAIL_FULL], 1);
	assert_int_equal(r.host_one.talks, MIKEY_TALKS_MAX);
	keying_call_ended(&r.host_one, STR("other 0"));
	q.sdes.only = 1u << SUITE_PLAIN; /* no suite of MIKEY */
	talk_send(&r.one, &q, false);
	assert_ptr_equal(r.one.reply.error, NGE_MIKEY);
	assert_int_equal(r.host_one.talks, MIKEY_TALKS_MAX - 64);
	end(&r);
}

/* --- What fails does not lead to SDES --------------------------------------------------------- */

static bool decoded(uint8_t *out, size_t *len, const char *sdp)
{
	const char *at = strstr(sdp, "a=key-mgmt:mikey ");
	const char *end = at ? strstr(at, "\r\n") : NULL;
	int n;

	if (!end)
		return false;
	at += strlen("a=key-mgmt:mikey ");
	n = base64_decode(out, MIKEY_MESSAGE_MAX, (struct str){at, (size_t)(end - at)});
	*len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* An offer of the first daemon with this byte of its message changed, and with SDES beside it.
 * Returns the second daemon's error; NULL: accepted. *ends: the message has no such byte. */
static const char *beside_sdes(struct rig *r, size_t at, uint8_t bits, bool emergency, bool *ends)
{
	static uint8_t message[MIKEY_MESSAGE_MAX];
	static char body[3500];
	struct ng_request q;
	struct str line;
	size_t len = 0;

	offers_mikey(r, 0);
	assert_true(decoded(message, &len, from_elsewhere(r->one.reply.sdp)));
	*ends = at >= len;
	if (*ends)
		return NULL;
	message[at] ^= bits;
	line = sdp_keymgmt_write(
		r->one.p, MIKEY_PROTOCOL, (struct str){(const char *)message, len});
	assert_non_null(line.s);
	snprintf(body, sizeof(body), "a=crypto:" C80A "\r\na=" STR_FMT "\r\n", STR_ARG(line));
	q = request(r, talk_body(&r->two, "198.51.100.1", 4000, "RTP/SAVP", body));
	q.transport = STR("RTP/AVP");
	if (emergency)
		q.flags |= 1ull << NG_FLAG_EMERGENCY;
	talk_send(&r->two, &q, false);
	return r->two.reply.error;
}

/* Each byte: data type, identities, policy, timestamps, keys, MAC. */
static void a_changed_message_refuses_the_offer(void **state)
{
	uint32_t tried = 0;
	bool ends = false;

	(void)state;
	for (size_t at = 0; !ends; at++) {
		const char *why;
		struct rig r;

		start(&r);
		why = beside_sdes(&r, at, 0x01, false, &ends);
		if (!ends)
			assert_ptr_equal(why, NGE_MIKEY);
		tried += !ends;
		end(&r);
	}
	assert_true(tried > 100);
}

/* Its media are better protected by SDES than lost. */
static void an_emergency_call_may_use_sdes(void **state)
{
	static const size_t at[] = {0, 1, 40, 100};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct calls_counters n;
		bool ends;
		struct rig r;

		start(&r);
		for (int again = 0; again < 2; again++) {
			assert_null(beside_sdes(&r, at[i], 0x01, true, &ends));
			assert_false(ends);
			assert_true(memmem(r.two.reply.warning.s, r.two.reply.warning.len,
				"another keying serves instead", 29));
			calls_counters(r.two.c, &n);
			assert_int_equal(n.keying_fallbacks, 1);
		}
		end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_leg_between_has_tags),
		cmocka_unit_test(a_daemon_may_decline),
		cmocka_unit_test(a_re_invite_keeps_and_ends_them),
		cmocka_unit_test(a_restart_keeps_them),
		cmocka_unit_test(no_answer_in_clear),
		cmocka_unit_test(each_suite_is_agreed_on),
		cmocka_unit_test(no_room_remembers_no_message),
		cmocka_unit_test(a_lost_place_loses_no_keys),
		cmocka_unit_test(no_offer_no_room),
		cmocka_unit_test(a_changed_message_refuses_the_offer),
		cmocka_unit_test(an_emergency_call_may_use_sdes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
