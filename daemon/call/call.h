/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls: what signalling made of them. Only the control thread creates and changes them. An offer
 * or answer is negotiated by a pure function into a plan (offer/negotiate.h), then applied:
 * everything is taken, published, or undone, leaving the old call untouched. */
#ifndef CALL_CALL_H
#define CALL_CALL_H

#include "call/reach.h"
#include "call/recorder.h"
#include "call/relay.h"
#include "keying/policy.h"
#include "proto/ng.h"
#include "proto/sdp.h"

/* Whether somebody is told of calls that time out, and whether the address that a request names
 * matters. */
enum call_told { CALL_TOLD_NOBODY, CALL_TOLD_FIXED, CALL_TOLD_ADDRESS };

struct call_policy { /* what the operator decided; constant after start */
	struct sdes_policy sdes;
	struct mikey_host *mikey; /* NULL: MIKEY is off; it outlives the calls */
	enum zrtp_policy zrtp;
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
	uint8_t loop_key[32];       /* random, of this process: loop_protect.c */
};

/* Why new calls are refused: ng's "load limit", with these messages of rtpengine. X(id, name in
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
/* Sets how many sessions relay->sessions has. Call it before the first request. 0 or -ENOMEM. */
int calls_set_sessions(struct calls *c, uint32_t max);
/* What came of a leg's session. Late events of a session that ended must not come here: its handle
 * may be another leg's by then. 0, or -EAGAIN: a queue is full, and nothing changed. The same event
 * must come again. */
struct session_event;
int calls_session_event(
	struct calls *c, uint32_t session, const struct session_event *e, uint64_t now_ns);
/* For the log: what came of it. why: the suite of new keys, or the reason of a failure. */
struct call_session_notice {
	struct str call_id, tag;
	uint8_t kind; /* enum session_event_kind */
	bool rtcp;
	const char *why;
	const char *sas; /* of ZRTP; NULL: it is not of ZRTP */
	bool verified, mismatched;
};
void calls_on_session(
	struct calls *c, void (*fn)(void *arg, const struct call_session_notice *n), void *arg);
/* Ends every call and gives back everything it held. */
void calls_destroy(struct calls *c);

/* what a handler wants to say; strings live in the request's pool or are constants */
struct call_reply {
	const char *error;  /* error-reason, or NULL: result ok */
	struct str detail;  /* appended to the reason in parentheses when it helps; may be empty */
	bool load_limit;    /* result "load limit" */
	bool again;         /* not decided: the same request may succeed soon */
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
/* What comes from the sides that the request means (all, or by from-tag, label, address) does not
 * leave any more, or does again; it is received, authenticated and followed all the same. gate:
 * MEDIA_GATE_*. */
void calls_gate(struct calls *c, struct pool *p, const struct ng_request *r, uint8_t gate, bool on,
	uint64_t now_ns, struct call_reply *out);
/* Adds "calls": up to limit Call-IDs. */
void calls_list(struct calls *c, struct pool *p, uint32_t limit, struct ngval *dict);

/* fn for every pair of ports that a call holds; it changes nothing, and keeps call_id no longer
 * than calls stay as they are. */
void calls_each_port(const struct calls *c,
	void (*fn)(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port),
	void *arg);

/* From now on offers of new calls are refused for this reason, but for emergency calls. NONE: no
 * longer. The limit on sessions is looked at by itself. */
void calls_limit(struct calls *c, enum call_limit reached);
/* From now on this is decided; loop_key stays. Calls that are there keep what their signalling made
 * of it, but for timeouts. */
void calls_set_policy(struct calls *c, const struct call_policy *policy);

struct calls_ended { /* of calls that are no more */
	uint64_t answered;
	uint64_t one_way;                /* some of its media came, some never did that should */
	uint64_t silent_streams;         /* media that should have come and never did */
	uint64_t packets, bytes, errors; /* received from all of their terminals */
	/* from the offer to the last packet or request, of all of them together */
	uint64_t duration_ns;
};

struct calls_counters {
	uint64_t current, total, offers, answers, deletes, timeouts, refused;
	uint64_t silent_timeouts, final_timeouts, offer_timeouts; /* of timeouts */
	uint64_t limited[CALL_LIMIT_COUNT];                       /* refused by limits, by which */
	/* legs that went from SRTP to RTP in mid-call: by order of the flags, by their terminal's
	 * SDP */
	uint64_t weaker_by_order, weaker_by_terminal;
	uint64_t emergencies;        /* calls that were marked so, in all */
	uint64_t streams;            /* local ports in use */
	uint64_t suite[SUITE_COUNT]; /* media of one side each, in use with this suite */
	/* likewise, whose packets leave as they come, under the terminals' own keys */
	uint64_t passed;
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

/* All calls end here and stay written there: another node has them from now on. Saving is off until
 * calls_save_start(). */
void calls_leave(struct calls *c);

#endif
