/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One ZRTP exchange (RFC 6189): from packets in the media path to SRTP keys. It has no socket and
 * reads no clock: the caller passes packets and monotonic time, and sends the packets it makes.
 *
 * Use: zrtp_create(), zrtp_start(), zrtp_take() for each packet, zrtp_tick() at zrtp_deadline().
 * After each of these: zrtp_next() until it returns 0, then zrtp_state() and zrtp_keys(). An
 * exchange belongs to one thread at a time.
 *
 * Packets are believed by their hash chain (RFC 6189 9), not by their source. Whatever does not fit
 * the chain is dropped and counted, and changes nothing. A Hello fits always, because it begins the
 * chain: it costs no public-key operation, and a later Hello replaces it until the chain goes on.
 * An Error is not authenticated: the exchange goes on until its timers end, and fails then.
 *
 * A stranger who sees no packet of ours can send all that leads to a Confirm. So until a Confirm
 * proves the keys, another Hello can begin another attempt, and a failure is not the end. */
#ifndef KEYING_ZRTP_H
#define KEYING_ZRTP_H

#include "keying/zrtp_secret.h"
#include "srtp/kdf.h"

#define ZRTP_SEED       32u
#define ZRTP_ZID        12u
#define ZRTP_SAS_HASH   32u /* the hash of which the SAS shows a part */
#define ZRTP_HASH       32u /* of a Hello, as in a=zrtp-hash: SHA-256 */
#define ZRTP_SECRET     32u /* a retained secret */
#define ZRTP_SAS_MAX    32u /* with its terminator */
#define ZRTP_PACKET_MAX 512u

/* --- Algorithms: X(id, name on the wire, size in bytes) --------------------------------------- */
/* clang-format off */
#define ZRTP_HASHES(X) X(S256, "S256", 32) X(S384, "S384", 48)
#define ZRTP_CIPHERS(X) X(AES1, "AES1", 16) X(AES3, "AES3", 32) X(AES2, "AES2", 24)
#define ZRTP_TAGS(X) X(HS80, "HS80", 10) X(HS32, "HS32", 4)
/* Size: of the public value. */
#define ZRTP_AGREEMENTS(X) \
	X(EC25, "EC25", 64) X(X255, "X255", 32) X(DH3K, "DH3k", 384) X(EC38, "EC38", 96) \
	X(DH2K, "DH2k", 256) X(PRSH, "Prsh", 0) X(MULT, "Mult", 0)
#define ZRTP_SASES(X) X(B32, "B32 ", 0) X(B256, "B256", 0)
/* clang-format on */

/* The order is our order of preference. */
#define X(id, name, size) ZRTP_##id,
enum zrtp_hash { ZRTP_HASHES(X) ZRTP_HASH_N };
enum zrtp_cipher { ZRTP_CIPHERS(X) ZRTP_CIPHER_N };
enum zrtp_tag { ZRTP_TAGS(X) ZRTP_TAG_N };
enum zrtp_agreement { ZRTP_AGREEMENTS(X) ZRTP_AGREEMENT_N };
enum zrtp_sas { ZRTP_SASES(X) ZRTP_SAS_N };
#undef X

/* Kinds of algorithms, in the order of a Hello. */
enum zrtp_kind { ZRTP_K_HASH, ZRTP_K_CIPHER, ZRTP_K_TAG, ZRTP_K_AGREEMENT, ZRTP_K_SAS, ZRTP_KINDS };

#define ZRTP_LIST 7u
struct zrtp_prefs { /* by kind: enum values, the preferred one first */
	uint8_t list[ZRTP_KINDS][ZRTP_LIST];
	uint8_t n[ZRTP_KINDS];
};
/* All that is known here. */
void zrtp_prefs_all(struct zrtp_prefs *out);

/* --- States and failures ---------------------------------------------------------------------- */

enum zrtp_state {
	ZRTP_IDLE,          /* not started */
	ZRTP_DISCOVERY,     /* Hellos are sent */
	ZRTP_NO_PEER,       /* they were not answered; a Hello of the peer is still taken */
	ZRTP_WANTS_SECRETS, /* zrtp_secrets() has to answer for zrtp_peer_zid() */
	ZRTP_AGREEING,      /* a Commit was sent or taken */
	ZRTP_OPEN,          /* both sides have the keys */
	ZRTP_CLEAR,         /* GoClear: the keys are not used any more */
	/* No keys; zrtp_failure() has the reason. A Hello or a Commit begins another attempt,
	 * except after INTERNAL; the state stays until there are keys. */
	ZRTP_FAILED,
};

/* One reason per failed exchange. X(id, name in metrics, text) */
/* clang-format off */
#define ZRTP_FAILURES(X) \
	X(TIMEOUT, "timeout", "the peer did not complete the exchange") \
	X(REFUSED, "refused", "the peer ended the exchange by an Error") \
	X(ALGORITHM, "algorithm", "the peer's Commit names an algorithm that was not offered") \
	X(VALUE, "value", "the peer's public value is not valid") \
	X(INTERNAL, "internal", "out of memory, or an error of OpenSSL")
/* clang-format on */
enum zrtp_failure {
	ZRTP_FAIL_NONE,
#define X(id, name, text) ZRTP_FAIL_##id,
	ZRTP_FAILURES(X)
#undef X
		ZRTP_FAIL_COUNT
};
const char *zrtp_failure_name(enum zrtp_failure f);
const char *zrtp_failure_text(enum zrtp_failure f);

/* Why a packet was dropped. X(id, name in metrics) */
/* clang-format off */
#define ZRTP_DROPS(X) \
	X(LENGTH, "length") X(COOKIE, "cookie") X(CRC, "crc") X(MESSAGE, "message") \
	X(BOUND, "bound") X(CHAIN, "chain") X(MAC, "mac") X(HVI, "hvi") X(STATE, "state")
/* clang-format on */
enum zrtp_drop {
#define X(id, name) ZRTP_DROP_##id,
	ZRTP_DROPS(X)
#undef X
		ZRTP_DROP_COUNT
};
const char *zrtp_drop_name(enum zrtp_drop d);

struct zrtp_counts { /* owned by the caller, shared by the exchanges of one thread */
	uint64_t drop[ZRTP_DROP_COUNT];
	uint64_t retransmitted;
	uint64_t pairs; /* key pairs made */
};

/* --- Life ------------------------------------------------------------------------------------- */

struct zrtp_config {
	uint8_t seed[ZRTP_SEED]; /* random. Our Hello follows from it: see zrtp_self_hash() */
	const uint8_t *zid;      /* ours; NULL: it follows from the seed */
	uint32_t ssrc;           /* in the headers of our packets: any, see zrtp_self.c */
	const struct zrtp_prefs *prefs; /* NULL: all */
	bool not_mitm;                  /* leave out the M flag, which identifies a gateway */
	bool passive;                   /* never commit, and say so by the P flag */
	bool bound;                     /* the peer's Hello must have this hash (its a=zrtp-hash) */
	uint8_t bound_hash[ZRTP_HASH];
	bool may_clear; /* the peer may end SRTP by GoClear */
	bool disclose;  /* set the D flag: we may disclose keys or media (11) */
	bool cache;     /* ask by ZRTP_WANTS_SECRETS */
	/* Multistream mode alone, after zrtp_multi(): only that exchange's peer can take part, and
	 * no packet of another one ends the exchange or delays it. It does not fail. */
	bool only_multi;
	bool enrol; /* with the cache: ask the peer to enrol with us as its trusted MitM (7.3.1) */
	struct zrtp_counts *counts; /* NULL = not counted */
};

struct zrtp;

/* 0, -EINVAL (an empty or unknown preference), -ENOMEM. */
int zrtp_create(struct zrtp **out, const struct zrtp_config *c);
void zrtp_destroy(struct zrtp *z); /* wipes keys; sends nothing; NULL is fine */

/* The hash of the Hello that an exchange with these values makes. zid, prefs: as in zrtp_config. 0
 * or -EINVAL. */
int zrtp_hello_hash(uint8_t hash[ZRTP_HASH], const struct zrtp_config *c);

/* Begins to send Hellos. */
void zrtp_start(struct zrtp *z, uint64_t now_ns);
/* One received packet. 0, or -EBADMSG: dropped, and counted. Never reads beyond len. */
int zrtp_take(struct zrtp *z, const uint8_t *p, size_t len, uint64_t now_ns);
/* The next packet to send. Its length, 0 = none, -EMSGSIZE = cap is too small: it stays. */
int zrtp_next(struct zrtp *z, uint8_t *buf, size_t cap);
/* Whether the peer has keys when it gets this packet of ours: Confirm2 or Conf2ACK. */
bool zrtp_gives_keys(const uint8_t *p, size_t len);
/* When to call zrtp_tick(), in the caller's nanoseconds; UINT64_MAX = never. */
uint64_t zrtp_deadline(const struct zrtp *z);
void zrtp_tick(struct zrtp *z, uint64_t now_ns); /* early calls do nothing */

/* --- Results ---------------------------------------------------------------------------------- */

enum zrtp_state zrtp_state(const struct zrtp *z);
enum zrtp_failure zrtp_failure(const struct zrtp *z);
/* Master keys: rx opens the peer's packets, tx protects ours; one pair serves RTP and RTCP. There
 * are keys in ZRTP_OPEN. An initiator has them with the Confirm1, because media of the peer can
 * overtake its Conf2ACK. 0, or -EAGAIN: none (yet). The caller wipes them. */
int zrtp_keys(const struct zrtp *z, struct srtp_master *rx, struct srtp_master *tx);
/* As people read it: four letters, or two words with a colon between them. "": none yet. */
const char *zrtp_sas(const struct zrtp *z);
/* Both sides have it as verified in their caches: by this exchange or an earlier one. */
bool zrtp_sas_verified(const struct zrtp *z);
/* The agreement, cipher and so on, as on the wire: "EC25"; "": not yet. */
const char *zrtp_algorithm(const struct zrtp *z, enum zrtp_kind kind);
bool zrtp_initiated(const struct zrtp *z);
const uint8_t *zrtp_peer_zid(const struct zrtp *z); /* NULL: no Hello yet */
/* The peer is enrolled with us, or we with it: both have the secret of an enrolment. */
bool zrtp_enrolled(const struct zrtp *z);
/* The peer declares itself a trusted man in the middle. */
bool zrtp_peer_is_mitm(const struct zrtp *z);

/* --- Retained secrets (RFC 6189 4.3, 4.9) ----------------------------------------------------- */

struct zrtp_secrets {
	bool has_rs1, has_rs2, has_aux, has_pbx;
	uint8_t rs1[ZRTP_SECRET], rs2[ZRTP_SECRET], aux[ZRTP_SECRET], pbx[ZRTP_SECRET];
	bool verified; /* the SAS was compared when they were made */
};
/* Answers ZRTP_WANTS_SECRETS; s may be NULL: none. The caller wipes its copy. */
void zrtp_secrets(struct zrtp *z, const struct zrtp_secrets *s, uint64_t now_ns);
/* What the cache has to keep for zrtp_peer_zid() from now on, and for how many seconds (UINT32_MAX:
 * for good; 0: not at all). An initiator has it only after Conf2ACK or zrtp_settle() (4.6.1): if
 * its Confirm2 was lost, the peer keeps the old secrets. 0 or -EAGAIN. The caller wipes it. */
int zrtp_new_secrets(const struct zrtp *z, struct zrtp_secrets *out, uint32_t *seconds);
/* SRTP of the peer was authentic, which shows that it has the keys, as Conf2ACK does. */
void zrtp_settle(struct zrtp *z);
/* There were retained secrets for this peer, and it has others: an attack, or a lost cache. */
bool zrtp_mismatched(const struct zrtp *z);

/* --- After the exchange ----------------------------------------------------------------------- */

/* Another stream with the same peer, from the secret of an exchange that has been open, without
 * public keys (Multistream mode, 4.4.3). Before zrtp_start(). 0, -EAGAIN: first has no secret. */
int zrtp_multi(struct zrtp *z, const struct zrtp *first);
/* The secret for further streams, for as long as there are keys. 0, -EAGAIN: none yet. */
int zrtp_secret(const struct zrtp *z, struct zrtp_secret *out);
/* Makes it an exchange that was open in an earlier process, before zrtp_start(). Its state is
 * ZRTP_OPEN, or ZRTP_CLEAR after GoClear, but it has no SRTP keys and no SAS. It serves
 * zrtp_multi(). If s->with_keys, it also takes GoClear and does zrtp_relay_sas(); else it drops
 * such packets. 0, -EAGAIN: started; -EINVAL: not a secret. */
int zrtp_restore(struct zrtp *z, const struct zrtp_secret *s);
bool zrtp_is_restored(const struct zrtp *z);
/* A Hello of the peer's ZID that is not the one of this exchange begins another stream, if both
 * offer Multistream mode. Not authenticated: anybody who saw the ZID can send it. */
bool zrtp_begins_another(const struct zrtp *z, const uint8_t *p, size_t len);
/* GoClear. 0; -EAGAIN: not open; -EPERM: the peer does not allow it. */
int zrtp_clear(struct zrtp *z, uint64_t now_ns);
/* Tells an enrolled terminal the SAS of the far side (SASrelay, 7.3). 0; -EAGAIN: not open, or
 * restored without keys; -EPERM: the terminal is not enrolled. */
struct zrtp_far_sas {
	const uint8_t *hash; /* 32 bytes */
	enum zrtp_sas kind;  /* how the far side shows it */
	bool discloses;      /* zrtp_peer_discloses() of the far side */
	bool verified;       /* zrtp_sas_verified() of the far side */
};
int zrtp_relay_sas(struct zrtp *z, const struct zrtp_far_sas *far, uint64_t now_ns);
/* As an enrolled terminal: the SAS hash that the peer relayed; NULL: none. */
const uint8_t *zrtp_relayed_sas(const struct zrtp *z);
/* The hash that the SAS shows, for zrtp_relay_sas() of the other leg. NULL: no keys. */
const uint8_t *zrtp_sas_hash(const struct zrtp *z);
/* The peer's D flag: it may disclose keys or media to others. */
bool zrtp_peer_discloses(const struct zrtp *z);
/* The kind of that SAS: how terminals show it. */
enum zrtp_sas zrtp_sas_kind(const struct zrtp *z);
/* This stream uses the secret of another one (Multistream mode), and has no SAS of its own. */
bool zrtp_is_multi(const struct zrtp *z);

#endif
