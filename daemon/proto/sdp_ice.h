/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE in session descriptions (RFC 8839) and in trickle fragments (RFC 8840). Pure. */
#ifndef PROTO_SDP_ICE_H
#define PROTO_SDP_ICE_H

#include "proto/sdp.h"

#define SDP_ICE_UFRAG_MIN    4u
#define SDP_ICE_PWD_MIN      22u
#define SDP_ICE_TEXT_MAX     256u /* of ufrag and pwd (RFC 8839 5.4) */
#define SDP_ICE_CANDIDATES   24u  /* per m-line; more are counted and ignored */
#define SDP_ICE_FRAGMENT_MAX 16384u

/* clang-format off */
/* X(id, text) of candidate types, worst last (RFC 8445 5.1.2.2) */
#define ICE_CANDIDATE_TYPES(X) \
	X(HOST, "host") \
	X(PRFLX, "prflx") \
	X(SRFLX, "srflx") \
	X(RELAY, "relay")
/* clang-format on */
enum ice_candidate_type {
#define X(id, text) ICE_##id,
	ICE_CANDIDATE_TYPES(X)
#undef X
};

/* A candidate of UDP with an IP address. */
struct ice_candidate {
	struct endpoint addr;
	uint32_t priority;
	char foundation[32]; /* not terminated */
	uint8_t foundation_len;
	uint8_t component; /* 1 = RTP, 2 = RTCP */
	uint8_t type;      /* enum ice_candidate_type */
};

/* Priority of RFC 8445 5.1.2.1: the higher the better. */
uint32_t ice_candidate_priority(enum ice_candidate_type t, uint16_t local_pref, uint8_t component);
/* Writes local preferences and foundations (from 1) of n host candidates; addr has the most
 * preferred first. IPv4 and IPv6 alternate (RFC 8421 4). Candidates with the same address get the
 * same preference and foundation. */
void ice_prefer(const struct endpoint *addr, uint32_t n, uint16_t *preference, uint8_t *foundation);

/* Parses the value of a=candidate, with or without "candidate:" before it, as browsers send it.
 * 0; -EINVAL: malformed; -EPROTONOSUPPORT: a candidate to be ignored: not UDP, a host name
 * (also mDNS; never looked up), a component above 2, port 0, or an unknown type. */
int ice_candidate_parse(struct ice_candidate *out, struct str text);
/* "a=candidate:..." without line end. Writes raddr and rport of other types than host as 0.0.0.0 or
 * :: with port 9: we do not reveal them. */
void ice_candidate_write(struct sbuf *b, const struct ice_candidate *c);

/* ICE attributes of an m-line, session level included. */
struct sdp_ice {
	struct str ufrag, pwd; /* slices of the body; s = NULL: absent or malformed */
	bool lite, trickle, end_of_candidates;
	/* m= and c= name an address that is none of the candidates, because something on the path
	 * changed them, mostly an SBC (RFC 8839 4.2.5). False if the address may be that of an
	 * ignored candidate, or is not known yet. */
	bool mismatch;
	uint32_t count;   /* candidates that we can use */
	uint32_t ignored; /* those we cannot: TCP, names, malformed ones, too many */
	struct ice_candidate candidate[SDP_ICE_CANDIDATES];
};
/* Reads the attributes of m-line i. Never fails: what is malformed counts as absent. ICE is in use
 * only with ufrag and pwd (sdp_ice_used). */
void sdp_ice_read(struct sdp_ice *out, const struct sdp *s, uint32_t i);
static inline bool sdp_ice_used(const struct sdp_ice *i)
{
	return i->ufrag.s && i->pwd.s;
}

/* Whether new credentials mean a restart (RFC 8839 4.4.1.1.1): ufrag or pwd changed. Neither first
 * credentials nor absent ones are a restart. */
bool sdp_ice_restarted(struct str old_ufrag, struct str old_pwd, struct str ufrag, struct str pwd);

/* ICE attributes to write. */
struct sdp_ice_write {
	/* s = NULL: none of both, and no a=ice-options. */
	struct str ufrag, pwd;
	bool lite;    /* a=ice-lite: only at session level */
	bool trickle; /* a=ice-options has trickle: we take fragments */
	bool end_of_candidates;
	const struct ice_candidate *candidate;
	uint32_t count;
	/* a=remote-candidates: what is selected, of a controlling agent's later offer (RFC 8839
	 * 4.4.1.2.2); family 0 = none; [component - 1] */
	struct endpoint remote[2];
	const char *eol; /* "\r\n" */
};
void sdp_ice_write(struct sbuf *b, const struct sdp_ice_write *w);

/* --- Trickle fragments: application/trickle-ice-sdpfrag (RFC 8840 9) ------------------------- */

struct sdp_ice_section {
	struct str mid; /* empty: not given */
	uint32_t index; /* number of its m-line in the fragment; without m-lines 0 */
	struct sdp_ice ice;
};
/* Calls each for every section in their order. Lines before the first m-line or a=mid hold for all
 * sections. A fragment without sections is one section without mid. 0; -EINVAL: malformed or too
 * long, then nothing was called, or more than SDP_MAX_MEDIA sections; or what each returned other
 * than 0. */
int sdp_ice_fragment_read(
	struct str body, int (*each)(void *ctx, const struct sdp_ice_section *s), void *ctx);

#endif
