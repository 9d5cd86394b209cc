/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time a message costs the control thread grows only with its length, whatever it contains.
 * Phones write the SDP, so no line may start another search through it. Thread time is compared
 * with that of a plain body of the same length, best of a few runs. Limits are several times the
 * measured cost, and at most half the cost of the smallest fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/log.h"
#include "dispatch_rig.h"

#define HEAD         "v=0\r\no=- 42 7 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
#define AUDIO        "m=audio 4000 RTP/AVP 0\r\n"
#define BODY         65400u
#define TRIES        4
#define LIMIT        20 /* times the cost of a plain body; no row exceeds 5 */
#define LIMIT_SCRIPT 12
#define OFFERS \
	"codec-offer-a codec-offer-b codec-offer-c codec-offer-d codec-offer-e codec-offer-f "

static void put(struct sbuf *b, const char *text)
{
	sbuf_str(b, str_from(text));
}

static void fill(struct sbuf *b, const char *text, size_t to)
{
	while (b->len + strlen(text) <= to)
		put(b, text);
}

static uint64_t own_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static uint64_t ask(struct dispatch_rig *r, struct str message, bool must_work)
{
	struct sbuf reply;
	uint64_t begun;

	sbuf_init(&reply, 0);
	begun = own_ns();
	assert_int_equal(ng_dispatch_plain(r->dispatch, message, clock_real_ns(), &reply), 0);
	begun = own_ns() - begun;
	if (must_work && !memmem(reply.p, reply.len, "ok", 2))
		fail_msg("%.200s", reply.p);
	sbuf_fini(&reply);
	return begun;
}

/* An offer, its answer and the end of the call. */
static uint64_t call_once(struct dispatch_rig *r, struct str sdp, const char *flags)
{
	static const char *const head[] = {
		"7:command5:offer8:from-tag1:a", "7:command6:answer8:from-tag1:a6:to-tag1:b"};
	uint64_t ns = 0;

	for (size_t i = 0; i < ARRAY_LEN(head); i++) {
		struct sbuf b;

		sbuf_init(&b, 0);
		sbuf_printf(&b, "d%s7:call-id4:cost10:rtpp-flags%zu:%s3:sdp%zu:", head[i],
			strlen(flags), flags, sdp.len);
		sbuf_str(&b, sdp);
		put(&b, "e");
		assert_int_equal(b.err, 0);
		ns += ask(r, sbuf_view(&b), true);
		sbuf_fini(&b);
	}
	return ns + ask(r, STR("d7:command6:delete7:call-id4:cost12:delete-delayi0ee"), true);
}

static uint64_t best_call(struct dispatch_rig *r, struct str sdp, const char *flags)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = call_once(r, sdp, flags);

		best = ns < best ? ns : best;
	}
	return best;
}

static void plain(struct sbuf *b)
{
	put(b, HEAD AUDIO);
	fill(b, "a=rtpmap:97 speex/8000\r\n", BODY);
}

static void formats_and_rtpmaps(struct sbuf *b)
{
	put(b, HEAD "m=audio 4000 RTP/AVP");
	fill(b, " 1", BODY / 2);
	put(b, "\r\n");
	fill(b, "a=rtpmap:9 x\n", BODY);
}

static void session_lines_and_kept_media(struct sbuf *b)
{
	put(b, HEAD);
	fill(b, "a=setup\n", BODY / 2);
	put(b, "m=image 4000 udptl t38\n");
	fill(b, "a=x\n", BODY - 100);
	put(b, AUDIO);
}

static void session_lines_and_many_kept_media(struct sbuf *b)
{
	put(b, HEAD);
	fill(b, "a=setup\n", BODY - 2000);
	for (int i = 1; i < SDP_MAX_MEDIA; i++)
		put(b, "m=image 4000 udptl t38\n");
	put(b, AUDIO);
}

static void formats(struct sbuf *b)
{
	put(b, HEAD "m=audio 4000 RTP/AVP");
	fill(b, " 0", BODY);
	put(b, "\r\n");
}

static void bad_crypto_lines(struct sbuf *b)
{
	put(b, HEAD "m=audio 4000 RTP/SAVP 0\r\na=crypto:" C80A "\r\n");
	fill(b, "a=crypto:2 A x\n", BODY);
}

static void a_long_mki(struct sbuf *b)
{
	put(b, HEAD "m=audio 4000 RTP/SAVP 0\r\na=crypto:" C80A "|");
	fill(b, "0", BODY);
	put(b, ":16\r\n");
}

static void empty_lines(struct sbuf *b)
{
	put(b, HEAD AUDIO);
	fill(b, "a=\n", BODY);
}

static void what_a_phone_says_costs_by_its_length(void **state)
{
	static const struct {
		const char *name;
		void (*write)(struct sbuf *b);
		const char *flags;
	} T[] = {
		{"formats, each with many a=rtpmap", formats_and_rtpmaps, ""},
		{"session lines for each line of media that stay", session_lines_and_kept_media,
			""},
		{"session lines for many media that stay", session_lines_and_many_kept_media, ""},
		{"formats in an order", formats, OFFERS OFFERS OFFERS OFFERS OFFERS},
		{"formats to be stripped", formats, "codec-strip-all " OFFERS OFFERS OFFERS OFFERS},
		{"formats of which one stays", formats, "single-codec"},
		{"crypto lines that are none", bad_crypto_lines, "passthrough"},
		{"an MKI", a_long_mki, "passthrough"},
		{"short lines", empty_lines, ""},
	};
	struct dispatch_rig r;
	struct sbuf b;
	uint64_t norm;

	(void)state;
	dispatch_start(&r);
	sbuf_init(&b, 0);
	plain(&b);
	norm = best_call(&r, sbuf_view(&b), "");
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t ns;

		b.len = 0;
		T[i].write(&b);
		ns = best_call(&r, sbuf_view(&b), T[i].flags);
		if (ns > LIMIT * norm)
			fail_msg("%s: %.1f ms, where a plain body takes %.1f ms", T[i].name,
				(double)ns / 1e6, (double)norm / 1e6);
	}
	sbuf_fini(&b);
	dispatch_stop(&r);
}

/* Words and values by the ten thousand, from a client that may send ng. The norm is a value that no
 * code reads. */
static void what_a_script_says_costs_by_its_length(void **state)
{
	static const struct {
		const char *head, *one, *tail;
	} T[] = {
		{"d7:command4:ping5:flagsl", "1:x", "ee"},
		{"d7:command4:ping4:SDESl", "1:x", "ee"},
		{"d7:command4:ping5:codecd5:stripl", "1:x", "eee"},
		{"d7:command4:ping", "1:x0:", "e"},
		{"d7:command4:ping10:rtpp-flags200000:", "x ", "e"},
		{"d7:command4:ping10:rtpp-flags200000:", "a=b ", "e"},
		{"{\"command\":\"ping\",\"flags\":[", "{},", "0]}"},
	};
	struct dispatch_rig r;
	struct sbuf b;
	uint64_t norm = UINT64_MAX;

	(void)state;
	dispatch_start(&r);
	sbuf_init(&b, 0);
	put(&b, "d7:command4:ping1:xl");
	fill(&b, "1:x", 200000);
	put(&b, "ee");
	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = ask(&r, sbuf_view(&b), false);

		norm = ns < norm ? ns : norm;
	}
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint64_t best = UINT64_MAX;

		b.len = 0;
		put(&b, T[i].head);
		fill(&b, T[i].one, strlen(T[i].head) + 200000);
		put(&b, T[i].tail);
		for (int k = 0; k < TRIES; k++) {
			uint64_t ns = ask(&r, sbuf_view(&b), false);

			best = ns < best ? ns : best;
		}
		if (best > LIMIT_SCRIPT * norm)
			fail_msg("%s: %.1f ms, where values take %.1f ms", T[i].head,
				(double)best / 1e6, (double)norm / 1e6);
	}
	sbuf_fini(&b);
	dispatch_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_phone_says_costs_by_its_length),
		cmocka_unit_test(what_a_script_says_costs_by_its_length),
	};

	log_open("test", LOG_CRIT, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
