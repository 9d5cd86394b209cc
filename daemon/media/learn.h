/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Learns the address that a terminal really sends from. Pure: the time is a parameter.
 *
 * A source has a rank: how well it matches the address in the terminal's SDP. Where the terminal's
 * packets are authenticated, one authentic packet suffices. Elsewhere anybody can send, so a source
 * below LEARN_EXACT is on probation: it is followed after LEARN_PACKETS consistent packets. With
 * strict-source, its packets are relayed only from then on. */
#ifndef MEDIA_LEARN_H
#define MEDIA_LEARN_H

#include "media/media.h"

/* "delayed" and "heuristic" confirm a source this long after signalling, as rtpengine does. */
#define LEARN_PERIOD_NS 3000000000ull
/* A source that was silent for this long may be replaced by another of its rank, where replacement
 * is allowed. */
#define LEARN_QUIET_NS 1000000000ull
/* If the address in SDP is silent for this long after it took over, its packets were stray ones. */
#define LEARN_STRAY_NS 200000000ull
/* A source that was followed before signalling arrived has moved if it is silent for this long. */
#define LEARN_MOVED_NS 1000000000ull
#define LEARN_PACKETS  5  /* RTP packets of probation */
#define LEARN_REPORTS  3  /* RTCP packets of probation; there is one every few seconds */
#define LEARN_STEP     64 /* largest advance of sequence numbers within a probation */
#define LEARN_TRIALS   4  /* sources on probation at a time */

/* The port alone gives no rank: a sender chooses it freely, and SDP shows it to everyone on the
 * signalling path. */
enum learn_rank { LEARN_ANY, LEARN_SAME_ADDR, LEARN_EXACT };

/* Causes for the replacement of a confirmed source. */
#define LEARN_CAUSES(X)                                                  \
	X(EXACT, "exact", "the address in SDP sends")                    \
	X(BETTER, "better", "a source closer to the address in SDP")     \
	X(AUTHENTIC, "authentic", "the first authentic source")          \
	X(HANDOVER, "handover", "media-handover allows it")              \
	X(RESTORED, "restored", "the address in SDP sent stray packets") \
	X(SIGNALLED, "signalled", "after a change of SDP another source sent first")

enum learn_cause {
	LEARN_KEPT,
#define X(id, name, text) LEARN_BY_##id,
	LEARN_CAUSES(X)
#undef X
		LEARN_CAUSE_N
};

struct learn {
	struct endpoint signalled; /* the last address that SDP named; family 0 = none */
	struct endpoint source;    /* followed, or confirmed; family 0 = none yet */
	uint64_t since_ns;         /* last signalling */
	uint64_t heard_ns;         /* source, as far as learn_packet() saw its packets */
	/* From here on: on the cache line that packets of a confirmed source need (media/state.h).
	 */
	struct endpoint remote; /* destination of media */
	bool confirmed : 1;
	bool proved : 1; /* the source was learned from an authentic packet */
	/* the address in SDP has taken over, but has not passed its probation yet */
	bool tentative : 1;
	uint16_t dev; /* interface of the confirmed source; 0 = the host's stack checked it */
};

/* Whether the packet's source and interface are the confirmed ones. */
static inline bool learn_same_way(const struct learn *l, const struct packet_in *in)
{
	return in->dev == l->dev && l->confirmed && endpoint_eq(&in->src, &l->source);
}

/* A source on probation. */
struct learn_trial {
	struct endpoint src; /* family 0 = free */
	uint32_t ssrc;
	uint64_t last_ns;
	uint16_t seq; /* the highest of this run */
	uint8_t type; /* payload type */
	uint8_t count;
};

/* Used only while packets come from another source than the confirmed one. */
struct learn_trials {
	/* Tentative: the confirmed source that was replaced. Otherwise the source from before
	 * signalling, for LEARN_PERIOD_NS after it: every other source takes precedence over it. */
	struct endpoint old;
	/* "old" was confirmed until the signalled address, which is private, took over. "old"
	 * returns if it sends consistent packets, and the signalled address sends none for
	 * LEARN_QUIET_NS. Otherwise a few packets forged from the private address would take the
	 * media from a terminal behind address translation for the rest of the call. */
	bool old_waits;
	bool old_heard;     /* packets of "old" are relayed while no source is followed */
	bool old_barred;    /* "old" is of another terminal, and must not be followed */
	bool old_confirmed; /* "old" was confirmed, and no other source was reported in its place */
	struct learn_trial of[LEARN_TRIALS];
};

/* The properties of a packet that learning uses. */
struct learn_seen {
	const struct endpoint *src;
	uint64_t now_ns;
	uint32_t ssrc;
	uint16_t seq; /* RTP */
	uint8_t type; /* RTP: payload type */
	bool rtcp;    /* no sequence number: RTCP, or a datagram of media that is not RTP */
	bool proved;  /* it is authentic */
	bool vouched; /* RTCP: address and SSRC are those of the RTP stream's confirmed source */
};

struct learn_result {
	bool heard;               /* relay the packet */
	bool changed;             /* remote, source or confirmed have changed */
	enum learn_cause cause;   /* a confirmed source was replaced */
	enum learn_rank from, to; /* if cause is set: ranks of the old and the new source */
};

const char *learn_rank_name(enum learn_rank rank);
const char *learn_cause_name(enum learn_cause cause);
const char *learn_cause_text(enum learn_cause cause);
enum learn_rank learn_rank_of(const struct endpoint *signalled, const struct endpoint *src);

/* A new SDP was received. The same address, or none (hold), keeps the learned source. The first
 * address keeps it if it has the same IP address: media before the answer. Another address starts
 * learning again, and so does restart (another terminal answered). The previous source may then be
 * learned again, but only while no other source is followed: the terminal may have changed its
 * address in SDP without moving. */
void learn_signal(struct learn *l, struct learn_trials *t, const struct endpoint *signalled,
	bool restart, uint64_t now_ns);

/* The followed source dates from before signalling, and is not confirmed. Call learn_moved() before
 * media are sent. */
bool learn_is_old(const struct learn *l, const struct learn_trials *t);
/* If such a source is silent, the terminal has moved: media are sent to the address in SDP. True:
 * remote has changed. */
bool learn_moved(struct learn *l, const struct learn_trials *t, uint64_t now_ns);

/* Forgets the followed source. Media go to the address in SDP. */
void learn_forget(struct learn *l, struct learn_trials *t);

/* May a packet from here be processed at all? Cheap: before any cipher. proves: packets of this
 * kind are authenticated. */
bool learn_accepts(const struct learn *l, const struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct endpoint *src, bool proves);

/* Learns from a packet that learn_accepts() accepted; where packets are authenticated, from an
 * authentic one only. */
struct learn_result learn_packet(struct learn *l, struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct learn_seen *s);

#endif
