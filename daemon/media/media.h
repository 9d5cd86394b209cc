/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The path of a packet inside one worker. classify and prepare only read stream state; complete
 * alone writes it.
 *
 * burst -> media_prepare() -> jobs -> (engine) -> media_complete() -> outs
 *
 * Everything here belongs to one worker thread. Other threads may read the counters and the learned
 * address. No allocation after media_create(), no system calls, no clock. */
#ifndef MEDIA_MEDIA_H
#define MEDIA_MEDIA_H

#include <stdatomic.h>
#include "batch/engine.h"
#include "media/fields.h"
#include "packet/arena.h"
#include "packet/audio.h"
#include "packet/ceiling.h"
#include "packet/guard.h"
#include "packet/packet.h"
#include "packet/side.h"
#include "proto/rtp_ext.h"
#include "srtp/kdf.h"

#define MEDIA_NONE UINT32_MAX

/* --- Commands: what the control thread tells a worker, in order, published many at a time ----- */

/* A master key of a direction: its slot pair, and the MKI of packets under it (RFC 3711 3.1,
 * 8.1). */
struct media_key {
	uint32_t slot;               /* slot for SRTP, the next one is for SRTCP; from key_take() */
	uint8_t mki[SUITE_MKI_KEPT]; /* srtp_mki_kept(mki_len) bytes */
};

#define MEDIA_KEYS 4

/* Index of an SSRC when we join late. Key management signals the ROC (RFC 3711 3.3.1; MIKEY, RFC
 * 3830), or a restart or fail-over restores it. Received packets at or below the index are old, and
 * none are sent there. */
#define MEDIA_STARTS 4
struct media_start {
	uint32_t ssrc;
	uint64_t index; /* 48 bits: the highest index received, or sent, so far */
	/* only index >> 16 is known: the ROC of the first packet, at any sequence number */
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
	MEDIA_KEY_DEL,    /* no context uses this pair of slots any more: wipe it; acknowledged */
	MEDIA_STREAM_SET, /* create or change a stream: a local port of a context */
	MEDIA_STREAM_DEL, /* acknowledged */
	/* After a restart or a fail-over, in the same piece as the commands that make what they
	 * name: */
	/* resume indexes of a context's SSRCs; none is ever lowered */
	MEDIA_CTX_RESUME,
	MEDIA_KEY_RESUME,    /* packets that a master key protected earlier count for its
			      * lifetime */
	MEDIA_STREAM_RESUME, /* restore a learned address */
	MEDIA_STREAM_PIERCE, /* send the empty packet of media_pierce() */
	MEDIA_STREAM_CUT,    /* forget the destination, signalled and learned */
	MEDIA_STREAM_WATCH,  /* watch for packets that return, see media/again.c */
};

/* media/fields.h explains each field and its columns. */
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

/* Whether a worker that was sent *sent needs no update to *now. */
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

/* Highest SRTCP index that may be sent at a given time. It depends only on the clock and the start
 * of the call. So a restarted process can start above it, without any record of the indexes sent.
 * Indexes are ours to choose: 2^31 of 4 ms each last 99 days, then a new key is needed. */
#define MEDIA_RTCP_UNIT_NS 4000000ull
#define MEDIA_RTCP_BURST   1000u
static inline uint64_t media_rtcp_ceiling(uint64_t from_ns, uint64_t now_ns)
{
	return MEDIA_RTCP_BURST + (now_ns > from_ns ? (now_ns - from_ns) / MEDIA_RTCP_UNIT_NS : 0);
}

/* Gates for authenticated, tracked RTP that is not forwarded unchanged: MEDIA drops all but
 * telephone events, DTMF drops these, DROP drops everything. QUIET replaces G.711 and G.722 by
 * silence (see quiet) and drops other codecs. */
#define MEDIA_GATE_MEDIA 1
#define MEDIA_GATE_DTMF  2
#define MEDIA_GATE_QUIET 4
#define MEDIA_GATE_DROP  8
#define MEDIA_GATE_ALL   15
/* The same bits for one destination only: the stream's other side, without its listeners. In a
 * listener's stream: for the packets it gets. */
#define MEDIA_GATE_TO(gate) ((uint8_t)((gate) << 4))
#define MEDIA_QUIET_PCMU    1 /* payload type 0 is PCMU (RFC 3551) */
#define MEDIA_QUIET_PCMA    2 /* payload type 8 is PCMA */
#define MEDIA_QUIET_G722    8 /* payload type 9 is G.722 */
#define MEDIA_QUIET_ALL     11
/* An entry of media_stream_cfg.convert, 16 bits: a received payload type, the one that is sent, and
 * XC_LAW_*. */
#define MEDIA_CONVERT(from, to, law) \
	((uint32_t)(law) << 14 | ((uint32_t)(from) ^ (uint32_t)(to)) << 7 | (uint32_t)(from))
/* What an entry does to a packet of this payload type, as xc_job.convert. 0: nothing. */
static inline uint32_t media_convert(uint32_t entries, uint8_t type)
{
	uint32_t e = ((entries ^ type) & 0x7f) == 0 && entries & 0xff80 ? entries & 0xffff
		: ((entries >> 16 ^ type) & 0x7f) == 0                  ? entries >> 16
									: 0;

	return e >> 14 | (e >> 7 & 0x7f) << 8;
}
#define MEDIA_COPIES_MAX 32 /* listeners of a stream that get anything */

/* What media keeps with a slot pair. With a kdr, media derives session keys as indexes grow (RFC
 * 3711 4.3.1, 4.3.2), into pairs lent for this. The first lent pair holds the master key
 * (srtp_vault_fill()). Separate MEDIA_KEY_DEL commands wipe and return lent pairs, after the key's
 * own. */
#define MEDIA_EPOCHS 8
struct media_key_cfg {
	uint64_t lifetime; /* packets of SRTP, and of SRTCP; 0 = none was signalled */
	uint8_t kdr;       /* from here on: with a kdr only */
	bool no_rtp_auth;
	enum srtp_suite_id suite;
	uint32_t pair[MEDIA_EPOCHS]; /* slots */
};

/* Position of an SSRC of a context: saved, and restored after a restart. */
enum media_table { MEDIA_RX_RTP, MEDIA_RX_RTCP, MEDIA_TX_RTP, MEDIA_TABLES };
struct media_mark {
	uint64_t index; /* the highest received or sent; packets up to it count as old */
	uint32_t ssrc;
	/* enum media_table; all SRTCP that we send shares one index, see tx_rtcp_index */
	uint8_t table;
	bool roc_only; /* as in media_start: no packet was seen yet */
};
/* known SSRCs in addition to the 16 active ones */
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

/* --- Readable by other threads while the worker runs ---------------------------------------- */

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
	_Atomic uint64_t errors;         /* received and dropped, for any reason */
	_Atomic uint64_t index;          /* SRTP index of ssrc */
	_Atomic uint32_t ssrc;           /* of the last authentic packet */
	_Atomic uint32_t confirmed;      /* source address is confirmed */
	/* Up to here one cache line, written for every packet. */
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
	uint32_t bursts;     /* bursts prepared but not completed, up to MEDIA_BURSTS_MAX; 0 = 1 */
	/* as the arena has; commands name slots below this. worker_create() sets this and
	 * key_changed */
	uint32_t key_slots;
	/* Packets behind the highest index that are still accepted, per SSRC; a multiple of 64, 64
	 * to 32,768; 0 = 128. Memory for all is set aside at start, and touched only where an SSRC
	 * is in use. */
	uint32_t replay_window;
	uint32_t rate; /* most packets per second from one terminal to one stream; 0 = any number */
	/* Whether to drop packets after the lifetime in the crypto line (RFC 4568 6.1). Many phones
	 * signal |2^20 and never change the key: enforced, calls with G.711 go silent after 5.8
	 * hours. So by default the end is only reported. RFC 3711's own limits (9.2: 2^48 SRTP,
	 * 2^31 SRTCP packets) are always enforced. */
	bool lifetime_enforce;
	/* Called by prepare and complete after deriving session keys into a pair: engines must
	 * update their copies, as for WORKER_KEY_SET. NULL: no engine has copies. */
	int (*key_changed)(void *arg, uint32_t slot);
	void *key_changed_arg;
	/* Called by complete before a packet's source becomes the destination: whether media may go
	 * there. signalled: the stream's allowed address. Not called for the followed source. NULL:
	 * anywhere. */
	bool (*may_learn)(void *arg, const struct endpoint *signalled, const struct endpoint *src);
	/* Whether STUN of the keying thread may be sent there. NULL: may_learn decides. */
	bool (*may_check)(void *arg, const struct endpoint *to);
	void *may_learn_arg;   /* of both */
	uint8_t again_key[16]; /* random key for the hashes of media/again.c */
	/* Called by prepare before any cipher, for a packet with a dev whose source or dev is not
	 * the confirmed one. expected: the source has the signalled or the confirmed address.
	 * PACKET_JOB: the source is plausible there; else the drop verdict. NULL: all are. */
	enum packet_verdict (*believe)(void *arg, const struct packet_in *in, bool expected);
	void *believe_arg;
	/* Side channel for packets of streams with "side". NULL: treats "side" as 0. Outlives the
	 * media. */
	struct side_channel *side;
	/* Audio channels, one per codec thread: a session uses channel serial % audio_threads. They
	 * outlive the media. NULL: streams with "audio" drop all packets. */
	struct audio_channel *const *audio;
	uint32_t audio_threads;
	/* Called by complete for an authentic packet of a stream with a tap. The packet is in
	 * arena.in, under the key that the job names. NULL: nothing is recorded. */
	void (*tap)(void *arg, uint32_t tap, const struct arena *a, const struct packet_in *in,
		const struct xc_job *j);
	void *tap_arg;
	/* Encrypts n packets in arena.out, and writes their statuses. complete.c calls it for
	 * packets that it changed after decryption. NULL: the reference cipher, which is slow. */
	void (*encrypt)(void *arg, struct xc_job *j, uint32_t *status, uint32_t n);
	void *encrypt_arg;
};

/* Usage of one master key. Any thread may read it. */
struct media_key_usage {
	uint64_t rtp, rtcp; /* packets authenticated or sent under it, of all SSRCs */
	uint64_t lifetime;  /* as signalled, 0 = none */
	bool warned;        /* 90 % of the signalled lifetime, or of RFC 3711's, is used up */
	bool expired;       /* all of it: packets are refused, or would be with lifetime_enforce */
};

int media_create(struct media **out, const struct media_config *cfg);
void media_destroy(struct media *m);

/* What a handle names; a key's is half of its slot. */
enum media_handle { MEDIA_HANDLE_CTX, MEDIA_HANDLE_STREAM, MEDIA_HANDLE_KEY, MEDIA_HANDLES };
/* Any thread, before the first command for handles from <= id < to: gets their memory, so that the
 * worker does not wait for the kernel. Handles that do not exist are skipped. */
void media_handles_touch(struct media *m, enum media_handle h, uint32_t from, uint32_t to);

/* Worker thread. Executes one command. 0, or -EINVAL for a handle out of range or a local port in
 * use. -EINVAL is a bug of the control thread and changes nothing. */
int media_command(struct media *m, const struct media_cmd *cmd);

/* Worker thread, before media_prepare(), which has no clock. Drops media received before these
 * times ahead of any cipher, and counts it as overload. 0 = drop none. Valid until the next
 * call. */
void media_shed(struct media *m, uint64_t ordinary_before_ns, uint64_t emergency_before_ns);

/* Worker thread, before the burst: the most packets it may have. Copies need free slots. */
uint32_t media_burst_max(const struct media *m);
/* Whether jobs may have XC_JOB_HAS_BLOCK(). */
bool media_has_tags(const struct media *m);

/* Worker thread, before the burst: the first of burst_max arena slots reserved for it. The burst
 * owns as many jobs and statuses, until completion. Copies use free ones of these slots. */
uint32_t media_first_slot(const struct media *m);

/* Worker thread. Classifies the burst, estimates indexes and checks windows. Writes jobs to job[]
 * (room for n) and a verdict to every in[i].verdict. Only reads stream state. Returns the number of
 * jobs. in_base: arena.in. */
uint32_t media_prepare(struct media *m, const struct arena *a, struct packet_in *in, uint32_t n,
	struct xc_job *job);

/* Worker thread, once per media_prepare() and in the same order; later bursts may be prepared
 * before. Run no command in between: packets it affects become STALE. Commits authentic packets in
 * arrival order, and writes packets to send to out[] (room for n). Final verdicts are in
 * in[i].verdict. Returns the number of outs. */
uint32_t media_complete(struct media *m, const struct arena *a, struct packet_in *in,
	const struct batch *b, struct packet_out *out);

/* Worker thread, between bursts: writes an empty packet to the signalled address of the terminal.
 * It opens the path back through a firewall or address translation (RFC 6263 4.1). Not encrypted,
 * not counted as media. False: no address. */
bool media_pierce(const struct media *m, uint32_t stream, struct packet_out *out);

/* Worker thread, not during the two functions above. Copies a packet of the keying thread into this
 * slot of arena.out, which no burst in flight may use. */
enum media_side_result {
	MEDIA_SIDE_SENDS,   /* *out is written */
	MEDIA_SIDE_STALE,   /* the stream is gone, or belongs to another session */
	MEDIA_SIDE_REFUSED, /* nothing may be sent to this address */
};
enum media_side_result media_side_out(struct media *m, const struct arena *a, uint32_t slot,
	const struct side_packet *p, struct packet_out *out);
/* Worker thread, between bursts. Takes up to max packets of audio sessions from the codec threads'
 * channels, and moves them to in[] and to the arena's slots from "first" on. Drops packets of ended
 * sessions. Returns the number of packets, a burst for media_audio_prepare(). Steering gets no
 * verdicts for them. */
uint32_t media_audio_take(
	struct media *m, const struct arena *a, uint32_t first, struct packet_in *in, uint32_t max);
/* Does for these packets what media_prepare() does for others. */
uint32_t media_audio_prepare(struct media *m, const struct arena *a, struct packet_in *in,
	uint32_t n, struct xc_job *job);
/* Worker thread: whether a codec thread has packets to send. */
bool media_audio_waits(const struct media *m);
/* Worker thread, after media_complete(): wakes codec threads that received packets. */
void media_audio_flush(struct media *m);

/* Any thread: packets given to the keying thread, of all streams. */
uint64_t media_side_count(const struct media *m, enum side_kind k);

/* Worker thread, after steering out: counts packets that the kernel refused. */
void media_sent(struct media *m, struct packet_in *in, const struct packet_out *out, uint32_t n);

/* Worker thread. Writes the indexes of all SSRCs of a context, and the next SRTCP index to send.
 * Returns their number. */
uint32_t media_marks(const struct media *m, uint32_t ctx, struct media_mark out[MEDIA_MARKS_MAX],
	uint64_t *tx_rtcp_next);

/* A stream under attack, for steering (attack.h). The times in window are of CLOCK_REALTIME. */
struct media_guard {
	struct local_port local;
	bool on;            /* false: remove the guard of the port */
	struct guard guard; /* secret: wipe it after use */
};
/* The next guard to report to steering. Worker thread, between bursts. False: there are no more. */
bool media_guard_next(struct media *m, struct media_guard *out);
/* Whether media_guard_next() would return true. */
bool media_guards_wait(const struct media *m);
/* Any thread: guards set up so far, and streams that have one now. */
uint64_t media_attacks(const struct media *m);
uint32_t media_attacked(const struct media *m);
/* Any thread: attacked streams for which there was no guard, each once a second. */
uint64_t media_attacks_left_out(const struct media *m);

/* Any thread. NULL for a handle out of range. Valid as long as the media. */
const struct media_stream_counters *media_stream_counters(const struct media *m, uint32_t stream);
/* Any thread: how often a confirmed source was replaced. Cause (enum learn_cause) and ranks (enum
 * learn_rank) of the last replacement. */
struct media_handover {
	uint32_t count;
	uint8_t cause, from, to;
	uint64_t short_tags; /* SRTCP packets found to have 32-bit tags */
};
struct media_handover media_stream_handover(const struct media *m, uint32_t stream);
/* Any thread: the sum over all streams, by cause. */
uint64_t media_handovers(const struct media *m, uint8_t cause);
/* Any thread: a consistent copy of the learned (or signalled) remote address. */
void media_stream_remote(const struct media *m, uint32_t stream, struct endpoint *out);
/* Any thread: usage of the key in this slot; all zeroes if none. */
void media_key_usage(const struct media *m, uint32_t slot, struct media_key_usage *out);
/* Any thread: number of keys that reached 90 %, and 100 %, of their lifetime since the start. */
void media_lifetime_events(const struct media *m, uint64_t *warned, uint64_t *expired);
/* Any thread: drops that belong to no stream, like unknown ports. */
uint64_t media_drop_count(const struct media *m, enum packet_verdict v);

#endif
