/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a call is made of, for the files of this room only. A change is made on a copy
 * (call_clone()): negotiate edits the copy, apply takes what it needs, and only then it replaces
 * the original. So an error needs no undoing of state. */
#ifndef CALL_MODEL_H
#define CALL_MODEL_H

#include "call/call.h"
#include "call/history.h"
#include "keying/session.h"
#include "keying/state.h"
#include "srtp/params.h"

struct call;

#define CALL_MAX_SIDES   16u
#define CALL_MAX_ALIASES 4u
#define SIDE_NONE        UINT8_MAX
#define SLOT_UNSET       UINT32_MAX /* apply is to take a key slot */

enum key_life { LIFE_LEFT, LIFE_NEARLY_OVER, LIFE_OVER };

struct stream_counts {
	uint64_t packets, bytes, errors, packets_out, bytes_out, last_packet_ns;
	uint64_t others[MEDIA_OTHERS_N];
};

#define RX_PAST 3u
struct past_key { /* a terminal's key that is no longer in force */
	struct srtp_master master;
	uint32_t slot; /* 0 = none */
};

#define LEG_MID_MAX  64u
#define LEG_ICE_TEXT (SDP_ICE_TEXT_MAX + 1)
struct leg_ice {                /* ICE between us and the terminal (offer/neg_ice.c) */
	bool said;              /* by the terminal in its last offer */
	bool asked;             /* of the terminal in our last offer */
	bool told;              /* the same, also after an answer without ICE: forks */
	bool on;                /* in force */
	bool restart;           /* the terminal's last offer has other credentials than before */
	bool lite, controlling; /* ours */
	bool lite_back;         /* our answer is to be lite */
	uint8_t generation;     /* of our credentials */
	uint8_t peer;           /* changes when another terminal answered: a fork. Not saved */
	char ufrag[SESSION_UFRAG], pwd[SESSION_PWD];
	/* The terminal's; empty: not known. */
	bool remote_lite;
	char remote_ufrag[LEG_ICE_TEXT], remote_pwd[LEG_ICE_TEXT];
	/* Of an offer that restarts ICE. They wait for the answer. */
	bool next_lite;
	char next_ufrag[LEG_ICE_TEXT], next_pwd[LEG_ICE_TEXT];
	/* The selected pairs, by [rtcp]: the leg's remote and rtcp_remote are these, whatever SDP
	 * says. Family 0: none yet. */
	struct endpoint pair[2];
	/* For the next commit only, in the request's pool: candidates of this exchange. of_next:
	 * they are of next_ufrag. */
	bool of_next;
	const struct ice_candidate *candidate;
	uint32_t candidates;
	bool last; /* no more will come */
};

/* One media (m-line) of one side. Lives in the keystore: holds keys. */
struct leg {
	/* what is to be held, and what is held: apply makes them one */
	bool used, has_port, has_ctx, has_session;
	struct relay_port port;
	uint32_t ctx, session, side_serial; /* media_stream_cfg */
	uint32_t rx_slot[SRTP_PARAMS_KEYS], tx_slot;
	struct past_key rx_past[RX_PAST];                 /* the latest first */
	enum key_life rx_told[SRTP_PARAMS_KEYS], tx_told; /* what was said of their lifetime */

	/* in force since the last answer */
	bool active; /* answered, rejected by nobody */
	enum sdp_proto proto;
	enum sdp_proto rtp_proto; /* last profile of RTP, restored after a fax */
	enum sdp_dir dir;
	struct endpoint remote, rtcp_remote;
	bool mux;
	uint64_t events[2];         /* bit per payload type: telephone events, of both sides */
	uint8_t quiet;              /* MEDIA_QUIET_* */
	bool feedback;              /* it wrote a=rtcp-fb, under whichever profile */
	struct srtp_params rx, tx;  /* from the terminal, and to it */
	struct keying_state keying; /* how they were agreed on; keying/ knows */
	uint32_t keyed;             /* the DTLS association that they are of; 0: none */
	uint32_t settled[2];        /* the one whose keys the terminal has used, by [rtcp] */
	struct leg_ice ice;
	/* BUNDLE (RFC 9143): number + 1 of the m-line whose transport this one uses; 0: its own */
	uint32_t via;
	/* What tells the terminal's packets of this m-line apart: media_stream_cfg. */
	uint8_t mid_ext;
	char mid[RTP_MID_MAX];
	uint64_t types[2];
	char kind[16];  /* "audio" */
	char codec[32]; /* that was agreed on first: "PCMA/8000"; cut if it is longer */

	/* Of a listener: the source whose media it gets, and which of its m-lines. */
	bool hears;
	uint8_t hears_side, hears_media;

	bool early; /* of an offerer: RTP is sent to remote before the leg is active (apply.c) */

	/* for the next commit only */
	bool rx_new, tx_new;
	bool session_resumed; /* the keys are those of an association that another life had */
	bool started;         /* an offer was answered */
	bool relearn;         /* by another terminal than before: what was learned is of that one */
	uint32_t rx_roc;      /* where the key in force stood when negotiation began */

	uint32_t handovers[2]; /* that were reported, by [rtcp] */
	bool short_tag_told;   /* SRTCP tags of 32 bits were reported */
	/* circle.c: by [rtcp], packets that had come when it was looked at last, and when a watch
	 * was begun */
	uint64_t circle_packets[2], circle_watched_ns[2];

	struct endpoint noted; /* watch.c: where its media goes, as the history says */
	uint8_t why;           /* explain.c: enum leg_why */

	uint8_t pierce;           /* pierce.c: this many empty packets more are to be sent to it */
	uint64_t pierce_heard[2]; /* packets that had come when the first was sent, by [rtcp] */

	uint32_t tx_rtcp_from; /* SRTCP's index towards it: no lower than this, after a restart */
	/* What streams counted before a restart: RTP, RTCP. */
	struct stream_counts before[2];

	/* as the terminal said in its last offer: waits for the answer */
	struct leg_said {
		bool relayed, rejected, mux;
		enum sdp_proto proto;
		enum sdp_dir dir;
		struct endpoint remote, rtcp_remote;
		uint64_t events[2];
		uint8_t quiet;
		bool feedback;
		bool bundle; /* in a group with BUNDLE (RFC 9143) */
		/* and the group may have one transport: number + 1 of its tagged m-line */
		uint8_t shares;
		uint8_t mid_ext; /* as the leg's */
		uint64_t types[2];
		char mid[LEG_MID_MAX]; /* a=mid; "": none, or longer */
	} said;

	/* as we last offered it to the terminal: its answer must fit */
	struct leg_asked {
		bool mux;
		enum sdp_proto proto;
		bool either; /* in RTP as well (osrtp_legacy.c) */
		bool shares; /* in a group with BUNDLE */
	} asked;

	uint64_t walked; /* links.c: in which walk it was visited last */
	bool walking;    /* and that visit is not over */

	bool committed; /* the worker has it */
};

/* Flags last applied to the SDP written to a side (neg_stay.c). */
struct side_wanted {
	enum sdp_proto proto;  /* transport-protocol of an offer; SDP_PROTO_OTHER: none was given */
	struct ng_sdes limits; /* of SDES: those about suites */
	uint32_t osrtp, mux;   /* of an offer: NG_OSRTP_*, NG_RTCP_MUX_* */
	uint32_t zrtp;         /* NG_ZRTP_* */
};

struct side {                               /* one party */
	bool gone;                          /* stays as a gap: indexes of sides never change */
	struct str tag, via_branch, label;  /* heap; tag is empty until the answer tells it */
	struct str alias[CALL_MAX_ALIASES]; /* tags of earlier answers */
	uint32_t aliases;
	uint8_t peer; /* index of the side it talks to */
	/* dialog.h: its final answer came, so its peer stays; its media wait, because another has
	 * the peer's; joined by "connect". */
	bool settled, parked, connected;
	bool emergency; /* of its dialog, once said, for good */
	/* lifetime.h: the first and the last request that took effect for it; its dialog was
	 * answered, so far by provisional answers only */
	uint64_t created_ns, signal_ns;
	bool answered, early;
	/* where its offers came from by SIP, port 0; family 0 = not known */
	struct endpoint source;
	bool has_local;
	uint8_t local; /* index of the local address */
	bool asymmetric, media_handover;
	bool nat_wait;  /* nothing is sent to it before it sent something */
	bool rtcp_back; /* a listener's RTCP goes to whom it hears */
	bool echo;      /* its RTP goes back to it, and no other's reaches it */
	bool pierce;    /* what is between it and us is opened by empty packets */
	bool listener;  /* it subscribed: it gets copies, and what it sends goes nowhere */
	bool publisher; /* it only sends, to listeners */
	/* heap: what it said of its media last, without addresses, keys and ICE: for listeners */
	struct str sdp;
	bool tap;                     /* what comes from it is recorded */
	bool no_tap;                  /* and this is never */
	uint8_t gate;                 /* MEDIA_GATE_*: of what comes from it, by ng command */
	uint8_t flow[CALL_MAX_SIDES]; /* the same of what goes from it to that side only */
	uint32_t osrtp;               /* of its last offer: the answer needs it */
	uint32_t mux_flags;           /* of the last offer to it: its answer needs them */
	bool offer_open;              /* no answer since its last offer */
	struct side_wanted wanted;
	/* m-lines that it does not know of, a bit each: our numbers go on past them, its don't
	 * (mline_map.c) */
	uint64_t hidden;
	uint64_t doubled;     /* media that it knows as two m-lines (osrtp_legacy.c), a bit each */
	uint64_t plain_first; /* of those: the first of the two is RTP */
	uint64_t out_version, out_hash; /* of the last SDP written to it */
	uint32_t legs;
	struct leg *leg[SDP_MAX_MEDIA];
};

/* save.c: what of a call is to be written where it outlives us. A field of the model that must
 * survive a restart has its line in the tables there. */
struct call_save {
	struct call *prev, *next; /* of the calls that wait to be written */
	bool listed, whole;       /* whole: more than where the indexes stand */
	uint64_t revision;        /* counts changes */
	uint64_t written_ns;      /* as a whole, last */
	uint64_t state;           /* hash of the indexes written last, 0 = none */
};

struct call {
	struct call_save save;
	/* it came from before a restart then, or the clock was set; 0 = neither */
	uint64_t resumed_ns;
	uint64_t rename; /* restored: media_ctx_cfg.rename of this life; 0 = it was not */
	struct call *chain, *prev, *next; /* table.c */
	uint64_t hash;
	uint64_t serial;         /* table.c: counts calls; later ones have higher numbers */
	struct str id, metadata; /* heap */
	uint32_t worker;
	uint64_t created_ns, signal_ns, delete_ns; /* delete_ns: 0 = not to be deleted */
	bool answered;           /* its media is agreed on, by a provisional answer at least */
	bool early;              /* every answer so far is of a 1xx, by ng's sip-code */
	uint64_t answered_ns;    /* the first answer that may be final, 0 = none */
	uint64_t deleted_ns;     /* when it was deleted by command, 0 = it was not */
	char refused[200];       /* why its last offer or answer was refused, "" = it was not */
	struct history *history; /* this call's only: a copy that is not in force has none */
	uint64_t watched_ns;     /* watch.c */
	uint32_t troubles;       /* at the last check, bit per enum sight_trouble */
	uint32_t troubles_told;  /* lines logged so far */
	/* A recording: 0 = none. All sides, or those that are marked; paused: open, but nothing is
	 * recorded. */
	uint32_t tap;
	bool tap_all, tap_paused, tap_discard;
	uint32_t tap_parts;  /* files before this one: a restart begins another */
	struct str tap_path; /* heap */
	bool emergency;      /* of any of its dialogs */
	bool debug;          /* what happens to it is logged */
	uint64_t traced_ns;
	uint8_t gate;       /* MEDIA_GATE_*: of all sides, by a command that named none */
	uint64_t circle_ns; /* circle.c: when it was looked at last, 0 = never */
	struct link *links; /* links.c: its streams that send to media ports of ours */
	struct endpoint told,
		asked_from; /* timeout_report.c: xmlrpc-callback; who sent its first request */
	uint8_t tos;
	bool strict_source;
	bool short_tags; /* media_ctx_cfg.short_tags */
	enum media_learning learning;
	uint32_t sides;
	struct side *side[CALL_MAX_SIDES];
};

/* An answer came that is final, or without sip-code, which may be final. */
static inline bool call_is_answered(const struct call *c)
{
	return c->answered && !c->early;
}

/* --- Memory of legs: pages that are locked and left out of core dumps ------------------------- */

struct keystore {
	void *chunk; /* list */
	void *free;  /* list */
	uint64_t live;
};

void keystore_fini(struct keystore *k);

/* --- Model ------------------------------------------------------------------------------------ */

struct call *call_new(struct str id, uint64_t now_ns);
/* A deep copy; NULL without memory. Flags for the next commit are cleared. */
struct call *call_clone(struct keystore *k, const struct call *c);
/* Memory only: whoever holds resources gives them back first. */
void call_free(struct keystore *k, struct call *c);

/* 0 or -ENOMEM: a heap copy instead of what was there. */
int str_replace(struct str *to, struct str from);

/* Index or SIDE_NONE. By tag or earlier tag. */
uint8_t call_side_by_tag(const struct call *c, struct str tag);
static inline uint8_t call_side_index(const struct call *c, const struct side *s)
{
	uint32_t i = 0;

	while (i < c->sides && c->side[i] != s)
		i++;
	return (uint8_t)i;
}
bool side_has_tag(const struct side *s, struct str tag);
/* SIDE_NONE without memory or when there are too many. */
uint8_t call_side_add(struct call *c, struct str tag, struct str via_branch);
/* What its stream counted, before a restart too. */
void leg_stats(const struct relay *relay, const struct call *c, const struct leg *l, bool rtcp,
	struct relay_stats *out);
/* The profile of its RTP, or the last one before its m-line changed to other media;
 * SDP_PROTO_OTHER: none yet. */
static inline enum sdp_proto leg_profile(const struct leg *l)
{
	return sdp_proto_is_rtp(l->proto) ? l->proto : l->rtp_proto;
}
/* The keying of its media: "SDES", "SDES end-to-end", "ZRTP end-to-end", "DTLS end-to-end"; "" if
 * none is known. others: of its RTP stream; theirs: of the other side's. */
const char *leg_keying(const struct leg *l, const uint64_t others[MEDIA_OTHERS_N],
	const uint64_t theirs[MEDIA_OTHERS_N]);
/* The same, with the counters of the leg in the call and of its peer's. */
const char *leg_keying_now(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N]);
/* The terminals of a leg and of its peer have both sent packets of the same other protocol. */
bool leg_is_end_to_end(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N]);
/* What protects a leg's media in the direction of s (rx or tx of the leg): a suite's name, "plain"
 * for RTP in clear, "end-to-end" or keying for keys that are the terminals' own, the transport of
 * media that is not RTP. NULL: nothing is agreed on yet, or the media was rejected. keying:
 * leg_keying_now(). */
const char *leg_suite(const struct leg *l, const struct srtp_params *s, const char *keying);
/* A listener on the path can understand the media: RTP under nobody's keys. */
bool leg_is_plain(
	const struct relay *relay, const struct call *c, const struct side *s, const struct leg *l);
/* A leg for this m-line, made if there is none. NULL without memory. */
struct leg *side_leg(struct keystore *k, struct side *s, uint32_t media);
static inline struct leg *side_leg_get(const struct side *s, uint32_t media)
{
	return media < s->legs ? s->leg[media] : NULL;
}

/* Media may not go there any more. ICE's pair goes with it, or the next offer or answer would bring
 * the destination back. */
static inline void leg_cut(struct leg *l, bool rtcp)
{
	*(rtcp ? &l->rtcp_remote : &l->remote) = (struct endpoint){0};
	l->ice.pair[rtcp && !l->mux] = (struct endpoint){0};
}
/* Whether the terminal supports RTCP feedback (RFC 4585): by its profile, or by a=rtcp-fb without
 * it. */
static inline bool leg_has_feedback(const struct leg *l)
{
	return l->feedback || sdp_proto_is_feedback(l->proto);
}
/* The leg of the side's peer that receives this m-line's packets, or NULL. Both sides of an offer
 * and answer number their m-lines alike. Sides that "connect" joined do not: there the first active
 * audio goes to the first active audio, and so on by kind. */
struct leg *leg_peer(const struct call *c, const struct side *s, uint32_t media);

/* --- Listeners (subscribe.c) ------------------------------------------------------------------ */

/* Handle + 1 of the stream behind this leg in the list of those who hear (source, media), or of the
 * list's first with after = NULL. 0 = none. */
uint32_t listener_stream(
	const struct call *c, uint32_t source, uint32_t media, const struct leg *after, bool rtcp);

#endif
