/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Authentication of ng by a shared key. A signed cookie is
 *
 *	COOKIE~SECONDS~MAC
 *
 * SECONDS: time of signing since 1970, 10 digits. MAC: 32 lower-case hexadecimal digits, the first
 * 128 bits of HMAC-SHA256. For a request it is
 *
 *	HMAC(key, "xcipher ng request 1\n" COOKIE "~" SECONDS "\n" dictionary)
 *
 * and for a reply, which repeats COOKIE and SECONDS of its request:
 *
 *	HMAC(key, "xcipher ng reply 1\n" the request's whole signed cookie "\n" dictionary)
 *
 * The dictionary has no white space around it. The first line separates requests from replies. A
 * cookie has neither blanks nor line ends, so both texts are unambiguous. Pure. */
#ifndef PROTO_NG_AUTH_H
#define PROTO_NG_AUTH_H

#include "proto/ng.h"

#define NG_KEY_LEN    32u
#define NG_KEYS_MAX   8u
#define NG_MAC_LEN    16u
#define NG_MAC_DIGITS (2 * NG_MAC_LEN)
#define NG_SIGNATURE  (1u + 10u + 1u + NG_MAC_DIGITS) /* bytes a cookie grows by */

/* How far a request's time may be from the daemon's clock, either way. Covers the error of both
 * clocks and all retransmissions. */
#define NG_AUTH_WINDOW_S 30u

struct ng_keys { /* in secure memory; the first key signs, all keys verify */
	uint32_t n;
	uint8_t key[NG_KEYS_MAX][NG_KEY_LEN];
};

/* Parses a key file: one key of 64 hexadecimal digits per line; empty lines and lines that begin
 * with '#' are skipped. 0; -EINVAL: *line (from 1) is not a key; -E2BIG: more than NG_KEYS_MAX
 * keys; -ENODATA: no key. */
int ng_keys_parse(struct ng_keys *out, struct str text, uint32_t *line);

struct ng_signed {
	struct str cookie; /* without time and MAC */
	uint64_t seconds;
	uint8_t mac[NG_MAC_LEN];
};

/* 0; -ENOMSG: not of that form. */
int ng_signed_parse(struct ng_signed *out, struct str cookie);

/* Writes the signature to append to cookie: NG_SIGNATURE bytes and a zero. False: no MAC could be
 * computed. */
bool ng_sign_request(char out[NG_SIGNATURE + 1], const struct ng_keys *keys, struct str cookie,
	uint64_t seconds, struct str body);
/* 0: signed by key *which; -ENOMSG: not signed; -EBADMSG: not by one of these keys; -ETIME: by one
 * of them, but outside the time window. With 0 and -ETIME signed_ is filled. */
int ng_verify_request(const struct ng_keys *keys, struct str cookie, struct str body,
	uint64_t now_s, struct ng_signed *signed_, uint32_t *which);

/* Writes the MAC of a reply, by the key that signed the request. request: its whole signed
 * cookie. */
bool ng_sign_reply(char out[NG_MAC_DIGITS + 1], const uint8_t key[NG_KEY_LEN], struct str request,
	struct str body);
/* Whether this is the reply to that request, by one of the keys. */
bool ng_verify_reply(
	const struct ng_keys *keys, struct str request, struct str cookie, struct str body);

#endif
