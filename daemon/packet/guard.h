/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guard describes which packets a stream under attack accepts. media/attack.c sets it. The
 * programs of xdp and nfqueue and the kernel module use this one check, guard_check(), before a
 * packet costs anything. Media use its first part, guard_window_check(), and compare SRTP+ tags by
 * their own state, which is newer (media_attack_refuses()). It only reads.
 * It is plain C without a library, loops or pointers to pointers, because of eBPF's verifier.
 *
 * A guard proves nothing. It says which packets are not worth authentication. So an error must
 * never silence a terminal: at times the guard is open (guard_open()), and all packets of the
 * believed source are authenticated by SRTP. If a terminal changes its SSRC, or jumps, its first
 * authentic packet then updates the guard. */
#ifndef PACKET_GUARD_H
#define PACKET_GUARD_H

#include <linux/types.h>

#include "srtp/preauth_header.h"
#include "srtp/preauth_window.h"

/* eBPF without CAP_PERFMON refuses the stack of a function that is not inlined. */
#define GUARD_INLINE static inline __attribute__((__always_inline__))

/* X(id, name, text): why a packet is refused. */
#define GUARD_REASONS(X)                                                      \
	X(SOURCE, "source", "not from the believed source")                   \
	X(KIND, "kind", "neither RTP nor RTCP, and nothing else is expected") \
	X(SSRC, "ssrc", "unknown SSRC")                                       \
	X(TYPE, "type", "payload type is not in the SDP")                     \
	X(INDEX, "index", "sequence number outside the window")               \
	X(TIME, "time", "RTP timestamp outside the window")                   \
	X(TAG, "tag", "wrong SRTP+ tag, or one used before")

enum guard_result {
	GUARD_PASS,
#define X(id, name, text) GUARD_##id,
	GUARD_REASONS(X)
#undef X
		GUARD_RESULTS
};

/* A period is 2^25 ns, 33.6 ms: longer than the usual 20 ms between two packets. One period in
 * GUARD_PERIODS is open; one in GUARD_PERIODS_QUIET after GUARD_QUIET_NS without a true packet. */
#define GUARD_PERIOD_SHIFT  25
#define GUARD_PERIODS       32u
#define GUARD_PERIODS_QUIET 4u
#define GUARD_QUIET_NS      400000000ull

#define GUARD_AHEAD  256u /* packets, of sequence numbers from the newest on */
#define GUARD_BEHIND 128u /* the length of the smallest replay window */
/* RTP timestamps: the fastest clock in use, and what a terminal may differ from the time that has
 * passed: events of RFC 4733 keep the timestamp of their start. */
#define GUARD_CLOCK_KHZ   96u
#define GUARD_TIME_AHEAD  (10000u * GUARD_CLOCK_KHZ)
#define GUARD_TIME_BEHIND (10000u * GUARD_CLOCK_KHZ)

enum guard_flags {
	GUARD_IS_V6 = 1,
	GUARD_TIMES = 2, /* time is valid */
	GUARD_TAGS = 4,  /* packets of this SSRC end with an SRTP+ tag: the window decides */
	GUARD_OTHER = 8, /* packets other than RTP and RTCP pass: the port expects them */
	GUARD_RTCP = 16, /* RTCP passes */
	GUARD_MACS = 32, /* RTP ends with an SRTP+ tag of header-siphash. Not with GUARD_TAGS */
};

/* Eight-byte words first: no padding between the members. */
struct guard_window {
	__u64 addr[2];  /* of the believed source as bytes; IPv4: the first four, the rest zero */
	__u64 types[2]; /* bit per payload type in the SDP; both 0: unknown, all pass */
	__u64 at_ns;    /* when the newest packet came, by the clock of guard_check()'s now_ns */
	__u64 epoch_ns; /* by the same clock: start of the first period, which is open */
	__u32 ssrc;
	__u32 time;   /* RTP timestamp of the newest packet */
	__u16 seq;    /* sequence number of the newest packet */
	__u16 port;   /* of the believed source, host order */
	__u8 flags;   /* enum guard_flags */
	__u8 tag_len; /* bytes of the SRTP+ tag at the packet's end: 4 or 1; 0: none */
	__u8 pad[2];
};

struct guard {
	struct guard_window window;
	/* Secret. Without GUARD_TAGS and GUARD_MACS zero, and need not be copied. */
	union {
		struct preauth_window tags; /* GUARD_TAGS */
		__u64 sip[2];               /* GUARD_MACS: key of preauth_header.h */
	};
};

/* A received packet, in host order. */
struct guard_packet {
	__u64 addr[2];
	__u16 port;
	__u8 v6;
	__u8 first, second; /* first bytes of the UDP payload */
	__u16 seq;
	__u32 time, ssrc; /* RTP; RTCP: ssrc is at bytes 4 to 7 */
	__u32 tag;        /* last tag_len bytes of the payload, if guard_wants_tag() */
};

/* RTCP by RFC 5761 4. */
GUARD_INLINE int guard_is_rtcp(const struct guard_packet *p)
{
	return p->second >= 192 && p->second <= 223;
}

/* All packets of the source pass: a terminal may have jumped or changed its SSRC. */
GUARD_INLINE int guard_open(const struct guard_window *g, __u64 now_ns)
{
	__u64 period = (now_ns - g->epoch_ns) >> GUARD_PERIOD_SHIFT;

	if (now_ns - g->at_ns > GUARD_QUIET_NS)
		return !(period & (GUARD_PERIODS_QUIET - 1));
	return !(period & (GUARD_PERIODS - 1));
}

/* Milliseconds since the newest packet, about; at most two minutes. Shifts, as there may be no
 * 64-bit division. */
GUARD_INLINE __u32 guard_since_ms(const struct guard_window *g, __u64 now_ns)
{
	__u64 ms = now_ns > g->at_ns ? (now_ns - g->at_ns) >> 20 : 0;

	return ms > 120000 ? 126000 : (__u32)(ms + (ms >> 4)) + 1;
}

GUARD_INLINE int guard_time_ok(const struct guard_window *g, __u32 time, __u64 now_ns)
{
	__u32 ahead = GUARD_TIME_AHEAD + GUARD_CLOCK_KHZ * guard_since_ms(g, now_ns);

	return time - g->time + GUARD_TIME_BEHIND <= ahead + GUARD_TIME_BEHIND;
}

GUARD_INLINE enum guard_result guard_time_check(
	const struct guard_window *g, const struct guard_packet *p, __u64 now_ns)
{
	return g->flags & GUARD_TIMES && !guard_time_ok(g, p->time, now_ns) ? GUARD_TIME
									    : GUARD_PASS;
}

/* The sequence number is one that may come next, or the replay window has room for. */
GUARD_INLINE int guard_seq_ok(const struct guard_window *g, __u16 seq)
{
	return (__u16)(seq - g->seq + GUARD_BEHIND) < GUARD_BEHIND + GUARD_AHEAD;
}

/* The newest packet, or one before it that the replay window has room for. */
GUARD_INLINE int guard_is_late(const struct guard_window *g, __u16 seq)
{
	return (__u16)(g->seq - seq) <= GUARD_BEHIND;
}

GUARD_INLINE enum guard_result guard_window_check(
	const struct guard_window *g, const struct guard_packet *p, __u64 now_ns)
{
	/* No port: the guard has ended, and its owner has wiped it. */
	if (p->addr[0] != g->addr[0] || p->addr[1] != g->addr[1] || p->port != g->port ||
		p->v6 != (g->flags & GUARD_IS_V6))
		return g->port ? GUARD_SOURCE : GUARD_PASS;
	if (p->first >> 6 != 2)
		return g->flags & GUARD_OTHER ? GUARD_PASS : GUARD_KIND;
	if (guard_is_rtcp(p))
		return g->flags & GUARD_RTCP ? GUARD_PASS : GUARD_KIND;
	if ((g->types[0] | g->types[1]) && !(g->types[p->second >> 6 & 1] >> (p->second & 63) & 1))
		return GUARD_TYPE;
	if (p->ssrc != g->ssrc)
		return GUARD_SSRC;
	if (g->flags & GUARD_TAGS)
		return GUARD_PASS;
	if (!guard_seq_ok(g, p->seq))
		return GUARD_INDEX;
	return guard_time_check(g, p, now_ns);
}

/* Whether the packet needs its tag checked. */
GUARD_INLINE int guard_wants_tag(const struct guard_window *g, const struct guard_packet *p)
{
	if (p->first >> 6 != 2 || guard_is_rtcp(p))
		return 0;
	return g->flags & GUARD_MACS || (g->flags & GUARD_TAGS && p->ssrc == g->ssrc);
}

/* The key gives the tag of any header. A tag that was seen on the wire stays right, so a right tag
 * does not make up for a header outside the window. */
GUARD_INLINE int guard_mac_ok(const struct guard *g, const struct guard_packet *p)
{
	__u32 word = (__u32)p->first << 24 | (__u32)p->second << 16 | p->seq;

	return !guard_wants_tag(&g->window, p) ||
		preauth_sip_fields(g->sip, word, p->time, p->ssrc) == p->tag;
}

/* now_ns: by the clock of at_ns. A wrong tag is refused in open periods, too: the tag of its index
 * or header is known. */
GUARD_INLINE enum guard_result guard_check(
	const struct guard *g, const struct guard_packet *p, __u64 now_ns)
{
	enum guard_result r = guard_window_check(&g->window, p, now_ns);

	if (r == GUARD_PASS && g->window.flags & GUARD_TAGS && guard_wants_tag(&g->window, p)) {
		switch (preauth_window_check(&g->tags, p->seq, p->tag)) {
		case PREAUTH_TRUE:
			return GUARD_PASS;
		case PREAUTH_OUTSIDE:
			/* A new window of chain has no tags of earlier packets: SRTP decides. */
			r = guard_is_late(&g->window, p->seq)
				? guard_time_check(&g->window, p, now_ns)
				: GUARD_INDEX;
			break;
		default:
			return GUARD_TAG;
		}
	}
	if (r != GUARD_PASS && !guard_open(&g->window, now_ns))
		return r;
	return g->window.flags & GUARD_MACS && !guard_mac_ok(g, p) ? GUARD_TAG : GUARD_PASS;
}

#endif
