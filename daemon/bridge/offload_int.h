/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of offload share; nobody else includes it. offload.c moves streams there and back,
 * offload_eligible.c judges which may, offload_count.c reads the kernel's counters,
 * offload_follow.c follows the commands that workers get. Times are monotonic unless they say
 * otherwise. */
#ifndef BRIDGE_OFFLOAD_INT_H
#define BRIDGE_OFFLOAD_INT_H

#include "bridge/offload.h"

#define OFFLOAD_WATCH_NS \
	(10 * NS_PER_SEC) /* a watched stream (media/again.c) stays out of the kernel for so long */
#define OFFLOAD_SILENCE_NS (STEER_SILENCE_MS * 1000000ull)

enum off_where { OURS, ASKED, KERNEL };

struct off_stream {
	struct media_stream_cfg cfg;
	bool set;
	uint8_t where; /* enum off_where */
	uint8_t returns;
	bool touched, based; /* the kernel may have counted something; base is known */
	bool late;           /* counters to be read again: it came back since */
	uint32_t from;       /* stream whose RTP goes out by this one, or MEDIA_NONE */
	/* Listeners that are among its destinations; of a listener's from counts what came since
	 * then, and before. */
	uint32_t hearer[STEER_COPIES + 1], hearers;
	uint64_t out_since, out_since_bytes, out_before, out_before_bytes;
	struct steer_relay what;
	uint64_t asked_ns, not_before_ns, read_ns; /* monotonic */
	uint64_t base_packets, base_bytes, base_strangers;
	uint64_t before_packets, before_bytes, before_strangers; /* of kernels that are gone */
	bool silent;                                             /* as it told */
	bool stirred; /* it told of something: look again */
	struct steer_relayed seen;
	/* Passed through: the kernel sees the sequence numbers, and nobody else does. */
	bool follows;
	uint64_t index, told; /* where it stands; what the worker was told of it */
};

enum off_kind { CIPHERED, PLAIN, PASSED }; /* CIPHERED: or not set yet */

struct off_ctx {
	uint8_t rx, tx;     /* enum off_kind */
	uint32_t stream[2]; /* those that RTP and RTCP of this context come in by, or MEDIA_NONE */
};

struct off_site {
	struct off_stream *stream;
	struct off_ctx *ctx;
	uint32_t top; /* streams from here on were never set */
};

struct offload {
	struct offload_config cfg;
	struct off_site *site;
	uint32_t worker; /* of the dump that is being read */
	uint64_t now_ns;
	uint32_t reads;
	bool told;    /* the kernel tells of silence and other sources by itself */
	bool gone;    /* there is no such kernel at present */
	bool asking;  /* workers were asked to have it relay, and it is not known whether it does */
	bool stirred; /* some stream is */
	uint64_t dumped_ns, real_ns;  /* when counters were read last, and CLOCK_REALTIME then */
	uint64_t gone_packets, moves; /* of streams that are released */
};

/* --- offload.c -------------------------------------------------------------------------------- */

/* It is ours from now on. Tells nobody. */
void offload_come_back(struct offload *o, struct off_stream *s);
/* Commands that bring it back, two at most: their number. */
uint32_t offload_way_back(struct offload *o, struct off_stream *s, struct worker_cmd out[2]);

/* --- offload_eligible.c ----------------------------------------------------------------------- */

/* Where a stream's packets go: to its peer, if it has one, then to who listens. */
struct offload_dests {
	struct steer_copy d[STEER_COPIES + 1];
	uint32_t hearer[STEER_COPIES + 1]; /* streams of those who listen */
	uint32_t n, hearers;
};

/* The stream that what comes in by this one leaves by, or MEDIA_NONE. */
uint32_t offload_target(const struct media_stream_cfg *c);
/* Whether what comes in by the stream may stay in the kernel, and how; look: what it is like now.
 * *out only where it may. */
bool offload_eligible(const struct offload *o, uint32_t worker, uint32_t id,
	struct steer_relay *out, struct offload_look *look, struct offload_dests *to);
/* The kernel would do the same by both. */
bool offload_same(const struct steer_relay *a, const struct steer_relay *b);

/* --- offload_count.c -------------------------------------------------------------------------- */

/* The counters of one stream, or of all that are in the kernel. */
int offload_read(struct offload *o, struct off_stream *s, uint64_t now_ns);
void offload_dump(struct offload *o, uint64_t now_ns);
/* That the kernel counted since the stream's port is ours, as of the last reading. */
uint64_t offload_packets(const struct off_stream *s);
/* Its counters are over; others begin. */
void offload_count_anew(struct off_stream *s);
/* From now on these listen to the stream, or nobody: what it counted until now is theirs who
 * listened until now. */
void offload_hearers_note(struct off_site *site, uint32_t id, const struct offload_dests *to);
void offload_hearers_forget(struct off_site *site, struct off_stream *s);

#endif
