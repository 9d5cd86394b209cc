/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams under attack: SRTP streams that receive more forged packets than true ones. Until the
 * attack ends, their packets are checked by a guard (packet/guard.h) before any cipher, and their
 * jobs go last in a burst. Steering gets a copy of the guard.
 *
 * A stream is under attack when ATTACK_FORGED packets failed authentication within a second, and
 * more than passed it. The attack ends after ATTACK_CALM periods in a row with fewer than one
 * forged packet for ATTACK_FEW true ones. Steering drops most forged packets unseen, but not those
 * in open periods, of which ATTACK_PERIOD_NS has two at least.
 *
 * Only authentic packets move the guard. A terminal that jumps, or changes its SSRC or address,
 * waits for the next open period: about a second, or 0.13 s if the stream is silent otherwise. A
 * stream with several SSRCs at a time gets no guard.
 *
 * If all places are taken, the guarded stream with the weakest flood yields its place to one whose
 * flood was more than twice as strong in the last second. A stream keeps its place for
 * ATTACK_PERIOD_NS at least, and is suspected when it has yielded it. A share per call, or turns,
 * would not help: an attacker with many calls can flood as many of them as he likes. To keep others
 * out he needs 256 floods, each half as strong as the one against another call. The strength of a
 * guarded flood is estimated from open periods, because steering drops the rest unseen. So a forged
 * packet in an open period counts as 32, and as 4 if the stream is silent otherwise.
 *
 * Attacked streams that get no guard (bundled m-lines, several SSRCs, all places taken) are
 * suspected: their packets are authenticated before anything else is done with them, and their jobs
 * go last, too. This ends ATTACK_PERIOD_NS after the latest reason. Of further streams than
 * ATTACK_SUSPECTS, forged packets cost more. */
#ifndef MEDIA_ATTACK_H
#define MEDIA_ATTACK_H

#include "media/state.h"
#include "packet/guard.h"

#define ATTACK_FORGED    32u /* packets in a second */
#define ATTACK_SECOND_NS 1000000000ull
#define ATTACK_PERIOD_NS 2200000000ull
#define ATTACK_FEW       8u
#define ATTACK_CALM      5u
#define ATTACK_STREAMS   256u           /* of one worker; others get no guard, and are counted */
#define ATTACK_SUSPECTS  256u           /* of one worker */
#define ATTACK_SSRCS     2u             /* changes in a period: several SSRCs at a time, no guard */
#define ATTACK_NONE_NS   10000000000ull /* how long such a stream stays unguarded */
#define ATTACK_WILD      3u             /* jumps of timestamps, which then are not checked */
#define ATTACK_TELL      8u             /* authentic packets per report to steering, at most */

/* A guarded stream. */
struct attack {
	struct guard_window window;
	uint64_t since_ns;       /* start of the period */
	uint64_t trues, refused; /* packets, and drops by the guard, at the start of the period */
	uint32_t stream;         /* MEDIA_NONE: the place is free */
	uint32_t forged;         /* in this period */
	uint32_t rate;     /* forged packets per second, before this period; UINT32_MAX: unknown */
	uint64_t sampled;  /* forged packets in this period, estimated from those of open periods */
	uint32_t unseen;   /* with SRTP+ tags steering hides the flood: rate before the guard */
	uint32_t untold;   /* authentic packets since the last report to steering */
	uint16_t told_seq; /* window.seq of the last report */
	uint32_t wild;     /* authentic packets whose timestamp jumped */
	uint32_t ssrcs;    /* changes of the SSRC in this period */
	struct local_port local; /* port of the last report to steering */
	uint8_t calm;            /* periods in a row with few forged packets */
	bool tell, over;
	uint64_t types[2]; /* payload types of authentic packets */
};

struct attacks {
	struct attack of[ATTACK_STREAMS];
	uint32_t waiting;   /* places to report to steering */
	uint32_t next;      /* place to report first: each has its turn */
	_Atomic uint32_t n; /* guarded streams */
	/* Suspected streams, and ports of bundles. */
	uint32_t suspect[ATTACK_SUSPECTS];
	uint32_t suspected;
	uint64_t looked_ns; /* when their times were compared last */
	_Atomic uint64_t begun;
	/* Attacked streams that found no place: each counts once a second. */
	_Atomic uint64_t left_out;
};

/* A packet of this stream failed authentication, or has a wrong SRTP+ tag. */
void media_attack_forged(struct media *m, uint32_t stream, const struct packet_in *in);
/* A packet of a guarded stream was authentic and new. */
void media_attack_true(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j);
/* Whether a stream has a guard or is suspected. Trusts those that have not been attacked for a
 * while. */
bool media_attack_suspects(struct media *m, uint64_t now_ns);
/* Whether the guard refuses this RTP packet of a guarded stream. Reads only. */
bool media_attack_refuses(const struct media *m, const struct arena *a, uint32_t stream,
	const struct packet_in *in, const uint8_t *p, uint32_t len);
/* Forgets the guard of a stream, if it has one, and that it is suspected. */
void media_attack_end(struct media *m, uint32_t stream);
/* The streams of this context have new keys: indexes begin again. */
void media_attack_new_keys(struct media *m, uint32_t ctx);
/* NULL: out of memory. */
struct attacks *media_attacks_alloc(void);

#endif
