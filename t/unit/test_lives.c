/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys that an earlier life of the daemon also sent under (persist/restore.c, media/rename.c). The
 * indexes it used are not known for certain. So each life sends RTP toward SRTP under SSRCs of its
 * own, and SRTCP above any index the clock allowed. */
#include "media/rename.h"
#include "media_rig.h"
#include "packet/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define CM80 SUITE_AES_CM_128_80
#define GCM  SUITE_AEAD_AES_128_GCM

static void ctx(struct rig *r, uint32_t id, uint64_t rename, uint32_t rtcp)
{
	uint32_t rx = id ? B_TX : A_TX, tx = id ? B_RX : A_RX;
	enum srtp_suite_id suite = id ? r->suite_b : r->suite_a;
	struct media_cmd cmd = {.type = MEDIA_CTX_SET,
		.id = id,
		.ctx = {.rx = rig_crypto(r, rx, suite),
			.tx = rig_crypto(r, tx, suite),
			.rename = rename,
			.rtcp_from_ns = rtcp ? 1 : 0,
			.tx_rtcp_index = rtcp}};

	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* Each life continues a call of an earlier one. */
static struct rig *life(enum srtp_suite_id a, enum srtp_suite_id b, uint64_t rename)
{
	struct rig *r = rig_new(a, b, 0);

	ctx(r, 0, rename, 0);
	ctx(r, 1, rename, 0);
	return r;
}

static uint32_t left_as(const struct rig *r, uint32_t k)
{
	return be32(r->a.out + r->out[k].out_off + 8);
}

static void plain_sources_have_names_of_this_life(void **state)
{
	static const enum srtp_suite_id suite[] = {CM80, GCM};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suite); i++) {
		struct rig *r = life(SUITE_PLAIN, suite[i], 0x123456789abcdef1);
		uint32_t name = media_rename(0x123456789abcdef1, 7);

		for (uint64_t index = 65530; index < 65545; index++) {
			rig_send(r, 7, index, 0);
			rig_run(r);
			assert_int_equal(r->outs, 1);
			assert_int_equal(left_as(r, 0), name);
			/* The receiver can decrypt it. The new SSRC covers the whole header. */
			rig_got(r, 0, name, index, index);
		}
		assert_int_not_equal(name, 7);
		assert_int_equal(media_rename_back(0x123456789abcdef1, name), 7);
		/* Each life uses another SSRC. */
		assert_int_not_equal(media_rename(0x123456789abcdef3, 7), name);
		rig_free(r);
	}
}

/* The sent index begins at ROC 0, whatever is received: signalling names no other ROC for a new
 * SSRC (RFC 3711 3.3.1). */
static void authenticated_sources_have_them_too(void **state)
{
	struct rig *r = life(CM80, GCM, 77);
	uint32_t name = media_rename(77, 7);
	struct media_cmd cmd = {.type = MEDIA_CTX_RESUME,
		.ctx_resume = {.n = 1, .mark = {{.ssrc = 7, .index = 0x3fff0}}}};

	(void)state;
	assert_int_equal(media_command(r->m, &cmd), 0);
	for (uint64_t index = 0x3fff1; index < 0x40010; index++) {
		rig_send(r, 7, index, A_TX);
		rig_run(r);
		rig_got(r, 0, name, index, index - 0x30000);
	}
	rig_free(r);
	/* Packets to plain RTP keep their SSRC, because they are not encrypted. */
	r = life(CM80, SUITE_PLAIN, 77);
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(left_as(r, 0), 7);
	rig_free(r);
}

static void names_are_a_permutation(void **state)
{
	uint32_t same = 0;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t ssrc = i * 2654435761u, name = media_rename(99, ssrc);

		assert_int_equal(media_rename_back(99, name), ssrc);
		same += name == ssrc;
	}
	assert_true(same < 10);
}

/* --- RTCP ------------------------------------------------------------------------------------- */

static void both_sides_reports_name_the_same(void **state)
{
	/* A sender report with one block, a description, feedback about a packet, and a goodbye. */
	static const uint8_t report[] = {0x81, 200, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0x81, 202, 0, 3, 0, 0, 0, 7, 1, 3, 'a', '@', 'b', 0, 0, 0, 0x81,
		205, 0, 3, 0, 0, 0, 7, 0, 0, 0, 9, 0, 1, 0, 0, 0x81, 203, 0, 1, 0, 0, 0, 7};
	static const size_t own[] = {4, 56, 72, 88}, others[] = {28, 76};
	uint8_t out[sizeof(report)], back[sizeof(report)];

	(void)state;
	memcpy(out, report, sizeof(out));
	media_rename_rtcp(5, out, sizeof(out), true);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		assert_int_equal(be32(out + own[i]), media_rename(5, 7));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(be32(out + others[i]), 9);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		put_be32(out + own[i], 7);
	assert_memory_equal(out, report, sizeof(report));
	/* In the other direction, reports about the new SSRCs get the old ones back. */
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		put_be32(out + others[i], media_rename(5, 9));
	memcpy(back, out, sizeof(back));
	media_rename_rtcp(5, back, sizeof(back), false);
	assert_memory_equal(back, report, sizeof(report));
	/* Truncated at any length: nothing after the end is written. */
	for (size_t len = 0; len < sizeof(report); len++) {
		memcpy(out, report, sizeof(out));
		media_rename_rtcp(5, out, len, true);
		media_rename_rtcp(5, out, len, false);
		assert_memory_equal(out + len, report + len, sizeof(report) - len);
	}
}

/* Extended reports (RFC 3611) and congestion control feedback (RFC 8888): the SSRCs that they
 * report on are translated back. Sequence numbers, metrics and unknown blocks stay. */
static void extended_reports_and_congestion_feedback(void **state)
{
	static const uint8_t report[] = {0x80, 207, 0, 19, 0, 0, 0, 7,
		/* receiver's time; delays of two receivers */
		4, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 9, 5, 0, 0, 6, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9,
		0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9,
		/* loss as runs, jitter buffer (RFC 7005), and one that nobody knows */
		1, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 9, 20, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 9, 200, 0, 0,
		1, 0, 0, 0, 9,
		/* two streams with three and no metric blocks, and the time */
		0x8b, 205, 0, 8, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 3, 0, 9, 0, 9, 0, 9, 0, 0, 0, 0,
		0, 9, 0, 0, 0, 0, 0, 0, 0, 9};
	static const size_t about[] = {24, 36, 52, 64, 88, 104}, own[] = {4, 84};
	uint8_t out[sizeof(report)];
	size_t whole;

	(void)state;
	memcpy(out, report, sizeof(out));
	media_rename_rtcp(5, out, sizeof(out), true);
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		assert_int_equal(be32(out + own[i]), media_rename(5, 7));
		put_be32(out + own[i], 7);
	}
	assert_memory_equal(out, report, sizeof(report));
	for (size_t i = 0; i < ARRAY_LEN(about); i++)
		put_be32(out + about[i], media_rename(5, 9));
	media_rename_rtcp(5, out, sizeof(out), false);
	assert_memory_equal(out, report, sizeof(report));
	/* Truncated at any length: nothing behind the end is written, or read (sanitizers). */
	for (size_t len = 0; len < sizeof(report); len++) {
		uint8_t *p = malloc(len + 1);

		memcpy(p, report, len + 1);
		media_rename_rtcp(5, p, len, false);
		assert_int_equal(p[len], report[len]);
		whole = len >= 72 ? 4 : 0;
		for (size_t i = 0; i < whole; i++)
			assert_int_equal(be32(p + about[i]), media_rename_back(5, 9));
		free(p);
	}
}

static void rtcp_goes_by_the_name_too(void **state)
{
	struct rig *r = life(SUITE_PLAIN, CM80, 5);
	uint8_t plain[64], *p;

	(void)state;
	rig_send_rtcp(r, 7, 0);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 4), media_rename(5, 7));
	assert_true(rig_open(r, 0, plain, B_RX, 0, true) > 0);
	rig_free(r);
	/* In the other direction, B reports about the new SSRC, and A receives its own. */
	r = life(SUITE_PLAIN, CM80, 5);
	p = rig_slot(r, B_RTCP, PORT_B_RTCP);
	memset(plain, 0, sizeof(plain));
	memcpy(plain, (const uint8_t[]){0x81, 201, 0, 7, 0, 0, 0, 9}, 8);
	put_be32(plain + 8, media_rename(5, 7));
	r->in[0].len = rig_protect(r, p, (struct rig_plain){plain, 32, 8, B_TX, CM80, 1, true});
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 8), 7);
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 4), 9);
	rig_free(r);
}

/* A sender report of A with a block about B's SSRC 9; and a description of A. */
static uint32_t full_report(uint8_t p[68], uint32_t own, uint32_t about)
{
	memset(p, 0, 68);
	memcpy(p, (const uint8_t[]){0x81, 200, 0, 12}, 4);
	put_be32(p + 4, own);
	put_be32(p + 28, about);
	memcpy(p + 52, (const uint8_t[]){0x81, 202, 0, 3, 0, 0, 0, 0, 1, 3, 'a', '@', 'b'}, 13);
	put_be32(p + 56, own);
	return 68;
}

static void report_of_an_srtp_source(struct rig *r, uint32_t number, uint64_t index, bool clear)
{
	uint8_t plain[ARENA_SLOT_LEN], p[68], *at = rig_slot(r, A, PORT_A);
	uint32_t len = full_report(p, 7, media_rename(5, 9));

	r->in[0].len =
		rig_protect(r, at, (struct rig_plain){p, len, 8, A_TX, r->suite_a, number, true});
	rig_run(r);
	assert_int_equal(r->outs, 1);
	at = r->a.out + r->out[0].out_off;
	/* The report is encrypted, unless the suite has no cipher. */
	full_report(p, media_rename(5, 7), 9);
	assert_int_equal(memcmp(at, p, len) == 0, clear);
	assert_int_equal(rig_open(r, 0, plain, B_RX, index, true), len);
	assert_memory_equal(plain, p, len);
}

/* A listener to A has its own key. Its copy is encrypted and names the SSRC it receives. */
static void a_listeners_srtcp_goes_by_the_names(void **state)
{
	struct rig *r = life(CM80, GCM, 5);
	struct media_cmd c = rig_stream_cmd(3, 30004, 2, MEDIA_NONE, MEDIA_NONE, "192.0.2.3:6000");
	struct media_cmd from = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	uint8_t plain[ARENA_SLOT_LEN], p[68], *at;
	struct media_cmd listener = {.type = MEDIA_CTX_SET,
		.id = 2,
		.ctx = {.tx = rig_crypto(r, A_TX2, CM80), .rename = 5}};

	(void)state;
	assert_int_equal(media_command(r->m, &listener), 0);
	c.stream.rtp = c.stream.rtcp = c.stream.listener = true;
	from.stream.copy[true] = 3 + 1;
	assert_int_equal(media_command(r->m, &c), 0);
	assert_int_equal(media_command(r->m, &from), 0);
	at = rig_slot(r, A, PORT_A);
	r->in[0].len = rig_protect(r, at,
		(struct rig_plain){
			p, full_report(p, 7, media_rename(5, 9)), 8, A_TX, CM80, 1, true});
	rig_run(r);
	assert_int_equal(r->outs, 2);
	full_report(p, media_rename(5, 7), media_rename(5, 9));
	assert_memory_not_equal(r->a.out + r->out[1].out_off, p, 68);
	r->suite_b = CM80;
	assert_int_equal(rig_open(r, 1, plain, A_TX2, 0, true), 68);
	assert_memory_equal(plain, p, 68);
	rig_free(r);
}

static void srtcp_of_srtp_sources_goes_by_the_names(void **state)
{
	(void)state;
	for (int a = SUITE_PLAIN + 1; a < SUITE_COUNT; a++)
		for (int b = SUITE_PLAIN + 1; b < SUITE_COUNT; b++) {
			bool clear =
				srtp_suite_get((enum srtp_suite_id)b)->cipher == XC_CIPHER_NULL;
			struct rig *r = life((enum srtp_suite_id)a, (enum srtp_suite_id)b, 5);

			for (uint32_t i = 0; i < 3; i++)
				report_of_an_srtp_source(r, i, i, clear);
			rig_free(r);
			/* With MKIs, which stand between the parts of a packet. */
			r = rig_new((enum srtp_suite_id)a, (enum srtp_suite_id)b, 4);
			ctx(r, 0, 5, 0);
			ctx(r, 1, 5, 0);
			report_of_an_srtp_source(r, 1, 0, clear);
			rig_free(r);
		}
}

static void srtcp_stays_below_what_the_clock_allows(void **state)
{
	struct rig *r = rig_new(SUITE_PLAIN, CM80, 0);
	const uint64_t second = 1000000000;
	uint32_t sent = 0;

	(void)state;
	ctx(r, 1, 0, 1);
	for (uint32_t i = 0; i < 2 * MEDIA_RTCP_BURST; i++) {
		rig_send_rtcp(r, 7, i);
		r->in[0].t_ns = 10;
		rig_run(r);
		sent += r->outs;
	}
	assert_int_equal(sent, MEDIA_RTCP_BURST);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_RTCP_RATE);
	assert_true(r->m->ctx[1].tx_rtcp_next <= media_rtcp_ceiling(1, 10) + 1);
	for (uint32_t i = 0; i < 1000; i++) {
		rig_send_rtcp(r, 7, i);
		r->in[0].t_ns = second;
		rig_run(r);
		sent += r->outs;
	}
	assert_in_range(sent, MEDIA_RTCP_BURST + 249, MEDIA_RTCP_BURST + 251);
	assert_true(r->m->ctx[1].tx_rtcp_next <= media_rtcp_ceiling(1, second) + 1);
	/* The next life begins above that index, and sends once the clock has reached it. */
	rig_free(r);
	r = rig_new(SUITE_PLAIN, CM80, 0);
	ctx(r, 1, 0, (uint32_t)media_rtcp_ceiling(1, 3 * second));
	rig_send_rtcp(r, 7, 0);
	r->in[0].t_ns = 2 * second;
	rig_run(r);
	assert_int_equal(r->outs, 0);
	rig_send_rtcp(r, 7, 0);
	r->in[0].t_ns = 3 * second;
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(r->in[0].verdict, PACKET_SENT);
	rig_free(r);
}

/* --- Gates and forks --- */

static void silence_has_a_name_of_this_life(void **state)
{
	struct rig *r = life(CM80, CM80, 5);
	struct media_cmd c = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	(void)state;
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	rig_got(r, 0, media_rename(5, 7), 100, 100);
	c.stream.gate = MEDIA_GATE_TO(MEDIA_GATE_QUIET);
	c.stream.quiet = MEDIA_QUIET_ALL;
	assert_int_equal(media_command(r->m, &c), 0);
	rig_send(r, 7, 101, A_TX);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(left_as(r, 0), media_rename(5, 7));
	rig_free(r);
}

/* Two terminals of a fork, one of them silenced, send the same SSRC and index to one of our keys.
 * Each index is sent once. */
static void a_fork_and_silence_share_the_indexes_of_a_name(void **state)
{
	struct rig *r = life(CM80, CM80, 5);
	struct media_cmd c = rig_stream_cmd(3, 30004, 2, B, MEDIA_NONE, "192.0.2.2:5000");
	uint8_t p[172], *at;

	(void)state;
	rig_ctx(r, 2, (struct rig_keys){A_TX2, A_RX, CM80, true, false});
	c.stream.gate = MEDIA_GATE_TO(MEDIA_GATE_QUIET);
	c.stream.quiet = MEDIA_QUIET_ALL;
	assert_int_equal(media_command(r->m, &c), 0);
	rig_send(r, 7, 100, A_TX);
	rig_run(r);
	rig_got(r, 0, media_rename(5, 7), 100, 100);
	for (uint64_t index = 100; index < 102; index++) {
		at = rig_slot(r, 1, 30004);
		rig_plain_rtp(p, 7, index);
		r->in[0].len = rig_protect(
			r, at, (struct rig_plain){p, 172, 12, A_TX2, CM80, index, false});
		rig_run(r);
		assert_int_equal(r->outs, index == 101);
	}
	assert_int_equal(left_as(r, 0), media_rename(5, 7));
	assert_int_equal(rig_dropped(r, B, PACKET_DROP_NONCE), 1);
	/* The silent packet has used this index up. */
	rig_send(r, 7, 101, A_TX);
	rig_run(r);
	assert_int_equal(r->in[0].verdict, PACKET_DROP_NONCE);
	rig_free(r);
}

/* --- Many lives of one record ----------------------------------------------------------------- */

enum { LIVES = 60, PER_LIFE = 200, ALL = LIVES * PER_LIFE };

struct use {
	uint64_t index;
	uint32_t ssrc, rtcp;
};

static int by_use(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct use));
}

static uint32_t used_twice(struct use *use, uint32_t n)
{
	uint32_t twice = 0;

	qsort(use, n, sizeof(*use), by_use);
	for (uint32_t i = 1; i < n; i++)
		twice += by_use(&use[i - 1], &use[i]) == 0;
	return twice;
}

/* A's terminal sends a packet of its own choice under its own key. */
static void insider_sends(struct rig *r, uint64_t index, uint8_t word)
{
	uint8_t p[172], *at = rig_slot(r, A, PORT_A);

	rig_plain_rtp(p, 7, index);
	memset(p + 12, word, sizeof(p) - 12);
	r->in[0].len =
		rig_protect(r, at, (struct rig_plain){p, 172, 12, A_TX, r->suite_a, index, false});
	rig_run(r);
}

enum { INSIDER_LIVES = 3, INSIDER_PACKETS = 5 };

/* One life whose record names no sent index: the same indexes each time, with other payload. */
static uint32_t insider_life(
	enum srtp_suite_id a, enum srtp_suite_id b, uint32_t k, struct use *use)
{
	uint64_t rename = k ? 0x9e3779b97f4a7c15 * k : 0;
	struct rig *r = life(a, b, rename);
	uint8_t plain[ARENA_SLOT_LEN];
	uint32_t n = 0;

	for (uint64_t index = 100; index < 100 + INSIDER_PACKETS; index++) {
		insider_sends(r, index, (uint8_t)(k + 1));
		assert_int_equal(r->outs, 1);
		assert_int_equal(rig_open(r, 0, plain, B_RX, index, false), 172);
		assert_int_equal(plain[171], k + 1);
		use[n++] = (struct use){.index = r->a.job[0].tx_index, .ssrc = left_as(r, 0)};
		/* Within one life, the index is refused. */
		insider_sends(r, index, (uint8_t)(k + 100));
		assert_int_equal(r->outs, 0);
	}
	assert_int_equal(use[0].ssrc, k ? media_rename(rename, 7) : 7);
	rig_free(r);
	return n;
}

static void an_insider_who_repeats_indexes_repeats_no_keystream(void **state)
{
	struct use use[INSIDER_LIVES * INSIDER_PACKETS];

	(void)state;
	for (int a = SUITE_PLAIN + 1; a < SUITE_COUNT; a++)
		for (int b = SUITE_PLAIN + 1; b < SUITE_COUNT; b++) {
			uint32_t n = 0;

			for (uint32_t k = 0; k < INSIDER_LIVES; k++)
				n += insider_life(
					(enum srtp_suite_id)a, (enum srtp_suite_id)b, k, &use[n]);
			assert_int_equal(n, ARRAY_LEN(use));
			assert_int_equal(used_twice(use, n), 0);
		}
}

/* The same record and the same repeating source each time: no index is sent twice under the key. */
static void a_record_may_come_back_any_number_of_times(void **state)
{
	static struct use use[ALL];
	uint64_t now = 1000000000, rename = 1;
	uint32_t n = 0;

	(void)state;
	for (uint32_t k = 0; k < LIVES; k++, now += 1500000000) {
		struct rig *r = life(SUITE_PLAIN, CM80, rename);
		uint32_t from = (uint32_t)media_rtcp_ceiling(1, now + 2000000000);

		rename = rename * 6364136223846793005ull + 1442695040888963407ull;
		ctx(r, 1, rename, from);
		ctx(r, 0, rename, from);
		for (uint32_t i = 0; i < PER_LIFE; i++) {
			const struct xc_job *j;

			if (i % 2)
				rig_send(r, 7, 1000 + i % 150, 0);
			else
				rig_send_rtcp(r, 7, i);
			r->in[0].t_ns = now + i * 10000000;
			rig_run(r);
			j = &r->a.job[0];
			if (r->outs)
				use[n++] = (struct use){.index = j->tx_index,
					.ssrc = i % 2 ? j->ssrc : 0,
					.rtcp = !(i % 2)};
		}
		rig_free(r);
	}
	assert_true(n > ALL / 3);
	assert_int_equal(used_twice(use, n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_sources_have_names_of_this_life),
		cmocka_unit_test(authenticated_sources_have_them_too),
		cmocka_unit_test(names_are_a_permutation),
		cmocka_unit_test(both_sides_reports_name_the_same),
		cmocka_unit_test(extended_reports_and_congestion_feedback),
		cmocka_unit_test(rtcp_goes_by_the_name_too),
		cmocka_unit_test(srtcp_of_srtp_sources_goes_by_the_names),
		cmocka_unit_test(a_listeners_srtcp_goes_by_the_names),
		cmocka_unit_test(srtcp_stays_below_what_the_clock_allows),
		cmocka_unit_test(silence_has_a_name_of_this_life),
		cmocka_unit_test(a_fork_and_silence_share_the_indexes_of_a_name),
		cmocka_unit_test(an_insider_who_repeats_indexes_repeats_no_keystream),
		cmocka_unit_test(a_record_may_come_back_any_number_of_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
