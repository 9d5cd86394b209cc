/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that an earlier version saved. t/vectors/saved has records of versions 1 and 2: with MKIs,
 * between offer and answer, in a re-INVITE, passed through in one or both directions. Each call
 * continues as if never saved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>

#include "persist/save_format.h"
#include "save_talk.h"

#define A     "198.51.100.1"
#define B     "198.51.100.2"
#define L80   "AES_CM_128_HMAC_SHA1_80"
#define L32   "AES_CM_128_HMAC_SHA1_32"
#define PORT  30000                                             /* of the side a, media 1 */
#define KEY_1 "inline:6CN6NZB8BLJ9v47/8r50E/OD1yS4hY+bBHfxjAmR" /* ours, in 1-offered and */
#define KEY_2 "inline:e6/I3ajzWbcPptV42AtLGAE8eDEV/9976JfpzWOM" /* 1-reoffered */
#define KEY_H "inline:i/z/SIJl9/iVJUa72ERWjAItDDMlzDDybT8c81Hp" /* ours, in 2-half */

static void restore_old(struct talk *t, const char *name)
{
	const char *why = NULL;
	char path[64], text[4096];
	size_t len;
	FILE *f;

	talk_start(t);
	t->policy.sdes.params = NG_SDES_UNENCRYPTED_SRTCP;
	calls_set_policy(t->c, &t->policy);
	calls_save_start(t->c);
	snprintf(path, sizeof(path), "t/vectors/saved/%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	assert_true(len > 7 && len < sizeof(text));
	assert_true(text[5] == name[0] && text[5] < '0' + SAVE_VERSION);
	if (restore(t, (struct str){text, len}, STR_NONE, &why))
		fail_msg("%s: %s", name, why);
	t->m->rx_new = t->m->tx_new = 0;
}

/* The first crypto line of the last reply. */
static void told(const struct talk *t, uint32_t media, const char *line)
{
	const struct sdp_line *l = sdp_attr(t->sdp->media[media].lines, STR("crypto"));

	assert_non_null(l);
	if (!str_eq(l->arg, str_from(line)))
		fail_msg(STR_FMT " instead of %s", STR_ARG(l->arg), line);
}

static void has_key(const struct talk *t, uint32_t slot, const char *key)
{
	const struct srtp_master *m = mock_master(t->m, slot);
	struct sdes s;
	char line[128];

	snprintf(line, sizeof(line), "1 " L80 " %s", key);
	assert_int_equal(sdes_parse(&s, NULL, str_from(line)), SDES_OK);
	assert_memory_equal(m->key, s.master.key, 16);
	assert_memory_equal(m->salt, s.master.salt, 14);
}

static void offer(struct talk *t, const char *attrs, bool pass)
{
	struct ng_request r = talk_request("a", "b", talk_body(t, A, 4000, "RTP/SAVP", attrs));

	r.flags = pass ? 1ull << NG_FLAG_PASSTHROUGH : 0;
	talk_send(t, &r, false);
	assert_null(t->reply.error);
}

static void answer(struct talk *t, const char *line)
{
	char attrs[256];

	snprintf(attrs, sizeof(attrs), "a=crypto:%s\r\n", line);
	talk_answer(t, "a", "b", talk_body(t, B, 5000, "RTP/SAVP", attrs));
	assert_null(t->reply.error);
}

static void keys_with_mkis_come_back(void **state)
{
	const struct media_ctx_cfg *audio, *video;
	struct ng_request r;
	struct talk t;

	(void)state;
	restore_old(&t, "1-mki");
	audio = mock_ctx(t.m, PORT);
	video = mock_ctx(t.m, PORT + 2);
	assert_int_equal(audio->rx.keys, 1);
	assert_int_equal(video->rx.keys, 2);
	assert_int_equal(video->rx.mki_len, 4);
	assert_memory_equal(video->rx.key[0].mki, "\0\0\0\1", 4);
	assert_memory_equal(video->rx.key[1].mki, "\0\0\0\2", 4);
	has_key(&t, audio->rx.key[0].slot, K80A);
	has_key(&t, video->rx.key[0].slot, K80A);
	has_key(&t, video->rx.key[1].slot, K80B);
	assert_int_equal(mock_master(t.m, video->rx.key[1].slot)->lifetime, 1 << 20);
	/* The same key of ours stays, and no index restarts. */
	r = talk_request("a", "b", talk_body(&t, A, 4000, "RTP/SAVP", FULL));
	r.transport = STR("RTP/AVP");
	talk_send(&t, &r, false);
	assert_null(t.reply.error);
	talk_answer(&t, "a", "b", talk_body(&t, B, 5000, "RTP/AVP", "m=video 5002 RTP/AVP 96\r\n"));
	assert_null(t.reply.error);
	told(&t, 0, "1 " L80 " inline:zFGxuNpTic//g3bYFHcUx2MVXMMaWoMRJ95Qw+gN");
	assert_int_equal(t.m->rx_new + t.m->tx_new, 0);
	talk_end(&t);
}

static void an_offer_can_still_be_answered(void **state)
{
	struct talk t;

	(void)state;
	restore_old(&t, "1-offered");
	answer(&t, "2 " L32 " " K80B);
	assert_int_equal(t.sdp->media[0].port, PORT);
	has_key(&t, mock_ctx(t.m, PORT + 2)->tx.key[0].slot, KEY_2);
	has_key(&t, mock_ctx(t.m, PORT + 2)->rx.key[0].slot, K80B);
	has_key(&t, mock_ctx(t.m, PORT)->rx.key[0].slot, K80A);
	talk_end(&t);
}

static void a_re_invite_can_still_be_answered(void **state)
{
	struct ng_request r = talk_request("a", "b", "");
	const struct media_ctx_cfg *a, *b;
	struct talk t;

	(void)state;
	restore_old(&t, "1-reoffered");
	a = mock_ctx(t.m, PORT);
	b = mock_ctx(t.m, PORT + 2);
	has_key(&t, b->tx.key[0].slot, KEY_1);
	/* The re-INVITE names this suite. The flag also selects it for the offerer. */
	r.sdes.only = 1u << SUITE_AES_CM_128_32;
	r.sdp = str_from(talk_body(&t, B, 5000, "RTP/SAVP", "a=crypto:2 " L32 " " K80B "\r\n"));
	talk_send(&t, &r, true);
	assert_null(t.reply.error);
	has_key(&t, b->tx.key[0].slot, KEY_2);
	assert_int_equal(b->tx.suite, SUITE_AES_CM_128_32);
	assert_true(a->rx.clear_rtcp && a->tx.clear_rtcp);
	has_key(&t, a->rx.key[0].slot, K80C);
	talk_end(&t);
}

static void media_still_pass_through(void **state)
{
	static const char *const name[] = {"2-pass", "2-pass-offered"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(name); i++) {
		const struct media_ctx_cfg *a, *b;
		struct talk t;

		restore_old(&t, name[i]);
		if (i) {
			answer(&t, "2 " L32 " " K80B);
			told(&t, 0, "2 " L32 " " K80B);
		}
		a = mock_ctx(t.m, PORT);
		b = mock_ctx(t.m, PORT + 2);
		assert_true(a->rx.pass && a->tx.pass && b->rx.pass && b->tx.pass);
		assert_int_equal(a->tx.keys + b->tx.keys, 0);
		has_key(&t, a->rx.key[0].slot, K80A);
		has_key(&t, b->rx.key[0].slot, K80B);
		offer(&t, "a=crypto:2 " L32 " " K80A "|2^20|7:4\r\n", true);
		told(&t, 0, "2 " L32 " " K80A "|2^20|7:4");
		assert_int_equal(t.reply.warning.len, 0);
		talk_end(&t);
	}
}

static void one_direction_is_still_re_encrypted(void **state)
{
	static const char *const name[] = {"2-half", "2-half-offered"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(name); i++) {
		const struct media_ctx_cfg *a, *b;
		struct talk t;

		restore_old(&t, name[i]);
		a = mock_ctx(t.m, PORT);
		b = mock_ctx(t.m, PORT + 2);
		has_key(&t, b->rx.key[0].slot, K80B);
		if (i == 0) {
			assert_true(a->rx.pass && !a->tx.pass && !b->rx.pass && b->tx.pass);
			has_key(&t, a->rx.key[0].slot, K80C);
			has_key(&t, a->tx.key[0].slot, KEY_H);
		} else {
			assert_false(a->rx.pass || a->tx.pass || b->rx.pass || b->tx.pass);
			answer(&t, "2 " L32 " " K80B);
			assert_true(mock_ctx(t.m, PORT)->rx.pass);
		}
		talk_end(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_with_mkis_come_back),
		cmocka_unit_test(an_offer_can_still_be_answered),
		cmocka_unit_test(a_re_invite_can_still_be_answered),
		cmocka_unit_test(media_still_pass_through),
		cmocka_unit_test(one_direction_is_still_re_encrypted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
