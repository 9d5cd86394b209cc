/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several m-lines on one port: which one a packet belongs to, where it goes, and by which port the
 * answers leave. Terminal A has audio and video on A's port. Audio goes to B, video to C. RFC 9143
 * 9.2, RFC 8285. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/attack.h"
#include "media/bundle.h"
#include "media/rename.h"
#include "media/ssrc.h"
#include "packet/audio.h"

enum { VIDEO = 3, C = 4, PORT_V = 30004, PORT_C = 30006, EXT = 5 };
enum { AUDIO_TYPE = 8, BOTH = 100, VIDEO_TYPE = 96, NOBODY = 77 };
enum { NAMES = 5 }; /* media_ctx_cfg.rename */
#define K80 SUITE_AES_CM_128_80

static void set(struct rig *r, struct media_cmd *cmd)
{
	assert_int_equal(media_command(r->m, cmd), 0);
}

static void type(struct media_stream_cfg *c, uint8_t t)
{
	c->types[t / 64] |= 1ull << t % 64;
}

static struct rig *bundle(enum srtp_suite_id suite_a)
{
	struct rig *r = rig_new(suite_a, K80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	struct media_cmd b = rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");
	struct media_cmd v = rig_stream_cmd(VIDEO, PORT_V, 0, C, C, "192.0.2.1:4000");
	struct media_cmd c = rig_stream_cmd(C, PORT_C, 2, VIDEO, VIDEO, "192.0.2.2:5000");

	if (suite_a == SUITE_PLAIN)
		rig_ctx_plain(r, 0);
	rig_ctx_plain(r, 2);
	a.stream.bundle = VIDEO + 1;
	v.stream.via = A + 1;
	a.stream.mid_ext = v.stream.mid_ext = EXT;
	a.stream.mid[0] = 'a';
	memcpy(v.stream.mid, "video", 5);
	type(&a.stream, AUDIO_TYPE);
	type(&a.stream, BOTH);
	type(&v.stream, VIDEO_TYPE);
	type(&v.stream, BOTH);
	b.stream.mids = c.stream.mids = true;
	set(r, &a);
	set(r, &b);
	set(r, &c);
	set(r, &v);
	return r;
}

/* A's terminal sends RTP, with this element in its extension. */
static uint8_t *rtp(struct rig *r, uint32_t ssrc, uint16_t seq, uint8_t pt, const char *mid)
{
	uint8_t p[64] = {0x80, pt}, *at = rig_slot(r, A, PORT_A);
	uint32_t hdr = 12, len;

	put_be16(p + 2, seq);
	put_be32(p + 8, ssrc);
	if (mid) {
		p[0] |= 0x10;
		put_be32(p + 12, 0x10000006); /* the two-byte form holds any length */
		p[16] = EXT;
		p[17] = (uint8_t)strlen(mid);
		memcpy(p + 18, mid, strlen(mid));
		hdr += 4 + 24;
	}
	memset(p + hdr, 7, 20);
	len = rig_protect(
		r, at, (struct rig_plain){p, hdr + 20, hdr, A_TX, r->suite_a, seq, false});
	r->in[r->n - 1].len = len;
	return at;
}

/* The local port that the only packet left by; 0: none left. */
static uint16_t left_by(struct rig *r)
{
	rig_run(r);
	assert_true(r->outs < 2);
	return r->outs ? r->out[0].local.port : 0;
}

static uint16_t goes(struct rig *r, uint32_t ssrc, uint16_t seq, uint8_t pt, const char *mid)
{
	rtp(r, ssrc, seq, pt, mid);
	return left_by(r);
}

static void packets_find_their_m_line(void **state)
{
	struct rig *r = bundle(K80);

	(void)state;
	assert_false(r->m->stream[A].fast || r->m->stream[B].fast || r->m->stream[C].fast);
	/* By the payload type of one m-line, */
	assert_int_equal(goes(r, 1, 1, AUDIO_TYPE, NULL), PORT_B);
	assert_int_equal(goes(r, 2, 1, VIDEO_TYPE, NULL), PORT_C);
	/* by the SSRC that is known since then, */
	assert_int_equal(goes(r, 1, 2, BOTH, NULL), PORT_B);
	assert_int_equal(goes(r, 2, 2, BOTH, NULL), PORT_C);
	/* and before all by MID, which teaches the SSRC. */
	assert_int_equal(goes(r, 3, 1, BOTH, NULL), 0);
	assert_int_equal(goes(r, 3, 2, BOTH, "video"), PORT_C);
	assert_int_equal(goes(r, 3, 3, BOTH, NULL), PORT_C);
	assert_int_equal(goes(r, 1, 3, AUDIO_TYPE, "video"), PORT_C);
	/* A known SSRC does not admit a payload type that its m-line lacks. */
	assert_int_equal(goes(r, 1, 4, AUDIO_TYPE, NULL), PORT_B);
	assert_int_equal(goes(r, 4, 1, NOBODY, NULL), 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BUNDLE), 2);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, VIDEO)->packets), 5);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets), 3);
	rig_free(r);
}

/* Of a bundle, an attacked m-line and the port have no guard, but are suspected: packets of the
 * port go last. */
static void an_attacked_m_line_is_suspected(void **state)
{
	const struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = VIDEO};
	struct rig *r = bundle(K80);
	uint8_t p[172], *at;

	(void)state;
	assert_int_equal(goes(r, 2, 1, VIDEO_TYPE, NULL), PORT_C);
	for (uint16_t i = 0; i < ATTACK_FORGED; i++) {
		assert_false(media_attack_suspects(r->m, 0));
		rtp(r, 2, (uint16_t)(2 + i), VIDEO_TYPE, NULL)[20] ^= 1;
		assert_int_equal(left_by(r), 0);
	}
	assert_int_equal(media_attacked(r->m), 0);
	assert_true(r->m->stream[VIDEO].suspected && r->m->stream[A].suspected);
	rtp(r, 2, 2, VIDEO_TYPE, NULL);
	at = rig_slot(r, B, PORT_B);
	rig_plain_rtp(p, 9, 500);
	r->in[1].len = rig_protect(r, at, (struct rig_plain){p, 172, 12, B_TX, K80, 500, false});
	assert_int_equal(rig_prepare(r), 2);
	assert_int_equal(r->m->note[0].in, 1);
	assert_true(r->a.job[1].flags & XC_JOB_DOUBT);
	rig_complete(r, 2);
	assert_int_equal(r->outs, 2);
	assert_int_equal(media_command(r->m, &del), 0);
	assert_false(r->m->stream[VIDEO].suspected);
	assert_true(media_attack_suspects(r->m, r->in[0].t_ns));
	assert_false(media_attack_suspects(r->m, r->in[0].t_ns + 2 * ATTACK_PERIOD_NS));
	assert_false(r->m->stream[A].suspected);
	rig_free(r);
}

/* SSRCs that SDP names, as after a restart, when nothing is learned and terminals write no MIDs. */
static void sdp_names_ssrcs(void **state)
{
	struct rig *r = bundle(K80);
	struct media_cmd v = rig_stream_cmd(VIDEO, PORT_V, 0, C, C, "192.0.2.1:4000");

	(void)state;
	v.stream = r->m->stream[VIDEO].cfg;
	v.stream.ssrc[0] = 7;
	v.stream.ssrc[RTP_SSRCS - 1] = 8;
	set(r, &v);
	assert_int_equal(goes(r, 7, 1, BOTH, NULL), PORT_C);
	assert_int_equal(goes(r, 8, 1, BOTH, NULL), PORT_C);
	assert_int_equal(goes(r, 9, 1, BOTH, NULL), 0);
	/* Not for payload types that the m-line lacks. A packet's MID counts first, and teaches. */
	assert_int_equal(goes(r, 7, 2, NOBODY, NULL), 0);
	assert_int_equal(goes(r, 7, 3, BOTH, "a"), PORT_B);
	assert_int_equal(goes(r, 7, 4, BOTH, NULL), PORT_B);
	/* An unused place is not the SSRC 0. */
	assert_int_equal(goes(r, 0, 1, BOTH, NULL), 0);
	rig_free(r);
}

static void hostile_mids_are_nobody_s(void **state)
{
	static const char *const MID[] = {"", "b", "video2", "vide", "0123456789abcdef",
		"0123456789abcdef0", "aaaaaaaaaaaaaaaaaaaaaa"};
	struct rig *r = bundle(K80);

	(void)state;
	for (uint16_t i = 0; i < ARRAY_LEN(MID); i++)
		assert_int_equal(goes(r, 1, i, AUDIO_TYPE, MID[i]), 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BUNDLE), ARRAY_LEN(MID));
	assert_int_equal(goes(r, 1, 99, AUDIO_TYPE, "a"), PORT_B);
	rig_free(r);
}

static void a_name_that_changes_is_followed_in_order(void **state)
{
	struct rig *r = bundle(K80);

	(void)state;
	assert_int_equal(goes(r, 1, 10, BOTH, "a"), PORT_B);
	assert_int_equal(goes(r, 1, 12, BOTH, "video"), PORT_C);
	/* An older packet goes where it says, and changes nothing. */
	assert_int_equal(goes(r, 1, 11, BOTH, "a"), PORT_B);
	assert_int_equal(goes(r, 1, 13, BOTH, NULL), PORT_C);
	rig_free(r);
}

static void forgeries_teach_nothing(void **state)
{
	struct rig *r = bundle(K80);

	(void)state;
	rtp(r, 1, 1, BOTH, "video")[60] ^= 1;
	assert_int_equal(left_by(r), 0);
	assert_int_equal(rig_dropped(r, VIDEO, PACKET_DROP_BAD_TAG), 1);
	assert_int_equal(goes(r, 1, 2, BOTH, NULL), 0);
	assert_int_equal(goes(r, 1, 3, BOTH, "a"), PORT_B);
	rtp(r, 1, 4, BOTH, "video")[60] ^= 1;
	assert_int_equal(left_by(r), 0);
	assert_int_equal(goes(r, 1, 5, BOTH, NULL), PORT_B);
	rig_free(r);
}

/* Plain RTP proves nothing: MID and types work, SSRCs are not learned. */
static void plain_rtp_teaches_nothing(void **state)
{
	struct rig *r = bundle(SUITE_PLAIN);

	(void)state;
	assert_int_equal(goes(r, 1, 1, BOTH, "video"), PORT_C);
	assert_int_equal(goes(r, 1, 2, BOTH, NULL), 0);
	assert_int_equal(goes(r, 1, 3, VIDEO_TYPE, NULL), PORT_C);
	rig_free(r);
}

static void a_thousand_ssrcs_are_bounded(void **state)
{
	struct rig *r = bundle(K80);
	const struct media_bundle *b = media_bundle_at(r->m, A);
	uint32_t used = 0;

	(void)state;
	for (uint32_t i = 1; i <= 1000; i++) {
		rtp(r, i, 1, BOTH, i % 2 ? "a" : "video");
		rig_run(r);
	}
	for (uint32_t i = 0; i < MEDIA_BUNDLE_SSRCS; i++)
		used += b->of[false][i].stream != 0;
	assert_int_equal(used, MEDIA_BUNDLE_SSRCS);
	/* The windows of a key have their own limit. Whoever was heard stays heard. */
	assert_int_equal(goes(r, 5000, 1, VIDEO_TYPE, NULL), 0);
	assert_int_equal(goes(r, 1, 2, VIDEO_TYPE, NULL), PORT_C);
	rig_free(r);
}

/* Each place has 1 KiB, and is used again when its bundle ends. */
static void places_of_bundles_lie_together(void **state)
{
	struct rig *r = bundle(K80);
	uint32_t used = r->m->bundle_used, last = r->m->cfg.max_stream - 1;

	(void)state;
	assert_int_equal(goes(r, 7, 1, VIDEO_TYPE, NULL), PORT_C);
	for (int i = 0; i < 100; i++) {
		media_bundle_end(r->m, A);
		assert_null(media_bundle_at(r->m, A));
		media_bundle_learn(r->m, A, A, 8, 1); /* without a bundle nothing is learned */
		media_bundle_begin(r->m, A);
		assert_int_equal(media_bundle_at(r->m, A)->of[false][0].stream, 0);
	}
	assert_int_equal(r->m->bundle_used, used);
	media_bundle_begin(r->m, last);
	assert_ptr_not_equal(media_bundle_at(r->m, A), media_bundle_at(r->m, last));
	assert_int_equal(r->m->bundle_used, used + 1);
	media_bundle_end(r->m, last);
	rig_free(r);
}

static void answers_leave_by_the_port_of_all(void **state)
{
	struct rig *r = bundle(K80);
	uint8_t p[172], plain[256], *at;

	(void)state;
	for (int i = 0; i < 2; i++) {
		at = rig_slot(r, B, i ? PORT_C : PORT_B);
		rig_plain_rtp(p, 0x70 + (uint32_t)i, 1);
		r->in[r->n - 1].len = rig_protect(r, at,
			(struct rig_plain){
				p, 172, 12, i ? 0 : B_TX, i ? SUITE_PLAIN : K80, 1, false});
	}
	rig_run(r);
	assert_int_equal(r->outs, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(r->out[i].local.port, PORT_A);
		assert_int_equal(r->out[i].dst.port, 4000);
		/* with the m-line's MID */
		assert_int_equal(rig_open(r, i, plain, A_RX, 1, false), i ? 184 : 180);
		assert_int_equal(be32(plain + 8), 0x70 + i);
		assert_memory_equal(plain + 12,
			i ? "\xbe\xde\0\2\x54video\0\0"
			  : "\xbe\xde\0\1\x50"
			    "a\0\0",
			8);
	}
	assert_int_equal(atomic_load(&media_stream_counters(r->m, VIDEO)->packets_out), 1);
	assert_int_equal(atomic_load(&media_stream_counters(r->m, A)->packets_out), 1);
	/* The second sender has the first one's SSRC: nothing leaves twice under the key. */
	at = rig_slot(r, B, PORT_C);
	rig_plain_rtp(p, 0x70, 1);
	memcpy(at, p, 172);
	r->in[r->n - 1].len = 172;
	assert_int_equal(left_by(r), 0);
	assert_int_equal(rig_dropped(r, C, PACKET_DROP_NONCE), 1);
	/* Nothing is accepted at the m-line's own port. */
	at = rig_slot(r, A, PORT_V);
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, 172, 12, A_TX, K80, 1, false});
	assert_int_equal(left_by(r), 0);
	assert_int_equal(rig_dropped(r, VIDEO, PACKET_DROP_BUNDLE), 1);
	rig_free(r);
}

static void the_terminal_moves_with_all_its_m_lines(void **state)
{
	struct rig *r = bundle(K80);
	uint8_t p[172], *at;

	(void)state;
	rtp(r, 1, 1, VIDEO_TYPE, NULL);
	assert_int_equal(endpoint_parse(&r->in[0].src, STR("192.0.2.1:4444")), 0);
	assert_int_equal(left_by(r), PORT_C);
	for (int i = 0; i < 2; i++) {
		at = rig_slot(r, B, i ? PORT_C : PORT_B);
		rig_plain_rtp(p, 0x70 + (uint32_t)i, 1);
		r->in[r->n - 1].len = rig_protect(r, at,
			(struct rig_plain){
				p, 172, 12, i ? 0 : B_TX, i ? SUITE_PLAIN : K80, 1, false});
		assert_int_equal(left_by(r), PORT_A);
		assert_int_equal(r->out[0].dst.port, 4444);
	}
	rig_free(r);
}

/* --- RTCP ------------------------------------------------------------------------------------- */

/* A receiver report of this sender about these SSRCs; 0 ends them. */
static void report(struct rig *r, uint32_t index, uint32_t sender, uint32_t one, uint32_t two)
{
	uint8_t p[80] = {0x80, 201}, *at = rig_slot(r, A, PORT_A);
	uint32_t n = 8;

	put_be32(p + 4, sender);
	for (int i = 0; i < 2; i++)
		if (i ? two : one) {
			put_be32(p + n, i ? two : one);
			p[0]++;
			n += 24;
		}
	put_be16(p + 2, (uint16_t)(n / 4 - 1));
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, n, 8, A_TX, r->suite_a, index, true});
}

static void to_a(struct rig *r, uint16_t port, uint32_t ssrc)
{
	uint8_t p[172], *at = rig_slot(r, B, port);

	rig_plain_rtp(p, ssrc, 1);
	r->in[r->n - 1].len = rig_protect(r, at,
		(struct rig_plain){p, 172, 12, port == PORT_C ? 0 : B_TX,
			port == PORT_C ? SUITE_PLAIN : K80, 1, false});
	assert_int_equal(left_by(r), PORT_A);
}

/* Bit 0: it went to B, bit 1: to C. */
static int reaches(struct rig *r)
{
	int got = 0;

	rig_run(r);
	for (uint32_t i = 0; i < r->outs; i++) {
		int bit = r->out[i].local.port == PORT_C ? 2 : 1;

		assert_true(bit == 2 || r->out[i].local.port == PORT_B_RTCP);
		assert_false(got & bit);
		got |= bit;
	}
	return got;
}

static void reports_go_to_whom_they_concern(void **state)
{
	struct rig *r = bundle(K80);
	uint8_t plain[256];

	(void)state;
	to_a(r, PORT_B, 0x70);
	to_a(r, PORT_C, 0x71);
	report(r, 1, 0x11, 0, 0); /* names nobody: the first m-line's */
	assert_int_equal(reaches(r), 1);
	report(r, 2, 0x11, 0x70, 0);
	assert_int_equal(reaches(r), 1);
	report(r, 3, 0x11, 0x71, 0);
	assert_int_equal(reaches(r), 2);
	assert_int_equal(r->out[0].len, 32); /* plain towards C */
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 8), 0x71);
	report(r, 4, 0x11, 0x70, 0x71);
	assert_int_equal(reaches(r), 3);
	for (uint32_t i = 0; i < 2; i++)
		if (r->out[i].local.port == PORT_B_RTCP)
			assert_int_equal(
				rig_open(r, i, plain, B_RX, r->m->ctx[1].tx_rtcp_next - 1, true),
				56);
	/* By its sender, once that is known. */
	assert_int_equal(goes(r, 0x22, 1, VIDEO_TYPE, NULL), PORT_C);
	report(r, 5, 0x22, 0, 0);
	assert_int_equal(reaches(r), 2);
	report(r, 6, 0x22, 0x70, 0);
	assert_int_equal(reaches(r), 3);
	/* Replayed, or forged: nobody's. */
	report(r, 6, 0x22, 0x70, 0);
	assert_int_equal(reaches(r), 0);
	report(r, 7, 0x22, 0x70, 0);
	r->a.in[r->in[0].in_off + 12] ^= 1;
	assert_int_equal(reaches(r), 0);
	rig_free(r);
}

/* A receiver report and descriptions of two sources, the second with this MID behind a CNAME. */
static uint8_t *describe(struct rig *r, uint32_t index, uint32_t ssrc, const char *mid)
{
	uint8_t p[96] = {0x80, 201, 0, 1}, *at = rig_slot(r, A, PORT_A);
	uint32_t n = 8, len = (uint32_t)strlen(mid);

	put_be32(p + 4, 0x99);
	memcpy(p + n, (const uint8_t[]){0x82, 202, 0, 0, 0, 0, 0, 0x99, 1, 1, 'x', 0}, 12);
	put_be32(p + n + 12, ssrc);
	memcpy(p + n + 16, (const uint8_t[]){1, 3, 'a', '@', 'b', 15, (uint8_t)len}, 7);
	memcpy(p + n + 23, mid, len);
	put_be16(p + n + 2, (uint16_t)((23 + len) / 4));
	n += ((23 + len) / 4 + 1) * 4;
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, n, 8, A_TX, r->suite_a, index, true});
	return at;
}

/* RFC 9143 15.2: MIDs in RTCP teach SSRCs that are unknown, and only after authentication. */
static void descriptions_name_m_lines(void **state)
{
	struct rig *r = bundle(K80);

	(void)state;
	assert_int_equal(goes(r, 0x30, 1, BOTH, NULL), 0);
	describe(r, 1, 0x30, "video")[30] ^= 1;
	assert_int_equal(reaches(r), 0);
	assert_int_equal(goes(r, 0x30, 2, BOTH, NULL), 0);
	describe(r, 2, 0x30, "vide");
	describe(r, 3, 0x31, "longer than any MID that was agreed on");
	rig_run(r);
	assert_int_equal(goes(r, 0x30, 3, BOTH, NULL), 0);
	describe(r, 4, 0x30, "video");
	rig_run(r);
	assert_int_equal(goes(r, 0x30, 4, BOTH, NULL), PORT_C);
	/* A known source: RTP decides. */
	describe(r, 5, 0x30, "a");
	rig_run(r);
	assert_int_equal(goes(r, 0x30, 5, BOTH, NULL), PORT_C);
	assert_int_equal(goes(r, 0x30, 6, BOTH, "a"), PORT_B);
	describe(r, 6, 0x30, "video");
	rig_run(r);
	assert_int_equal(goes(r, 0x30, 7, BOTH, NULL), PORT_B);
	/* The next RTCP of a source that was described goes to its m-line. */
	describe(r, 7, 0x32, "video");
	rig_run(r);
	report(r, 8, 0x32, 0, 0);
	assert_int_equal(reaches(r), 2);
	rig_free(r);
	/* Plain RTCP proves nothing. */
	r = bundle(SUITE_PLAIN);
	describe(r, 1, 0x30, "video");
	rig_run(r);
	assert_int_equal(goes(r, 0x30, 1, BOTH, NULL), 0);
	rig_free(r);
}

static void feedback_is_dropped_for_whom_it_is_nothing(void **state)
{
	struct rig *r = bundle(K80);
	struct media_cmd v = {.type = MEDIA_STREAM_SET, .id = VIDEO, .now_ns = 1};
	uint8_t p[12] = {0x81, 206, 0, 2}, *at;

	(void)state;
	to_a(r, PORT_C, 0x71);
	for (int i = 0; i < 2; i++) {
		v.stream = r->m->stream[VIDEO].cfg;
		v.stream.no_feedback = i;
		set(r, &v);
		at = rig_slot(r, A, PORT_A);
		put_be32(p + 4, 0x11);
		put_be32(p + 8, 0x71);
		r->in[r->n - 1].len = rig_protect(
			r, at, (struct rig_plain){p, 12, 8, A_TX, K80, 1 + (uint32_t)i, true});
		assert_int_equal(reaches(r), i ? 0 : 2);
	}
	assert_int_equal(rig_dropped(r, VIDEO, PACKET_DROP_FEEDBACK), 1);
	rig_free(r);
}

/* --- MIDs that we send ------------------------------------------------------------------------ */

/* B sends to A; its packet has this element, unless the value is NULL. What A receives: the MID
 * with the ID that A knows, and whatever has the ID "other". */
struct heard {
	char mid[32], other[32];
	uint32_t len;
};

static void read_ext(char out[32], const uint8_t *p, size_t len, uint8_t id)
{
	struct rtp_ext e;

	memset(out, 0, 32);
	if (rtp_ext_find(&e, p, len, id))
		memcpy(out, e.at, e.len < 32 ? e.len : 31);
}

static struct heard b_sends(struct rig *r, uint16_t seq, uint8_t id, const char *value)
{
	uint8_t p[64] = {0x80, AUDIO_TYPE}, plain[256], *at = rig_slot(r, B, PORT_B);
	struct rtp_ext_edit e = {.id = id};
	struct heard h;
	uint32_t len = 40, hdr = 12;

	put_be16(p + 2, seq);
	put_be32(p + 8, 0x70);
	memset(p + 12, 7, 28);
	if (value) {
		int32_t grown;

		e.value = (struct rtp_ext){(const uint8_t *)value, (uint8_t)strlen(value)};
		grown = rtp_ext_write(p, len, &e);
		len += (uint32_t)grown;
		hdr += (uint32_t)grown;
	}
	r->in[r->n - 1].len =
		rig_protect(r, at, (struct rig_plain){p, len, hdr, B_TX, r->suite_b, seq, false});
	assert_int_equal(left_by(r), PORT_A);
	h.len = rig_open(r, 0, plain, A_RX, seq, false);
	assert_memory_equal(plain + h.len - 28, p + len - 28, 28);
	read_ext(h.mid, plain, h.len, EXT);
	read_ext(h.other, plain, h.len, EXT + 1);
	return h;
}

static void mids_are_sent_until_the_terminal_reports(void **state)
{
	struct rig *r = bundle(K80);
	struct heard h;

	(void)state;
	for (uint16_t seq = 1; seq < 4; seq++) {
		h = b_sends(r, seq, 0, NULL);
		assert_string_equal(h.mid, "a");
		assert_int_equal(h.len, 48);
	}
	report(r, 1, 0x11, 0x71, 0); /* of something else, */
	rig_run(r);
	h = b_sends(r, 4, 0, NULL);
	assert_string_equal(h.mid, "a");
	report(r, 2, 0x11, 0x70, 0); /* forged, */
	r->a.in[r->in[0].in_off + 12] ^= 1;
	assert_int_equal(reaches(r), 0);
	h = b_sends(r, 5, 0, NULL);
	assert_string_equal(h.mid, "a");
	report(r, 3, 0x11, 0x70, 0); /* and of it */
	assert_int_equal(reaches(r), 1);
	h = b_sends(r, 6, 0, NULL);
	assert_string_equal(h.mid, "");
	assert_int_equal(h.len, 40);
	rig_free(r);
}

/* A's audio is transcoded: packets of its session name the m-line, too, until A reports them. */
static void mids_of_transcoded_audio(void **state)
{
	enum { SERIAL = 70, OURS = 0x77 };
	struct audio_channel *c = aligned_alloc(64, sizeof(*c));
	struct rig *r = bundle(K80);
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};
	struct batch b = {.job = r->a.job, .status = r->a.status};

	(void)state;
	assert_non_null(c);
	assert_int_equal(audio_channel_init(c), 0);
	r->m->cfg.audio = &c;
	r->m->cfg.audio_threads = 1;
	cmd.stream = r->m->stream[A].cfg;
	cmd.stream.audio = SERIAL;
	cmd.stream.mids = true;
	set(r, &cmd);
	for (uint16_t seq = 1; seq < 6; seq++) {
		struct audio_packet *p = audio_give(c, false);
		uint8_t plain[256];
		char mid[32];
		uint32_t len;

		assert_non_null(p);
		*p = (struct audio_packet){.stream = A, .serial = SERIAL, .t_ns = 5, .len = 172};
		rig_plain_rtp(p->bytes, OURS, seq);
		audio_given(c);
		r->n = media_audio_take(r->m, &r->a, 0, r->in, SLOTS);
		b.n = media_audio_prepare(r->m, &r->a, r->in, r->n, r->a.job);
		rig_complete(r, b.n);
		assert_int_equal(r->outs, 1);
		assert_int_equal(r->out[0].local.port, PORT_A);
		len = rig_open(r, 0, plain, A_RX, seq, false);
		read_ext(mid, plain, len, EXT);
		assert_string_equal(mid, seq < 4 ? "a" : "");
		assert_memory_equal(plain + len - 160, p->bytes + 12, 160);
		r->n = 0;
		if (seq == 3) {
			report(r, 1, 0x11, OURS, 0);
			rig_run(r);
			assert_int_equal(r->in[0].verdict, PACKET_AUDIO);
		}
	}
	audio_channel_fini(c);
	free(c);
	rig_free(r);
}

static void a_right_mid_stays_and_a_wrong_one_is_replaced(void **state)
{
	struct rig *r = bundle(K80);
	struct media_cmd b = {.type = MEDIA_STREAM_SET, .id = B, .now_ns = 1};
	struct heard h;

	(void)state;
	for (int reported = 0; reported < 2; reported++) {
		uint16_t seq = (uint16_t)(1 + 20 * reported);

		/* Unchanged: the engine encrypts it. */
		h = b_sends(r, seq, EXT, "a");
		assert_string_equal(h.mid, "a");
		assert_int_equal(h.len, 48);
		h = b_sends(r, seq + 1, EXT, "v");
		assert_string_equal(h.mid, "a");
		assert_int_equal(h.len, 48);
		h = b_sends(r, seq + 2, EXT, "audio");
		assert_string_equal(h.mid, "a");
		assert_int_equal(h.len, 48);
		/* With another meaning of the ID at B, the element stays. */
		h = b_sends(r, seq + 3, EXT + 1, "v");
		assert_string_equal(h.mid, reported ? "" : "a");
		assert_string_equal(h.other, "v");
		/* The MID of B, under an ID of its own, is replaced. */
		b.stream = r->m->stream[B].cfg;
		b.stream.mid_ext = EXT + 1;
		set(r, &b);
		h = b_sends(r, seq + 4, EXT + 1, "v");
		assert_string_equal(h.mid, "a");
		assert_string_equal(h.other, "");
		b.stream.mid_ext = 0;
		set(r, &b);
		report(r, 1u + (uint32_t)reported, 0x11, 0x70, 0);
		(void)reaches(r);
	}
	rig_free(r);
}

static void no_mid_where_none_was_agreed(void **state)
{
	struct rig *r = bundle(K80);
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};
	struct heard h;

	(void)state;
	a.stream = r->m->stream[A].cfg;
	a.stream.mid_ext = 0;
	set(r, &a);
	h = b_sends(r, 1, 0, NULL);
	assert_int_equal(h.len, 40);
	/* Not a bundle: the other side of one. */
	assert_int_equal(goes(r, 1, 1, AUDIO_TYPE, NULL), PORT_B);
	assert_int_equal(r->out[0].len, 12 + 20 + 10);
	rig_free(r);
}

/* GCM authenticates the header as additional data. */
static void mids_under_gcm(void **state)
{
	struct rig *r = bundle(SUITE_AEAD_AES_128_GCM);
	uint8_t p[172], plain[256], *at = rig_slot(r, B, PORT_C);

	(void)state;
	rig_plain_rtp(p, 0x71, 1);
	memcpy(at, p, 172);
	r->in[r->n - 1].len = 172;
	assert_int_equal(left_by(r), PORT_A);
	r->suite_b = SUITE_AEAD_AES_128_GCM; /* rig_open() opens what this suite protects */
	assert_int_equal(rig_open(r, 0, plain, A_RX, 1, false), 184);
	assert_memory_equal(plain + 12, "\xbe\xde\0\2\x54video\0\0", 12);
	assert_memory_equal(plain + 24, p + 12, 160);
	rig_free(r);
}

/* A port of its own, and SSRCs of this life (media/rename.h), which A learns by MID only. */
static struct rig *after_a_restart(void)
{
	struct rig *r = rig_new(K80, K80, 0);
	struct media_cmd ctx[] = {{.type = MEDIA_CTX_SET,
					  .id = 0,
					  .ctx = {.rx = rig_crypto(r, A_TX, K80),
						  .tx = rig_crypto(r, A_RX, K80),
						  .rename = NAMES}},
		{.type = MEDIA_CTX_SET,
			.id = 1,
			.ctx = {.rx = rig_crypto(r, B_TX, K80),
				.tx = rig_crypto(r, B_RX, K80),
				.rename = NAMES}}};
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	struct media_cmd b = rig_stream_cmd(B, PORT_B, 1, A, MEDIA_NONE, "192.0.2.2:5000");

	a.stream.mid_ext = b.stream.mid_ext = EXT;
	a.stream.mid[0] = b.stream.mid[0] = 'a';
	a.stream.mids = b.stream.mids = true;
	set(r, &ctx[0]);
	set(r, &ctx[1]);
	set(r, &a);
	set(r, &b);
	return r;
}

static void mids_of_ssrcs_that_are_new_after_a_restart(void **state)
{
	struct rig *r = after_a_restart();
	uint32_t ssrc = media_rename(NAMES, 0x70);
	uint8_t plain[256];

	(void)state;
	for (uint16_t seq = 1; seq < 4; seq++)
		assert_string_equal(b_sends(r, seq, 0, NULL).mid, "a");
	assert_int_equal(be32(r->a.out + r->out[0].out_off + 8), ssrc);
	/* The terminal's own MID stays: the engine encrypts the packet. */
	assert_int_equal(b_sends(r, 4, EXT, "a").len, 48);
	report(r, 1, 0x11, 0x70, 0); /* of the SSRC that it knew before */
	assert_int_equal(reaches(r), 1);
	assert_string_equal(b_sends(r, 5, 0, NULL).mid, "a");
	report(r, 2, 0x11, ssrc, 0); /* forged */
	r->a.in[r->in[0].in_off + 12] ^= 1;
	assert_int_equal(reaches(r), 0);
	assert_string_equal(b_sends(r, 6, 0, NULL).mid, "a");
	report(r, 3, 0x11, ssrc, 0);
	assert_int_equal(reaches(r), 1);
	/* B reads of the SSRC that it has. */
	assert_int_equal(rig_open(r, 0, plain, B_RX, r->m->ctx[1].tx_rtcp_next - 1, true), 32);
	assert_int_equal(be32(plain + 8), 0x70);
	assert_string_equal(b_sends(r, 7, 0, NULL).mid, "");
	/* There is only one m-line, so what A names it is not judged. */
	assert_int_equal(goes(r, 1, 1, AUDIO_TYPE, "other"), PORT_B);
	rig_free(r);
}

/* Its list of SSRCs lives as long as it may need MIDs. */
static void a_port_that_needs_mids_no_more(void **state)
{
	struct rig *r = after_a_restart();
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	(void)state;
	assert_string_equal(b_sends(r, 1, 0, NULL).mid, "a");
	report(r, 1, 0x11, media_rename(NAMES, 0x70), 0);
	assert_int_equal(reaches(r), 1);
	a.stream = r->m->stream[A].cfg;
	set(r, &a); /* another change keeps it */
	assert_string_equal(b_sends(r, 2, 0, NULL).mid, "");
	a.stream.mids = false;
	set(r, &a);
	assert_null(media_bundle_at(r->m, A));
	a.stream.mids = true;
	set(r, &a);
	assert_string_equal(b_sends(r, 3, 0, NULL).mid, "a");
	a.type = MEDIA_STREAM_DEL;
	set(r, &a);
	assert_null(media_bundle_at(r->m, A));
	rig_free(r);
}

/* Towards plain RTP there is nothing to encrypt. The longest packets leave without a MID. */
static void mids_in_plain_rtp_and_long_packets(void **state)
{
	struct rig *r = bundle(SUITE_PLAIN);

	(void)state;
	for (uint32_t len = ARENA_MAX_PACKET - MEDIA_MID_GROWTH; len <= ARENA_MAX_PACKET;
		len += MEDIA_MID_GROWTH) {
		uint8_t *at = rig_slot(r, B, PORT_C);

		memset(at, 7, len);
		rig_plain_rtp(at, 0x71, len);
		r->in[r->n - 1].len = len;
		assert_int_equal(left_by(r), PORT_A);
		assert_int_equal(r->out[0].len, len + (len < ARENA_MAX_PACKET ? 12 : 0));
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_find_their_m_line),
		cmocka_unit_test(an_attacked_m_line_is_suspected),
		cmocka_unit_test(sdp_names_ssrcs),
		cmocka_unit_test(hostile_mids_are_nobody_s),
		cmocka_unit_test(a_name_that_changes_is_followed_in_order),
		cmocka_unit_test(forgeries_teach_nothing),
		cmocka_unit_test(plain_rtp_teaches_nothing),
		cmocka_unit_test(places_of_bundles_lie_together),
		cmocka_unit_test(a_thousand_ssrcs_are_bounded),
		cmocka_unit_test(answers_leave_by_the_port_of_all),
		cmocka_unit_test(the_terminal_moves_with_all_its_m_lines),
		cmocka_unit_test(reports_go_to_whom_they_concern),
		cmocka_unit_test(descriptions_name_m_lines),
		cmocka_unit_test(feedback_is_dropped_for_whom_it_is_nothing),
		cmocka_unit_test(mids_are_sent_until_the_terminal_reports),
		cmocka_unit_test(mids_of_transcoded_audio),
		cmocka_unit_test(a_right_mid_stays_and_a_wrong_one_is_replaced),
		cmocka_unit_test(no_mid_where_none_was_agreed),
		cmocka_unit_test(mids_under_gcm),
		cmocka_unit_test(mids_of_ssrcs_that_are_new_after_a_restart),
		cmocka_unit_test(a_port_that_needs_mids_no_more),
		cmocka_unit_test(mids_in_plain_rtp_and_long_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
