/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The condition of a call at one moment, from its model and the counters of its streams: state,
 * trouble, quality, traffic. Lists, filters, log lines and explanations use the same figures. */
#ifndef CALL_SIGHT_H
#define CALL_SIGHT_H

#include "call/model.h"

/* A terminal that should send is silent if none of its packets arrived for this long. */
#define SIGHT_SILENT_NS (5 * NS_PER_SEC)
/* Packets with a bad tag that are trouble, if they are also a tenth of all. */
#define SIGHT_BAD_TAGS 50u
/* Mean opinion score below which users complain, in hundredths (ITU-T G.107 Annex B). */
#define SIGHT_LOW_MOS 310u

/* X(id, name) */
#define SIGHT_STATES(X)   \
	X(EARLY, "early") \
	X(UP, "up")       \
	X(HOLD, "hold")   \
	X(ENDING, "ending")

enum sight_state {
#define X(id, name) SIGHT_##id,
	SIGHT_STATES(X)
#undef X
		SIGHT_STATE_COUNT
};

/* X(id, name, text) */
#define SIGHT_TROUBLES(X)                                                \
	X(ONE_WAY, "one-way", "one terminal sends, the other is silent") \
	X(BAD_TAGS, "bad-tags", "many packets fail authentication")      \
	X(LOW_MOS, "low-mos", "mean opinion score below 3.1")            \
	X(WRONG_SOURCE, "wrong-source", "media arrives from an unexpected address")

enum sight_trouble {
#define X(id, name, text) SIGHT_TROUBLE_##id,
	SIGHT_TROUBLES(X)
#undef X
		SIGHT_TROUBLE_COUNT
};

const char *sight_state_name(enum sight_state s);
const char *sight_trouble_name(enum sight_trouble t);
const char *sight_trouble_text(enum sight_trouble t);

struct sight {
	enum sight_state state;
	uint32_t troubles;                  /* bit per enum sight_trouble */
	uint8_t silent_side, silent_media;  /* of ONE_WAY; the media counts from 0 */
	uint8_t bad_side, bad_media;        /* of BAD_TAGS and WRONG_SOURCE */
	bool plain;                         /* some media in force are RTP without encryption */
	bool measured;                      /* mos, loss, rtt and jitter are known */
	uint32_t mos, loss, rtt, jitter;    /* the worst leg's, in units of media_quality */
	uint64_t packets, errors, bad_tags; /* received from all terminals */
	uint64_t last_ns;                   /* the latest packet, CLOCK_REALTIME, 0 = none */
};

/* now_ns: CLOCK_REALTIME. Reads counters only. */
void sight_take(
	struct sight *out, const struct relay *relay, const struct call *c, uint64_t now_ns);

/* Quality of what a leg's terminal sends, wherever its RTCP arrives: of one of the two streams. */
static inline const struct media_quality *sight_quality(
	const struct relay_stats *rtp, const struct relay_stats *rtcp)
{
	return rtp->quality.samples ? &rtp->quality : &rtcp->quality;
}

/* The likely cause of silence, bad tags or wrong sources on this leg, in plain words; a constant,
 * or in the pool. stats: of its RTP stream. */
struct str sight_cause(struct pool *p, const struct leg *l, const struct relay_stats *st);
/* Names SRTCP with tags of 32 bits that was dropped, and the remedy; empty: there was none. rtcp:
 * of the leg's RTCP stream. */
struct str sight_short_tag(struct pool *p, const struct relay_stats *rtcp);

#endif
