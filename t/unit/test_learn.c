/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address learning, rule by rule, with time as a parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/learn.h"

#define SEC 1000000000ull
#define T0  (100 * SEC) /* signalling */

static struct endpoint at(const char *text)
{
	struct endpoint e = {0};

	if (text)
		assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

#define SDP  "192.0.2.1:4000"
#define PORT "192.0.2.1:4001"
#define NAT  "198.51.100.7:4000"
#define ELSE "198.51.100.7:9"

static void each_mode_confirms_by_its_rule(void **state)
{
	static const struct {
		enum media_learning mode;
		struct {
			const char *src;
			uint64_t at;
		} packets[4];
		const char *remote;
		bool confirmed;
		const char *why;
	} T[] = {
		{MEDIA_LEARN_OFF, {{NAT, 0}, {NAT, 9 * SEC}}, SDP, false, "off: only SDP counts"},
		{MEDIA_LEARN_IMMEDIATE, {{NAT, 0}, {SDP, 1}}, NAT, true,
			"immediate: the first one"},
		{MEDIA_LEARN_DELAYED, {{NAT, 0}, {NAT, 2 * SEC}}, SDP, false, "delayed: not yet"},
		{MEDIA_LEARN_DELAYED, {{ELSE, 0}, {NAT, 3 * SEC}, {ELSE, 4 * SEC}}, NAT, true,
			"delayed: first after 3 s"},
		{MEDIA_LEARN_HEURISTIC, {{SDP, 0}, {NAT, 1}}, SDP, true,
			"heuristic: exact match at once"},
		{MEDIA_LEARN_HEURISTIC, {{ELSE, 0}, {NAT, 1}}, NAT, false,
			"heuristic: same port beats any"},
		{MEDIA_LEARN_HEURISTIC, {{NAT, 0}, {PORT, 1}, {ELSE, 2}}, PORT, false,
			"heuristic: same address beats same port"},
		{MEDIA_LEARN_HEURISTIC, {{PORT, 0}, {ELSE, 3 * SEC}}, PORT, true,
			"heuristic: best of 3 s is confirmed"},
		{MEDIA_LEARN_HEURISTIC, {{ELSE, 0}, {SDP, 1}}, SDP, true,
			"heuristic: a late exact match still wins"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct media_stream_cfg cfg = {.learning = T[i].mode};
		struct endpoint sdp = at(SDP), want = at(T[i].remote);
		struct learn l = {0};

		learn_signal(&l, &sdp, false, T0);
		for (size_t k = 0; k < 4 && T[i].packets[k].src; k++) {
			struct endpoint src = at(T[i].packets[k].src);

			learn_packet(&l, &cfg, &src, T0 + T[i].packets[k].at);
		}
		if (!endpoint_eq(&l.remote, &want) || l.confirmed != T[i].confirmed)
			fail_msg("%s", T[i].why);
	}
}

static void a_confirmed_source_is_the_only_one_when_strict(void **state)
{
	struct media_stream_cfg cfg = {.learning = MEDIA_LEARN_IMMEDIATE, .strict_source = true};
	struct endpoint sdp = at(SDP), nat = at(NAT), other = at(ELSE);
	struct learn l = {0};

	(void)state;
	learn_signal(&l, &sdp, false, T0);
	assert_true(learn_accepts(&l, &cfg, &nat)); /* learning */
	assert_true(learn_packet(&l, &cfg, &nat, T0));
	assert_true(learn_accepts(&l, &cfg, &nat));
	assert_false(learn_accepts(&l, &cfg, &other));
	cfg.strict_source = false;
	assert_true(learn_accepts(&l, &cfg, &other));
	assert_false(learn_packet(&l, &cfg, &other, T0 + SEC)); /* accepted, but does not move us */
	assert_true(endpoint_eq(&l.remote, &nat));
	cfg.strict_source = cfg.media_handover = true;
	assert_true(learn_accepts(&l, &cfg, &other));
	assert_true(learn_packet(&l, &cfg, &other, T0 + SEC));
	assert_true(endpoint_eq(&l.remote, &other));
	cfg = (struct media_stream_cfg){.learning = MEDIA_LEARN_OFF, .strict_source = true};
	assert_false(learn_accepts(&l, &cfg, &other)); /* off and strict: SDP's address only */
	assert_true(learn_accepts(&l, &cfg, &sdp));
}

static void asymmetric_terminals_are_answered_where_they_said(void **state)
{
	struct media_stream_cfg cfg = {
		.learning = MEDIA_LEARN_IMMEDIATE, .asymmetric = true, .strict_source = true};
	struct endpoint sdp = at(SDP), nat = at(NAT);
	struct learn l = {0};

	(void)state;
	learn_signal(&l, &sdp, false, T0);
	assert_true(learn_accepts(&l, &cfg, &nat));
	assert_false(learn_packet(&l, &cfg, &nat, T0));
	assert_true(endpoint_eq(&l.remote, &sdp));
}

static void signalling_restarts_learning_only_when_it_is_new(void **state)
{
	struct media_stream_cfg cfg = {.learning = MEDIA_LEARN_IMMEDIATE};
	struct endpoint sdp = at(SDP), nat = at(NAT), hold = at("0.0.0.0:4000"), moved = at(PORT);
	struct learn l = {0};

	(void)state;
	learn_signal(&l, &sdp, false, T0);
	learn_packet(&l, &cfg, &nat, T0);
	learn_signal(&l, &sdp, false, T0 + SEC); /* the same again */
	assert_true(l.confirmed && endpoint_eq(&l.remote, &nat));
	learn_signal(&l, &hold, false,
		T0 + SEC); /* hold names no address: what was learned stays for resuming */
	assert_true(endpoint_eq(&l.remote, &nat));
	learn_signal(&l, &moved, false, T0 + SEC);
	assert_true(!l.confirmed && endpoint_eq(&l.remote, &moved));
	learn_packet(&l, &cfg, &nat, T0 + SEC);
	learn_signal(&l, &moved, true, T0 + SEC); /* asked for */
	assert_true(!l.confirmed && endpoint_eq(&l.remote, &moved));
}

static void a_strict_stream_hears_nobody_worse_while_it_looks(void **state)
{
	struct media_stream_cfg cfg = {.learning = MEDIA_LEARN_HEURISTIC, .strict_source = true};
	struct endpoint sdp = at(SDP), port = at(PORT), nat = at(NAT), other = at(ELSE);
	struct learn l = {0};

	(void)state;
	learn_signal(&l, &sdp, false, T0);
	assert_true(learn_accepts(&l, &cfg, &other)); /* nobody yet: anybody */
	learn_packet(&l, &cfg, &other, T0);
	assert_true(learn_accepts(&l, &cfg, &nat));
	learn_packet(&l, &cfg, &nat, T0);
	assert_false(learn_accepts(&l, &cfg, &other));
	learn_packet(&l, &cfg, &port, T0);
	assert_false(learn_accepts(&l, &cfg, &nat));
	assert_true(learn_accepts(&l, &cfg, &sdp));
	cfg.strict_source = false;
	assert_true(learn_accepts(&l, &cfg, &nat));
	cfg.strict_source = true;
	learn_signal(&l, &sdp, true, T0);
	assert_true(learn_accepts(&l, &cfg, &other)); /* signalling starts anew */
}

static void port_0_in_sdp_names_no_source(void **state)
{
	struct media_stream_cfg cfg = {.learning = MEDIA_LEARN_OFF, .strict_source = true};
	struct endpoint none = at(SDP), nat = at(NAT);
	struct learn l = {0};

	(void)state;
	none.port = 0;
	learn_signal(&l, &none, false, T0);
	assert_true(learn_accepts(&l, &cfg, &nat));
	assert_int_equal(l.remote.family, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mode_confirms_by_its_rule),
		cmocka_unit_test(a_confirmed_source_is_the_only_one_when_strict),
		cmocka_unit_test(asymmetric_terminals_are_answered_where_they_said),
		cmocka_unit_test(signalling_restarts_learning_only_when_it_is_new),
		cmocka_unit_test(a_strict_stream_hears_nobody_worse_while_it_looks),
		cmocka_unit_test(port_0_in_sdp_names_no_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
