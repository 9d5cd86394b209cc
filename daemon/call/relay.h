/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What calls need of the packet side, as an interface: app/ implements it over ports, key tables
 * and command rings, tests implement it in memory. Control thread only; never blocks. Everything a
 * call takes it gives back by handle. */
#ifndef CALL_RELAY_H
#define CALL_RELAY_H

#include "media/media.h"
#include "media/rtcp_stats.h"
#include "srtp/kdf.h"

struct relay_port { /* an RTP port and the RTCP port after it */
	struct local_port rtp, rtcp;
	uint32_t rtp_stream, rtcp_stream; /* handles of the worker's stream table */
};

struct relay_stats {
	uint64_t packets, bytes, errors; /* received from the terminal */
	uint64_t packets_out, bytes_out; /* sent to it */
	uint64_t last_packet_ns;         /* CLOCK_REALTIME, 0 = none */
	uint64_t drops[PACKET_VERDICTS];
	uint64_t others[MEDIA_OTHERS_N]; /* ZRTP and the like, relayed */
	uint32_t ssrc, roc;              /* where its SRTP stands */
	bool confirmed;
	uint32_t handovers;           /* replacements of a confirmed source */
	struct endpoint remote;       /* learned, or as signalled */
	struct media_quality quality; /* of what comes from the terminal, by RTCP on this stream */
};

struct relay_local {          /* a configured interface address */
	char name[32];        /* "default" if none was given */
	char alias[128];      /* further names, with a blank behind each */
	struct endpoint addr; /* where we receive */
	/* what is written into SDP; the same address unless configured otherwise */
	struct endpoint advertised;
};

bool relay_local_has_name(const struct relay_local *l, struct str name);

/* Where the SSRCs of a context stood when the worker was asked last. */
struct relay_mark {
	struct media_mark mark;
	uint32_t per_s;         /* packets per second, lately */
	uint64_t from, from_ns; /* what that is being measured from: index and CLOCK_REALTIME */
};

struct relay_marks {
	uint64_t at_ns; /* CLOCK_REALTIME */
	uint64_t tx_rtcp_next;
	uint32_t n;
	struct relay_mark mark[MEDIA_MARKS_MAX];
};
#define RELAY_ASK_MAX 32

struct relay_ops {
	/* All configured local addresses, in order of configuration; *n their number. */
	const struct relay_local *(*locals)(void *arg, uint32_t *n);
	/* The worker a new call shall live on: all its ports and contexts are of this one. */
	uint32_t (*worker_choose)(void *arg);
	/* on: ports and keys taken from now on belong to an emergency call, and may come from the
	 * reserve. */
	void (*emergency)(void *arg, bool on);
	/* 0, -ENOSPC ("Ran out of ports"), -errno. The ports receive from now on; packets are
	 * dropped until a stream is set. */
	int (*port_take)(void *arg, struct relay_port *out, uint32_t worker, uint8_t local);
	/* The very pair that a call had before a restart. worker: UINT32_MAX, then it becomes the
	 * one that the port belongs to; given, it must fit (-EXDEV). -ERANGE: no port of ours,
	 * -EADDRINUSE: taken, else as port_take. */
	int (*port_take_at)(void *arg, struct relay_port *out, uint32_t *worker, uint8_t local,
		uint16_t rtp_port);
	/* Also removes the streams. */
	void (*port_release)(void *arg, uint32_t worker, const struct relay_port *port);
	/* A context handle; -ENOSPC when all are used. */
	int (*ctx_take)(void *arg, uint32_t *ctx, uint32_t worker);
	void (*ctx_release)(void *arg, uint32_t worker, uint32_t ctx);
	/* Derive session keys into a free pair of key slots; with a kdr it takes MEDIA_EPOCHS pairs
	 * more. SUITE_PLAIN gives slot 0. Once for each master key of a crypto line, then
	 * media_crypto.key[] names the slots. rtcp: NULL, or SRTCP's own
	 * master key, of the same suite. -ENOSPC, -EIO, -EINVAL. */
	int (*key_take)(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m,
		const struct srtp_master *rtcp);
	/* The pair is wiped and reused only after the worker has finished every batch that may use
	 * it. 0 is ignored. */
	void (*key_release)(void *arg, uint32_t worker, uint32_t slot);
	/* Publish commands: the worker receives all of them together, or (-EAGAIN) none. CTX_SET
	 * and STREAM_SET go to it only if they differ from what it was sent last (media/fields.h).
	 */
	int (*commit)(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n);
	/* MEDIA_STREAM_CUT, which never fails. */
	void (*stream_cut)(void *arg, uint32_t worker, uint32_t stream);
	/* Cuts the stream, and sets it again as it was: learning starts again. As commit; on an
	 * error the stream stays cut. */
	int (*stream_restart)(void *arg, uint32_t worker, uint32_t stream, uint64_t now_ns);
	void (*stats)(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out);
	/* Of that, when the last packet came; costs nothing, but may be told some seconds late. */
	uint64_t (*heard)(void *arg, uint32_t worker, uint32_t stream);
	/* How often a confirmed source was replaced, and the cause of the last time. Costs nothing
	 * either. */
	struct media_handover (*handover)(void *arg, uint32_t worker, uint32_t stream);
	/* Packets received for the stream, repeated ones included. Costs nothing. *kernel: the
	 * kernel relays the stream now, and its count may be some seconds old. */
	uint64_t (*arrived)(void *arg, uint32_t worker, uint32_t stream, bool *kernel);
	/* Ask the worker where these contexts stand, RELAY_ASK_MAX at most; it answers within a
	 * burst or so, or, when it is busy, not at all. */
	void (*marks_ask)(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n);
	/* The latest answer; NULL: there is none since the context was taken. rx_new and tx_new
	 * make what they concern vanish from it. Good until the next call of anything here. */
	const struct relay_marks *(*marks)(void *arg, uint32_t worker, uint32_t ctx);
	/* How far a master key is used up; slot 0: all zeroes. */
	void (*key_usage)(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out);
};

struct sessions;

struct relay {
	const struct relay_ops *ops;
	void *arg;
	const struct sessions *sessions; /* call/session.h; NULL: no keying thread */
};

#endif
