/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls: what signalling made of them. Only the control thread creates and changes them. An offer or answer is negotiated
 * by a pure function into a plan (call/negotiate.h), then applied: everything is taken, published, or undone, leaving the old
 * call untouched. */
#ifndef CALL_CALL_H
#define CALL_CALL_H

#include "call/reach.h"
#include "call/record.h"
#include "call/relay.h"
#include "proto/ng.h"
#include "proto/sdp.h"

/* Which suites and session parameters. A script that asks for one by name in its flags gets it nevertheless: it is the
 * operator's as well. */
struct sdes_policy {
	uint8_t offer[SUITE_COUNT]; /* suites that we offer, in order; SUITE_PLAIN ends the list */
	uint32_t accept;            /* bit per enum srtp_suite_id: what a terminal may offer us */
	uint32_t params;            /* NG_SDES_UN*: session parameters that it may ask for */
};

/* Whether somebody is told of calls that time out, and whether the address that a request names matters. */
enum call_told { CALL_TOLD_NOBODY, CALL_TOLD_FIXED, CALL_TOLD_ADDRESS };

struct call_policy { /* what the operator decided; constant after start */
	struct sdes_policy sdes;
	enum media_learning learning;
	bool strict_source;
	bool short_tags;  /* SRTCP tags of 32 bits are accepted under suites with _32 */
	bool early_media; /* RTP of a callee is relayed before its answer, where both are plain */
	uint8_t tos;
	uint64_t timeout_ns;        /* without media */
	uint64_t silent_timeout_ns; /* on hold */
	uint64_t offer_timeout_ns;  /* offered and never answered */
	uint64_t final_timeout_ns;  /* since its first offer, whatever happens; 0 = none */
	uint64_t delete_delay_ns;
	uint32_t max_calls;  /* 0 = as many as there are ports */
	uint32_t max_medias; /* m-lines of a side that are relayed; 0 = SDP_MAX_MEDIA */
	enum call_told told;
	struct call_nets told_nets; /* where the addresses may be that requests name for it */
	uint8_t loop_key[32];       /* random, of this process: loop.c */
};

/* Why new calls are refused: ng's "load limit", with these messages of rtpengine. X(id, name in statistics, message) */
#define CALL_LIMITS(X)                           \
	X(SESSIONS, "sessions", NGE_SESSIONS)    \
	X(CPU, "cpu", NGE_CPU)                   \
	X(LOAD, "load", NGE_LOAD)                \
	X(BANDWIDTH, "bandwidth", NGE_BANDWIDTH) \
	X(DRAIN, "drain", NGE_DRAIN)             \
	X(STANDBY, "standby", NGE_STANDBY)

enum call_limit {
	CALL_LIMIT_NONE,
#define X(id, name, message) CALL_LIMIT_##id,
	CALL_LIMITS(X)
#undef X
		CALL_LIMIT_COUNT
};

struct calls; /* all calls of the daemon */

int calls_create(struct calls **out, const struct call_policy *policy, const struct relay *relay);
/* Sets where media may go. Call it before the first request; r must outlive the calls. Without it
 * the built-in rules apply, and only the addresses of media interfaces count as the host's own. */
void calls_set_reach(struct calls *c, const struct reach *r);
/* The answers of reach's callbacks changed: calls_reach_again() is to be called. */
void calls_host_changed(struct calls *c);
/* Judges the destinations of a bounded number of calls again, signalled and learned, and cuts those that are not allowed now.
 * Returns after how many nanoseconds it is to be called once more; 0: all calls are judged. */
uint64_t calls_reach_again(struct calls *c, uint64_t now_ns);
/* Ends every call and gives back everything it held. */
void calls_destroy(struct calls *c);

struct call_reply { /* what a handler wants to say; strings live in the request's pool or are constants */
	const char *error;  /* error-reason, or NULL: result ok */
	struct str detail;  /* appended to the reason in parentheses when it helps; may be empty */
	bool load_limit;    /* result "load limit" */
	bool again;         /* not decided: the same request may succeed soon */
	struct str warning; /* may be empty */
	struct str notice;  /* for the log: part of the call became less secure; may be empty */
	struct str kept;    /* for the log: flags that did not change an established side */
	struct str sdp;     /* offer, answer */
};

/* Called before a change by SDP takes effect: whether its reply can be sent. If not, the change is refused and
 * the call stays as it was. NULL: any reply can. */
typedef bool call_reply_fits(void *arg, const struct call_reply *planned);
void calls_reply_room(struct calls *c, call_reply_fits *fits, void *arg);

/* now_ns: CLOCK_REALTIME. The reply's SDP is in the pool. Never leaves a half-made or half-changed call behind. */
void calls_offer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);
void calls_answer(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);
/* One-way media: publish and subscribe request also fill dict with who is who; the answer to a subscription has no SDP. */
void calls_publish(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
void calls_listen(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
void calls_listen_answer(struct calls *c, struct pool *p, const struct ng_request *r,
	uint64_t now_ns, struct call_reply *out);
void calls_unlisten(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);
/* delete and query fill dict with the tree of rtpengine's query (no keys, ever). */
void calls_delete(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
/* Two parties of a call speak to each other from now on (from-tag, to-tag), and those they spoke to hear and send nothing; with the flag
 * directional only what comes from from-tag goes to to-tag. */
void calls_connect(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out);
/* What comes from the sides that the request means (all, or by from-tag, label, address) does not leave any more, or does again;
 * it is received, authenticated and followed all the same. gate: MEDIA_GATE_*. */
void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r, uint8_t gate, bool on,
	uint64_t now_ns, struct call_reply *out);
/* Adds "calls": up to limit Call-IDs. */
void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict);

/* Parameters of "calls"; texts are slices of the request. */
struct calls_look {
	struct str part;   /* of a Call-ID, tag or name; empty = any */
	struct str filter; /* words of call/find.h; empty = all calls */
	struct str sort;   /* an order of call/find.h; empty = the newest first */
	struct str after;  /* "next" of the previous page; empty = the first page */
	bool count;        /* "matched" on each page, not only on the first */
	uint32_t limit;    /* calls per page, at most */
	uint32_t bytes;    /* per page, about, so that a reply fits a datagram; 0 = any */
};

/* Adds "calls": a page of the calls that match, each in a few lines; "next" if there are more pages;
 * on the first page "matched": how many there are (count: on each). Strings are the calls': use them before anything changes. Returns NULL, or
 * what is wrong with the request, a constant. now_ns: CLOCK_REALTIME. */
const char *calls_view(struct calls *c, struct pool *p, const struct calls_look *look,
	uint64_t now_ns, struct ngval *dict);

/* Who records; NULL: nobody, and the commands say so. */
void calls_recorder(struct calls *c, const struct recorder *rec);
enum call_record { CALL_RECORD_START, CALL_RECORD_PAUSE, CALL_RECORD_STOP };
/* Of the whole call, or of what comes from one side (its label, or from-tag with the flag "directional"). What is paused goes on by START. dict: where the recording is. */
void calls_record(struct calls *c, struct pool *p, const struct ng_request *r,
	enum call_record what, uint64_t now_ns, struct call_reply *out, struct ngval *dict);
/* fn for every pair of ports that a call holds; it changes nothing, and keeps call_id no longer than calls stay as they are. */
void calls_each_port(const struct calls *c,
	void (*fn)(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port),
	void *arg);

/* From now on offers of new calls are refused for this reason, but for emergency calls. NONE: no longer. The limit on sessions is
 * looked at by itself. */
void calls_limit(struct calls *c, enum call_limit reached);
/* From now on this is decided; loop_key stays. Calls that are there keep what their signalling made of it, but for timeouts. */
void calls_set_policy(struct calls *c, const struct call_policy *policy);

struct calls_ended { /* of calls that are no more */
	uint64_t answered;
	uint64_t one_way;                /* some of its media came, some never did that should */
	uint64_t silent_streams;         /* media that should have come and never did */
	uint64_t packets, bytes, errors; /* received from all of their terminals */
	uint64_t
		duration_ns; /* from the offer to the last packet or request, of all of them together */
};

struct calls_counters {
	uint64_t current, total, offers, answers, deletes, timeouts, refused;
	uint64_t silent_timeouts, final_timeouts, offer_timeouts; /* of timeouts */
	uint64_t limited[CALL_LIMIT_COUNT];                       /* refused by limits, by which */
	/* legs that went from SRTP to RTP in mid-call: by order of the flags, by their terminal's SDP */
	uint64_t weaker_by_order, weaker_by_terminal;
	uint64_t emergencies;        /* calls that were marked so, in all */
	uint64_t streams;            /* local ports in use */
	uint64_t suite[SUITE_COUNT]; /* media of one side each, in use with this suite */
	uint64_t
		passed; /* likewise, whose packets leave as they come, under the terminals' own keys */
	struct calls_ended ended;
};
void calls_counters(const struct calls *c, struct calls_counters *out);

struct call_key_notice {
	struct str call_id, tag; /* of the terminal */
	uint32_t media;          /* from 1 */
	bool ours;               /* the key that we send under, or one of the terminal's */
	bool expired;            /* all of its lifetime is used up, or 90 % */
	uint64_t lifetime;       /* packets, as signalled; 0 = what RFC 3711 allows */
};

/* Called by calls_tick(), once per key and stage. */
void calls_on_key_life(
	struct calls *c, void (*notice)(void *arg, const struct call_key_notice *n), void *arg);

struct call_handover { /* a terminal's confirmed source was replaced by another */
	struct str call_id, tag;
	uint32_t media; /* from 1 */
	bool rtcp;
	uint32_t times;           /* since the last notice; 0 = none was: short_tag is told */
	bool short_tag, accepted; /* its SRTCP has tags of 32 bits; they are accepted */
	struct media_handover last;
	struct endpoint remote; /* destination of media now */
};

/* Called by calls_tick(), once per stream and second at most. */
void calls_on_handover(
	struct calls *c, void (*handover)(void *arg, const struct call_handover *h), void *arg);

/* Why a call ended. X(id, name, text) */
#define CALL_ENDS(X)                                                                 \
	X(DELETED, "deleted", "deleted by command")                                  \
	X(TIMEOUT, "timeout", "no media for --timeout")                              \
	X(SILENT_TIMEOUT, "silent-timeout", "no media on hold for --silent-timeout") \
	X(OFFER_TIMEOUT, "offer-timeout", "not answered for --offer-timeout")        \
	X(FINAL_TIMEOUT, "final-timeout", "lasted for --final-timeout")              \
	X(STOPPED, "stopped", "the daemon stopped")

enum call_end {
#define X(id, name, text) CALL_END_##id,
	CALL_ENDS(X)
#undef X
		CALL_END_COUNT
};

struct call_closing { /* an ended call */
	struct str call_id;
	struct str from, to; /* names of the caller and the callee (call/names.h) */
	const char *reason;  /* in plain words, a constant */
	uint64_t created_ns, answered_ns, ended_ns; /* CLOCK_REALTIME; answered_ns 0 = never */
	bool one_way;
	struct str text; /* one line: reason, duration, suites, packets, loss, MOS, drops */
	const struct ngval *record; /* the same, and more, as a dictionary (call/closing.c) */
};

/* Called for every call that ends, except calls that continue from Redis. The arguments are invalid
 * afterwards. */
void calls_on_end(
	struct calls *c, void (*ended)(void *arg, const struct call_closing *e), void *arg);

struct call_trouble {            /* began, or is over */
	struct str call_id, tag; /* of the party whose media it is about */
	uint32_t media;          /* from 1, 0 = of the call */
	const char *name;        /* of enum sight_trouble (call/sight.h) */
	struct str text;         /* what is wrong, and its likely cause */
};

/* Called by calls_tick(), a few times per call at most. */
void calls_on_trouble(
	struct calls *c, void (*trouble)(void *arg, const struct call_trouble *t), void *arg);

/* Notes in the history of a call, if it exists, that a command was executed, or refused for this error
 * and detail. */
void calls_note(struct calls *c, const struct ng_request *r, uint64_t now_ns, const char *error,
	struct str detail);
/* Fills dict with what the parties of a call offered, what was chosen and why, and what happened
 * since, in plain words. NULL, or the error-reason. */
const char *calls_explain(
	struct calls *c, struct pool *p, struct str call_id, uint64_t now_ns, struct ngval *dict);

#define CALL_TOLD_MAX 16u /* parties, as many as a call has */

struct call_timeout { /* a call that ends because nothing came any more, or because it lasted too long */
	struct str call_id;
	bool others_live; /* a dialog ends, others with the same Call-ID continue */
	struct endpoint
		whom; /* of xmlrpc-callback, or else where its first request came from; may be unset */
	struct str tag[CALL_TOLD_MAX]; /* of its parties; the first one's is the caller's */
	uint32_t tags;
	struct call_pair { /* who talks to whom, the earlier one first; indexes of tag[] */
		uint8_t from, to;
	} pair[CALL_TOLD_MAX];
	uint32_t pairs;
};

/* Called by calls_tick() just before such a call ends. What it is given is gone afterwards. */
void calls_on_timeout(
	struct calls *c, void (*timeout)(void *arg, const struct call_timeout *t), void *arg);

struct call_trace { /* of a call that is debugged */
	struct str call_id, tag;
	uint32_t media; /* from 1 */
	bool rtcp;
	struct str text;
};

/* Called for every stream of a call that is debugged: after each change, every 10 seconds, and at its end. */
void calls_on_trace(
	struct calls *c, void (*trace)(void *arg, const struct call_trace *line), void *arg);
/* A call is debugged by the flag "debug" in its signalling, or by this. False: there is no such call. */
bool calls_set_debug(struct calls *c, struct str call_id, bool on);
bool calls_debug(const struct calls *c, struct str call_id);

/* Once a second: ends calls without media, carries out delayed deletes. Bounded work per run. */
void calls_tick(struct calls *c, uint64_t now_ns);
/* CLOCK_REALTIME was stepped by step_ns and is now now_ns: moves all times of calls by the same amount, so that no timeout changes.
 * step_ns 0: the process did not run for a while, so timeouts without media start again. */
void calls_clock_set(struct calls *c, uint64_t now_ns, int64_t step_ns);

#endif
