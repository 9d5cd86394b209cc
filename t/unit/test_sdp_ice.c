/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in SDP: candidates, levels, restart, trickle fragments. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/sdp_ice.h"

#define PWD "0123456789012345678901"

static void candidates(void **state)
{
	static const struct {
		const char *text;
		int want;
		const char *again; /* as written */
	} T[] = {
		{"1 1 UDP 2130706431 192.0.2.1 5000 typ host", 0,
			"a=candidate:1 1 UDP 2130706431 192.0.2.1 5000 typ host"},
		{"candidate:842163049 1 udp 1677729535 203.0.113.7 46154 typ srflx raddr 10.0.0.1 "
		 "rport 46154 generation 0 ufrag EsAw network-cost 999",
			0,
			"a=candidate:842163049 1 UDP 1677729535 203.0.113.7 46154 typ srflx raddr "
			"0.0.0.0 rport 9"},
		{"H2+/ 2 UDP 1 2001:db8::1 65535 typ relay raddr 2001:db8::9 rport 1", 0,
			"a=candidate:H2+/ 2 UDP 1 2001:db8::1 65535 typ relay raddr :: rport 9"},
		{"1 1 UDP 4294967295 192.0.2.1 1 typ prflx", 0,
			"a=candidate:1 1 UDP 4294967295 192.0.2.1 1 typ prflx raddr 0.0.0.0 rport 9"},
		{"1 1 TCP 1 192.0.2.1 9 typ host tcptype active", -EPROTONOSUPPORT, NULL},
		{"1 1 UDP 1 4d9e-11.local 5000 typ host", -EPROTONOSUPPORT, NULL},
		{"1 1 UDP 1 host.example 5000 typ host", -EPROTONOSUPPORT, NULL},
		{"1 3 UDP 1 192.0.2.1 5000 typ host", -EPROTONOSUPPORT, NULL},
		{"1 1 UDP 1 192.0.2.1 0 typ host", -EPROTONOSUPPORT, NULL},
		{"1 1 UDP 1 192.0.2.1 5000 typ new", -EPROTONOSUPPORT, NULL},
		{"", -EINVAL, NULL},
		{"candidate:", -EINVAL, NULL},
		{"1 0 UDP 1 192.0.2.1 5000 typ host", -EINVAL, NULL},
		{"1 257 UDP 1 192.0.2.1 5000 typ host", -EINVAL, NULL},
		{"1 1 UDP 4294967296 192.0.2.1 5000 typ host", -EINVAL, NULL},
		{"1 1 UDP 1 192.0.2.1 65536 typ host", -EINVAL, NULL},
		{"1 1 UDP 1 192.0.2.1 5000 host", -EINVAL, NULL},
		{"1 1 UDP 1 192.0.2.1 5000 typ", -EINVAL, NULL},
		{"a-b 1 UDP 1 192.0.2.1 5000 typ host", -EINVAL, NULL},
		{"123456789012345678901234567890123 1 UDP 1 192.0.2.1 5 typ host", -EINVAL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct ice_candidate c;
		struct sbuf b;

		assert_int_equal(ice_candidate_parse(&c, str_from(T[i].text)), T[i].want);
		if (T[i].want)
			continue;
		sbuf_init(&b, 0);
		ice_candidate_write(&b, &c);
		assert_string_equal(b.p, T[i].again);
		sbuf_fini(&b);
	}
	assert_true(ice_candidate_priority(ICE_HOST, 65535, 1) == 2130706431);
}

static struct sdp_ice read_ice(const char *text, uint32_t i)
{
	static char body[4096];
	static struct pool *pool;
	struct sdp s;
	struct sdp_ice ice;

	pool_destroy(pool);
	assert_int_equal(pool_create(&pool, 1 << 20), 0);
	strcpy(body, text);
	assert_int_equal(sdp_parse(&s, pool, str_from(body), NULL), SDP_OK);
	sdp_ice_read(&ice, &s, i);
	return ice;
}

#define HEAD "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"

static void both_levels(void **state)
{
	static const char text[] =
		HEAD "a=ice-lite\r\na=ice-ufrag:sess\r\na=ice-pwd:" PWD
		     "\r\na=ice-options:trickle ice2\r\n"
		     "m=audio 5000 RTP/AVP 0\r\na=candidate:1 1 UDP 5 192.0.2.1 5000 typ host\r\n"
		     "a=candidate:1 1 TCP 5 192.0.2.1 9 typ host\r\na=end-of-candidates\r\n"
		     "m=video 5002 RTP/AVP 96\r\na=ice-ufrag:media\r\na=ice-pwd:" PWD "9\r\n"
		     "a=candidate:1 1 UDP 5 192.0.2.1 6000 typ host\r\na=ice-mismatch\r\n";
	struct sdp_ice i = read_ice(text, 0);

	(void)state;
	assert_true(sdp_ice_used(&i) && i.lite && i.trickle && i.end_of_candidates);
	assert_true(str_eq(i.ufrag, STR("sess")) && i.count == 1 && i.ignored == 1);
	i = read_ice(text, 1);
	assert_true(str_eq(i.ufrag, STR("media")) && str_eq(i.pwd, STR(PWD "9")) && i.lite);
	assert_false(i.end_of_candidates);
	assert_true(sdp_ice_used(&i)); /* a mismatch does not end ICE */
}

static void malformed_is_absent(void **state)
{
	struct sdp_ice i = read_ice(HEAD "m=audio 9 RTP/AVP 0\r\na=ice-ufrag:abc\r\na=ice-pwd:" PWD
					 "\r\na=candidate:nonsense\r\n",
		0);

	(void)state;
	assert_false(sdp_ice_used(&i) || i.ufrag.s);
	assert_true(i.ignored == 1);
	i = read_ice(HEAD "m=audio 9 RTP/AVP 0\r\na=ice-ufrag:ab:d\r\na=ice-pwd:short\r\n", 0);
	assert_false(i.ufrag.s || i.pwd.s);
	i = read_ice(HEAD "m=audio 5000 RTP/AVP 0\r\n", 0);
	assert_false(sdp_ice_used(&i));
	i = read_ice(HEAD "m=audio 5000 RTP/AVP 0\r\n", 7); /* no such m-line */
	assert_false(sdp_ice_used(&i));
}

static void too_many_candidates(void **state)
{
	char text[4096] = HEAD "m=audio 9 RTP/AVP 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:" PWD "\r\n";
	struct sdp_ice i;

	(void)state;
	for (int n = 0; n < 40; n++)
		strcat(text, "a=candidate:1 1 UDP 5 192.0.2.1 5000 typ host\r\n");
	i = read_ice(text, 0);
	assert_true(i.count == SDP_ICE_CANDIDATES && i.ignored == 40 - SDP_ICE_CANDIDATES);
}

static void restarts(void **state)
{
	struct str u = STR("ufrag"), p = STR(PWD), x = STR("other");

	(void)state;
	assert_false(sdp_ice_restarted(u, p, u, p));
	assert_true(sdp_ice_restarted(u, p, x, p));
	assert_true(sdp_ice_restarted(u, p, u, x));
	assert_false(sdp_ice_restarted(STR_NONE, STR_NONE, u, p));
	assert_false(sdp_ice_restarted(u, p, STR_NONE, STR_NONE));
}

static void writes(void **state)
{
	struct ice_candidate c;
	struct sdp_ice_write w = {.ufrag = STR("abcd"),
		.pwd = STR(PWD),
		.end_of_candidates = true,
		.candidate = &c,
		.count = 1,
		.eol = "\r\n"};
	struct sbuf b;

	(void)state;
	assert_int_equal(ice_candidate_parse(&c, STR("1 1 UDP 5 192.0.2.1 5000 typ host")), 0);
	w.remote[0] = c.addr;
	w.remote[1] = c.addr;
	sbuf_init(&b, 0);
	sdp_ice_write(&b, &w);
	assert_string_equal(b.p,
		"a=ice-ufrag:abcd\r\na=ice-pwd:" PWD "\r\na=ice-options:ice2\r\n"
		"a=candidate:1 1 UDP 5 192.0.2.1 5000 typ host\r\n"
		"a=remote-candidates:1 192.0.2.1 5000 2 192.0.2.1 5000\r\n"
		"a=end-of-candidates\r\n");
	sbuf_fini(&b);
	w = (struct sdp_ice_write){
		.ufrag = STR("abcd"), .pwd = STR(PWD), .trickle = true, .eol = "\n"};
	sbuf_init(&b, 0);
	sdp_ice_write(&b, &w);
	assert_string_equal(
		b.p, "a=ice-ufrag:abcd\na=ice-pwd:" PWD "\na=ice-options:trickle ice2\n");
	sbuf_fini(&b);
}

/* --- Fragments -------------------------------------------------------------------------------- */

struct seen {
	unsigned n;
	char mid[4][8];
	uint32_t index[4], count[4];
	bool end[4], used[4];
};

static int note(void *ctx, const struct sdp_ice_section *s)
{
	struct seen *o = ctx;

	assert_true(o->n < 4 && s->mid.len < sizeof(o->mid[0]));
	memcpy(o->mid[o->n], s->mid.s ? s->mid.s : "", s->mid.len);
	o->index[o->n] = s->index;
	o->count[o->n] = s->ice.count;
	o->end[o->n] = s->ice.end_of_candidates;
	o->used[o->n] = sdp_ice_used(&s->ice);
	o->n++;
	return 0;
}

#define CAND "a=candidate:1 1 UDP 5 192.0.2.1 5000 typ host\r\n"

static void fragments(void **state)
{
	struct seen o = {0};

	(void)state;
	assert_int_equal(sdp_ice_fragment_read(STR("a=ice-ufrag:abcd\r\na=ice-pwd:" PWD "\r\n"
						   "m=audio 9 RTP/AVP 0\r\na=mid:1\r\n" CAND
						   "m=video 9 RTP/AVP 0\r\na=mid:2\r\n" CAND CAND
						   "a=end-of-candidates\r\n"),
				 note, &o),
		0);
	assert_int_equal(o.n, 2);
	assert_string_equal(o.mid[0], "1");
	assert_string_equal(o.mid[1], "2");
	assert_true(o.count[0] == 1 && o.count[1] == 2 && o.index[1] == 1);
	assert_true(!o.end[0] && o.end[1] && o.used[0] && o.used[1]);
	o.n = 0;
	assert_int_equal(
		sdp_ice_fragment_read(STR("a=mid:0\n" CAND "a=mid:1\n" CAND), note, &o), 0);
	assert_true(o.n == 2 && o.count[0] == 1 && o.mid[1][0] == '1');
	o.n = 0;
	assert_int_equal(sdp_ice_fragment_read(STR(CAND), note, &o), 0); /* without sections */
	assert_true(o.n == 1 && o.count[0] == 1 && o.mid[0][0] != '1');
	o.n = 0;
	assert_int_equal(sdp_ice_fragment_read(STR(CAND "nonsense\r\n"), note, &o), -EINVAL);
	assert_int_equal(sdp_ice_fragment_read(STR("a=mid:\001\r\n"), note, &o), -EINVAL);
	assert_int_equal(o.n, 0);
}

static int stop(void *ctx, const struct sdp_ice_section *s)
{
	(void)s;
	(*(unsigned *)ctx)++;
	return -ECANCELED;
}

static int count(void *arg, const struct sdp_ice_section *section)
{
	(void)section;
	++*(int *)arg;
	return 0;
}

/* Candidates before the first section hold for each: a fragment with all of its length in sections
 * would have had 1,800 of them, with 24 candidates each. */
static void fragment_with_very_many_sections(void **state)
{
	static const char section[] = "a=mid:0\n";
	char body[SDP_ICE_FRAGMENT_MAX + 1];
	int calls = 0;

	(void)state;
	for (size_t n = SDP_MAX_MEDIA; n < sizeof(body) / 8; n += n == SDP_MAX_MEDIA ? 1 : 500) {
		for (size_t i = 0; i < n; i++)
			memcpy(body + 8 * i, section, 9);
		calls = 0;
		assert_int_equal(sdp_ice_fragment_read(str_from(body), count, &calls),
			n > SDP_MAX_MEDIA ? -EINVAL : 0);
		assert_in_range(calls, SDP_MAX_MEDIA - 1, SDP_MAX_MEDIA);
	}
}

static void fragment_of_two_sections(void **state)
{
	static const char section[] = "a=ice-ufrag:abcd\r\na=ice-pwd:" PWD
				      "\r\na=candidate:1 1 UDP 5 192.0.2.1 5000 typ host\r\n";
	char body[1024];
	struct seen o = {0};
	unsigned calls = 0;

	(void)state;
	snprintf(body, sizeof(body),
		"m=audio 9 RTP/AVP 0\r\na=mid:7\r\n%sm=video 9 RTP/AVP 0\r\n%s", section, section);
	assert_int_equal(sdp_ice_fragment_read(str_from(body), note, &o), 0);
	assert_true(o.n == 2 && o.mid[0][0] == '7' && o.count[1] == 1 && o.used[0]);
	assert_int_equal(sdp_ice_fragment_read(str_from(body), stop, &calls), -ECANCELED);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates),
		cmocka_unit_test(both_levels),
		cmocka_unit_test(malformed_is_absent),
		cmocka_unit_test(too_many_candidates),
		cmocka_unit_test(restarts),
		cmocka_unit_test(writes),
		cmocka_unit_test(fragments),
		cmocka_unit_test(fragment_of_two_sections),
		cmocka_unit_test(fragment_with_very_many_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
