/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interface to the packet side: bridge/ implements it over ports, key tables and command rings,
 * tests implement it in memory. Control thread only; never blocks. Calls release all resources by
 * handle. */
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
	uint32_t ssrc, roc;              /* index of its SRTP */
	bool confirmed;
	uint32_t handovers;           /* replacements of a confirmed source */
	struct endpoint remote;       /* learned, or as signalled */
	struct media_quality quality; /* quality of the terminal's media, by RTCP on this stream */
};

struct relay_local {          /* a configured interface address */
	char name[32];        /* "default" if none was given */
	char alias[128];      /* further names, each followed by a blank */
	struct endpoint addr; /* where we receive */
	/* address for SDP; the same unless configured */
	struct endpoint advertised;
};

bool relay_local_has_name(const struct relay_local *l, struct str name);

/* Index of an SSRC of a context, as the worker last reported it. */
struct relay_mark {
	struct media_mark mark;
	uint32_t per_s;         /* packets per second, lately */
	uint64_t from, from_ns; /* start of the measurement: index and CLOCK_REALTIME */
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
	/* Chooses the worker for a new call: it provides all ports and contexts of the call. */
	uint32_t (*worker_choose)(void *arg);
	/* on: ports and keys taken from now on belong to an emergency call, and may come from the
	 * reserve. */
	void (*emergency)(void *arg, bool on);
	/* 0, -ENOSPC ("Ran out of ports"), -errno. Ports receive from now on; packets are dropped
	 * until a stream is set. */
	int (*port_take)(void *arg, struct relay_port *out, uint32_t worker, uint8_t local);
	/* Takes a further pair for a leg that has one, only while more than half of that address's
	 * pairs are free, and never from the reserve. 0 or -errno. An error is not a shortage: the
	 * leg works without this pair. */
	int (*port_take_more)(void *arg, struct relay_port *out, uint32_t worker, uint8_t local);
	/* Takes a given pair, which the call had before a restart. worker: UINT32_MAX: set to the
	 * port's worker; otherwise it must match (-EXDEV). -ERANGE: not our port; -EADDRINUSE:
	 * taken; others as port_take. */
	int (*port_take_at)(void *arg, struct relay_port *out, uint32_t *worker, uint8_t local,
		uint16_t rtp_port);
	/* Also removes the streams. */
	void (*port_release)(void *arg, uint32_t worker, const struct relay_port *port);
	/* A context handle; -ENOSPC when all are used. */
	int (*ctx_take)(void *arg, uint32_t *ctx, uint32_t worker);
	void (*ctx_release)(void *arg, uint32_t worker, uint32_t ctx);
	/* Derives session keys into a free slot pair; with a kdr, takes MEDIA_EPOCHS pairs more.
	 * SUITE_PLAIN gives slot 0. Call it for each master key of a crypto line;
	 * media_crypto.key[] names the slots. rtcp: NULL, or SRTCP's own master key, of the same
	 * suite. -ENOSPC, -EIO, -EINVAL. */
	int (*key_take)(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m,
		const struct srtp_master *rtcp);
	/* Derives the key of SRTP+ from a master key into a free slot pair. scheme: as
	 * srtp_params.preauth. Errors as key_take. key_release() frees it. */
	int (*preauth_take)(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m,
		uint8_t scheme);
	/* Wipes and frees the pair after the worker has finished every batch that may use it.
	 * Ignores 0. */
	void (*key_release)(void *arg, uint32_t worker, uint32_t slot);
	/* Publishes commands: the worker receives all together, or none (-EAGAIN). CTX_SET and
	 * STREAM_SET are sent only if changed since the last time (media/fields.h). */
	int (*commit)(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n);
	/* MEDIA_STREAM_CUT, which never fails. */
	void (*stream_cut)(void *arg, uint32_t worker, uint32_t stream);
	/* Removes the destination, and sets the stream again: learning restarts. Errors as commit;
	 * the stream then has no destination. */
	int (*stream_restart)(void *arg, uint32_t worker, uint32_t stream, uint64_t now_ns);
	void (*stats)(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out);
	/* Time of the stream's last packet. Cheap, but may be some seconds late. */
	uint64_t (*heard)(void *arg, uint32_t worker, uint32_t stream);
	/* Number of replacements of a confirmed source, and the last cause. Cheap. */
	struct media_handover (*handover)(void *arg, uint32_t worker, uint32_t stream);
	/* Packets received for the stream, repeated ones included. Costs nothing. *kernel: the
	 * kernel relays the stream now, and its count may be some seconds old. */
	uint64_t (*arrived)(void *arg, uint32_t worker, uint32_t stream, bool *kernel);
	/* Asks the worker for the indexes of these contexts, RELAY_ASK_MAX at most. It answers
	 * within about a burst, or not at all if busy. */
	void (*marks_ask)(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n);
	/* The latest answer; NULL: none since the context was taken. rx_new and tx_new remove their
	 * direction's marks. Valid until the next call of any operation. */
	const struct relay_marks *(*marks)(void *arg, uint32_t worker, uint32_t ctx);
	/* Usage of a master key; slot 0: all zeroes. */
	void (*key_usage)(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out);
};

struct sessions;
struct audio;

struct relay {
	const struct relay_ops *ops;
	void *arg;
	const struct sessions *sessions; /* call/session.h; NULL: no keying thread */
	const struct audio *audio;       /* call/audio.h; NULL: no codec thread */
};

#endif
