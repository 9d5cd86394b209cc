/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plan: what an offer or answer makes of a call, before anything is taken or changed. */
#ifndef CALL_PLAN_H
#define CALL_PLAN_H

#include "call/call.h"
#include "call/model.h"
#include "keying/keying.h"
#include "proto/sdp_bundle.h"

struct neg_in {
	const struct call_policy *policy;
	const struct relay_local *locals;
	uint32_t locals_n;
	const struct reach *reach;
	const struct ng_request *r;
	const struct sdp *sdp;
	struct keying_random random;
	struct keying_host host;
	/* codecs of the codec threads; NULL: there are no threads, so only PCMU and PCMA */
	const struct sdp_known *known;
	uint32_t knowns;
	bool sessions;         /* there are keying threads, so ICE is available */
	struct keystore *keys; /* memory for new legs */
	struct pool *p;
	const struct call *call; /* the copy that is negotiated */
	/* side: the other party of this exchange; SIDE_NONE: none, or not known yet */
	uint8_t other;
};

struct plan {
	const char *error; /* NULL: apply next */
	struct str detail;
	struct str warning;
	struct str notice; /* also for the log: less secure than before */
	struct str kept;   /* flags that were not applied to an established side */
	uint32_t weaker_by_order, weaker_by_terminal; /* legs that went from SRTP to RTP */
	uint32_t fallbacks; /* legs that now use another keying than was wanted, or none */
	bool too_many;      /* the warning mentions it */
	bool offers;        /* some m-line is offered to the other side */
	/* Error-reason of the first m-line that was rejected for its crypto lines; all such
	 * m-lines. */
	const char *unusable;
	struct str unusable_detail;
	uint8_t from, to; /* sides: sender and receiver of the SDP */
	/* The sender's m-lines on one transport (offer/bundle.h). */
	struct sdp_bundle bundle;
	/* In an answer: the m-line whose transport the offerer's group uses; UINT32_MAX: none. */
	uint32_t accepted;
	/* The SDP to write, without ports */
	struct plan_media {
		bool keep, reject, omit;
		bool mirror; /* a=loopback of the sender is removed (RFC 6849) */
		bool both;   /* osrtp_legacy.c: also offer its m-line in the other profile */
		struct str direction; /* s = NULL: unchanged */
		enum sdp_proto proto;
		bool mux;
		struct keying_lines lines; /* attributes to write */
		/* Codecs that are transcoded: the formats to write, s = NULL: unchanged; payload
		 * types whose lines are removed; lines to add. */
		struct str formats, type_lines;
		uint64_t drop_types[2];
	} * media; /* [sdp.media_count], in the pool */
};

/* Adds to the warning, separated by "; ". */
void plan_warn(struct plan *plan, struct pool *p, struct str text);

/* Adds to the notice, and to the warning. */
void plan_note(struct plan *plan, struct pool *p, struct str text);
void plan_fail(struct plan *plan, const char *reason, struct str detail);
struct str plan_media_name(struct pool *p, uint32_t i, const char *what);

#endif
