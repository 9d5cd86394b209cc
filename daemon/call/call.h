/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls, as signalling defines them. Only the control thread creates and changes them. A pure
 * function negotiates an offer or answer into a plan (offer/negotiate.h). Then the plan is applied
 * completely, or undone without changing the old call. */
#ifndef CALL_CALL_H
#define CALL_CALL_H

#include "call/reach.h"
#include "call/recorder.h"
#include "call/relay.h"
#include "keying/policy.h"
#include "proto/ng.h"
#include "proto/sdp.h"

/* Whether timeouts of calls are reported, and whether to the address in the request. */
enum call_told { CALL_TOLD_NOBODY, CALL_TOLD_FIXED, CALL_TOLD_ADDRESS };

struct call_policy { /* set by the operator; constant after start */
	struct sdes_policy sdes;
	struct mikey_host *mikey;      /* must outlive the calls; NULL: MIKEY is off */
	struct zrtp_store *zrtp_store; /* must outlive the calls; NULL: no retained secrets */
	enum zrtp_policy zrtp;
	enum media_learning learning;
	bool strict_source;
	bool short_tags;  /* SRTCP tags of 32 bits are accepted under suites with _32 */
	bool early_media; /* RTP of a callee is relayed before its answer, if both sides are
			   * plain */
	uint8_t tos;
	uint64_t timeout_ns;        /* without media */
	uint64_t silent_timeout_ns; /* on hold */
	uint64_t offer_timeout_ns;  /* for an offer without answer */
	uint64_t final_timeout_ns;  /* since the first offer, even with media; 0 = none */
	uint64_t delete_delay_ns;
	uint32_t max_calls;  /* 0 = limited by ports only */
	uint32_t max_medias; /* m-lines of a side that are relayed; 0 = SDP_MAX_MEDIA */
	enum call_told told;
	struct call_nets told_nets; /* networks that requests may name for timeout reports */
	uint8_t loop_key[32];       /* random per process: loop_protect.c */
};

/* Reasons to refuse new calls: ng's "load limit", with rtpengine's messages. X(id, name in
 * statistics, message) */
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
/* Sets the number of sessions in relay->sessions. Call it before the first request. 0 or
 * -ENOMEM. */
int calls_set_sessions(struct calls *c, uint32_t max);
/* Likewise of relay->audio. */
int calls_set_audio(struct calls *c, uint32_t max);
/* The party of an audio session. */
struct call_digit {
	struct call *call;
	struct str call_id, tag;
	uint8_t side;
};
/* Whose audio session this is. False: it is of no call. */
bool calls_audio_of(const struct calls *c, uint32_t audio, struct call_digit *out);
/* Counts a digit that an audio session heard, as a telephone event or a tone. False: it is of no
 * call. */
bool calls_digit(struct calls *c, uint32_t audio, struct call_digit *out);
/* Handles an event of a leg's session. Late events of an ended session must not be passed: its
 * handle may belong to another leg. 0, or -EAGAIN: a queue is full, and nothing changed; repeat the
 * same event later. */
struct session_event;
int calls_session_event(
	struct calls *c, uint32_t session, const struct session_event *e, uint64_t now_ns);
/* Result of an event, for the log. why: the suite of new keys, or the reason of a failure. */
struct call_session_notice {
	struct str call_id, tag;
	uint8_t kind; /* enum session_event_kind */
	bool rtcp;
	const char *why;
	const char *sas; /* from ZRTP; NULL: not ZRTP */
	bool verified, mismatched, discloses;
};
void calls_on_session(
	struct calls *c, void (*fn)(void *arg, const struct call_session_notice *n), void *arg);
/* Ends every call and releases all resources. */
void calls_destroy(struct calls *c);

/* a handler's result; strings live in the request's pool or are constants */
struct call_reply {
	const char *error;  /* error-reason, or NULL: result ok */
	struct str detail;  /* appended to the reason in parentheses; may be empty */
	bool load_limit;    /* result "load limit" */
	bool again;         /* undecided: the same request may succeed soon */
	struct str warning; /* may be empty */
	struct str notice;  /* for the log: part of the call became less secure; may be empty */
	struct str kept;    /* for the log: flags that did not change an established side */
	struct str sdp;     /* offer, answer */
};

/* Called before a change by SDP takes effect: whether its reply can be sent. If not, the change is
 * refused and the call stays as it was. NULL: any reply can. */
typedef bool call_reply_fits(void *arg, const struct call_reply *planned);
void calls_reply_room(struct calls *c, call_reply_fits *fits, void *arg);

void calls_query(struct calls *c, struct pool *p, const struct ng_request *r, uint64_t now_ns,
	struct call_reply *out, struct ngval *dict);
/* Blocks or unblocks packets from the selected sides (all, or by from-tag, label, address). Blocked
 * packets are still received, authenticated and tracked. */
struct calls_gate {
	uint8_t gate; /* MEDIA_GATE_* */
	bool on;
};
void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r,
	struct calls_gate order, uint64_t now_ns, struct call_reply *out);
/* ng's "verify SAS" and "unverify SAS": marks ZRTP exchanges as compared by the operator, or as not
 * compared. Applies to the party with the request's from-tag, without one to all parties. */
void calls_verify_sas(struct calls *c, struct pool *p, const struct ng_request *r, bool verified,
	uint64_t now_ns, struct call_reply *out);
/* Adds "calls": up to limit Call-IDs. */
void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict);

/* Calls fn for every port pair of a call. fn changes nothing, and must not keep call_id. */
void calls_each_port(const struct calls *c,
	void (*fn)(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port),
	void *arg);

/* Refuses new calls for this reason from now on, except emergency calls. NONE: accepts calls. The
 * limit on sessions is checked separately. */
void calls_limit(struct calls *c, enum call_limit reached);
/* Changes the policy; loop_key stays. Existing calls keep their settings, except timeouts. */
void calls_set_policy(struct calls *c, const struct call_policy *policy);

struct calls_ended { /* statistics of ended calls */
	uint64_t answered;
	uint64_t one_way;                /* received from some terminals that should send, but
					  * not from all */
	uint64_t silent_streams;         /* streams that should have carried media and never did */
	uint64_t packets, bytes, errors; /* received from all of their terminals */
	/* from the offer to the last packet or request; sum of all calls */
	uint64_t duration_ns;
};

/* Transcoded m-lines of one side, by pair of codecs. */
#define CALL_CODEC_PAIRS 32 /* the last one stands for all others */
#define CALL_PAIR_TEXT   48
struct call_codec_pair {
	char name[CALL_PAIR_TEXT]; /* "PCMU to PCMA"; "": free */
	uint64_t n;
};
struct calls_counters {
	uint64_t current, total, offers, answers, deletes, timeouts, refused;
	uint64_t silent_timeouts, final_timeouts, offer_timeouts; /* of timeouts */
	uint64_t limited[CALL_LIMIT_COUNT];                       /* refused by limits, per limit */
	/* legs that changed from SRTP to RTP in mid-call: by flags, by the terminal's SDP */
	uint64_t weaker_by_order, weaker_by_terminal;
	/* Legs whose keying failed, and that use RTP or another keying instead, as requests
	 * allowed. */
	uint64_t keying_fallbacks;
	uint64_t emergencies;        /* emergency calls in total */
	uint64_t digits;             /* heard by audio sessions */
	uint64_t streams;            /* local ports in use */
	uint64_t suite[SUITE_COUNT]; /* media of one side in use, by suite */
	/* media of one side in use, passed through under the terminals' own keys */
	uint64_t passed;
	struct call_codec_pair transcoded[CALL_CODEC_PAIRS];
	struct calls_ended ended;
};
void calls_counters(const struct calls *c, struct calls_counters *out);

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

/* Another node is active: new calls are refused, emergency calls too. */
void calls_passive(struct calls *c, bool passive);

/* Ends all calls here, but keeps them in Redis for another node. Saving is off until
 * calls_save_start(). */
void calls_leave(struct calls *c);

#endif
