/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the keyings remember of a leg. The leg holds it, so it is copied, wiped and saved with the
 * leg. Only keying/ reads and writes the members; persist/save_tables.c lists them. */
#ifndef KEYING_STATE_H
#define KEYING_STATE_H

#include "keying/zrtp_secret.h"
#include "proto/sdes.h"
#include "proto/sdp_dtls.h"
#include "proto/sdp_zrtp.h"
#include "srtp/params.h"

#define SDES_MAX_LINES 16u /* a=crypto lines of a terminal that are looked at */

struct keying_key { /* a key of ours that a terminal knows, by which it receives */
	struct srtp_master master;
	/* was in force once: it continues with its packet indexes, or is never used again */
	bool used;
	uint32_t slot; /* where they are kept, 0 = it was never in force (call/past_keys.c) */
};

struct sdes_key { /* one that a line of ours names */
	struct keying_key key;
	uint32_t tag; /* 0 = gets another one when it is offered */
	bool unencrypted_srtp, unencrypted_srtcp;
	bool old_name;   /* as sdes.old_name */
	uint8_t preauth; /* as sdes.preauth */
};

struct keying_sdes {
	/* The terminal's last offer: the lines that we could accept, and their further keys. */
	struct sdes line[SDES_MAX_LINES];
	uint32_t lines;
	struct sdes_bag bag;
	/* Our last offer to the terminal: its lines, in order. */
	uint8_t suite[SUITE_COUNT];
	uint32_t suites;
	/* All keys that we sent this terminal, by suite. */
	struct sdes_key ours[SUITE_COUNT];
	uint32_t ours_n;
	/* Of the keys in force: the tag of our a=crypto line, and whether the terminal's line has
	 * the old name of the suite. */
	uint32_t tx_tag;
	bool rx_old_name;
};

#define KEYING_TLS_ID 40u /* characters of ours */

struct keying_dtls_said { /* DTLS attributes of a terminal's SDP (RFC 8842) */
	bool given;
	bool tls;           /* profile of DTLS: SDES in the same m-line comes second */
	uint8_t setup;      /* enum dtls_setup */
	uint64_t tls_id;    /* hash, 0 = none */
	uint64_t transport; /* hash of its address, 0 with ICE */
	uint8_t preauth;    /* as sdp_preauth_read(); in force: the scheme agreed on */
	struct dtls_fingerprints prints;
};

struct keying_dtls {
	struct keying_dtls_said offered; /* the terminal's last offer */
	/* Parameters agreed on for the association in force. */
	struct keying_dtls_said in_force;
	bool asked;            /* our last offer to the terminal has DTLS */
	uint8_t asked_setup;   /* and this a=setup: enum dtls_setup */
	uint8_t asked_preauth; /* and this scheme of SRTP+; 0: none */
	uint64_t asked_cert;   /* dtls_cert_id() of the certificate that it names; 0: not known */
	bool announced;        /* our_id was drawn for an association that is not agreed on yet */
	bool passive;          /* the terminal may be the DTLS client */
	uint8_t role;          /* ours, enum dtls_role; NONE: no association is in force */
	uint32_t association;  /* counts them */
	uint32_t suites;       /* bit per suite: SRTP profiles that may be agreed on */
	bool may_clear;    /* media in clear if the terminal declines the handshake; not saved */
	bool nena;         /* the terminal must use DTLS-SRTP with AES-256 (DTLS=NENA) */
	uint64_t our_cert; /* dtls_cert_id() of the one in force; 0: none */
	char our_id[KEYING_TLS_ID]; /* a=tls-id; empty: not drawn yet */
};

/* Schemes of SRTP+ as sdp_preauth_read(), of keyings with a=xcipher-preauth. */
struct keying_preauth {
	uint8_t offered, asked; /* in the terminal's last offer, and in ours to it */
	uint8_t agreed; /* what the keys in force have, or those that are awaited will have */
};

struct keying_pass {
	bool asked; /* our last offer to the terminal had the lines of the offerer */
};

#define KEYING_MIKEY_PEER 256u /* bytes of an identity, and a zero */

#define KEYING_MIKEY_KEYS 4u /* of one exchange: forks have other keys */

struct mikey_key { /* one that protects what we send */
	struct keying_key key;
	uint64_t of; /* its exchange */
};

/* Exchanges are in keying/mikey_host.h, by number: 0 = none. */
struct keying_mikey {
	/* The terminal's last offer: the exchange, which of the m-lines of its message this is, and
	 * the message's hash. */
	uint64_t offered, offered_hash;
	uint8_t offered_place;
	bool offered_session; /* the message is of the session level */
	uint64_t asked;       /* our last offer to the terminal */
	uint8_t asked_place;  /* place of this m-line in our message */
	bool asked_only;      /* and that had no other keys */
	struct keying_preauth preauth;
	/* Keys that may return: the same answer may come again. Not saved, as exchanges are not. */
	struct mikey_key ours[KEYING_MIKEY_KEYS];
	uint32_t ours_n;
	/* In force. */
	uint64_t used_hash; /* of the terminal's message; 0: ours */
	uint64_t used_time; /* its timestamp */
	uint64_t used;      /* the terminal's exchange; 0: ours, or older than a restart */
	uint8_t mode;       /* enum mikey_mode */
	char peer[KEYING_MIKEY_PEER]; /* identity that was proven; filled with zeroes */
};

#define KEYING_ZRTP_SEED 32u
#define KEYING_ZRTP_ZID  12u
#define KEYING_SAS_MAX   64u /* bytes of the longest SAS as text, with the terminating 0 */

struct keying_zrtp {
	struct sdp_zrtp offered; /* the terminal's last offer */
	bool asked;              /* our last offer to the terminal has our a=zrtp-hash */
	bool passed;             /* our last offer to the terminal has the offerer's */
	uint32_t flags;          /* NG_ZRTP_* of the exchange in force, or asked for */
	uint32_t suites;         /* bit per suite: what may be agreed on */
	/* The exchange in force. */
	struct sdp_zrtp theirs; /* as agreed on; not given: their Hello is not bound to SDP */
	uint64_t transport;     /* hash of the terminal's address, where theirs is not given */
	uint32_t exchange;      /* counts them */
	uint32_t keyed;         /* the exchange that the keys in force are of; 0: none */
	/* Our Hello messages follow from it. unused: no exchange was agreed on with it. */
	uint8_t seed[KEYING_ZRTP_SEED];
	bool unused;
	/* Random number, the same for all m-lines of a terminal in a call, whose exchanges share a
	 * secret. Zero: not drawn yet. */
	uint8_t party[KEYING_ZRTP_ZID];
	uint8_t zid[KEYING_ZRTP_ZID]; /* ours towards the terminal: that of the cache, else party */
	bool preshared;               /* our Hello offers preshared mode: as the option was then */
	/* What came of the exchange: the SAS as people read it, what both terminals compare by
	 * SASrelay, and what is known of it. */
	char sas[KEYING_SAS_MAX];
	bool verified;  /* a person confirmed the SAS in this exchange or an earlier one */
	bool enrolled;  /* the terminal shows the SAS of the far terminal */
	bool discloses; /* its D flag: it may disclose keys or media to others */
	bool proven;    /* sas_kind and sas_hash are known */
	uint8_t sas_kind, sas_hash[32];    /* sent to the far terminal by SASrelay */
	uint8_t peer_zid[KEYING_ZRTP_ZID]; /* its entry in the cache; zero: none */
	bool mismatched; /* the terminal's retained secrets are not ours: its user is warned */
	bool cleared;    /* the terminal ended SRTP by GoClear */
	struct zrtp_secret secret; /* of that exchange, for further streams of the terminal */
	struct zrtp_secret later;  /* of the stream begun in mid-call that is in use, if any */
	struct keying_preauth preauth;
};

/* Numbers are saved: they never change. */
enum keying_id {
	KEYING_NONE,
	KEYING_SDES,
	KEYING_PASS,
	KEYING_DTLS,
	KEYING_ZRTP,
	KEYING_MIKEY,
	KEYING_COUNT
};

struct keying_state {
	uint8_t in_force; /* enum keying_id: the keying of what the terminal sends */
	struct keying_sdes sdes;
	struct keying_pass pass;
	struct keying_dtls dtls;
	struct keying_mikey mikey;
	struct keying_zrtp zrtp;
};

#endif
