/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The session of a leg: an ICE agent, DTLS associations, an exchange of ZRTP (keying/session.h).
 * Sans I/O: packets, the clock and random bytes are arguments. A session belongs to one keying
 * thread.
 *
 * After session_set(), session_take() and session_tick() the owner sends what session_next()
 * returns, until that is false, and reports what session_event() returns, until that is false. */
#ifndef SIDE_SESSION_H
#define SIDE_SESSION_H

#include "base/hist.h"
#include "ice/agent.h"
#include "keying/dtls.h"
#include "keying/dtls_gate.h"
#include "keying/session.h"
#include "keying/zrtp.h"
#include "keying/zrtp_store.h"

#define SESSION_PARTIES    256u
#define SESSION_PACKET_MAX 1500u

/* Written by the thread of the sessions, read by any. */
struct session_counts {
	_Atomic uint64_t handshake[DTLS_FAIL_COUNT]; /* [DTLS_FAIL_NONE]: completed */
	struct hist handshake_ns; /* of completed ones, from the first packet to the keys */
	_Atomic uint64_t drop[DTLS_DROP_COUNT], retransmitted; /* see struct dtls_counts */
	_Atomic uint64_t ice[ICE_COUNT_N];
	_Atomic uint64_t ice_state[ICE_STATE_N]; /* agents that are in it now */
	_Atomic uint64_t consent_lost, ice_failed;
	_Atomic uint64_t zrtp[ZRTP_FAIL_COUNT]; /* [ZRTP_FAIL_NONE]: completed */
	_Atomic uint64_t zrtp_absent;           /* terminals that answered no Hello */
	struct hist zrtp_ns; /* of completed ones, from the first packet to the keys */
	_Atomic uint64_t zrtp_drop[ZRTP_DROP_COUNT], zrtp_retransmitted;
};

struct session;

/* A HelloVerifyRequest that waits for session_next(). */
struct session_verify {
	const struct session *of; /* NULL: none */
	bool rtcp;
	uint8_t len;
	struct endpoint dst;
	uint8_t packet[DTLS_GATE_REPLY_LEN];
};

struct session_env { /* what the sessions of a thread share */
	struct dtls_gate *gate;
	struct dtls_counts counts;
	struct zrtp_counts zrtp_counts;
	struct session_counts total;
	/* SRTP profiles, the first is preferred. */
	enum srtp_suite_id profile[DTLS_PROFILES_MAX];
	uint32_t profiles;
	bool sha1;                /* accept sha-1 in fingerprints */
	bool zrtp_disclose;       /* as zrtp_config.disclose */
	struct zrtp_store *store; /* retained secrets, shared by all threads; NULL: none */
	/* Of the last session called: the owner calls session_next() before it calls another. */
	struct session_verify verify;
	struct session *party[SESSION_PARTIES]; /* sessions by hash of session_zrtp.party */
};

/* 0 or -ENOMEM. The environment outlives it. */
int session_create(struct session **out, struct session_env *env);
/* Sends nothing. NULL is fine. */
void session_destroy(struct session *s);

/* What it is to be. cert: of new associations; the session takes a reference. seed: random bytes,
 * used once. 0; -ENOMEM, -EINVAL: then it may lack a part, and session_event() says so. */
struct session_order {
	struct session_cfg cfg;
	struct dtls_cert *cert;
	uint8_t seed[ICE_SEED_LEN];
};
int session_set(struct session *s, const struct session_order *order, uint64_t now_ns);
/* The DTLS associations end by close_notify, which session_next() returns. */
void session_close(struct session *s, uint64_t now_ns);

/* Media came under the keys of this association or exchange: see dtls_settle(), zrtp_settle(). */
void session_settle(struct session *s, uint32_t association, bool rtcp, uint64_t now_ns);

struct session_in {
	bool rtcp;  /* the port that it arrived at */
	uint8_t at; /* place of that port's address in session_cfg.local */
	bool dtls;  /* else STUN, or: */
	bool zrtp;
	bool believed; /* from the signalled address, or the source of authentic media */
	const struct endpoint *src;
	const uint8_t *p;
	size_t len;
};
void session_take(struct session *s, const struct session_in *in, uint64_t now_ns);

struct session_out {
	bool rtcp;  /* the port that it is sent from */
	uint8_t at; /* place of that port's address in session_cfg.local */
	bool zrtp;
	/* the answer to an authentic ICE check from dst, or the last packet of ZRTP before media
	 * under keys that session_event() will return */
	bool proved;
	bool follows; /* it goes to the source of authentic media, or to dst if there is none */
	struct endpoint dst;
	uint16_t len;
	uint8_t packet[SESSION_PACKET_MAX];
};
bool session_next(struct session *s, struct session_out *out);
bool session_event(struct session *s, struct session_event *out);

/* When session_tick() has to be called; UINT64_MAX: not before another call. */
uint64_t session_deadline(const struct session *s);
void session_tick(struct session *s, uint64_t now_ns);

#endif
