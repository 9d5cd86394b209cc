/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a call, private to this room. Changes are made on a copy (call_clone()): negotiate
 * edits it, apply takes resources, and only then it replaces the original. So errors need no
 * undoing of state. */
#ifndef CALL_MODEL_H
#define CALL_MODEL_H

#include "audio/config.h"
#include "call/call.h"
#include "call/history.h"
#include "keying/session.h"
#include "keying/state.h"
#include "srtp/params.h"

struct call;

#define CALL_MAX_SIDES   16u
#define CALL_MAX_ALIASES 4u
#define SIDE_NONE        UINT8_MAX
#define SLOT_UNSET       UINT32_MAX /* apply must take a key slot */

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
	bool said;              /* in the terminal's last offer */
	bool mismatch;          /* c=, m= name no candidate of that offer; not said */
	bool asked;             /* in our last offer to the terminal */
	bool told;              /* the same, but kept after an answer without ICE, for forks */
	bool on;                /* in force */
	bool restart;           /* the terminal's last offer has other credentials than before */
	bool lite, controlling; /* ours */
	bool lite_back;         /* answer as ICE lite */
	bool wide;              /* offers candidates on all addresses of the interface */
	uint8_t generation;     /* of our credentials */
	uint8_t peer;           /* changes when another terminal of a fork answers. Not saved */
	char ufrag[SESSION_UFRAG], pwd[SESSION_PWD];
	char prev_ufrag[SESSION_UFRAG], prev_pwd[SESSION_PWD]; /* before the last ICE restart */
	/* The terminal's; empty: unknown. */
	bool remote_lite;
	char remote_ufrag[LEG_ICE_TEXT], remote_pwd[LEG_ICE_TEXT];
	/* From an offer that restarts ICE. Waits for the answer. */
	bool next_lite;
	char next_ufrag[LEG_ICE_TEXT], next_pwd[LEG_ICE_TEXT];
	/* Selected pairs, by [rtcp]. They replace remote and rtcp_remote, whatever SDP names.
	 * Family 0: none yet. */
	struct endpoint pair[2];
	/* Addresses that the terminal's SDP named, by [rtcp]. A restored leg without a pair checks
	 * them: candidates are not saved. Family 0: unknown. */
	struct endpoint named[2];
	/* For the next commit only, in the request's pool: candidates of this exchange. of_next:
	 * they belong to next_ufrag. */
	bool of_next;
	const struct ice_candidate *candidate;
	uint32_t candidates;
	bool last; /* end of candidates */
};

#define LEG_LOCALS SESSION_LOCALS
/* The ports of a leg with ICE, one pair for each address of its interface. The first is on the
 * side's own address, which c= and m= name until ICE has decided which pair is in use. */
struct leg_locals {
	uint8_t n; /* 0: only leg.port */
	struct relay_port port[LEG_LOCALS];
	uint8_t at[2]; /* places in port of those in use, by [rtcp]; leg.port has a copy */
};

/* Codecs of a leg, and its audio session (call/leg_audio.h). Texts are codec lists, heap. */
struct leg_audio {
	bool has;                /* a session */
	uint32_t handle, serial; /* of the session */
	/* of its packets; without a session, of the next one's. SSRC 0: a new one */
	uint32_t ssrc;
	uint64_t index;         /* SRTP index of the first packet */
	struct ceiling ceiling; /* of the indexes of this SSRC */
	uint32_t spare;         /* SSRC to go on with above the ceiling; of this session only */
	struct str agreed; /* codecs agreed on with the terminal, best first; empty: not known */
	/* from our last offer to the terminal */
	struct str theirs; /* of the offerer, without those that the request stripped */
	struct str told;   /* offered to the terminal */
	bool engaged;      /* the terminal's answer may need transcoding */
	uint8_t ptime;     /* ms of packets to the terminal; 0: the codec's choice */
	bool resize;       /* the request chose ptime, for all codecs */
	/* Of the last offer; the answer puts them into force. */
	uint8_t next_ptime;
	bool next_resize;
};

/* The clip and the digits that play to the terminal of a leg (call/play.h). Not saved: a restart
 * ends them. */
struct leg_play {
	uint32_t id;                 /* of the clip, for audio_ops.stop */
	uint32_t rate, samples;      /* of the clip */
	uint32_t start;              /* sample where it began */
	uint64_t began_ns, until_ns; /* until_ns 0: no clip plays */
	uint64_t digits_ns;          /* when the last digit ends; 0: none */
};

/* One media (m-line) of one side. Lives in the keystore: holds keys. */
struct leg {
	/* wanted resources, and held ones: apply makes both equal */
	bool used, has_port, has_ctx, has_session;
	struct relay_port port; /* the ports in use */
	struct leg_locals locals;
	uint32_t ctx, session, side_serial; /* media_stream_cfg */
	uint32_t rx_slot[SRTP_PARAMS_KEYS], tx_slot;
	uint32_t rx_preauth_slot, tx_preauth_slot;        /* keys of SRTP+; 0: none */
	struct past_key rx_past[RX_PAST];                 /* the latest first */
	enum key_life rx_told[SRTP_PARAMS_KEYS], tx_told; /* lifetimes that were reported for
							   * these keys */

	/* in force since the last answer */
	bool active; /* answered, and not rejected */
	enum sdp_proto proto;
	enum sdp_proto rtp_proto; /* last profile of RTP, restored after a fax */
	enum sdp_dir dir;
	struct endpoint remote, rtcp_remote;
	bool mux;
	uint64_t events[2]; /* bit per payload type: telephone events, of both sides */
	uint8_t quiet;      /* MEDIA_QUIET_* */
	/* payload types of PCMU and PCMA that the terminal agreed to, + 1; 0 = none (call/law.h) */
	uint8_t law[2];
	bool feedback;              /* it wrote a=rtcp-fb, under whichever profile */
	struct srtp_params rx, tx;  /* from the terminal, and to it */
	struct keying_state keying; /* state of the keying; private to keying/ */
	uint32_t keyed;             /* the DTLS association that provided the keys; 0: none */
	uint32_t settled[2];        /* the association, or exchange of ZRTP, whose keys the terminal
				     * has used, by [rtcp] */
	/* It uses what the request allows instead: RTP, or SDES in place of MIKEY. Each is counted
	 * once. */
	bool fell_to_rtp, fell_from_mikey;
	struct leg_ice ice;
	struct leg_audio audio;
	struct leg_play play;
	/* BUNDLE (RFC 9143): number + 1 of the m-line whose transport this one uses; 0: its own */
	uint32_t via;
	/* Identifies the terminal's packets of this m-line: media_stream_cfg. */
	uint8_t mid_ext;
	char mid[RTP_MID_MAX];
	uint64_t types[2];
	uint32_t ssrc[RTP_SSRCS];
	char kind[16];  /* "audio" */
	char codec[32]; /* the first agreed codec: "PCMA/8000"; truncated if longer */

	/* Of a listener: its source side, and the source's m-line. */
	bool hears;
	uint8_t hears_side, hears_media;

	bool early; /* of an offerer: RTP is sent to remote before the leg is active (apply.c) */

	/* for the next commit only */
	bool rx_new, tx_new;
	bool session_resumed; /* the keys come from an association of an earlier process */
	bool started;         /* an offer was answered */
	bool relearn;         /* another terminal answered: learned addresses are the old one's */
	uint32_t rx_roc;      /* ROC of the key in force when negotiation began */

	uint32_t handovers[2]; /* handovers reported so far, by [rtcp] */
	bool short_tag_told;   /* 32-bit SRTCP tags were reported */
	/* circle.c: by [rtcp], packet count at the last check, and start of the last watch */
	uint64_t circle_packets[2], circle_watched_ns[2];

	struct endpoint noted; /* watch.c: destination of media, as noted in the history */
	uint8_t why;           /* explain.c: enum leg_why */

	uint8_t pierce;           /* pierce.c: empty packets left to send */
	uint64_t pierce_heard[2]; /* packet count when the first was sent, by [rtcp] */

	uint32_t tx_rtcp_from; /* lowest SRTCP index to send after a restart */
	/* Counters before a restart: RTP, RTCP. */
	struct stream_counts before[2];

	/* from the terminal's last offer: waits for the answer */
	struct leg_said {
		bool relayed, rejected, mux;
		enum sdp_proto proto;
		enum sdp_dir dir;
		struct endpoint remote, rtcp_remote;
		uint64_t events[2];
		uint8_t quiet;
		bool feedback;
		bool bundle; /* in a group with BUNDLE (RFC 9143) */
		/* the group may share one transport: number + 1 of its tagged m-line */
		uint8_t shares;
		uint8_t mid_ext; /* as the leg's */
		uint64_t types[2];
		uint32_t ssrc[RTP_SSRCS];
		char mid[LEG_MID_MAX]; /* a=mid; "": none, or longer */
	} said;

	/* from our last offer to the terminal: its answer must fit */
	struct leg_asked {
		bool mux;
		enum sdp_proto proto;
		bool either; /* also offered in RTP (osrtp_legacy.c) */
		bool shares; /* in a group with BUNDLE */
		/* ID of the header extension for the MID, if only we offered it; 0 = not offered */
		uint8_t mid_ext;
		struct sdp_laws laws; /* G.711 of the offerer, and as offered to the terminal */
	} asked;

	uint64_t walked; /* links.c: number of the last walk that visited it */
	bool walking;    /* the visit is still in progress */

	bool committed; /* the worker has it */
};

/* Flags last applied to the SDP written to a side (neg_stay.c). */
struct side_wanted {
	enum sdp_proto proto;  /* transport-protocol of an offer; SDP_PROTO_OTHER: not given */
	struct ng_sdes limits; /* SDES flags about suites */
	uint32_t osrtp, mux;   /* of an offer: NG_OSRTP_*, NG_RTCP_MUX_* */
	uint32_t zrtp;         /* NG_ZRTP_* */
};

/* Digits of a side's terminal that its peer must not get (call/dtmf.h), by MEDIA_GATE_DTMF. */
enum { SIDE_TRIGGER_MAX = 16 };
struct side_dtmf {
	struct audio_cover_cfg cover;
	/* Characters of the digits that begin and end it, filled up with zeroes. */
	uint8_t trigger[SIDE_TRIGGER_MAX], end[SIDE_TRIGGER_MAX];
	uint8_t end_digits; /* it ends after so many digits; 0: it does not, */
	uint32_t end_ms;    /* or after so many ms */
	/* Since digits began it. */
	bool begun;
	uint8_t digits;
	uint64_t since_ns;
	/* The latest digits, the last one at the end. Not saved: they may be a card number. */
	uint8_t last[SIDE_TRIGGER_MAX];
};

struct side {                               /* one party */
	bool gone;                          /* stays as a gap: indexes of sides never change */
	struct str tag, via_branch, label;  /* heap; tag is empty until the answer names it */
	struct str alias[CALL_MAX_ALIASES]; /* tags of earlier answers */
	uint32_t aliases;
	uint8_t peer; /* index of the side it exchanges media with */
	/* dialog.h: settled: had a final answer, so its peer stays; parked: its media wait, as
	 * another branch has the peer's; connected: joined by "connect". */
	bool settled, parked, connected;
	bool emergency; /* its dialog was marked as an emergency call, for good */
	/* lifetime.h: first and last request that took effect for this side; whether its dialog was
	 * answered, and only provisionally */
	uint64_t created_ns, signal_ns;
	bool answered, early;
	/* SIP source of its offers, port 0; family 0 = unknown */
	struct endpoint source;
	bool has_local;
	uint8_t local; /* index of the local address */
	bool asymmetric, media_handover;
	bool nat_wait;  /* send nothing before it sent something */
	bool rtcp_back; /* a listener's RTCP goes to its source */
	bool echo;      /* its RTP is sent back to it, and no other RTP */
	bool pierce;    /* send empty packets to open firewalls on the path */
	bool listener;  /* subscriber: receives copies, and its own media are dropped */
	bool publisher; /* publisher: only sends, to listeners */
	/* heap: its latest media description without addresses, keys and ICE, for listeners */
	struct str sdp;
	bool tap;                     /* its media are recorded */
	bool no_tap;                  /* never record it */
	uint8_t gate;                 /* MEDIA_GATE_*: for its media, by ng command */
	uint8_t flow[CALL_MAX_SIDES]; /* the same for media to that side only */
	struct side_dtmf dtmf;
	uint32_t osrtp;     /* of its last offer, kept for the answer */
	uint32_t mux_flags; /* of the last offer to it, kept for its answer */
	bool offer_open;    /* its last offer is not answered */
	struct side_wanted wanted;
	/* m-lines hidden from it, a bit each: our numbers include them, its own do not
	 * (mline_map.c) */
	uint64_t hidden;
	uint64_t doubled;     /* media that it has as two m-lines (osrtp_legacy.c), a bit each */
	uint64_t plain_first; /* of those: RTP is the first of the two */
	uint64_t out_version, out_hash; /* of the last SDP written to it */
	uint32_t legs;
	struct leg *leg[SDP_MAX_MEDIA];
};

/* Save state of a call. A field of the model that must survive a restart has a row in the tables of
 * persist/. */
struct call_save {
	struct call *prev, *next; /* list of calls that wait to be written */
	bool listed, whole;       /* whole: write everything, not only indexes */
	uint64_t revision;        /* counts changes */
	uint64_t written_ns;      /* last complete write */
	uint64_t state;           /* hash of the indexes written last, 0 = none */
};

struct call {
	struct call_save save;
	/* time of the record that it was restored from, or of the last clock step; 0 = neither */
	uint64_t resumed_ns;
	uint64_t rename; /* restored: media_ctx_cfg.rename of this process; 0 = not restored */
	struct call *chain, *prev, *next; /* table.c */
	uint64_t hash;
	uint64_t serial;         /* table.c: serial number of the call, increasing */
	struct str id, metadata; /* heap */
	uint32_t worker;
	uint64_t created_ns, signal_ns, delete_ns; /* delete_ns: 0 = no deletion scheduled */
	bool answered;                             /* media are agreed on, at least provisionally */
	bool early;              /* all answers so far are provisional, by ng's sip-code */
	uint64_t answered_ns;    /* first answer that may be final, 0 = none */
	uint64_t deleted_ns;     /* when a command deleted it, 0 = never */
	char refused[200];       /* why its last offer or answer was refused, "" = accepted */
	struct history *history; /* only in the call in force; copies have none */
	uint64_t watched_ns;     /* watch.c */
	uint32_t troubles;       /* at the last check, bit per enum sight_trouble */
	uint32_t troubles_told;  /* lines logged so far */
	/* Recording: 0 = none. All sides, or the marked ones; paused: open, but nothing is
	 * recorded. */
	uint32_t tap;
	bool tap_all, tap_paused, tap_discard;
	uint32_t tap_parts;  /* number of earlier files: each restart begins another */
	struct str tap_path; /* heap */
	uint64_t tap_media;  /* hash of record_media.c's last report; 0: none */
	bool emergency;      /* emergency call: set if any of its dialogs is */
	bool debug;          /* log its events */
	uint64_t traced_ns;
	uint8_t gate;       /* MEDIA_GATE_*: of all sides, by a command without a party */
	uint64_t circle_ns; /* circle.c: last check, 0 = never */
	struct link *links; /* links.c: its streams that send to our own media ports */
	/* the last media-address of its requests, saved for links_alias() after a restart */
	struct endpoint media_address;
	struct endpoint told,
		asked_from; /* timeout_report.c: xmlrpc-callback; sender of the first request */
	uint8_t tos;
	bool strict_source;
	bool short_tags; /* media_ctx_cfg.short_tags */
	enum media_learning learning;
	uint32_t sides;
	struct side *side[CALL_MAX_SIDES];
};

/* Whether an answer was final, or without sip-code, which may be final. */
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
/* Frees memory only: release resources first. */
void call_free(struct keystore *k, struct call *c);

/* Replaces *to by a heap copy. 0 or -ENOMEM. */
int str_replace(struct str *to, struct str from);

/* Finds a side by its tag or an earlier tag. Index or SIDE_NONE. */
uint8_t call_side_by_tag(const struct call *c, struct str tag);
static inline uint8_t call_side_index(const struct call *c, const struct side *s)
{
	uint32_t i = 0;

	while (i < c->sides && c->side[i] != s)
		i++;
	return (uint8_t)i;
}
bool side_has_tag(const struct side *s, struct str tag);
/* SIDE_NONE without memory, or with too many sides. */
uint8_t call_side_add(struct call *c, struct str tag, struct str via_branch);
/* Counters of its stream, including those before a restart. */
void leg_stats(const struct relay *relay, const struct call *c, const struct leg *l, bool rtcp,
	struct relay_stats *out);
/* The profile of its RTP, or the last one before its m-line changed to other media;
 * SDP_PROTO_OTHER: none yet. */
static inline enum sdp_proto leg_profile(const struct leg *l)
{
	return sdp_proto_is_rtp(l->proto) ? l->proto : l->rtp_proto;
}
/* The keying of its media: "SDES", "SDES end-to-end", "ZRTP end-to-end", "DTLS end-to-end"; "" if
 * none is known. Reads the
 * counters of its RTP stream and of its peer's. */
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
/* Whether an eavesdropper on the path can decode the media: RTP without keys. */
bool leg_is_plain(
	const struct relay *relay, const struct call *c, const struct side *s, const struct leg *l);
/* Finds or creates the leg of this m-line. NULL without memory. */
struct leg *side_leg(struct keystore *k, struct side *s, uint32_t media);
static inline struct leg *side_leg_get(const struct side *s, uint32_t media)
{
	return media < s->legs ? s->leg[media] : NULL;
}

/* Whether its terminal hears, or is to hear, audio of ours. */
static inline bool leg_plays(const struct leg *l)
{
	return l->play.until_ns || l->play.digits_ns;
}

/* Whether the leg uses ICE, or may use it once the offer is answered. */
static inline bool leg_has_ice(const struct leg *l)
{
	return l->ice.on || l->ice.asked || l->ice.said;
}
/* Pair i of the leg's ports, NULL after the last one. */
static inline const struct relay_port *leg_port_at(const struct leg *l, uint32_t i)
{
	if (!l->has_port)
		return NULL;
	if (!l->locals.n)
		return i ? NULL : &l->port;
	return i < l->locals.n ? &l->locals.port[i] : NULL;
}
/* Time of the last packet at any of the leg's RTP ports, or RTCP ports if rtcp. */
uint64_t leg_heard_ns(
	const struct relay *relay, const struct call *c, const struct leg *l, bool rtcp);

/* Removes the media destination. Also clears ICE's pair, which the next offer or answer would
 * otherwise restore. */
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

/* Handle + 1 of the stream after this leg in the list of listeners of (source, media); with after =
 * NULL, of the first. 0 = none. */
uint32_t listener_stream(
	const struct call *c, uint32_t source, uint32_t media, const struct leg *after, bool rtcp);

#endif
