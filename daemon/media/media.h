/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way of a packet inside one worker: classify and prepare read stream state, complete alone
 * writes it.
 *
 *   burst -> media_prepare() -> jobs -> (engine) -> media_complete() -> outs
 *
 * Everything here belongs to one worker thread, except what control reads without stopping anybody:
 * the counters and the learned address. No allocation after media_create(), no system calls, no
 * clock. */
#ifndef MEDIA_MEDIA_H
#define MEDIA_MEDIA_H

#include <stdatomic.h>
#include "batch/engine.h"
#include "media/fields.h"
#include "packet/arena.h"
#include "packet/packet.h"
#include "packet/side.h"
#include "proto/rtp_ext.h"
#include "srtp/kdf.h"

#define MEDIA_NONE UINT32_MAX

/* --- Commands: what the control thread tells a worker, in order, published many at a time ----- */

/* A master key of a direction: its session keys' place, and how packets under it are marked (RFC
 * 3711 3.1, 8.1). */
struct media_key {
	uint32_t slot;               /* of SRTP, SRTCP's is the next; from key_take() */
	uint8_t mki[SUITE_MKI_KEPT]; /* srtp_mki_kept(mki_len) bytes */
};

#define MEDIA_KEYS 4

/* Where the indexes of an SSRC stand, when we come in late: RFC 3711 3.3.1 has key management tell
 * the ROC (MIKEY, RFC 3830; a restart or fail-over of ours). Nothing at or below index counts as
 * new on the receiving side, and is sent on the other. */
#define MEDIA_STARTS 4
struct media_start {
	uint32_t ssrc;
	uint64_t index; /* 48 bits: the highest index received, or sent, so far */
	/* only index >> 16 is known: it is the ROC of the first packet, whatever its sequence
	 * number */
	bool roc_only;
};

enum media_learning {
	MEDIA_LEARN_OFF,
	MEDIA_LEARN_IMMEDIATE,
	MEDIA_LEARN_DELAYED,
	MEDIA_LEARN_HEURISTIC
};

enum media_cmd_type {
	MEDIA_CTX_SET, /* create or change a context: a media of one side */
	MEDIA_CTX_DEL, /* acknowledged */
	/* a pair of slots was filled for this master key: before the first CTX_SET with it */
	MEDIA_KEY_SET,
	MEDIA_KEY_DEL,    /* nobody uses this pair of slots any more: wipe it; acknowledged */
	MEDIA_STREAM_SET, /* create or change a stream: a local port of a context */
	MEDIA_STREAM_DEL, /* acknowledged */
	/* After a restart or a fail-over, in the same piece as the commands that make what they
	 * name: */
	/* indexes of a context's SSRCs go on behind these; none is ever lowered */
	MEDIA_CTX_RESUME,
	MEDIA_KEY_RESUME,    /* what a master key has protected already counts for its lifetime */
	MEDIA_STREAM_RESUME, /* a learned address is known again */
	MEDIA_STREAM_PIERCE, /* the worker sends what media_pierce() says */
	MEDIA_STREAM_CUT,    /* forget the destination, signalled and learned */
	MEDIA_STREAM_WATCH,  /* look for packets that come back, see media/again.c */
};

/* The rows of media/fields.h say what each field is and who must know it. */
#define X(type, name, suffix, compared, fast, kernel, saved) type name suffix;
struct media_crypto {
	CRYPTO_FIELDS(X)
};
struct media_ctx_cfg {
	CTX_FIELDS(X)
};
struct media_stream_cfg {
	STREAM_FIELDS(X)
};
#undef X

/* Whether a worker that was sent *sent has no need of *now. */
bool media_ctx_same(const struct media_ctx_cfg *sent, const struct media_ctx_cfg *now);
bool media_stream_same(const struct media_stream_cfg *sent, const struct media_stream_cfg *now);
/* The roles that keep the stream out of the kernel: KERNEL_NOT_* */
enum {
	KERNEL_NOT_FROM = 1,
	KERNEL_NOT_TO = 2,
	KERNEL_NOT_HEARER = 4,
	KERNEL_COPIES = 8, /* its packets are copied */
};
uint8_t media_stream_kernel(const struct media_stream_cfg *c);

/* The highest SRTCP index that may be sent at a time. It depends on nothing but the clock and on
 * when the call began, so that a later life that knows neither what was sent nor how old its record
 * is can begin above it: no record has to be true for that. The index is ours to choose; 2^31 of 4
 * ms each are 99 days, and then a new key is needed. */
#define MEDIA_RTCP_UNIT_NS 4000000ull
#define MEDIA_RTCP_BURST   1000u
static inline uint64_t media_rtcp_ceiling(uint64_t from_ns, uint64_t now_ns)
{
	return MEDIA_RTCP_BURST + (now_ns > from_ns ? (now_ns - from_ns) / MEDIA_RTCP_UNIT_NS : 0);
}

/* RTP that is authenticated and followed, but does not leave as it came: all but telephone events;
 * these; all; and in place of G.711 and G.722 silence leaves (see quiet), but nothing in place of
 * what is neither. */
#define MEDIA_GATE_MEDIA 1
#define MEDIA_GATE_DTMF  2
#define MEDIA_GATE_QUIET 4
#define MEDIA_GATE_DROP  8
#define MEDIA_GATE_ALL   15
/* The same bits, of what goes to one place only: to the stream's other side, not to its listeners;
 * of a listener's stream, what it gets. */
#define MEDIA_GATE_TO(gate) ((uint8_t)((gate) << 4))
#define MEDIA_QUIET_PCMU    1 /* payload type 0 is PCMU (RFC 3551) */
#define MEDIA_QUIET_PCMA    2 /* payload type 8 is PCMA */
#define MEDIA_QUIET_G722    8 /* payload type 9 is G.722 */
#define MEDIA_QUIET_ALL     11
#define MEDIA_COPIES_MAX    32 /* listeners of a stream that get anything */

/* What media keeps with a slot pair. With a kdr it derives session keys itself as the indexes grow
 * (RFC 3711 4.3.1, 4.3.2), into pairs lent for this; the first of them holds the master key, filled
 * by srtp_vault_fill(). They are wiped and taken back by MEDIA_KEY_DEL commands of their own,
 * behind the key's. */
#define MEDIA_EPOCHS 8
struct media_key_cfg {
	uint64_t lifetime; /* packets of SRTP, and of SRTCP; 0 = none was signalled */
	uint8_t kdr;       /* the rest with a kdr only */
	bool no_rtp_auth;
	enum srtp_suite_id suite;
	uint32_t pair[MEDIA_EPOCHS]; /* slots */
};

/* Where an SSRC of a context stands: what has to outlive us, and what brings it back. */
enum media_table { MEDIA_RX_RTP, MEDIA_RX_RTCP, MEDIA_TX_RTP, MEDIA_TABLES };
struct media_mark {
	uint64_t index; /* the highest received, or sent; nothing up to it counts as new */
	uint32_t ssrc;
	/* enum media_table; SRTCP that we send has one index for all, see tx_rtcp_index */
	uint8_t table;
	bool roc_only; /* as media_start's: nothing was seen yet */
};
/* SSRCs that are known in addition to those that have one of the 16 places */
#define MEDIA_PAST      48
#define MEDIA_MARKS_MAX ((16 + MEDIA_PAST) * MEDIA_TABLES)
#define MEDIA_RESUMES   12

struct media_ctx_resume {
	uint32_t n;
	struct media_mark mark[MEDIA_RESUMES];
};

struct media_key_resume {
	uint64_t rtp, rtcp; /* packets */
};

struct media_stream_resume {
	struct endpoint remote;
	bool confirmed;
};

struct media_cmd {
	enum media_cmd_type type;
	/* handle of the context or the stream, or key slot; chosen by the control thread */
	uint32_t id;
	/* when it was signalled (CLOCK_REALTIME): the delayed and heuristic modes count from here
	 */
	uint64_t now_ns;
	union {
		struct media_ctx_cfg ctx;
		struct media_key_cfg key;
		struct media_stream_cfg stream;
		struct media_ctx_resume ctx_resume;
		struct media_key_resume key_resume;
		struct media_stream_resume stream_resume;
	};
};

/* --- What may be read from outside while the worker runs -------------------------------------- */

/* Other protocols between two terminals, on plain and passed-through legs and on ports for
 * datagrams: X(id, name). */
#define MEDIA_OTHERS(X) \
	X(ZRTP, "ZRTP") X(ZRTP_DONE, "ZRTP Conf2ACK") X(DTLS, "DTLS") X(STUN, "STUN")
enum media_other {
#define X(id, name) MEDIA_OTHER_##id,
	MEDIA_OTHERS(X)
#undef X
		MEDIA_OTHERS_N
};
const char *media_other_name(enum media_other o);

struct media_stream_counters {                   /* relaxed atomics; single writer: the worker */
	_Alignas(64) _Atomic uint64_t packets;   /* received and authentic */
	_Atomic uint64_t bytes;                  /* of them */
	_Atomic uint64_t packets_out, bytes_out; /* sent to this stream's terminal */
	_Atomic uint64_t last_packet_ns; /* CLOCK_REALTIME of the last authentic packet, 0 = none */
	_Atomic uint64_t errors;         /* received and dropped, for whatever reason */
	_Atomic uint64_t index;          /* where ssrc's SRTP stands */
	_Atomic uint32_t ssrc;           /* of the last authentic packet */
	_Atomic uint32_t confirmed;      /* source address is confirmed */
	/* Until here one cache line: what every packet writes. */
	_Atomic uint64_t drops[PACKET_VERDICTS];
	_Atomic uint64_t others[MEDIA_OTHERS_N]; /* received and relayed, by enum media_other */
	_Atomic uint64_t side[SIDE_KINDS_N];     /* given to the keying thread */
	_Atomic uint64_t handover;   /* of confirmed sources; use media_stream_handover() */
	_Atomic uint64_t remote[3];  /* learned endpoint, packed; use media_stream_remote() */
	_Atomic uint32_t remote_seq; /* odd while being written */
};

#define MEDIA_BURSTS_MAX ENGINE_DEPTH_MAX

struct media; /* one worker's table of contexts and streams */

struct media_config {
	uint32_t max_ctx; /* handles 0 .. max-1 */
	uint32_t max_stream;
	uint16_t port_min, port_max;
	uint8_t local_addrs; /* number of local addresses */
	uint32_t burst_max;  /* packets in a burst */
	uint32_t bursts; /* that are prepared and not completed, up to MEDIA_BURSTS_MAX; 0 = 1 */
	/* as the arena has; slots of commands are below. worker_create() sets this and key_changed
	 */
	uint32_t key_slots;
	/* Packets behind the highest index that are still accepted, per SSRC; a multiple of 64, 64
	 * to 32,768; 0 = 128. Memory for all is set aside at start, and touched only where an SSRC
	 * is in use. */
	uint32_t replay_window;
	/* What happens when as many packets were protected as the crypto line allowed (RFC 4568
	 * 6.1). Many phones write |2^20 and never change the key: enforced, they go silent after
	 * 5.8 hours of G.711, which no user asked for. So it is only reported unless the operator
	 * wants it so. RFC 3711's own limits (9.2: 2^48 SRTP, 2^31 SRTCP packets) are always
	 * enforced. */
	bool lifetime_enforce;
	/* Called by prepare and complete when session keys were derived into a pair: the engines
	 * must be told, as of WORKER_KEY_SET. NULL: no engine has copies. */
	int (*key_changed)(void *arg, uint32_t slot);
	void *key_changed_arg;
	/* Called by complete before a source that packets come from may become the destination:
	 * whether media may go there. signalled: the stream's, allowed already. Not called for the
	 * source that is followed already. NULL: anywhere. */
	bool (*may_learn)(void *arg, const struct endpoint *signalled, const struct endpoint *src);
	/* Whether STUN of the keying thread may be sent there. NULL: may_learn decides. */
	bool (*may_check)(void *arg, const struct endpoint *to);
	void *may_learn_arg;   /* of both */
	uint8_t again_key[16]; /* random: of the hashes of media/again.c */
	/* Called by prepare, before any cipher, for a packet with a dev whose source and dev are
	 * not the confirmed ones. expected: the source's address is the signalled one, or the
	 * confirmed one. PACKET_JOB: the source is possible there; else the verdict to drop it
	 * with. NULL: all are. */
	enum packet_verdict (*believe)(void *arg, const struct packet_in *in, bool expected);
	void *believe_arg;
	/* Where packets of streams with "side" go. NULL: such packets are handled as if "side" were
	 * 0. Outlives the media. */
	struct side_channel *side;
	/* Called by complete for an authentic packet of a stream with a tap: in arena.in, under the
	 * key that the job names. NULL: nothing is recorded. */
	void (*tap)(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
		const struct xc_job *j);
	void *tap_arg;
};

/* Of one master key; relaxed, any thread. */
struct media_key_usage {
	uint64_t rtp, rtcp; /* packets authenticated, or sent, under it, of all SSRCs */
	uint64_t lifetime;  /* as signalled, 0 = none */
	bool warned;        /* 90 % of the signalled lifetime, or of RFC 3711's, is used up */
	bool expired;       /* all of it: packets are refused, or would be with lifetime_enforce */
};

int media_create(struct media **out, const struct media_config *cfg);
void media_destroy(struct media *m);

/* Worker thread. Carry out one command. 0; -EINVAL for a handle out of range or a local port in
 * use, which is a bug of the control thread and leaves the tables as they were. */
int media_command(struct media *m, const struct media_cmd *cmd);

/* Worker thread, before media_prepare(), which has no clock: media that came in before these times
 * is dropped ahead of any cipher, for a look-up each, and counted as overload. 0 = nothing is too
 * old. In force until the next call. */
void media_shed(struct media *m, uint64_t ordinary_before_ns, uint64_t emergency_before_ns);

/* Worker thread, before the burst: how many packets it should have at most. Copies need slots that
 * it leaves free. */
uint32_t media_burst_max(const struct media *m);

/* Worker thread, before the burst: the first of burst_max arena slots, and of as many jobs and
 * statuses, that are its own until it is completed. Copies take what is free of these slots,
 * wherever the burst's own packets lie. */
uint32_t media_first_slot(const struct media *m);

/* Worker thread. Classify the burst, estimate indexes, check windows, write jobs for what is to be
 * processed into job[] (room for n) and a verdict into every in[i].verdict. Reads stream state,
 * does not change it. Returns the number of jobs. in_base: arena.in. */
uint32_t media_prepare(struct media *m, const struct arena *a, struct packet_in *in, uint32_t n,
	struct xc_job *job);

/* Worker thread, once per media_prepare() and in the same order; with several bursts, later ones
 * may be prepared before. Until then no command but by accident: what it changes is STALE. Commit
 * what authenticated, in arrival order, and write what is to be sent to out[] (room for n). Returns
 * the number of outs. Final verdicts are in in[i].verdict. */
uint32_t media_complete(struct media *m, const struct arena *a, struct packet_in *in, uint32_t n,
	const struct xc_job *job, const uint32_t *status, uint32_t jobs, struct packet_out *out);

/* Worker thread, between bursts: an empty packet to where signalling said this stream's terminal
 * is, which opens the way back through its firewall or address translation (RFC 6263 4.1). False:
 * there is no such place. Nothing of it is ciphered or counted as media. */
bool media_pierce(const struct media *m, uint32_t stream, struct packet_out *out);

/* Worker thread, any time but within the two functions above: a packet of the keying thread, into
 * this slot of arena.out, which no burst in flight may have. */
enum media_side_result {
	MEDIA_SIDE_SENDS,   /* *out is written */
	MEDIA_SIDE_STALE,   /* the stream is gone, or belongs to another session */
	MEDIA_SIDE_REFUSED, /* nothing may be sent there */
};
enum media_side_result media_side_out(const struct media *m, const struct arena *a, uint32_t slot,
	const struct side_packet *p, struct packet_out *out);
/* Any thread: packets given to the keying thread, of all streams. */
uint64_t media_side_count(const struct media *m, enum side_kind k);

/* Worker thread, after steering out: account for what the kernel did not take. */
void media_sent(struct media *m, struct packet_in *in, const struct packet_out *out, uint32_t n);

/* Worker thread. Where all SSRCs of a context stand, and the SRTCP index that would be sent next.
 * Returns how many. */
uint32_t media_marks(const struct media *m, uint32_t ctx, struct media_mark out[MEDIA_MARKS_MAX],
	uint64_t *tx_rtcp_next);

/* Any thread. NULL for a handle out of range. Valid as long as the media. */
const struct media_stream_counters *media_stream_counters(const struct media *m, uint32_t stream);
/* Any thread: how often a confirmed source was replaced, and the last time: why (enum learn_cause),
 * and the ranks of the source before and after (enum learn_rank). */
struct media_handover {
	uint32_t count;
	uint8_t cause, from, to;
	uint64_t short_tags; /* SRTCP packets whose tag was found to have 32 bits */
};
struct media_handover media_stream_handover(const struct media *m, uint32_t stream);
/* Any thread: the same of all streams, by cause. */
uint64_t media_handovers(const struct media *m, uint8_t cause);
/* Any thread: a consistent copy of the learned (or signalled) remote address. */
void media_stream_remote(const struct media *m, uint32_t stream, struct endpoint *out);
/* Any thread: of the key in this slot; all zeroes for none. */
void media_key_usage(const struct media *m, uint32_t slot, struct media_key_usage *out);
/* Any thread: keys that came to 90 %, and that came to the end of their lifetime, since the start.
 */
void media_lifetime_events(const struct media *m, uint64_t *warned, uint64_t *expired);
/* Any thread: packets of unknown ports and the like, which no stream can count. */
uint64_t media_drop_count(const struct media *m, enum packet_verdict v);

#endif
