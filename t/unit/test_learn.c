/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address learning, rule by rule, with time as a parameter. Each case is a story of signalling and
 * packets, and names the address that is followed at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "media/learn.h"

#define MS 1000000ull
#define T0 100000000000ull /* first signalling */

#define SDP   "192.0.2.1:4000"
#define PORT  "192.0.2.1:4001" /* same address */
#define NAT   "198.51.100.7:5555"
#define GUESS "203.0.113.66:4000" /* a stranger's, with the port that SDP names */
#define ELSE  "198.51.100.7:9"
#define THIEF "203.0.113.66:666"
#define NEW   "192.0.2.77:7000" /* a new address in SDP */
#define HOLD  "0.0.0.0:4000"
#define LAN   "192.168.1.20:4000" /* a private address in SDP */
#define LAN6  "[fd12::20]:4000"
#define WAN6  "[2001:db8::20]:4000"
#define NEAR  "10.4.4.4:4000"

enum {
	PROVED = 1,
	RTCP = 2,
	VOUCHED = 4,
	OTHER_SSRC = 8,
	OTHER_TYPE = 16,
	STUCK = 32,
	RESTART = 64
};

/* n packets from src, one every ms milliseconds; without n, signalling of that address. */
struct step {
	const char *src;
	uint32_t n, ms;
	uint32_t how;
};

struct story {
	const char *why;
	struct media_stream_cfg cfg;
	struct step step[8];
	const char *remote;
	bool confirmed;
	uint32_t heard; /* packets relayed, of the last step */
};

#define MODE(m)                                                                 \
	{                                                                       \
		.learning = MEDIA_LEARN_##m, .rtp = true, .strict_source = true \
	}
#define LOOSE(m)                                         \
	{                                                \
		.learning = MEDIA_LEARN_##m, .rtp = true \
	}
#define HAND(m)                                                                  \
	{                                                                        \
		.learning = MEDIA_LEARN_##m, .rtp = true, .strict_source = true, \
		.media_handover = true                                           \
	}
#define ASYM(m)                                                                  \
	{                                                                        \
		.learning = MEDIA_LEARN_##m, .rtp = true, .strict_source = true, \
		.asymmetric = true                                               \
	}
#define REPORT(m)                                                                \
	{                                                                        \
		.learning = MEDIA_LEARN_##m, .rtcp = true, .strict_source = true \
	}

struct stage {
	struct learn l;
	struct learn_trials t;
	uint64_t now;
	uint16_t seq;
	uint32_t handovers;
	enum learn_cause cause;
};

static struct endpoint at(const char *text)
{
	struct endpoint e = {0};

	if (text)
		assert_int_equal(endpoint_parse(&e, str_from(text)), 0);
	return e;
}

static bool packet(struct stage *s, const struct media_stream_cfg *cfg, const struct endpoint *src,
	uint32_t how)
{
	bool proved = how & PROVED;
	struct learn_seen seen = {.src = src,
		.now_ns = s->now,
		.ssrc = how & OTHER_SSRC ? s->seq : src->port,
		.seq = s->seq,
		.type = how & OTHER_TYPE ? s->seq & 0x7f : 8,
		.rtcp = how & RTCP,
		.vouched = how & VOUCHED,
		.proved = proved};
	struct learn_result r;

	s->seq += !(how & STUCK);
	if (!learn_accepts(&s->l, &s->t, cfg, src, proved))
		return false;
	r = learn_packet(&s->l, &s->t, cfg, &seen);
	s->handovers += r.cause != LEARN_KEPT;
	s->cause = r.cause ? r.cause : s->cause;
	return r.heard;
}

static uint32_t take(struct stage *s, const struct media_stream_cfg *cfg, const struct step *step)
{
	struct endpoint e = at(step->src);
	uint32_t heard = 0;

	if (!step->n) {
		learn_signal(&s->l, &s->t, &e, step->how & RESTART, s->now);
		s->now += step->ms * MS;
	}
	for (uint32_t i = 0; i < step->n; i++) {
		heard += packet(s, cfg, &e, step->how);
		s->now += step->ms * MS;
	}
	return heard;
}

static void play(const struct story *story, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct stage s = {.now = T0};
		struct endpoint sdp = at(SDP), want = at(story[i].remote);
		uint32_t heard = 0;

		learn_signal(&s.l, &s.t, &sdp, false, s.now);
		for (size_t k = 0; k < 8 && story[i].step[k].src; k++)
			heard = take(&s, &story[i].cfg, &story[i].step[k]);
		if (!endpoint_eq(&s.l.remote, &want) || s.l.confirmed != story[i].confirmed ||
			heard != story[i].heard)
			fail_msg("%s: port %u, confirmed %d, heard %u", story[i].why,
				s.l.remote.port, s.l.confirmed, heard);
	}
}

/* --- Without authentication ------------------------------------------------------------------- */

static void each_mode_follows_and_confirms_by_its_rule(void **state)
{
	static const struct story T[] = {
		{"off: only SDP counts", MODE(OFF), {{NAT, 20, 300, 0}}, SDP, false, 0},
		{"off, not strict: others are heard", LOOSE(OFF), {{NAT, 9, 20, 0}}, SDP, false, 9},
		{"off: the address in SDP is heard", MODE(OFF), {{SDP, 9, 20, 0}}, SDP, true, 9},
		{"off: and confirmed at once", MODE(OFF), {{SDP, 1, 0, 0}}, SDP, true, 1},
		{"off: another address in SDP", MODE(OFF),
			{{SDP, 9, 20, 0}, {NEW, 0, 0, 0}, {SDP, 9, 20, 0}}, NEW, false, 0},
		{"off: which sends", MODE(OFF), {{SDP, 9, 20, 0}, {NEW, 0, 0, 0}, {NEW, 1, 20, 0}},
			NEW, true, 1},
		{"off: RTCP on the port of RTP", MODE(OFF), {{SDP, 9, 20, RTCP}}, SDP, false, 9},
		{"immediate: who passes first", MODE(IMMEDIATE), {{NAT, 5, 20, 0}}, NAT, true, 1},
		{"immediate: not yet", MODE(IMMEDIATE), {{NAT, 4, 20, 0}}, SDP, false, 0},
		{"immediate: exact at once", MODE(IMMEDIATE), {{SDP, 1, 20, 0}}, SDP, true, 1},
		{"delayed: followed at once", MODE(DELAYED), {{NAT, 5, 20, 0}}, NAT, false, 1},
		{"delayed: confirmed after 3 s", MODE(DELAYED),
			{{NAT, 5, 20, 0}, {NAT, 1, 2900, 0}, {NAT, 1, 0, 0}}, NAT, true, 1},
		{"delayed: the latest of a rank", MODE(DELAYED),
			{{NAT, 5, 20, 0}, {NAT, 1, 1000, 0}, {"198.51.100.9:4000", 5, 20, 0}},
			"198.51.100.9:4000", false, 1},
		{"delayed: as soon as the first is silent", MODE(DELAYED),
			{{NAT, 5, 20, 0}, {NAT, 1, 200, 0}, {"198.51.100.9:4000", 5, 20, 0}},
			"198.51.100.9:4000", false, 1},
		{"heuristic: not so soon", MODE(HEURISTIC),
			{{NAT, 5, 20, 0}, {NAT, 1, 200, 0}, {"198.51.100.9:4000", 5, 20, 0}}, NAT,
			false, 0},
		{"delayed: the address in SDP stays", MODE(DELAYED),
			{{SDP, 1, 200, 0}, {NAT, 50, 20, 0}}, SDP, true, 0},
		{"delayed: no newcomer while it sends", MODE(DELAYED),
			{{NAT, 5, 20, 0}, {"198.51.100.9:4000", 3, 20, 0}, {NAT, 1, 20, 0},
				{"198.51.100.9:4000", 3, 20, 0}},
			NAT, false, 0},
		{"heuristic: exact at once", MODE(HEURISTIC), {{SDP, 1, 20, 0}, {NAT, 9, 20, 0}},
			SDP, true, 0},
		{"heuristic: same address beats any", MODE(HEURISTIC),
			{{NAT, 5, 20, 0}, {PORT, 5, 20, 0}}, PORT, false, 1},
		{"heuristic: a worse one is not heard", MODE(HEURISTIC),
			{{PORT, 5, 20, 0}, {NAT, 9, 20, 0}}, PORT, false, 0},
		{"heuristic: a late exact one wins", MODE(HEURISTIC),
			{{ELSE, 5, 20, 0}, {SDP, 1, 20, 0}}, SDP, true, 1},
		{"heuristic: the best of 3 s is confirmed by itself", MODE(HEURISTIC),
			{{PORT, 5, 20, 0}, {PORT, 1, 3000, 0}, {THIEF, 9, 20, 0}}, PORT, false, 0},
		{"heuristic: confirmed", MODE(HEURISTIC),
			{{PORT, 5, 20, 0}, {PORT, 1, 3000, 0}, {PORT, 1, 0, 0}}, PORT, true, 1},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

static void a_stray_packet_takes_nothing_however_long_all_was_silent(void **state)
{
	static const struct story T[] = {
		{"immediate", MODE(IMMEDIATE), {{SDP, 0, 4000, 0}, {THIEF, 1, 20, 0}}, SDP, false,
			0},
		{"delayed", MODE(DELAYED), {{SDP, 0, 4000, 0}, {THIEF, 1, 20, 0}}, SDP, false, 0},
		{"heuristic", MODE(HEURISTIC), {{SDP, 0, 4000, 0}, {THIEF, 1, 20, 0}}, SDP, false,
			0},
		{"not strict: heard, not followed", LOOSE(HEURISTIC),
			{{SDP, 0, 4000, 0}, {THIEF, 1, 20, 0}}, SDP, false, 1},
		{"handover", HAND(HEURISTIC), {{SDP, 0, 4000, 0}, {THIEF, 1, 20, 0}}, SDP, false,
			0},
		{"the terminal is not locked out", MODE(HEURISTIC),
			{{SDP, 0, 4000, 0}, {THIEF, 4, 20, 0}, {SDP, 1, 20, 0}}, SDP, true, 1},
		{"nor behind address translation", MODE(HEURISTIC),
			{{SDP, 0, 4000, 0}, {THIEF, 4, 20, 0}, {NAT, 5, 20, 0}}, NAT, true, 1},
		{"a packet each two seconds is no stream", MODE(HEURISTIC), {{THIEF, 20, 2001, 0}},
			SDP, false, 0},
		{"nor are many SSRCs", MODE(HEURISTIC), {{THIEF, 50, 20, OTHER_SSRC}}, SDP, false,
			0},
		{"nor payload types", MODE(HEURISTIC), {{THIEF, 50, 20, OTHER_TYPE}}, SDP, false,
			0},
		{"nor one number again and again", MODE(HEURISTIC), {{THIEF, 50, 20, STUCK}}, SDP,
			false, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

/* A stranger chooses his source port, so a port that matches SDP proves nothing. */
static void the_signalled_port_at_another_address_means_nothing(void **state)
{
	static const struct story T[] = {
		{"heuristic: while the terminal sends", MODE(HEURISTIC),
			{{NAT, 60, 20, 0}, {GUESS, 3, 1, 0}, {NAT, 1, 20, 0}, {GUESS, 3, 1, 0},
				{NAT, 1, 0, 0}},
			NAT, false, 1},
		{"delayed", MODE(DELAYED), {{NAT, 60, 20, 0}, {GUESS, 9, 1, 0}}, NAT, false, 0},
		{"and the terminal is confirmed", MODE(HEURISTIC),
			{{NAT, 150, 20, 0}, {GUESS, 9, 1, 0}, {NAT, 1, 20, 0}, {GUESS, 9, 1, 0}},
			NAT, true, 0},
		{"who is confirmed stays", MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {GUESS, 50, 20, 0}},
			NAT, true, 0},
		{"a port-preserving translator's terminal stays as well", MODE(HEURISTIC),
			{{GUESS, 60, 20, 0}, {NAT, 9, 1, 0}}, GUESS, false, 0},
		{"the control: nobody else sends", MODE(HEURISTIC), {{GUESS, 5, 20, 0}}, GUESS,
			false, 1},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

static void the_signalled_address_always_takes_over(void **state)
{
	static const struct story T[] = {
		{"from a confirmed stranger, at once, and confirmed when it goes on",
			MODE(HEURISTIC),
			{{SDP, 0, 4000, 0}, {THIEF, 20, 20, 0}, {SDP, 1, 20, 0}, {THIEF, 3, 20, 0},
				{SDP, 4, 20, 0}, {THIEF, 100, 20, 0}},
			SDP, true, 0},
		{"at once", MODE(HEURISTIC),
			{{SDP, 0, 4000, 0}, {THIEF, 20, 20, 0}, {SDP, 1, 20, 0}}, SDP, false, 1},
		{"every packet of it is heard", MODE(IMMEDIATE),
			{{THIEF, 20, 20, 0}, {SDP, 50, 20, 0}}, SDP, true, 50},
		{"a single forged one only for a moment", MODE(HEURISTIC),
			{{NAT, 5, 20, 0}, {NAT, 1, 3000, 0}, {NAT, 1, 20, 0}, {SDP, 1, 20, 0},
				{NAT, 20, 20, 0}},
			NAT, true, 11},
		{"not strict", LOOSE(IMMEDIATE),
			{{THIEF, 20, 20, 0}, {SDP, 5, 20, 0}, {THIEF, 20, 20, 0}}, SDP, true, 20},
		{"same address, by probation", MODE(IMMEDIATE),
			{{THIEF, 20, 20, 0}, {PORT, 5, 20, 0}}, PORT, true, 1},
		{"same port does not", MODE(IMMEDIATE), {{THIEF, 20, 20, 0}, {GUESS, 50, 20, 0}},
			THIEF, true, 0},
		{"nobody takes over from it", MODE(IMMEDIATE),
			{{SDP, 1, 5000, 0}, {PORT, 50, 20, 0}}, SDP, true, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

/* A few packets are forged from the private address in SDP. The terminal behind address translation
 * gets its media back, and nobody else does. */
static void a_private_address_in_sdp_locks_no_translated_source_out(void **state)
{
#define CONFIRMED(sdp, nat)                                 \
	{sdp, 0, 0, 0}, {nat, 5, 20, 0}, {nat, 1, 3000, 0}, \
	{                                                   \
		nat, 1, 20, 0                               \
	}
	static const struct story T[] = {
		{"back when the forger is silent", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {NAT, 100, 20, 0}}, NAT, true, 46},
		{"also in IPv6", MODE(HEURISTIC),
			{CONFIRMED(LAN6, WAN6), {LAN6, 6, 20, 0}, {WAN6, 100, 20, 0}}, WAN6, true,
			46},
		{"after any time", MODE(IMMEDIATE),
			{CONFIRMED(LAN, NAT), {LAN, 500, 20, 0}, {NAT, 100, 20, 0}}, NAT, true, 46},
		{"in the period after signalling, too", MODE(IMMEDIATE),
			{{LAN, 0, 0, 0}, {NAT, 5, 20, 0}, {LAN, 6, 20, 0}, {NAT, 100, 20, 0}}, NAT,
			true, 46},
		{"not at once", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {NAT, 50, 20, 0}}, LAN, false, 0},
		{"not by single packets", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {NAT, 9, 2100, 0}}, LAN, true, 0},
		{"not by packets of no stream", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {NAT, 200, 20, OTHER_SSRC}}, LAN,
			true, 0},
		{"nobody else", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {THIEF, 500, 20, 0}}, LAN, true, 0},
		{"no other port of it", MODE(HEURISTIC),
			{CONFIRMED(LAN, NAT), {LAN, 6, 20, 0}, {ELSE, 500, 20, 0}}, LAN, true, 0},
		{"nor who was only followed", MODE(HEURISTIC),
			{{LAN, 0, 0, 0}, {THIEF, 5, 20, 0}, {LAN, 6, 20, 0}, {THIEF, 500, 20, 0}},
			LAN, true, 0},
		{"nor somebody private", MODE(HEURISTIC),
			{CONFIRMED(LAN, NEAR), {LAN, 6, 20, 0}, {NEAR, 500, 20, 0}}, LAN, true, 0},
		{"nor if SDP names a public address", MODE(HEURISTIC),
			{CONFIRMED(SDP, THIEF), {SDP, 6, 20, 0}, {THIEF, 500, 20, 0}}, SDP, true,
			0},
		{"nor if SDP changed since", MODE(IMMEDIATE),
			{{LAN, 0, 0, 0}, {NAT, 5, 20, 0}, {LAN, 6, 20, 0}, {NEAR, 0, 0, 0},
				{NEAR, 6, 20, 0}, {NAT, 500, 20, 0}},
			NEAR, true, 0},
		{"a refresh changes nothing", MODE(IMMEDIATE),
			{{LAN, 0, 0, 0}, {NAT, 5, 20, 0}, {LAN, 6, 20, 0}, {LAN, 0, 0, 0},
				{NAT, 100, 20, 0}},
			NAT, true, 46},
		{"nor does hold", MODE(IMMEDIATE),
			{{LAN, 0, 0, 0}, {NAT, 5, 20, 0}, {LAN, 6, 20, 0}, {HOLD, 0, 0, 0},
				{LAN, 0, 0, 0}, {NAT, 100, 20, 0}},
			NAT, true, 46},
		{"reports: after 30 s of silence", REPORT(HEURISTIC),
			{{LAN, 0, 4000, 0}, {NAT, 3, 5000, RTCP}, {LAN, 4, 5000, RTCP},
				{NAT, 12, 5000, RTCP}},
			NAT, true, 4},
	};
	struct media_stream_cfg cfg = MODE(IMMEDIATE);
	struct endpoint lan = at(LAN);
	struct stage s = {.now = T0};

	(void)state;
	play(T, ARRAY_LEN(T));
	/* Both send: the signalled address has the media, and each packet of it is heard. */
	learn_signal(&s.l, &s.t, &lan, false, s.now);
	take(&s, &cfg, &(struct step){NAT, 5, 20, 0});
	take(&s, &cfg, &(struct step){LAN, 6, 20, 0});
	for (int i = 0; i < 200; i++) {
		assert_int_equal(take(&s, &cfg, &(struct step){LAN, 1, 10, 0}), 1);
		assert_int_equal(take(&s, &cfg, &(struct step){NAT, 1, 10, 0}), 0);
		assert_true(endpoint_eq(&s.l.remote, &lan));
	}
	/* The other one has ended: the signalled address is confirmed again. */
	assert_false(s.l.confirmed);
	take(&s, &cfg, &(struct step){LAN, 150, 20, 0});
	assert_true(s.l.confirmed && s.handovers == 1);
#undef CONFIRMED
}

static void a_confirmed_source_stays(void **state)
{
	static const struct story T[] = {
		{"however long it is silent", MODE(IMMEDIATE),
			{{NAT, 5, 20, 0}, {NAT, 1, 60000, 0}, {"198.51.100.9:4000", 50, 20, 0}},
			NAT, true, 0},
		{"strict: others are not heard", MODE(IMMEDIATE),
			{{NAT, 5, 20, 0}, {THIEF, 500, 20, 0}}, NAT, true, 0},
		{"not strict: heard, not followed", LOOSE(IMMEDIATE),
			{{NAT, 5, 20, 0}, {THIEF, 500, 20, 0}}, NAT, true, 500},
		{"handover: not while it sends", HAND(IMMEDIATE),
			{{NAT, 5, 20, 0}, {THIEF, 9, 20, 0}}, NAT, true, 0},
		{"handover: by probation", HAND(IMMEDIATE),
			{{NAT, 5, 20, 0}, {NAT, 1, 1000, 0}, {THIEF, 5, 20, 0}}, THIEF, true, 1},
		{"handover: not by one packet", HAND(IMMEDIATE),
			{{NAT, 5, 20, 0}, {NAT, 1, 60000, 0}, {THIEF, 1, 20, 0}}, NAT, true, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

static void asymmetric_terminals_are_answered_where_they_said(void **state)
{
	static const struct story T[] = {
		{"on probation", ASYM(IMMEDIATE), {{NAT, 4, 20, 0}}, SDP, false, 0},
		{"its source is confirmed, and not sent to", ASYM(IMMEDIATE), {{NAT, 50, 20, 0}},
			SDP, true, 46},
		{"strict: others are not heard", ASYM(IMMEDIATE),
			{{NAT, 9, 20, 0}, {THIEF, 50, 20, 0}}, SDP, true, 0},
		{"a new address is sent to", ASYM(IMMEDIATE), {{NAT, 9, 20, 0}, {NEW, 0, 0, 0}},
			NEW, false, 0},
		{"off: any port of the address", ASYM(OFF), {{PORT, 9, 20, 0}}, SDP, false, 9},
		{"off: no other address", ASYM(OFF), {{THIEF, 9, 20, 0}}, SDP, false, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

static void rtcp_has_its_own_probation(void **state)
{
	static const struct story T[] = {
		{"one report", REPORT(HEURISTIC), {{SDP, 0, 4000, 0}, {NAT, 1, 20, RTCP}}, SDP,
			false, 0},
		{"three of an SSRC", REPORT(HEURISTIC), {{SDP, 0, 4000, 0}, {NAT, 3, 5000, RTCP}},
			NAT, true, 1},
		{"of several", REPORT(HEURISTIC), {{NAT, 9, 5000, RTCP | OTHER_SSRC}}, SDP, false,
			0},
		{"the RTP source's", REPORT(IMMEDIATE), {{NAT, 1, 20, RTCP | VOUCHED}}, NAT, true,
			1},
		{"exact", REPORT(HEURISTIC), {{SDP, 1, 20, RTCP}}, SDP, true, 1},
		{"it does not lead RTP", MODE(IMMEDIATE), {{NAT, 9, 20, RTCP}}, SDP, false, 0},
		{"but is heard from its source", MODE(IMMEDIATE),
			{{NAT, 5, 20, 0}, {NAT, 9, 20, RTCP}}, NAT, true, 9},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

/* --- With authentication ---------------------------------------------------------------------- */

static void one_authentic_packet_is_enough(void **state)
{
	static const struct story T[] = {
		{"immediate", MODE(IMMEDIATE), {{NAT, 1, 20, PROVED}}, NAT, true, 1},
		{"delayed", MODE(DELAYED), {{NAT, 1, 20, PROVED}}, NAT, false, 1},
		{"heuristic", MODE(HEURISTIC), {{NAT, 1, 3000, PROVED}, {NAT, 1, 20, PROVED}}, NAT,
			true, 1},
		{"exact after it, for good", MODE(IMMEDIATE),
			{{NAT, 1, 20, PROVED}, {SDP, 1, 20, PROVED}}, SDP, true, 1},
		{"no worse one makes it flap", MODE(IMMEDIATE),
			{{SDP, 1, 20, PROVED}, {NAT, 50, 20, PROVED}}, SDP, true, 0},
		{"handover at once", HAND(IMMEDIATE), {{SDP, 1, 20, PROVED}, {NAT, 1, 20, PROVED}},
			NAT, true, 1},
		{"over whoever proved nothing", MODE(IMMEDIATE),
			{{THIEF, 9, 20, 0}, {NAT, 1, 20, PROVED}}, NAT, true, 1},
		{"who then cannot come back", MODE(IMMEDIATE),
			{{THIEF, 9, 20, 0}, {NAT, 1, 20, PROVED}, {THIEF, 9, 20, 0}}, NAT, true, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

/* --- Signalling ------------------------------------------------------------------------------- */

static void signalling_restarts_learning_only_when_it_is_new(void **state)
{
	static const struct story T[] = {
		{"the same again", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {SDP, 0, 0, 0}, {THIEF, 50, 20, 0}}, NAT, true, 0},
		{"hold", MODE(IMMEDIATE), {{NAT, 9, 20, 0}, {HOLD, 0, 0, 0}, {THIEF, 50, 20, 0}},
			NAT, true, 0},
		{"hold and resume", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {HOLD, 0, 0, 0}, {SDP, 0, 0, 0}, {THIEF, 50, 20, 0}}, NAT,
			true, 0},
		{"hold, strict, off", MODE(OFF), {{HOLD, 0, 0, 0}, {THIEF, 9, 20, 0}}, SDP, false,
			0},
		{"another address", MODE(IMMEDIATE), {{NAT, 9, 20, 0}, {NEW, 0, 0, 0}}, NEW, false,
			0},
		{"that sends", MODE(IMMEDIATE), {{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NEW, 1, 0, 0}},
			NEW, true, 1},
		{"the source before is heard", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 4, 20, 0}}, NEW, false, 4},
		{"and followed after its probation", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 100, 20, 0}}, NAT, false, 100},
		{"also when it is authentic, for it may have moved", MODE(IMMEDIATE),
			{{NAT, 1, 20, PROVED}, {NEW, 0, 0, 0}, {NAT, 4, 20, PROVED}}, NEW, false,
			4},
		{"and confirmed after 3 s", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 5, 20, 0}, {NAT, 1, 3000, 0},
				{NAT, 1, 0, 0}},
			NAT, true, 1},
		{"the new address takes over at once", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 9, 20, 0}, {NEW, 1, 20, 0}}, NEW,
			true, 1},
		{"so does any other source, after its probation", MODE(HEURISTIC),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 9, 1, 0}, {ELSE, 5, 1, 0},
				{NAT, 100, 20, 0}},
			ELSE, false, 0},
		{"it is not in the way", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, 0}, {NAT, 50, 20, 0}, {ELSE, 5, 20, 0},
				{NAT, 50, 20, 0}},
			ELSE, true, 0},
		{"it may be learned again", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 3000, 0}, {NAT, 5, 20, 0}}, NAT, true, 1},
		{"another address, which is where it is already", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NAT, 0, 0, 0}, {THIEF, 50, 20, 0}}, NAT, true, 0},
		{"another terminal", MODE(IMMEDIATE), {{NAT, 9, 20, 0}, {SDP, 0, 0, RESTART}}, SDP,
			false, 0},
		{"the terminal before is not heard", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {NEW, 0, 0, RESTART}, {NAT, 50, 20, 0}}, NEW, false, 0},
		{"at the same address it begins anew: a gateway answers again", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {SDP, 0, 0, RESTART}, {NAT, 50, 20, 0}}, NAT, false, 46},
		{"but gives way to any other", MODE(IMMEDIATE),
			{{NAT, 9, 20, 0}, {SDP, 0, 0, RESTART}, {NAT, 9, 1, 0}, {ELSE, 5, 1, 0},
				{NAT, 100, 20, 0}},
			ELSE, true, 0},
	};

	(void)state;
	play(T, ARRAY_LEN(T));
}

static void port_0_in_sdp_names_no_source(void **state)
{
	struct media_stream_cfg cfg = MODE(OFF), immediate = MODE(IMMEDIATE);
	struct endpoint none = at(SDP), nat = at(NAT), sdp = at(SDP);
	struct stage s = {.now = T0};

	(void)state;
	none.port = 0;
	learn_signal(&s.l, &s.t, &none, false, T0);
	assert_true(learn_accepts(&s.l, &s.t, &cfg, &nat, false));
	assert_int_equal(s.l.remote.family, 0);
	/* An earlier source does not stay when SDP names an address, but is accepted until a source
	 * is followed. */
	take(&s, &immediate, &(struct step){NAT, 5, 20, 0});
	assert_true(s.l.confirmed && endpoint_eq(&s.l.remote, &nat));
	learn_signal(&s.l, &s.t, &sdp, false, s.now);
	assert_true(!s.l.confirmed && endpoint_eq(&s.l.remote, &sdp));
	assert_int_equal(take(&s, &immediate, &(struct step){NAT, 4, 20, 0}), 4);
	assert_true(endpoint_eq(&s.l.remote, &sdp));
	assert_int_equal(take(&s, &immediate, &(struct step){NAT, 5, 20, 0}), 5);
	assert_true(!s.l.confirmed && endpoint_eq(&s.l.remote, &nat));
	take(&s, &immediate, &(struct step){SDP, 1, 20, 0});
	assert_int_equal(take(&s, &immediate, &(struct step){NAT, 9, 20, 0}), 0);
	assert_true(s.l.confirmed && endpoint_eq(&s.l.remote, &sdp));
}

/* A call that begins on hold (RFC 3264 8.4), and by port 0. */
static void what_came_before_the_first_address_stays_only_if_authentic_or_there(void **state)
{
	struct endpoint first[2] = {at(HOLD), at(SDP)};
	static const struct {
		const char *src, *remote;
		uint32_t how;
	} T[] = {{THIEF, SDP, 0}, {NAT, NAT, PROVED}, {SDP, SDP, 0}};
	struct media_stream_cfg cfg = MODE(HEURISTIC);
	struct endpoint sdp = at(SDP);

	(void)state;
	first[1].port = 0;
	for (size_t i = 0; i < ARRAY_LEN(first) * ARRAY_LEN(T); i++) {
		size_t k = i % ARRAY_LEN(T);
		struct endpoint want = at(T[k].remote);
		struct stage s = {.now = T0};

		learn_signal(&s.l, &s.t, &first[i / ARRAY_LEN(T)], false, T0);
		s.now += 4000 * MS;
		take(&s, &cfg, &(struct step){T[k].src, 8, 20, T[k].how});
		assert_true(s.l.confirmed);
		learn_signal(&s.l, &s.t, &sdp, false, s.now);
		assert_true(endpoint_eq(&s.l.remote, &want));
		assert_int_equal(s.l.confirmed, k > 0);
		take(&s, &cfg, &(struct step){THIEF, 4, 20, 0});
		assert_true(endpoint_eq(&s.l.remote, &want));
		/* A source that goes on sending is followed like any other. Every other source
		 * takes precedence. */
		take(&s, &cfg, &(struct step){THIEF, 50, 1, 0});
		assert_int_equal(endpoint_eq(&s.l.remote, &want), k > 0);
		take(&s, &cfg, &(struct step){ELSE, 5, 1, 0});
		take(&s, &cfg, &(struct step){THIEF, 200, 10, 0});
		want = k ? want : at(ELSE);
		assert_true(endpoint_eq(&s.l.remote, &want));
	}
}

/* Early media: the answer names the address for the first time. */
static void early_media_from_the_answers_address_go_on(void **state)
{
	static const struct {
		struct media_stream_cfg cfg;
		const char *src, *remote;
		uint32_t early, how, heard; /* before; signalling; accepted of 5 after */
		bool confirmed;             /* right after the answer */
	} T[] = {
		{MODE(DELAYED), SDP, SDP, 9, 0, 5, false},
		{MODE(DELAYED), PORT, PORT, 9, 0, 5, false},
		{MODE(HEURISTIC), PORT, PORT, 9, 0, 5, false},
		{MODE(IMMEDIATE), PORT, PORT, 9, 0, 5, true},
		{MODE(DELAYED), PORT, PORT, 200, 0, 5, true},
		{MODE(DELAYED), PORT, SDP, 4, 0, 1, false},
		{MODE(DELAYED), PORT, SDP, 9, RESTART, 0, false},
		{MODE(DELAYED), NAT, SDP, 9, 0, 1, false},
		{ASYM(DELAYED), PORT, SDP, 9, 0, 5, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct stage s = {.now = T0};
		struct endpoint none = {0}, want = at(T[i].remote);
		uint32_t heard;

		learn_signal(&s.l, &s.t, &none, false, s.now);
		take(&s, &T[i].cfg, &(struct step){T[i].src, T[i].early, 20, 0});
		take(&s, &T[i].cfg, &(struct step){SDP, 0, 0, T[i].how});
		if (!endpoint_eq(&s.l.remote, &want) || s.l.confirmed != T[i].confirmed)
			fail_msg("%zu: port %u, confirmed %d", i, s.l.remote.port, s.l.confirmed);
		heard = take(&s, &T[i].cfg, &(struct step){T[i].src, 5, 20, 0});
		if (heard != T[i].heard)
			fail_msg("%zu: heard %u", i, heard);
		/* The exact address takes over at once. */
		assert_int_equal(take(&s, &T[i].cfg, &(struct step){SDP, 1, 20, 0}), 1);
		assert_true(learn_rank_of(&s.l.signalled, &s.l.source) == LEARN_EXACT);
	}
}

/* The terminal moved and sent its last packets from the new address. */
static void a_source_from_before_that_falls_silent_is_left(void **state)
{
	struct endpoint sdp = at(SDP), neu = at(NEW), nat = at(NAT);
	struct media_stream_cfg cfg = MODE(HEURISTIC);
	struct stage s = {.now = T0};

	(void)state;
	learn_signal(&s.l, &s.t, &sdp, false, T0);
	take(&s, &cfg, &(struct step){NAT, 5, 20, 0});
	assert_false(learn_is_old(&s.l, &s.t));
	learn_signal(&s.l, &s.t, &neu, false, s.now);
	take(&s, &cfg, &(struct step){NAT, 5, 20, 0});
	assert_true(learn_is_old(&s.l, &s.t) && endpoint_eq(&s.l.remote, &nat));
	assert_false(learn_moved(&s.l, &s.t, s.now + LEARN_MOVED_NS / 2));
	assert_true(learn_moved(&s.l, &s.t, s.now + LEARN_MOVED_NS));
	assert_true(endpoint_eq(&s.l.remote, &neu) && !learn_is_old(&s.l, &s.t));
	assert_false(learn_moved(&s.l, &s.t, s.now + 2 * LEARN_MOVED_NS));
	/* The terminal only paused. */
	s.now += LEARN_MOVED_NS;
	take(&s, &cfg, &(struct step){NAT, 5, 20, 0});
	assert_true(endpoint_eq(&s.l.remote, &nat));
}

/* --- Details ---------------------------------------------------------------------------------- */

static void a_handover_tells_its_cause(void **state)
{
	static const struct {
		struct media_stream_cfg cfg;
		struct step step[3];
		enum learn_cause cause;
	} T[] = {
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {SDP, 1, 20, 0}}, LEARN_BY_EXACT},
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {PORT, 5, 20, 0}}, LEARN_BY_BETTER},
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {ELSE, 1, 20, PROVED}}, LEARN_BY_AUTHENTIC},
		{HAND(IMMEDIATE), {{NAT, 5, 1000, 0}, {ELSE, 5, 20, 0}}, LEARN_BY_HANDOVER},
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {SDP, 1, 20, 0}, {NAT, 20, 20, 0}},
			LEARN_BY_RESTORED},
		{MODE(DELAYED), {{NAT, 5, 20, 0}, {SDP, 1, 20, 0}}, LEARN_KEPT},
		/* After a re-INVITE with another address */
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {NEW, 0, 0, 0}, {ELSE, 5, 20, 0}},
			LEARN_BY_SIGNALLED},
		{MODE(DELAYED), {{NAT, 400, 10, 0}, {NEW, 0, 0, 0}, {ELSE, 400, 20, 0}},
			LEARN_BY_SIGNALLED},
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {NEW, 0, 0, 0}, {NEW, 5, 20, 0}}, LEARN_KEPT},
		{MODE(IMMEDIATE), {{NAT, 5, 20, 0}, {NEW, 0, 0, 0}, {NAT, 400, 20, 0}}, LEARN_KEPT},
		{MODE(DELAYED), {{NAT, 5, 20, 0}, {NEW, 0, 0, 0}, {ELSE, 5, 20, 0}}, LEARN_KEPT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct stage s = {.now = T0};
		struct endpoint sdp = at(SDP);

		learn_signal(&s.l, &s.t, &sdp, false, T0);
		for (size_t k = 0; k < 3 && T[i].step[k].src; k++)
			take(&s, &T[i].cfg, &T[i].step[k]);
		assert_int_equal(s.cause, T[i].cause);
		assert_int_equal(
			s.handovers, T[i].cause == LEARN_BY_RESTORED ? 2 : T[i].cause != 0);
	}
}

/* Loss, order, telephone events and comfort noise do not end a probation. */
static void an_ordinary_stream_passes(void **state)
{
	static const struct {
		uint16_t seq;
		uint8_t type;
	} T[] = {{65534, 8}, {0, 8}, {65535, 8}, {0, 8}, {1, 101}, {2, 13}, {30, 8}};
	struct media_stream_cfg cfg = MODE(IMMEDIATE);
	struct endpoint sdp = at(SDP), nat = at(NAT);
	struct stage s = {.now = T0};

	(void)state;
	cfg.events[1] = 1ull << (101 - 64);
	learn_signal(&s.l, &s.t, &sdp, false, T0);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct learn_seen seen = {
			.src = &nat, .now_ns = T0 + i, .seq = T[i].seq, .type = T[i].type};

		assert_false(s.l.confirmed);
		learn_packet(&s.l, &s.t, &cfg, &seen);
	}
	assert_true(s.l.confirmed);
}

/* Strangers that come and go do not evict better candidates on probation. */
static void a_spray_does_not_keep_the_better_one_out(void **state)
{
	struct media_stream_cfg cfg = MODE(IMMEDIATE);
	struct endpoint sdp = at(SDP), thief = at(THIEF);
	struct stage s = {.now = T0};

	(void)state;
	learn_signal(&s.l, &s.t, &sdp, false, T0);
	for (uint32_t i = 0; i < 5; i++) {
		for (uint32_t k = 0; k < 100; k++) {
			thief.port = (uint16_t)(1000 + 100 * i + k);
			assert_false(packet(&s, &cfg, &thief, STUCK));
		}
		s.seq = (uint16_t)(50 + i);
		take(&s, &cfg, &(struct step){PORT, 1, 20, 0});
	}
	assert_true(s.l.confirmed && s.l.remote.port == 4001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mode_follows_and_confirms_by_its_rule),
		cmocka_unit_test(a_stray_packet_takes_nothing_however_long_all_was_silent),
		cmocka_unit_test(the_signalled_port_at_another_address_means_nothing),
		cmocka_unit_test(the_signalled_address_always_takes_over),
		cmocka_unit_test(a_private_address_in_sdp_locks_no_translated_source_out),
		cmocka_unit_test(a_confirmed_source_stays),
		cmocka_unit_test(asymmetric_terminals_are_answered_where_they_said),
		cmocka_unit_test(rtcp_has_its_own_probation),
		cmocka_unit_test(one_authentic_packet_is_enough),
		cmocka_unit_test(signalling_restarts_learning_only_when_it_is_new),
		cmocka_unit_test(port_0_in_sdp_names_no_source),
		cmocka_unit_test(
			what_came_before_the_first_address_stays_only_if_authentic_or_there),
		cmocka_unit_test(early_media_from_the_answers_address_go_on),
		cmocka_unit_test(a_source_from_before_that_falls_silent_is_left),
		cmocka_unit_test(a_handover_tells_its_cause),
		cmocka_unit_test(an_ordinary_stream_passes),
		cmocka_unit_test(a_spray_does_not_keep_the_better_one_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
