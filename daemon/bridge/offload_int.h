/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of offload. offload.c moves streams to the kernel and back,
 * offload_eligible.c decides which may go, offload_count.c reads the kernel's counters,
 * offload_follow.c follows the workers' commands. Times are monotonic unless stated otherwise. */
#ifndef BRIDGE_OFFLOAD_INT_H
#define BRIDGE_OFFLOAD_INT_H

#include "bridge/offload.h"

/* time for which a watched stream (media/again.c) stays out of the kernel */
#define OFFLOAD_WATCH_NS   (10 * NS_PER_SEC)
#define OFFLOAD_SILENCE_NS (STEER_SILENCE_MS * 1000000ull)

enum off_where { OURS, ASKED, KERNEL };

struct off_stream {
	const struct media_stream_cfg *cfg; /* in bridge_sent */
	bool set;
	uint32_t to;   /* offload_target() of the configuration that is linked */
	uint8_t where; /* enum off_where */
	uint8_t returns;
	bool touched, based; /* the kernel may have counted packets; base is valid */
	bool late;           /* returned from the kernel: read its counters again */
	uint32_t from;       /* stream whose RTP leaves here, or MEDIA_NONE */
	/* Listeners among its destinations. For a listener: counters since it joined, and before.
	 */
	uint32_t hearer[STEER_COPIES + 1], hearers;
	uint64_t out_since, out_since_bytes, out_before, out_before_bytes;
	struct steer_relay what;
	uint64_t asked_ns, not_before_ns, read_ns; /* monotonic */
	uint64_t base_packets, base_bytes, base_strangers;
	/* counted by kernel modules that were unloaded */
	uint64_t before_packets, before_bytes, before_strangers;
	bool silent;  /* the kernel reported that no packets arrive */
	bool stirred; /* an event was received: look at it again */
	struct steer_relayed seen;
	/* Passed-through SRTP: only the kernel sees the sequence numbers. */
	bool follows;
	uint64_t index, told; /* its index; the last index sent to the worker */
};

enum off_kind { CIPHERED, PLAIN, PASSED }; /* CIPHERED also means never set */

struct off_ctx {
	uint32_t stream[2]; /* streams that receive RTP and RTCP of this context, or MEDIA_NONE */
};

struct off_site {
	const struct bridge_sent *sent;
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
	bool told;    /* the kernel reports silence and other sources itself */
	bool gone;    /* the kernel module is not loaded at present */
	bool asking;  /* commands to relay were sent to workers, and their result is unknown */
	bool stirred; /* some stream has "stirred" set */
	/* time of the last reading of counters, monotonic and CLOCK_REALTIME */
	uint64_t dumped_ns, real_ns;
	uint64_t gone_packets, moves; /* of released streams */
};

/* --- offload.c -------------------------------------------------------------------------------- */

/* Clears a stream, except for its place. */
void offload_stream_clear(struct off_site *site, uint32_t id);
/* Marks a stream as ours, without commands. */
void offload_come_back(struct offload *o, struct off_stream *s);
/* Writes the commands that bring it back, at most two. Returns their number. */
uint32_t offload_way_back(struct offload *o, struct off_stream *s, struct worker_cmd out[2]);

/* --- offload_eligible.c ----------------------------------------------------------------------- */

/* Destinations of a stream: its peer, if it has one, then the listeners. */
struct offload_dests {
	struct steer_copy d[STEER_COPIES + 1];
	uint32_t hearer[STEER_COPIES + 1]; /* streams of the listeners */
	uint32_t n, hearers;
};

/* The kind of packets that the context receives. */
enum off_kind offload_rx(const struct off_site *site, uint32_t ctx);
/* The stream that sends packets received by this one, or MEDIA_NONE. */
uint32_t offload_target(const struct media_stream_cfg *c);
/* Whether packets of the stream may stay in the kernel, and how. look: its present state. *out is
 * written only if they may. */
bool offload_eligible(const struct offload *o, uint32_t worker, uint32_t id,
	struct steer_relay *out, struct offload_look *look, struct offload_dests *to);
/* Whether the kernel would do the same for both. */
bool offload_same(const struct steer_relay *a, const struct steer_relay *b);

/* --- offload_count.c -------------------------------------------------------------------------- */

/* Reads the counters of one stream, or of all in the kernel. */
int offload_read(struct offload *o, struct off_stream *s, uint64_t now_ns);
void offload_dump(struct offload *o, uint64_t now_ns);
/* Counters of the kernel since the stream's port was taken, as of the last reading. */
uint64_t offload_packets(const struct off_stream *s);
/* Restarts its counters. */
void offload_count_anew(struct off_stream *s);
/* Replaces the listeners of the stream. Earlier counts belong to the earlier listeners. */
void offload_hearers_note(struct off_site *site, uint32_t id, const struct offload_dests *to);
void offload_hearers_forget(struct off_site *site, struct off_stream *s);

#endif
