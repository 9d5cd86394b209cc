/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a call is made of, for the files of this room only. A change is made on a copy (call_clone()): negotiate edits the
 * copy, apply takes what it needs, and only then it replaces the original. So an error needs no undoing of state. */
#ifndef CALL_MODEL_H
#define CALL_MODEL_H

#include "call/call.h"
#include "call/history.h"
#include "proto/sdes.h"

#define CALL_MAX_SIDES   16u
#define CALL_MAX_ALIASES 4u
#define LEG_MAX_LINES    16u /* a=crypto lines of a terminal that are looked at */
#define SIDE_NONE        UINT8_MAX
#define SLOT_UNSET       UINT32_MAX /* apply is to take a key slot */

enum key_life { LIFE_LEFT, LIFE_NEARLY_OVER, LIFE_OVER };

struct stream_counts {
	uint64_t packets, bytes, errors, packets_out, bytes_out, last_packet_ns;
	uint64_t others[MEDIA_OTHERS_N];
};

struct our_key { /* a key of ours towards a terminal, by which it receives */
	struct sdes s;
	bool used; /* was in force once: its packet indexes must go on, or it must never be used again */
	uint32_t slot; /* where they are kept, 0 = it was never in force (past_keys.c) */
};

#define RX_PAST 3u
struct past_key { /* a terminal's key that is no longer in force */
	struct srtp_master master;
	uint32_t slot; /* 0 = none */
};

/* One media (m-line) of one side. Lives in the keystore: holds keys. */
struct leg {
	/* what is to be held, and what is held: apply makes them one */
	bool used, has_port, has_ctx;
	struct relay_port port;
	uint32_t ctx;
	uint32_t rx_slot[SDES_MAX_KEYS], tx_slot;
	struct past_key rx_past[RX_PAST];              /* the latest first */
	enum key_life rx_told[SDES_MAX_KEYS], tx_told; /* what was said of their lifetime */

	/* in force since the last answer */
	bool active; /* answered, rejected by nobody */
	enum sdp_proto proto;
	enum sdp_proto rtp_proto; /* last profile of RTP, restored after a fax */
	enum sdp_dir dir;
	struct endpoint remote, rtcp_remote;
	bool mux;
	uint64_t events[2]; /* bit per payload type: telephone events, of both sides */
	uint8_t quiet;      /* MEDIA_QUIET_* */
	bool feedback;      /* it wrote a=rtcp-fb, under whichever profile */
	struct sdes rx, tx; /* SUITE_PLAIN: RTP */
	struct srtp_master rx_more[SDES_MAX_KEYS - 1];
	/* What comes from it leaves as it came; what goes to it is such. Then tx is plain: nothing of ours goes there. */
	bool pass_rx, pass_tx;
	char kind[16];  /* "audio" */
	char codec[32]; /* that was agreed on first: "PCMA/8000"; cut if it is longer */

	/* Of a listener: the source whose media it gets, and which of its m-lines. */
	bool hears;
	uint8_t hears_side, hears_media;

	bool early; /* of an offerer: RTP is sent to remote before the leg is active (apply.c) */

	/* for the next commit only */
	bool rx_new, tx_new;
	bool started;    /* an offer was answered */
	bool relearn;    /* by another terminal than before: what was learned is of that one */
	uint32_t rx_roc; /* where the key in force stood when negotiation began */

	uint32_t handovers[2]; /* that were reported, by [rtcp] */
	bool short_tag_told;   /* SRTCP tags of 32 bits were reported */
	/* circle.c: by [rtcp], packets that had come when it was looked at last, and when a watch was begun */
	uint64_t circle_packets[2], circle_watched_ns[2];

	struct endpoint noted; /* watch.c: where its media goes, as the history says */
	uint8_t why;           /* explain.c: enum leg_why */

	uint8_t pierce;           /* pierce.c: this many empty packets more are to be sent to it */
	uint64_t pierce_heard[2]; /* packets that had come when the first was sent, by [rtcp] */

	uint32_t tx_rtcp_from; /* SRTCP's index towards it: no lower than this, after a restart */
	/* What streams counted before a restart: RTP, RTCP. */
	struct stream_counts before[2];

	/* all keys that we told this terminal, by suite */
	struct our_key ours[SUITE_COUNT];
	uint32_t ours_n;

	/* as the terminal said in its last offer: waits for the answer */
	struct leg_said {
		bool relayed, rejected, mux;
		enum sdp_proto proto;
		enum sdp_dir dir;
		struct endpoint remote, rtcp_remote;
		struct sdes line[LEG_MAX_LINES]; /* those that we could accept */
		uint32_t lines;
		struct sdes_bag bag; /* their further keys */
		uint64_t events[2];
		uint8_t quiet;
		bool feedback;
	} said;

	/* as we last offered it to the terminal: its answer must fit */
	struct leg_asked {
		bool mux;
		enum sdp_proto proto;
		uint8_t suite[SUITE_COUNT]; /* a=crypto lines, in order */
		uint32_t suites;
		bool pass;   /* instead: what the offerer said */
		bool either; /* in RTP as well (twice.c) */
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
};

struct side {                               /* one party */
	bool gone;                          /* stays as a gap: indexes of sides never change */
	struct str tag, via_branch, label;  /* heap; tag is empty until the answer tells it */
	struct str alias[CALL_MAX_ALIASES]; /* tags of earlier answers */
	uint32_t aliases;
	uint8_t peer; /* index of the side it talks to */
	/* dialog.h: its final answer came, so its peer stays; its media wait, because another has the peer's; joined by "connect". */
	bool settled, parked, connected;
	bool emergency; /* of its dialog, once said, for good */
	/* lifetime.h: the first and the last request that took effect for it; its dialog was answered, so
	 * far by provisional answers only */
	uint64_t created_ns, signal_ns;
	bool answered, early;
	struct endpoint
		source; /* where its offers came from by SIP, port 0; family 0 = not known */
	bool has_local;
	uint8_t local; /* index of the local address */
	bool asymmetric, media_handover;
	bool nat_wait;  /* nothing is sent to it before it sent something */
	bool rtcp_back; /* a listener's RTCP goes to whom it hears */
	bool echo;      /* its RTP goes back to it, and no other's reaches it */
	bool pierce;    /* what is between it and us is opened by empty packets */
	bool listener;  /* it subscribed: it gets copies, and what it sends goes nowhere */
	bool publisher; /* it only sends, to listeners */
	struct str
		sdp; /* heap: what it said of its media last, without addresses, keys and ICE: for listeners */
	bool tap;                     /* what comes from it is recorded */
	bool no_tap;                  /* and this is never */
	uint8_t gate;                 /* MEDIA_GATE_*: of what comes from it, by ng command */
	uint8_t flow[CALL_MAX_SIDES]; /* the same of what goes from it to that side only */
	uint32_t osrtp;               /* of its last offer: the answer needs it */
	uint32_t mux_flags;           /* of the last offer to it: its answer needs them */
	bool offer_open;              /* no answer since its last offer */
	struct side_wanted wanted;
	uint64_t
		hidden; /* m-lines that it does not know of, a bit each: our numbers go on past them, its don't (hide.c) */
	uint64_t doubled;     /* media that it knows as two m-lines (twice.c), a bit each */
	uint64_t plain_first; /* of those: the first of the two is RTP */
	uint64_t out_version, out_hash; /* of the last SDP written to it */
	uint32_t legs;
	struct leg *leg[SDP_MAX_MEDIA];
};

/* save.c: what of a call is to be written where it outlives us. A field of the model that must survive a restart has its line in
 * the tables there. */
struct call_save {
	struct call *prev, *next; /* of the calls that wait to be written */
	bool listed, whole;       /* whole: more than where the indexes stand */
	uint64_t revision;        /* counts changes */
	uint64_t written_ns;      /* as a whole, last */
	uint64_t state;           /* hash of the indexes written last, 0 = none */
};

struct call {
	struct call_save save;
	uint64_t
		resumed_ns; /* it came from before a restart then, or the clock was set; 0 = neither */
	uint64_t rename;    /* restored: media_ctx_cfg.rename of this life; 0 = it was not */
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
	/* A recording: 0 = none. All sides, or those that are marked; paused: open, but nothing is recorded. */
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
	struct endpoint told, asked_from; /* told.c: xmlrpc-callback; who sent its first request */
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

/* --- Memory of legs: pages that are locked and left out of core dumps ----------------------------------------- */

struct keystore {
	void *chunk; /* list */
	void *free;  /* list */
	uint64_t live;
};

void keystore_fini(struct keystore *k);

/* --- Model ------------------------------------------------------------------------------------------------------ */

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
/* The profile of its RTP, or the last one before its m-line changed to other media; SDP_PROTO_OTHER: none yet. */
static inline enum sdp_proto leg_profile(const struct leg *l)
{
	return sdp_proto_is_rtp(l->proto) ? l->proto : l->rtp_proto;
}
/* The keying of its media: "SDES", "SDES end-to-end", "ZRTP end-to-end", "DTLS end-to-end"; "" if none is known. others: of its
 * RTP stream; theirs: of the other side's. */
const char *leg_keying(const struct leg *l, const uint64_t others[MEDIA_OTHERS_N],
	const uint64_t theirs[MEDIA_OTHERS_N]);
/* The same, with the counters of the leg in the call and of its peer's. */
const char *leg_keying_now(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N]);
/* The terminals of a leg and of its peer have both sent packets of the same other protocol. */
bool leg_is_end_to_end(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N]);
/* What protects a leg's media in the direction of s (rx or tx of the leg): a suite's name, "plain" for RTP in clear, "end-to-end" or
 * keying for keys that are the terminals' own, the transport of media that is not RTP. NULL: nothing is agreed on yet, or the media
 * was rejected. keying: leg_keying_now(). */
const char *leg_suite(const struct leg *l, const struct sdes *s, const char *keying);
/* A listener on the path can understand the media: RTP under nobody's keys. */
bool leg_is_plain(
	const struct relay *relay, const struct call *c, const struct side *s, const struct leg *l);
/* A leg for this m-line, made if there is none. NULL without memory. */
struct leg *side_leg(struct keystore *k, struct side *s, uint32_t media);
static inline struct leg *side_leg_get(const struct side *s, uint32_t media)
{
	return media < s->legs ? s->leg[media] : NULL;
}
/* Whether the terminal supports RTCP feedback (RFC 4585): by its profile, or by a=rtcp-fb without it. */
static inline bool leg_has_feedback(const struct leg *l)
{
	return l->feedback || sdp_proto_is_feedback(l->proto);
}
/* enum raw_kind of its media. */
uint8_t leg_raw(const struct leg *l);
/* The leg of the side's peer that receives this m-line's packets, or NULL. Both sides of an offer and answer number their m-lines
 * alike. Sides that "connect" joined do not: there the first active audio goes to the first active audio, and so on by kind. */
struct leg *leg_peer(const struct call *c, const struct side *s, uint32_t media);

/* --- Call-IDs --------------------------------------------------------------------------------------------------- */

struct call_table {
	uint8_t seed[16];
	struct call **bucket;
	uint32_t mask, count;
	uint64_t serial;
	struct call *first, *last; /* in order of creation */
};

int call_table_init(struct call_table *t);
void call_table_fini(struct call_table *t);
struct call *call_table_find(const struct call_table *t, struct str id);
void call_table_add(struct call_table *t, struct call *c);
void call_table_remove(struct call_table *t, struct call *c);
/* neu takes old's place. */
void call_table_replace(struct call_table *t, struct call *old, struct call *neu);

/* --- Key slots (past_keys.c) ------------------------------------------------------------------------------------ */

#define LEG_SLOTS_MAX (SDES_MAX_KEYS + RX_PAST + 1 + SUITE_COUNT)

bool crypto_same_key(const struct srtp_master *a, const struct srtp_master *b);
/* A terminal's key went out of force: its slot stays held. The oldest such key gives its place up. */
void past_keys_push(struct leg *l, const struct srtp_master *m, uint32_t slot);
void past_keys_push_all(struct leg *l);
/* It is in force again. */
void past_keys_remove(struct leg *l, uint32_t slot);
/* The slot of our key in force, noted with the key. */
void past_keys_ours(struct leg *l, const struct srtp_master *m, uint32_t slot);
/* All key slots that a leg holds, each once. Returns how many. */
uint32_t leg_slots(const struct leg *l, uint32_t out[LEG_SLOTS_MAX]);

/* --- Applying (apply.c) ----------------------------------------------------------------------------------------- */

/* Takes what next wants and does not have. On error nothing of it is left. -EDQUOT: the call would hold too many keys. */
int apply_take(const struct relay *relay, const struct call *prev, struct call *next);
/* Gives back what apply_take() took: what next holds and prev does not. */
void apply_undo(const struct relay *relay, const struct call *prev, struct call *next);
/* Tells the worker all that differs, and behind it the commands in more, at once or not at all. After success what prev holds and next does not is given back. */
int apply_commit(const struct relay *relay, struct pool *p, const struct call *prev,
	struct call *next, uint64_t now_ns, const struct media_cmd *more, uint32_t more_n);
/* Gives back everything. */
void apply_release_all(const struct relay *relay, struct call *c);

/* --- Gates (gate.c) --------------------------------------------------------------------------------------------- */

/* Whether the request names this side as a source: by label, else by address (addr, if it has a family), else by from-tag.
 * Kamailio sends a from-tag with every command, so it comes last. The flag "all", and a request that names nobody, mean all sides. */
bool gate_is_source(const struct side *s, const struct ng_request *r, const struct endpoint *addr);
/* Sets or clears a MEDIA_GATE_* of the call, of the sides, or of the flows between sides, that the request means. NULL, or the
 * error-reason: nobody is meant. */
const char *gate_set(struct call *c, const struct ng_request *r, uint8_t bit, bool on);
/* Of all that comes from this side. */
static inline uint8_t gate_of_side(const struct call *c, const struct side *s)
{
	return c->gate | s->gate;
}
/* Of what goes from one side to another, beyond that: for media_stream_cfg.gate. */
static inline uint8_t gate_of_flow(const struct call *c, uint8_t from, uint8_t to)
{
	return from < c->sides && to < c->sides ? MEDIA_GATE_TO(c->side[from]->flow[to]) : 0;
}
/* Media of sides that MEDIA_GATE_QUIET stands for, and that may be something else than G.711 and G.722. */
bool gate_holds_back(const struct call *c);

/* --- Empty packets that open the way (pierce.c) ----------------------------------------------------------------- */

/* Of a call that just came into force: what started anew is pierced, at once and then by the ticks. */
void pierce_start(const struct relay *relay, struct call *c, uint64_t now_ns);
/* Once a second. */
void pierce_again(const struct relay *relay, struct call *c, uint64_t now_ns);

/* --- Media that goes in a circle (circle.c) ---------------------------------------------------------------------- */

/* Once a second: has streams watched that get more than a terminal sends. */
void circle_look(const struct relay *relay, struct call *c, uint64_t now_ns);

/* --- Who is told of a timeout (told.c) -------------------------------------------------------------------------- */

/* Whether a request, or what was saved of one, may name this address. */
bool told_allowed(
	const struct call_nets *nets, const struct reach *reach, const struct endpoint *whom);
/* What there is to tell of the end of these sides, a bit each; strings are the call's. */
void told_write(struct call_timeout *out, const struct call *c, uint32_t sides);

/* --- What outlives us (save.c) ------------------------------------------------------------------------------------ */

#define SAVE_ENDED_MAX \
	16384u /* Call-IDs that wait to be removed; beyond, they are left to expire */

struct saver {
	bool on;
	struct call_table *table;
	const struct relay *relay;
	struct call *first, *last; /* wait to be written */
	struct str *ended;         /* ring: ended, to be removed */
	uint32_t ended_at, ended_n;
	struct call *cursor, *asked; /* of save_tick() */
	uint32_t asked_n;
	uint64_t ended_lost, too_long;
	uint8_t seed[16]; /* of hashes of states */
	int64_t shared_ahead_ns;
};

int saver_init(struct saver *s, struct call_table *table, const struct relay *relay);
void saver_fini(struct saver *s);
/* next takes prev's place; prev NULL: it is new. */
void save_changed(struct saver *s, struct call *prev, struct call *next);
void save_ended(struct saver *s, struct call *call);

/* What save and restore need of calls. */
struct saver *calls_saver(struct calls *c);
struct keystore *calls_keys(struct calls *c);
/* A restored call, committed already, is one of ours from now on. */
void calls_adopt(struct calls *c, struct call *call);

/* --- The format of what is saved (save_tables.c): pure ------------------------------------------------------------ */

#define SAVE_VERSION 2 /* of a call that an older reader would get wrong: media is passed through */
#define SAVE_OLDEST  1 /* of all others; and still read */

struct save_key_use {
	uint64_t rtp, rtcp;
};

/* What packets changed of a leg. */
struct leg_state {
	uint32_t side, media;
	uint64_t tx_rtcp_next;
	uint32_t marks;
	struct save_mark {
		uint32_t ssrc, table, per_s;
		bool roc_only;
		uint64_t index;
	} mark[MEDIA_MARKS_MAX];
	struct endpoint remote, rtcp_remote;
	bool confirmed, rtcp_confirmed;
	struct stream_counts counts[2]; /* RTP, RTCP */
	struct save_key_use rx_use[SDES_MAX_KEYS], tx_use;
};

struct call_state {
	uint64_t created_ns, revision; /* of the call that it belongs to */
	uint64_t at_ns;                /* by the clock that nodes share, see calls_shared_clock() */
	/* The same by CLOCK_REALTIME of the node that wrote it, as all other times in the record. 0 = at_ns (written before 0.3). */
	uint64_t real_ns;
	uint32_t legs;
	struct leg_state *leg;
};

/* Bencode is appended; an error is left in b. */
void save_write_call(struct sbuf *b, const struct call *c, const struct relay_local *locals,
	uint32_t locals_n, const struct call_state *state);
void save_write_state(struct sbuf *b, const struct call_state *state);
/* 0, -ENOMEM, -EPROTONOSUPPORT (another version), -EADDRNOTAVAIL (a local address that we don't have), -EBADMSG. The call is complete
 * but for what apply takes; free it with call_free(). The state is in the pool. */
int save_read_call(struct call **out, struct call_state *state, struct keystore *k, struct pool *p,
	struct str text, const struct relay_local *locals, uint32_t locals_n);
int save_read_state(struct call_state *out, struct pool *p, struct str text);

/* --- Listeners (listen.c) ----------------------------------------------------------------------------------------- */

/* Handle + 1 of the stream behind this leg in the list of those who hear (source, media), or of the list's first with after = NULL.
 * 0 = none. */
uint32_t listener_stream(
	const struct call *c, uint32_t source, uint32_t media, const struct leg *after, bool rtcp);

/* --- Recordings (tap.c) ------------------------------------------------------------------------------------------- */

/* Marks what shall be recorded from now on; opening and closing is the caller's. NULL, or the error-reason. STOP becomes PAUSE while
 * another side is still recorded. */
const char *record_mark(struct call *c, const struct ng_request *r, enum call_record *what);
/* Lines about sides and media, for the recording's text file. In the pool. */
struct str record_about(struct pool *p, const struct call *c);

/* --- Debugging (trace.c) ---------------------------------------------------------------------------------------- */

struct trace {
	void (*fn)(void *arg, const struct call_trace *line);
	void *arg;
};

/* Nothing unless it is debugged. */
void trace_call(const struct trace *t, const struct relay *relay, const struct call *c);

/* --- Reply trees (query.c) -------------------------------------------------------------------------------------- */

void query_tree(const struct relay *relay, struct pool *p, const struct call *c,
	struct str from_tag, struct str to_tag, struct ngval *dict);

/* --- A call in a few lines (view.c) ------------------------------------------------------------------------------ */

/* What is to be said of a call that ends, added to what was said of others. */
void view_ended(const struct relay *relay, const struct call *c, struct calls_ended *e);
/* Appends the call to list. Returns about how many bytes it takes in a reply. */
size_t view_call(const struct relay *relay, struct pool *p, const struct call *c, uint64_t now_ns,
	struct ngval *list);

#endif
