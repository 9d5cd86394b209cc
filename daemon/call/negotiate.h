/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offer and answer as a pure function: what both sides of a call agreed on so far, a request and its SDP, and random bytes
 * go in; what is to hold from now on comes out. Knows no handles and takes nothing: apply.c does. */
#ifndef CALL_NEGOTIATE_H
#define CALL_NEGOTIATE_H

#include "call/call.h"
#include "proto/sdes.h"

#define NEGO_MAX_LINES 16 /* a=crypto lines kept of an offer */
#define NEGO_KEY_LEN   (SRTP_MAX_KEY_LEN + SRTP_MAX_SALT_LEN)
#define NEGO_RANDOM    (SUITE_COUNT * NEGO_KEY_LEN) /* fresh random bytes per m-line */

/* One m-line as seen by one side's terminal. "ours" is what we wrote to it, "theirs" what it wrote. */
struct nego_end {
	enum sdp_proto proto; /* the profile this terminal sees */
	enum sdp_dir dir;     /* in its latest SDP */
	bool rejected;        /* port 0 in its latest SDP */
	bool osrtp_accept;    /* crypto of RTP/AVP may be taken (RFC 8643) */
	bool mux_theirs, mux_ours, mux_reject;
	struct endpoint sig_rtp, sig_rtcp; /* its latest SDP; port 0 = nowhere to send to */
	struct sdes theirs[NEGO_MAX_LINES], ours[SUITE_COUNT];
	uint32_t theirs_n, ours_n;
	/* In effect. A re-offer changes none of it: it may still be refused. */
	bool mux;
	struct endpoint rtp, rtcp;
	struct sdes rx, tx; /* SUITE_PLAIN: as it is */
};

struct nego_media {
	struct nego_end end[2];
	char kind[16];
	bool kept;   /* not RTP: left as it is */
	bool wanted; /* has ports */
	bool linked; /* packets go from one side to the other */
};

struct nego_side {
	uint8_t local; /* index of our address it speaks to */
	bool strict_source, media_handover, asymmetric;
	enum media_learning learning;
};

struct nego {
	struct nego_side side[2];
	uint8_t offerer; /* side that made the latest offer */
	bool started;    /* an offer was applied */
	bool answered;
	uint8_t tos;
	uint32_t count;
	struct nego_media *media;
};

struct nego_in {
	const struct ng_request *r;
	const struct sdp *sdp;
	const struct call_policy *policy;
	const struct relay_local *local;
	uint32_t locals;
	const uint8_t *random; /* NEGO_RANDOM for each m-line of the SDP */
	uint8_t from;          /* side whose SDP this is */
};

/* A deep copy with room for at least count m-lines. 0 or -ENOMEM. */
int nego_copy(struct nego *out, const struct nego *n, uint32_t count);
/* Wipes the keys. */
void nego_fini(struct nego *n);

/* Change n, a copy of what held until now, to what is to hold. NULL, or an error-reason; then n is to be thrown away.
 * *warning: a constant, or NULL. */
const char *nego_offer(struct nego *n, const struct nego_in *in, const char **warning);
const char *nego_answer(struct nego *n, const struct nego_in *in, const char **warning);

bool nego_same_key(const struct srtp_master *a, const struct srtp_master *b);

/* keying.c: which suites and keys. NULL or an error-reason. */
const char *keying_read(struct nego_end *e, const struct sdp_media *m);
const char *keying_offer(struct nego_end *to, const struct nego_end *from, const struct nego_in *in,
	const uint8_t *random);
const char *keying_answer(struct nego_end *offerer, struct nego_end *answerer,
	const struct nego_in *in, const struct sdp_media *m, const uint8_t *random);
bool keying_usable(const struct nego_end *e, uint32_t suites);

/* edit.c: how the SDP that goes to the other side differs from the one that came. Strings are in the pool. */
struct nego_port {
	uint16_t rtp, rtcp;
};
int nego_edit(struct sdp_edit *out, struct pool *p, const struct nego *n, const struct nego_in *in,
	const struct nego_port *port, bool answer);

#endif
