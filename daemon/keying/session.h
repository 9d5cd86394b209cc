/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a leg needs of a keying thread: an ICE agent, DTLS associations, or both. Together they are
 * the leg's session. Calls say what it is to be, and hear what came of it. */
#ifndef KEYING_SESSION_H
#define KEYING_SESSION_H

#include "base/endpoint.h"
#include "keying/zrtp_secret.h"
#include "proto/sdp_dtls.h"
#include "proto/sdp_ice.h"
#include "srtp/kdf.h"

#define SESSION_UFRAG 8u  /* of ours: 48 random bits */
#define SESSION_PWD   24u /* of ours: 144 random bits */

#define SESSION_LOCALS 4u /* most local addresses of a leg */
#define SESSION_PORTS  (2 * SESSION_LOCALS)

struct session_ice {
	bool on;
	bool lite;          /* ours */
	bool controlling;   /* we sent the offer */
	bool started;       /* both sides' credentials are in force: checks may be sent */
	uint8_t generation; /* of our credentials; another one is a restart (RFC 8445 9) */
	uint8_t peer;       /* changes with the terminal; a change ends all earlier pairs */
	char ufrag[SESSION_UFRAG], pwd[SESSION_PWD];
	/* Credentials of the generation before, which the terminal may still use; empty: none.
	 * Needed only by a restored session. */
	char prev_ufrag[SESSION_UFRAG], prev_pwd[SESSION_PWD];
	/* The peer's; empty: not known yet. */
	bool remote_lite;
	char remote_ufrag[SDP_ICE_TEXT_MAX + 1], remote_pwd[SDP_ICE_TEXT_MAX + 1];
	/* Candidates of this exchange. Earlier ones under the same credentials stay. next_ufrag not
	 * empty: they are of an ICE restart that was offered, and wait until remote_ufrag is that.
	 */
	char next_ufrag[SDP_ICE_TEXT_MAX + 1];
	struct ice_candidate candidate[SDP_ICE_CANDIDATES];
	uint32_t candidates;
	bool last; /* no more will come */
};

struct session_dtls {
	bool on;
	uint8_t role; /* enum dtls_role; NONE: the answer decides, and a ClientHello is answered */
	uint32_t association; /* another number is another association */
	uint32_t suites;      /* bit per suite: profiles that may be agreed on; 0 = all */
	uint64_t cert;        /* dtls_cert_id() of ours in SDP; 0: the current one */
	/* Restored: its keys are known, and its handshake is over. */
	bool established;
	/* Restored without RTCP's keys: the suite of RTP's. SUITE_PLAIN: RTCP needs no
	 * association. */
	uint8_t rtp_suite;
	struct dtls_fingerprints prints; /* of the peer; none: not known yet */
};

#define SESSION_ZRTP_SEED 32u
#define SESSION_ZRTP_ZID  12u
#define SESSION_SAS_MAX   64u

struct session_sas { /* a SAS as SASrelay carries it to the other terminal (RFC 6189 7.3) */
	bool known, discloses, verified;
	uint8_t kind; /* enum zrtp_sas */
	uint8_t hash[32];
};

struct session_said {              /* results of a ZRTP exchange; no secrets */
	char sas[SESSION_SAS_MAX]; /* as text */
	struct session_sas proof;
	bool verified;                 /* both sides confirmed the SAS in an earlier exchange */
	bool mismatched;               /* the peer's retained secrets differ from ours */
	bool enrolled;                 /* the peer trusts us to relay SAS */
	bool discloses;                /* the peer's D flag */
	uint8_t zid[SESSION_ZRTP_ZID]; /* key of its entry in the cache; zero: no cache */
};

struct session_zrtp { /* an exchange for RTP; its keys serve RTCP, too (RFC 6189 4.5.3) */
	bool on;
	uint32_t exchange;               /* another number is another exchange */
	uint8_t seed[SESSION_ZRTP_SEED]; /* our Hello is computed from these (zrtp_self.h) */
	uint8_t zid[SESSION_ZRTP_ZID];
	bool preshared; /* it offers preshared mode */
	/* The same for all sessions of one terminal in a call. The first exchange agrees on a
	 * secret, and the others use it (RFC 6189 4.4.3). Zero: not shared. */
	uint8_t party[SESSION_ZRTP_ZID];
	bool bound; /* the peer's Hello must have this hash */
	uint8_t hash[32];
	bool goclear;           /* the peer may end SRTP */
	bool enrol;             /* ask the peer to enrol with us */
	struct session_sas far; /* SAS of the other terminal */
	/* Restored: its keys are known, and the exchange is over. */
	bool established;
};

struct session_zrtp_past { /* a restored exchange: further streams use its secret and results */
	struct zrtp_secret secret;
	/* Of the stream begun in mid-call whose keys are in use; not known: none. */
	struct zrtp_secret later;
	struct session_said said;
};

struct session_cfg {
	bool mux;       /* RTCP uses the port of RTP */
	bool maybe_mux; /* we offered that: the answer decides */
	/* Our addresses in SDP, by [rtcp], the most preferred first. Several are host candidates.
	 * An ICE agent keeps those that it began with. */
	uint8_t locals;
	struct endpoint local[SESSION_LOCALS][2];
	/* Signalled; without ICE, packets go there. */
	struct endpoint remote[2];
	struct endpoint selected[2]; /* restored: the previous process's pairs, family 0 = none */
	uint8_t selected_at[2];      /* place in local of each pair's address */
	struct session_ice ice;
	struct session_dtls dtls;
	struct session_zrtp zrtp;
	struct session_zrtp_past zrtp_past; /* if zrtp.established */
};

enum session_event_kind {
	SESSION_NONE,
	SESSION_PAIR,   /* media go to remote, and come from there, by [rtcp] */
	SESSION_KEYS,   /* rx and tx of one component of an association */
	SESSION_FAILED, /* why: there will be no keys, or no pair */
	SESSION_LOST,   /* the peer's consent: nothing may be sent until the next pair */
	SESSION_CLOSED, /* the peer ended the association; keys stay until signalling ends it */
	SESSION_ABSENT, /* the peer does not speak ZRTP */
	SESSION_CLEAR,  /* the peer ended SRTP by GoClear */
	/* Set by the call model: the exchange failed, and media continue in clear, as the request
	 * allows. */
	SESSION_FALLBACK,
};

struct session_event {
	uint8_t kind; /* enum session_event_kind */
	bool rtcp;
	uint8_t at;       /* PAIR: place in session_cfg.local */
	bool controlling; /* PAIR: our role, which a conflict may have changed */
	uint32_t association;
	struct endpoint remote;
	struct srtp_master rx, tx; /* wipe them */
	const char *why;           /* constant */
	/* FAILED: the signalled peer did not answer, or ended the handshake. Packets of strangers
	 * and forged ones do not count. */
	bool declined;
	/* Of ZRTP; association is the exchange. */
	bool zrtp;
	struct session_said said;
	struct zrtp_secret secret, later; /* as in session_zrtp_past; wipe them */
};

#endif
