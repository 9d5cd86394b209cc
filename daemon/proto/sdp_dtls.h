/* SPDX-License-Identifier: GPL-2.0-or-later */
/* DTLS attributes of SDP: a=fingerprint (RFC 8122), a=setup (RFC 4145, 8842), a=tls-id (RFC 8842),
 * and the rules that follow from them. Pure; values are slices of the parsed SDP. */
#ifndef PROTO_SDP_DTLS_H
#define PROTO_SDP_DTLS_H

#include "base/sbuf.h"
#include "proto/sdp.h"

/* Hash functions of a=fingerprint (RFC 8122 5). md5 and md2 are never accepted.
 * X(id, name, digest bytes) */
/* clang-format off */
#define DTLS_HASHES(X) \
	X(SHA1, "sha-1", 20) \
	X(SHA224, "sha-224", 28) \
	X(SHA256, "sha-256", 32) \
	X(SHA384, "sha-384", 48) \
	X(SHA512, "sha-512", 64)
/* clang-format on */

enum dtls_hash {
#define X(id, name, len) DTLS_##id,
	DTLS_HASHES(X)
#undef X
		DTLS_HASH_COUNT
};
const char *dtls_hash_name(enum dtls_hash h); /* "sha-256"; "" if out of range */
size_t dtls_hash_len(enum dtls_hash h);       /* bytes; 0 if out of range */

#define DTLS_DIGEST_MAX   64
#define DTLS_FINGERPRINTS 8u  /* of an m-line; further ones are ignored */
#define DTLS_TLS_ID_MIN   20u /* RFC 8842 4 */
#define DTLS_TLS_ID_MAX   255u

struct dtls_fingerprint {
	uint8_t hash; /* enum dtls_hash */
	uint8_t value[DTLS_DIGEST_MAX];
};

struct dtls_fingerprints {
	uint32_t count;
	struct dtls_fingerprint f[DTLS_FINGERPRINTS];
};

/* a=setup of RFC 4145 4. */
enum dtls_setup {
	DTLS_SETUP_NONE, /* no attribute, or an unknown value */
	DTLS_SETUP_ACTIVE,
	DTLS_SETUP_PASSIVE,
	DTLS_SETUP_ACTPASS,
	DTLS_SETUP_HOLDCONN,
};
const char *dtls_setup_name(enum dtls_setup s); /* "" for DTLS_SETUP_NONE */

/* DTLS attributes that apply to one m-line. */
struct sdp_dtls {
	struct dtls_fingerprints prints;
	bool unusable; /* a=fingerprint lines are present, but all are malformed or unknown */
	enum dtls_setup setup;
	struct str tls_id; /* empty: none, or malformed */
};

/* "sha-256 AB:CD:..." after "a=fingerprint:". 0, -EBADMSG (syntax, or a length that is not the
 * hash's), -ENOTSUP (unknown hash). Hex digits of either case are accepted. */
int sdp_fingerprint_parse(struct dtls_fingerprint *out, struct str value);
/* The value after "a=fingerprint:", with uppercase digits (RFC 8122 5). */
void sdp_fingerprint_write(struct sbuf *b, const struct dtls_fingerprint *f);
bool sdp_fingerprint_eq(const struct dtls_fingerprint *a, const struct dtls_fingerprint *b);
/* Whether both sets have the same fingerprints, in any order. */
bool sdp_fingerprints_eq(const struct dtls_fingerprints *a, const struct dtls_fingerprints *b);

/* Attributes of m-line m of s. Attributes at the m-line replace those at session level, each name
 * separately (RFC 8122 5, RFC 4145 4, RFC 8842 4). */
void sdp_dtls_read(struct sdp_dtls *out, const struct sdp *s, const struct sdp_media *m);

/* --- Roles (RFC 4145 4.1, RFC 5763 5, RFC 8842 5) --------------------------------------------- */

enum dtls_role { DTLS_ROLE_NONE, DTLS_ROLE_CLIENT, DTLS_ROLE_SERVER };

/* clang-format off */
/* X(id, text) */
#define DTLS_ROLE_ERRORS(X) \
	X(SAME, "both sides want the same DTLS role") \
	X(HOLDCONN, "a=setup:holdconn is not possible with DTLS-SRTP") \
	X(ACTPASS, "a=setup:actpass is not possible in an answer")
/* clang-format on */

enum dtls_role_err {
	DTLS_ROLE_OK,
#define X(id, text) DTLS_ROLE_ERR_##id,
	DTLS_ROLE_ERRORS(X)
#undef X
};
const char *dtls_role_err_text(enum dtls_role_err e);

/* Our answer's a=setup. offered: of the offer; DTLS_SETUP_NONE counts as "active", the default of
 * RFC 4145 4. want: our preference if the offer leaves the choice; DTLS_ROLE_NONE = client, which
 * RFC 5763 5 recommends. current: the role of the association that continues; DTLS_ROLE_NONE: none
 * continues. Writes *setup and *role on success only. */
enum dtls_role_err dtls_setup_answer(enum dtls_setup *setup, enum dtls_role *role,
	enum dtls_setup offered, enum dtls_role want, enum dtls_role current);

/* Our offer's a=setup: "actpass", which RFC 8842 5.2 demands, also in offers that keep an
 * association. With old = true (a peer that does not understand actpass) the role is named. */
enum dtls_setup dtls_setup_offer(enum dtls_role current, bool old);

/* Our role after the peer answered our offer. An absent a=setup in the answer counts as "active"
 * (RFC 4145 4) if we offered actpass, else as the opposite of our offer. A role that differs from
 * that of the association so far demands a new one. */
enum dtls_role_err dtls_setup_answered(
	enum dtls_role *role, enum dtls_setup offered, enum dtls_setup answered);

#endif
