/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way of a packet inside one worker: classify and prepare read stream state, complete alone writes it.
 *
 *   burst -> media_prepare() -> jobs -> (engine) -> media_complete() -> outs
 *
 * Everything here belongs to one worker thread, except what control reads without stopping anybody: the counters and
 * the learned address. No allocation after media_create(), no system calls, no clock. */
#ifndef MEDIA_MEDIA_H
#define MEDIA_MEDIA_H

#include <stdatomic.h>
#include "batch/engine.h"
#include "media/pkt.h"
#include "srtp/suite.h"

#define MEDIA_NONE UINT32_MAX

/* --- Commands: what the control thread tells a worker, in order, published many at a time --------------------- */

/* One direction's crypto of a media on one side. */
struct media_crypto {
	uint32_t key;             /* key slot of SRTP, SRTCP is the next; 0 = plain */
	enum srtp_suite_id suite; /* SUITE_PLAIN with key 0 */
	uint8_t mki_len;
	uint8_t mki[SUITE_MAX_MKI_LEN];
	bool clear_rtp;  /* UNENCRYPTED_SRTP */
	bool clear_rtcp; /* UNENCRYPTED_SRTCP: what we send; what comes in says so itself (E flag) */
	bool no_rtp_auth; /* UNAUTHENTICATED_SRTP */
};

enum media_learning {
	MEDIA_LEARN_OFF,
	MEDIA_LEARN_IMMEDIATE,
	MEDIA_LEARN_DELAYED,
	MEDIA_LEARN_HEURISTIC
};

enum media_cmd_type {
	MEDIA_CTX_SET,    /* create or change a context: a media of one side */
	MEDIA_CTX_DEL,    /* acknowledged */
	MEDIA_KEY_DEL,    /* nobody uses this pair of slots any more: wipe it; acknowledged */
	MEDIA_STREAM_SET, /* create or change a stream: a local port of a context */
	MEDIA_STREAM_DEL, /* acknowledged */
};

struct media_ctx_cfg {
	struct media_crypto rx; /* packets that come from this side's terminal */
	struct media_crypto tx; /* packets that go to it */
	bool rx_new; /* forget rx indexes and windows: the key is new. Same key = false: nothing is ever reset */
	bool tx_new; /* likewise for tx: only together with a fresh key */
};

struct media_stream_cfg {
	struct local_port local;
	bool rtp, rtcp;           /* which packets come here: both with rtcp-mux */
	uint32_t ctx;             /* its context */
	uint32_t rtp_to, rtcp_to; /* streams the other side is reached by, or MEDIA_NONE */
	struct endpoint remote;   /* signalled address; family 0 or port 0 = none yet */
	bool relearn;             /* signalling was new: start learning again */
	enum media_learning learning;
	bool strict_source;  /* after confirmation other sources are dropped */
	bool media_handover; /* or may take over at any time */
	bool asymmetric;     /* never send to where packets come from */
	uint8_t tos;
};

struct media_cmd {
	enum media_cmd_type type;
	uint32_t
		id; /* handle of the context or the stream, or key slot; chosen by the control thread */
	uint64_t
		now_ns; /* when it was signalled (CLOCK_REALTIME): the delayed and heuristic modes count from here */
	union {
		struct media_ctx_cfg ctx;
		struct media_stream_cfg stream;
	};
};

/* --- What may be read from outside while the worker runs ------------------------------------------------------ */

struct media_stream_counters {                   /* relaxed atomics; single writer: the worker */
	_Atomic uint64_t packets, bytes;         /* received and authentic */
	_Atomic uint64_t packets_out, bytes_out; /* sent to this stream's terminal */
	_Atomic uint64_t errors;                 /* received and dropped, for whatever reason */
	_Atomic uint64_t drops[MEDIA_VERDICTS];
	_Atomic uint64_t last_packet_ns; /* CLOCK_REALTIME of the last authentic packet, 0 = none */
	_Atomic uint32_t ssrc;           /* of the last authentic packet */
	_Atomic uint32_t confirmed;      /* source address is confirmed */
	_Atomic uint64_t remote[3];      /* learned endpoint, packed; use media_stream_remote() */
	_Atomic uint32_t remote_seq;     /* odd while being written */
};

struct media; /* one worker's table of contexts and streams */

struct media_config {
	uint32_t max_ctx; /* handles 0 .. max-1 */
	uint32_t max_stream;
	uint16_t port_min, port_max;
	uint8_t local_addrs; /* number of local addresses */
	uint32_t burst_max;  /* packets in a burst */
};

int media_create(struct media **out, const struct media_config *cfg);
void media_destroy(struct media *m);

/* Worker thread. Carry out one command. 0; -EINVAL for a handle out of range or a local port in use, which is a bug of the
 * control thread and leaves the tables as they were. */
int media_command(struct media *m, const struct media_cmd *cmd);

/* Worker thread. Classify the burst, estimate indexes, check windows, write jobs for what is to be processed into job[]
 * (room for n) and a verdict into every in[i].verdict. Reads stream state, does not change it. Returns the number of
 * jobs. in_base: arena.in. */
uint32_t media_prepare(struct media *m, const struct arena *a, struct media_in *in, uint32_t n,
	struct xc_job *job);

/* Worker thread, once per media_prepare(): commit what authenticated, in arrival order, and write what is to be sent to
 * out[] (room for n). Returns the number of outs. Final verdicts are in in[i].verdict. */
uint32_t media_complete(struct media *m, const struct arena *a, struct media_in *in, uint32_t n,
	const struct xc_job *job, const uint32_t *status, uint32_t jobs, struct media_out *out);

/* Worker thread, after steering out: account for what the kernel did not take. */
void media_sent(struct media *m, struct media_in *in, const struct media_out *out, uint32_t n);

/* Any thread. NULL for a handle out of range. Valid as long as the media. */
const struct media_stream_counters *media_stream_counters(const struct media *m, uint32_t stream);
/* Any thread: a consistent copy of the learned (or signalled) remote address. */
void media_stream_remote(const struct media *m, uint32_t stream, struct endpoint *out);
/* Any thread: packets of unknown ports and the like, which no stream can count. */
uint64_t media_drop_count(const struct media *m, enum media_verdict v);

#endif
