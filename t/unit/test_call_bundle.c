/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BUNDLE in offers and answers: who is told of a group, which legs share a transport, and what
 * workers and sessions are told. RFC 9143. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "call/call_int.h"
#include "call_talk.h"
#include "mock_sessions.h"
#include "proto/sdp_bundle.h"

#define HEAD(n) \
	"v=0\r\no=- 1 1 IN IP4 198.51.100." n "\r\ns=-\r\nc=IN IP4 198.51.100." n "\r\nt=0 0\r\n"
#define PRINT                                                                                      \
	"a=fingerprint:sha-256 01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:" \
	"17:18:19:1A:1B:1C:1D:1E:1F:20\r\n"
#define ICE                                                        \
	"a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n" \
	"a=candidate:1 1 udp 2130706431 198.51.100.1 4000 typ host\r\n"
#define MID       "a=extmap:5 urn:ietf:params:rtp-hdrext:sdes:mid\r\n"
#define DTLS      "UDP/TLS/RTP/SAVPF"
#define TRANSPORT ICE PRINT "a=setup:actpass\r\na=rtcp-mux\r\n"
/* As browsers with max-bundle: the second m-line has no transport. */
#define MAX_BUNDLE                                                                   \
	HEAD("1")                                                                    \
	"a=group:BUNDLE a v\r\n"                                                     \
	"m=audio 4000 " DTLS " 111 0\r\na=mid:a\r\n" MID TRANSPORT "m=video 0 " DTLS \
	" 96 97\r\na=mid:v\r\na=bundle-only\r\n" MID
/* As browsers without it, or in later offers: all m-lines repeat it. */
#define REPEATED                                                                        \
	HEAD("1")                                                                       \
	"a=group:BUNDLE a v\r\n"                                                        \
	"m=audio 4000 " DTLS " 111 0\r\na=mid:a\r\n" MID TRANSPORT "m=video 4000 " DTLS \
	" 96 97\r\na=mid:v\r\n" MID TRANSPORT
#define PLAIN HEAD("2") "m=audio 5000 RTP/AVP 0\r\nm=video 5002 RTP/AVP 96\r\n"

struct rig {
	struct talk t;
	struct mock_sessions s;
	bool answered;
};

static void start(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	talk_start(&r->t);
	mock_sessions_start(&r->s, r->t.m, r->t.c);
}

static void end(struct rig *r)
{
	talk_end(&r->t);
	mock_sessions_end(&r->s);
}

static void offer(struct rig *r, const char *body, uint32_t flags, const char *transport)
{
	struct ng_request q = talk_request("a", r->answered ? "b" : "", body);

	q.bundle = flags;
	q.transport = str_from(transport);
	if (!flags)
		q.ice = NG_ICE_DEFAULT;
	talk_send(&r->t, &q, false);
	assert_null(r->t.reply.error);
}

static void answer(struct rig *r, const char *body)
{
	r->answered = true;
	talk_answer(&r->t, "a", "b", body);
	assert_null(r->t.reply.error);
}

static const char *group(struct rig *r)
{
	const struct sdp_line *l = sdp_attr(r->t.sdp->session, STR("group"));

	return l ? pool_strdup(r->t.p, l->arg).s + strlen("BUNDLE ") : "";
}

static uint16_t port(const struct rig *r, uint32_t media)
{
	return r->t.sdp->media[media].port;
}

static uint32_t sessions(const struct rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MOCK_SESSIONS; i++)
		n += r->s.taken[i];
	return n;
}

static uint32_t number(const struct rig *r, uint16_t port)
{
	uint32_t i = mock_session_at(&r->s, port);

	assert_true(i < MOCK_SESSIONS);
	return i;
}

static struct str value(const struct rig *r, uint32_t media, const char *name)
{
	const struct sdp_line *l = sdp_attr(r->t.sdp->media[media].lines, str_from(name));

	return l ? l->arg : STR("");
}

/* The streams whose packets use another's port. */
static uint32_t shared(const struct rig *r, const struct media_stream_cfg **out)
{
	uint32_t n = 0;

	*out = NULL;
	for (uint32_t i = 0; i < 2 * MOCK_MAX; i++)
		if (r->t.m->stream_set[i] && r->t.m->stream_cfg[i].via &&
			r->t.m->stream_cfg[i].rtp) {
			*out = &r->t.m->stream_cfg[i];
			n++;
		}
	return n;
}

/* SSRCs of the terminals' SDP: each stream has those of its own terminal. */
static void ssrcs_of_sdp_reach_the_streams(void **state)
{
	const struct media_stream_cfg *video;
	struct rig r;
	uint16_t b;

	(void)state;
	start(&r);
	offer(&r, MAX_BUNDLE "a=ssrc:11 cname:x\r\na=ssrc:12 cname:x\r\n", NG_BUNDLE_ACCEPT,
		"RTP/AVP");
	b = port(&r, 1);
	answer(&r, PLAIN "a=ssrc:21 cname:y\r\n");
	assert_int_equal(shared(&r, &video), 1);
	assert_memory_equal(video->ssrc, ((uint32_t[RTP_SSRCS]){11, 12}), sizeof(video->ssrc));
	assert_memory_equal(
		mock_stream(r.t.m, b)->ssrc, ((uint32_t[RTP_SSRCS]){21}), sizeof(video->ssrc));
	/* A later description replaces them. */
	offer(&r, MAX_BUNDLE "a=ssrc:13 cname:x\r\n", NG_BUNDLE_ACCEPT, "");
	answer(&r, PLAIN);
	assert_int_equal(shared(&r, &video), 1);
	assert_memory_equal(video->ssrc, ((uint32_t[RTP_SSRCS]){13}), sizeof(video->ssrc));
	end(&r);
}

static void a_bundled_offerer_and_an_unbundled_answerer(void **state)
{
	static const char *const OFFER[] = {MAX_BUNDLE, REPEATED};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(OFFER); i++) {
		struct session_event e = {.kind = SESSION_KEYS, .association = 1};
		const struct media_stream_cfg *own, *video;
		struct rig r;
		uint16_t b[2];

		start(&r);
		offer(&r, OFFER[i], NG_BUNDLE_ACCEPT, "RTP/AVP");
		/* The other side sees two ordinary m-lines. */
		assert_string_equal(group(&r), "");
		b[0] = port(&r, 0);
		b[1] = port(&r, 1);
		assert_true(b[0] && b[1] && b[0] != b[1]);
		assert_false(sdp_attr(r.t.sdp->media[1].lines, STR("bundle-only")));
		answer(&r, PLAIN);
		assert_string_equal(group(&r), "a v");
		assert_true(port(&r, 0) && port(&r, 0) == port(&r, 1));
		assert_true(r.t.sdp->media[0].rtcp_mux && r.t.sdp->media[1].rtcp_mux);
		assert_true(str_eq(value(&r, 0, "ice-ufrag"), value(&r, 1, "ice-ufrag")));
		assert_true(value(&r, 1, "ice-ufrag").len && value(&r, 1, "fingerprint").len);
		assert_true(str_eq(value(&r, 0, "tls-id"), value(&r, 1, "tls-id")));
		assert_true(str_eq(value(&r, 1, "mid"), STR("v")));
		/* One session for both, and one context. */
		assert_int_equal(sessions(&r), 1);
		assert_int_equal(shared(&r, &video), 1);
		own = mock_stream(r.t.m, port(&r, 0));
		assert_ptr_equal(&r.t.m->stream_cfg[video->via - 1], own);
		assert_int_equal(own->ctx, video->ctx);
		assert_ptr_equal(&r.t.m->stream_cfg[own->bundle - 1], video);
		assert_int_equal(video->bundle, 0);
		assert_true(own->side && !video->side && own->rtcp && video->rtcp);
		assert_int_equal(own->mid_ext, 5);
		assert_string_equal(own->mid, "a");
		assert_string_equal(video->mid, "v");
		assert_true(video->types[1] == (1ull << (96 - 64) | 1ull << (97 - 64)));
		assert_true(mock_stream(r.t.m, b[0])->mids);
		assert_true(mock_stream(r.t.m, b[1])->mids);
		assert_ptr_equal(&r.t.m->stream_cfg[mock_stream(r.t.m, b[1])->rtp_to], video);
		assert_ptr_equal(&r.t.m->stream_cfg[mock_stream(r.t.m, b[1])->rtcp_to], video);
		/* Keys of the one association serve both. */
		assert_true(mock_ctx(r.t.m, port(&r, 0))->rx.awaited);
		e.association = r.s.cfg[number(&r, port(&r, 0))].dtls.association;
		e.rx.suite = e.tx.suite = SUITE_AES_CM_128_80;
		e.rx.key[0] = 7;
		calls_session_event(r.t.c, number(&r, port(&r, 0)), &e, r.t.now);
		assert_false(mock_ctx(r.t.m, port(&r, 0))->rx.awaited);
		mock_relay_check(r.t.m);
		end(&r);
	}
}

#define TWCC                                                                                   \
	"a=extmap:9 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01" \
	"\r\na=rtcp-fb:96 transport-cc\r\na=rtcp-fb:96 nack\r\n"

static bool has_transport_cc(const struct rig *r)
{
	uint32_t n = 0;

	for (const struct sdp_line *l = r->t.sdp->media[1].lines; l; l = l->next)
		n += sdp_is_transport_cc(l);
	assert_true(n == 0 || n == 2);
	assert_true(str_eq(value(r, 1, "rtcp-fb"), STR("96 transport-cc")) == (n == 2));
	return n == 2;
}

/* The numbers of a transport with several m-lines are wrong on several transports. */
static void transport_cc_needs_the_same_transports(void **state)
{
	static const struct {
		uint32_t flags;
		const char *answer;
		bool in_offer, in_answer;
	} T[] = {
		{NG_BUNDLE_ACCEPT,
			HEAD("2") "m=audio 5000 RTP/AVPF 0\r\nm=video 5002 RTP/AVPF 96\r\n" TWCC,
			false, false},
		{NG_BUNDLE_ACCEPT | NG_BUNDLE_OFFER,
			HEAD("2") "a=group:BUNDLE a v\r\nm=audio 5000 RTP/AVPF "
				  "0\r\na=mid:a\r\na=rtcp-mux\r\nm=video 5000 RTP/AVPF "
				  "96\r\na=mid:v\r\na=rtcp-mux\r\n" TWCC,
			true, true},
		{NG_BUNDLE_ACCEPT | NG_BUNDLE_OFFER, /* it refuses our group */
			HEAD("2") "m=audio 5000 RTP/AVPF 0\r\na=rtcp-mux\r\nm=video 5002 RTP/AVPF "
				  "96\r\na=rtcp-mux\r\n" TWCC,
			true, false},
		{0, HEAD("2") "m=audio 5000 RTP/AVPF 0\r\nm=video 5002 RTP/AVPF 96\r\n" TWCC, true,
			true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig r;

		start(&r);
		offer(&r, REPEATED TWCC, T[i].flags, "RTP/AVPF");
		assert_int_equal(has_transport_cc(&r), T[i].in_offer);
		answer(&r, T[i].answer);
		assert_int_equal(has_transport_cc(&r), T[i].in_answer);
		end(&r);
	}
}

static void without_the_flag_nothing_changes(void **state)
{
	static const uint32_t FLAGS[] = {0, NG_BUNDLE_REJECT, NG_BUNDLE_REJECT | NG_BUNDLE_ACCEPT};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
		const struct media_stream_cfg *none;
		struct rig r;

		start(&r);
		offer(&r, REPEATED, FLAGS[i], "RTP/AVP");
		answer(&r, PLAIN);
		assert_string_equal(group(&r), "a");
		assert_true(port(&r, 0) != port(&r, 1) && port(&r, 1));
		assert_int_equal(shared(&r, &none), 0);
		assert_int_equal(sessions(&r), 2);
		end(&r);
		start(&r);
		offer(&r, MAX_BUNDLE, FLAGS[i], "RTP/AVP");
		assert_int_equal(port(&r, 1), 0);
		end(&r);
	}
}

/* The group needs rtcp-mux, and two m-lines that the answerer takes. */
static void groups_that_cannot_be(void **state)
{
	const struct media_stream_cfg *none;
	struct rig r;

	(void)state;
	start(&r);
	offer(&r,
		HEAD("1") "a=group:BUNDLE a v\r\nm=audio 4000 RTP/AVP 0\r\na=mid:a\r\n"
			  "m=video 4002 RTP/AVP 96\r\na=mid:v\r\n",
		NG_BUNDLE_ACCEPT, "");
	answer(&r, PLAIN);
	assert_int_equal(shared(&r, &none), 0);
	end(&r);

	start(&r);
	offer(&r, MAX_BUNDLE, NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r, HEAD("2") "m=audio 5000 RTP/AVP 0\r\nm=video 0 RTP/AVP 96\r\n");
	assert_string_equal(group(&r), "a");
	assert_int_equal(port(&r, 1), 0);
	assert_int_equal(shared(&r, &none), 0);
	end(&r);
}

/* The tagged m-line is refused: the group's transport serves the others. */
static void a_group_without_its_first_m_line(void **state)
{
	const struct media_stream_cfg *text;
	struct rig r;

	(void)state;
	start(&r);
	offer(&r, MAX_BUNDLE "m=video 0 " DTLS " 98\r\na=mid:a\r\na=bundle-only\r\n", 0, "RTP/AVP");
	end(&r);
	start(&r);
	offer(&r,
		HEAD("1") "a=group:BUNDLE a v w\r\n"
			  "m=audio 4000 " DTLS " 111 0\r\na=mid:a\r\n" TRANSPORT "m=video 0 " DTLS
			  " 96\r\na=mid:v\r\na=bundle-only\r\n"
			  "m=video 0 " DTLS " 98\r\na=mid:w\r\na=bundle-only\r\n",
		NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r,
		HEAD("2") "m=audio 0 RTP/AVP 0\r\nm=video 5002 RTP/AVP 96\r\n"
			  "m=video 5004 RTP/AVP 98\r\n");
	assert_string_equal(group(&r), "v w");
	assert_int_equal(port(&r, 0), 0);
	assert_true(port(&r, 1) && port(&r, 1) == port(&r, 2));
	assert_int_equal(shared(&r, &text), 1);
	/* A group that one branch refused keeps its sessions for the next branch. */
	assert_int_equal(sessions(&r), 1 + 2);
	end(&r);
}

/* An unbundled offerer; the answerer may bundle, in each form. */
static void a_group_is_offered(void **state)
{
	static const struct {
		const char *answer;
		uint32_t shared, sessions;
	} T[] = {
		{HEAD("2") "a=group:BUNDLE 1 2\r\nm=audio 5000 " DTLS " 0\r\na=mid:1\r\n" TRANSPORT
			   "m=video 5000 " DTLS " 96\r\na=mid:2\r\n" TRANSPORT,
			1, 1},
		{HEAD("2") "a=group:BUNDLE 1 2\r\nm=audio 5000 " DTLS " 0\r\na=mid:1\r\n" TRANSPORT
			   "m=video 0 " DTLS " 96\r\na=mid:2\r\na=bundle-only\r\n",
			1, 1},
		{HEAD("2") "m=audio 5000 " DTLS " 0\r\na=mid:1\r\n" TRANSPORT "m=video 5002 " DTLS
			   " 96\r\na=mid:2\r\n" TRANSPORT,
			0, 2},
		{HEAD("2") "a=group:BUNDLE 1\r\nm=audio 5000 " DTLS " 0\r\na=mid:1\r\n" TRANSPORT
			   "m=video 0 " DTLS " 96\r\na=mid:2\r\n",
			0, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		const struct media_stream_cfg *video;
		char body[4096];
		struct rig r;
		uint16_t b[2];
		char *at;

		start(&r);
		offer(&r, HEAD("1") "m=audio 4000 RTP/AVP 0\r\nm=video 4002 RTP/AVP 96\r\n",
			NG_BUNDLE_OFFER, DTLS);
		assert_string_equal(group(&r), "1 2");
		b[0] = port(&r, 0);
		b[1] = port(&r, 1);
		assert_true(b[0] && b[1] && b[0] != b[1] && r.t.sdp->media[1].rtcp_mux);
		assert_int_equal(sessions(&r), 2);
		/* It is the answerer of our offer. */
		snprintf(body, sizeof(body), "%s", T[i].answer);
		while ((at = strstr(body, "actpass"))) {
			memcpy(at, "active", 6);
			memmove(at + 6, at + 7, strlen(at + 7) + 1);
		}
		answer(&r, body);
		assert_string_equal(group(&r), "");
		assert_int_equal(shared(&r, &video), T[i].shared);
		assert_int_equal(sessions(&r), T[i].sessions);
		if (T[i].shared) {
			assert_ptr_equal(
				&r.t.m->stream_cfg[video->via - 1], mock_stream(r.t.m, b[0]));
			assert_true(port(&r, 0) != port(&r, 1) && port(&r, 1));
		}
		end(&r);
	}
}

static void m_lines_with_one_payload_type_are_not_offered_together(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r,
		HEAD("1") "m=audio 4000 RTP/AVP 0 96\r\nm=video 4002 RTP/AVP 96\r\n"
			  "m=video 4004 RTP/AVP 98\r\n",
		NG_BUNDLE_OFFER, DTLS);
	assert_string_equal(group(&r), "1 3");
	end(&r);
}

#define MID_IS(n) n " urn:ietf:params:rtp-hdrext:sdes:mid"

/* The MID is agreed with each bundled terminal that offers it. */
static void the_mid_is_answered(void **state)
{
	struct ng_request q;
	struct rig r;

	(void)state;
	for (int strip = 0; strip < 2; strip++) {
		start(&r);
		offer(&r, MAX_BUNDLE, NG_BUNDLE_ACCEPT, "RTP/AVP");
		r.answered = true;
		q = talk_request("a", "b", PLAIN);
		if (strip) /* of the answer: what is removed is not sent either */
			q.flags |= 1ull << NG_FLAG_STRIP_EXTMAP;
		talk_send(&r.t, &q, true);
		for (uint32_t i = 0; i < 2; i++)
			assert_true(
				str_eq(value(&r, i, "extmap"), strip ? STR("") : STR(MID_IS("5"))));
		assert_int_equal(mock_stream(r.t.m, port(&r, 0))->mid_ext, strip ? 0 : 5);
		end(&r);
	}
	/* None was offered, or nothing is bundled. */
	start(&r);
	offer(&r,
		HEAD("1") "a=group:BUNDLE a v\r\nm=audio 4000 " DTLS " 0\r\na=mid:a\r\n" TRANSPORT
			  "m=video 0 " DTLS " 96\r\na=mid:v\r\na=bundle-only\r\n",
		NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r, PLAIN);
	assert_string_equal(group(&r), "a v");
	assert_int_equal(value(&r, 0, "extmap").len, 0);
	end(&r);
	start(&r);
	offer(&r, REPEATED, 0, "RTP/AVP");
	answer(&r, PLAIN);
	assert_int_equal(value(&r, 0, "extmap").len, 0);
	end(&r);
}

#define GROUPED(ext)                                                                               \
	HEAD("2")                                                                                  \
	"a=group:BUNDLE 1 2\r\nm=audio 5000 " DTLS " 0\r\na=mid:1\r\n" ext                         \
	"a=rtcp-mux\r\na=setup:active\r\n" PRINT ICE "m=video 5000 " DTLS " 96\r\na=mid:2\r\n" ext \
	"a=rtcp-mux\r\na=setup:active\r\n" PRINT ICE
#define LEVEL(n) "a=extmap:" n " urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n"

/* A group is offered with the MID extension. The offerer did not offer it, and does not see it. */
static void the_mid_is_offered(void **state)
{
	static const struct {
		const char *audio, *session, *id;
	} T[] = {
		{"", "", MID_IS("1")},
		{LEVEL("1"), "", MID_IS("2")},
		{LEVEL("2"), LEVEL("1"), MID_IS("3")},
		{LEVEL("4096"), "", MID_IS("1")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (int knows = 0; knows < 2; knows++) {
			char body[1024];
			struct rig r;
			uint16_t b;

			start(&r);
			snprintf(body, sizeof(body),
				HEAD("1") "%sm=audio 4000 RTP/AVP 0\r\n%sm=video 4002 RTP/AVP 96\r\n",
				T[i].session, T[i].audio);
			offer(&r, body, NG_BUNDLE_OFFER, DTLS);
			b = port(&r, 0);
			assert_true(str_eq(value(&r, 1, "extmap"), str_from(T[i].id)));
			answer(&r,
				knows ? GROUPED("a=extmap:7 urn:ietf:params:rtp-hdrext:sdes:mid\r\n")
				      : GROUPED(""));
			assert_int_equal(value(&r, 0, "extmap").len, 0);
			assert_int_equal(value(&r, 1, "extmap").len, 0);
			assert_int_equal(mock_stream(r.t.m, b)->mid_ext, knows ? 7 : 0);
			/* Offered again, it has the same ID. */
			offer(&r, body, NG_BUNDLE_OFFER, DTLS);
			assert_true(str_eq(value(&r, 1, "extmap"),
				knows ? STR(MID_IS("7")) : str_from(T[i].id)));
			end(&r);
		}
}

/* An ID names one header extension in all m-lines of a group. */
static void m_lines_with_other_header_extensions_are_not_offered_together(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r,
		HEAD("1") "m=audio 4000 RTP/AVP 0\r\n" LEVEL(
			"3") "m=video 4002 RTP/AVP 96\r\na=extmap:3 urn:3gpp:video-orientation\r\n"
			     "m=video 4004 RTP/AVP 98\r\na=extmap:4 urn:3gpp:video-orientation\r\n",
		NG_BUNDLE_OFFER, DTLS);
	assert_string_equal(group(&r), "1 3");
	end(&r);
}

/* Two m-lines of a browser with the same types: only the MID tells them apart. */
static void the_mid_is_answered_where_nothing_else_tells(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	offer(&r,
		HEAD("1") "a=group:BUNDLE v w\r\nm=video 4000 " DTLS
			  " 96\r\na=mid:v\r\n" MID TRANSPORT "m=video 0 " DTLS
			  " 96\r\na=mid:w\r\na=bundle-only\r\n" MID,
		NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r, HEAD("2") "m=video 5000 RTP/AVP 96\r\nm=video 5002 RTP/AVP 96\r\n");
	for (uint32_t i = 0; i < 2; i++)
		assert_true(str_eq(
			value(&r, i, "extmap"), STR("5 urn:ietf:params:rtp-hdrext:sdes:mid")));
	end(&r);
}

/* A browser's data channel is rejected on both sides, in the group or not. Audio goes on. */
static void data_channels_of_browsers_are_rejected(void **state)
{
	static const uint32_t FLAGS[] = {0, NG_BUNDLE_ACCEPT};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++) {
		struct ng_request q;
		struct rig r;

		start(&r);
		offer(&r,
			HEAD("1") "a=group:BUNDLE a d\r\nm=audio 4000 " DTLS
				  " 111 0\r\na=mid:a\r\n" TRANSPORT
				  "m=application 4000 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\n"
				  "a=sctp-port:5000\r\n" TRANSPORT,
			FLAGS[i], "RTP/AVP");
		assert_true(port(&r, 0) && !port(&r, 1));
		assert_true(r.t.reply.warning.len);
		assert_non_null(
			memmem(r.t.reply.warning.s, r.t.reply.warning.len, "data channel", 12));
		/* The answer has its MID, also with the flag generate-mid, because browsers require
		 * it. */
		r.answered = true;
		q = talk_request("a", "b",
			HEAD("2") "m=audio 5000 RTP/AVP 0\r\n"
				  "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n");
		q.flags |= 1ull << NG_FLAG_GENERATE_MID;
		talk_send(&r.t, &q, true);
		assert_true(port(&r, 0) && !port(&r, 1));
		assert_string_equal(group(&r), "a");
		assert_true(str_eq(value(&r, 1, "mid"), STR("d")));
		assert_int_equal(sessions(&r), 1);
		end(&r);
	}
}

/* Contexts that send under some key. */
static uint32_t with_keys(const struct rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MOCK_MAX; i++)
		n += r->t.m->ctx_set[i] && r->t.m->ctx_cfg[i].tx.keys;
	return n;
}

static void a_group_outlives_later_offers(void **state)
{
	struct session_event e = {.kind = SESSION_KEYS};
	const struct media_stream_cfg *video;
	struct ng_request q;
	struct rig r;
	uint16_t a;

	(void)state;
	start(&r);
	offer(&r, MAX_BUNDLE, NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r, PLAIN);
	a = port(&r, 0);
	/* The browser's own. */
	offer(&r, MAX_BUNDLE, 0, "");
	assert_string_equal(group(&r), "");
	answer(&r, PLAIN);
	assert_string_equal(group(&r), "a v");
	assert_true(port(&r, 0) == a && port(&r, 1) == a);
	/* The other side's: the browser is offered its group. */
	q = talk_request("b", "a", PLAIN);
	talk_send(&r.t, &q, false);
	assert_null(r.t.reply.error);
	assert_true(port(&r, 0) == a && port(&r, 1) == a);
	assert_int_equal(strlen(group(&r)), 3);
	assert_int_equal(shared(&r, &video), 1);
	assert_int_equal(sessions(&r), 1);
	/* Keys come, and one context has them. */
	e.association = r.s.cfg[number(&r, a)].dtls.association;
	e.rx.suite = e.tx.suite = SUITE_AES_CM_128_80;
	e.rx.key[0] = 7;
	calls_session_event(r.t.c, number(&r, a), &e, r.t.now);
	assert_int_equal(shared(&r, &video), 1);
	assert_int_equal(with_keys(&r), 1);
	offer(&r, MAX_BUNDLE, 0, "");
	answer(&r, PLAIN);
	assert_int_equal(with_keys(&r), 1);
	/* With reject it ends. The other m-line waits for keys of its own. */
	offer(&r, REPEATED, NG_BUNDLE_REJECT, "");
	answer(&r, PLAIN);
	assert_int_equal(with_keys(&r), 1);
	assert_true(mock_ctx(r.t.m, port(&r, 1))->tx.awaited);
	assert_false(mock_ctx(r.t.m, port(&r, 0))->tx.awaited);
	assert_int_equal(shared(&r, &video), 0);
	assert_int_equal(sessions(&r), 2);
	end(&r);
}

#define ALONE(n, key, more)                                             \
	HEAD(n)                                                         \
	"m=audio 4000 RTP/SAVP 0\r\na=mid:a\r\na=rtcp-mux\r\na=crypto:" \
	"1 AES_CM_128_HMAC_SHA1_80 " key "\r\n" more

/* m-lines with ports of their own: terminals write MIDs themselves, unless the SSRCs are ours. They
 * are after a restart. */
static void mids_where_nothing_is_bundled(void **state)
{
	(void)state;
	for (int knows = 0; knows < 2; knows++) {
		struct rig r;

		start(&r);
		for (int restarted = 0; restarted < 2; restarted++) {
			const struct media_stream_cfg *a, *b;

			if (restarted)
				call_table_find(&r.t.c->table, STR("call"))->rename = 5;
			offer(&r, ALONE("1", K80A, MID), NG_BUNDLE_ACCEPT, "RTP/SAVP");
			b = mock_stream(r.t.m, port(&r, 0));
			answer(&r, knows ? ALONE("2", K80C, MID) : ALONE("2", K80C, ""));
			a = mock_stream(r.t.m, port(&r, 0));
			assert_true(
				str_eq(value(&r, 0, "extmap"), knows ? STR(MID_IS("5")) : STR("")));
			assert_int_equal(a->mid_ext, knows ? 5 : 0);
			assert_int_equal(b->mid_ext, knows ? 5 : 0);
			assert_int_equal(a->mids, knows && restarted);
			assert_int_equal(b->mids, knows && restarted);
		}
		end(&r);
	}
}

static void crypto_lines_of_the_first_hold_for_all(void **state)
{
	const struct media_stream_cfg *video;
	struct rig r;

	(void)state;
	start(&r);
	offer(&r,
		HEAD("1") "a=group:BUNDLE a v\r\nm=audio 4000 RTP/SAVP 0\r\na=mid:a\r\na=rtcp-mux\r\n"
			  "a=crypto:" C80A "\r\n"
			  "m=video 4000 RTP/SAVP 96\r\na=mid:v\r\na=rtcp-mux\r\na=crypto:1 "
			  "AES_CM_128_HMAC_SHA1_80 " K80C "\r\n",
		NG_BUNDLE_ACCEPT, "RTP/AVP");
	answer(&r, PLAIN);
	assert_string_equal(group(&r), "a v");
	assert_int_equal(shared(&r, &video), 1);
	assert_true(str_eq(value(&r, 0, "crypto"), value(&r, 1, "crypto")));
	assert_int_equal(video->ctx, mock_stream(r.t.m, port(&r, 0))->ctx);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bundled_offerer_and_an_unbundled_answerer),
		cmocka_unit_test(ssrcs_of_sdp_reach_the_streams),
		cmocka_unit_test(transport_cc_needs_the_same_transports),
		cmocka_unit_test(without_the_flag_nothing_changes),
		cmocka_unit_test(groups_that_cannot_be),
		cmocka_unit_test(a_group_without_its_first_m_line),
		cmocka_unit_test(a_group_is_offered),
		cmocka_unit_test(m_lines_with_one_payload_type_are_not_offered_together),
		cmocka_unit_test(the_mid_is_answered),
		cmocka_unit_test(the_mid_is_offered),
		cmocka_unit_test(m_lines_with_other_header_extensions_are_not_offered_together),
		cmocka_unit_test(the_mid_is_answered_where_nothing_else_tells),
		cmocka_unit_test(data_channels_of_browsers_are_rejected),
		cmocka_unit_test(a_group_outlives_later_offers),
		cmocka_unit_test(mids_where_nothing_is_bundled),
		cmocka_unit_test(crypto_lines_of_the_first_hold_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
