/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A MIKEY exchange (RFC 3830, 4650, 4738): from messages to SRTP keys. It has no socket and reads
 * no clock. Messages are bytes; base64 is the caller's.
 *
 * Initiator: mikey_initiate() -> I_MESSAGE; mikey_finish() with the R_MESSAGE -> keys.
 * Responder: mikey_respond() with the I_MESSAGE -> R_MESSAGE and keys.
 *
 * Every function returns 0 or the reason of the failure, writes keys only on success, and believes
 * nothing before the MAC or signature was verified.
 *
   * MACs and signatures use SHA-1: RFC 3830 defines nothing else. Certificates need better hashes.
 *
 * Not implemented, on purpose:
 * - Tickets (RFC 6043). They need a key management server that both parties trust. Peers with such
 *   a server are those of IMS (3GPP TS 33.328), whose gateways belong to the server's operator. A
 *   pre-shared key per domain gives the same trust without a third party.
 * - Updates of a running exchange (RFC 3830 4.5): SIP makes a new offer, with a new exchange. An
 *   update without RAND fails with MISSING, and the keys in force stay.
 * - Certificates by URL: the daemon opens no connections for a peer. */
#ifndef KEYING_MIKEY_H
#define KEYING_MIKEY_H

#include "keying/mikey_cert.h"
#include "proto/mikey.h"
#include "srtp/kdf.h"

/* Ways to agree on keys. X(id, name for options and query, type of the I_MESSAGE, RFC) */
/* clang-format off */
#define MIKEY_MODES(X) \
	X(PSK, "psk", PSK, "RFC 3830 3.1") \
	X(PKE, "pke", PKE, "RFC 3830 3.2") \
	X(DH, "dh", DH_INIT, "RFC 3830 3.3") \
	X(DHHMAC, "dhhmac", DHHMAC_INIT, "RFC 4650") \
	X(RSAR, "rsa-r", RSAR_INIT, "RFC 4738")

/* Reasons of failures.
 * X(id, name in metrics, number of the Error message, text) */
#define MIKEY_FAILURES(X) \
	X(MALFORMED, "malformed", UNSPECIFIED, "message is malformed") \
	X(TOO_LONG, "too_long", UNSPECIFIED, "message is too long") \
	X(VERSION, "version", UNSPECIFIED, "MIKEY version is not 1") \
	X(TYPE, "type", DT, "data type is not expected or not supported") \
	X(MODE, "mode", DT, "mode is not allowed") \
	X(MISSING, "missing", UNSPECIFIED, "a payload that the mode demands is absent") \
	X(PRF, "prf", PRF, "PRF is not supported") \
	X(MAC_ALG, "mac_alg", MAC, "MAC algorithm is not supported") \
	X(ENCR_ALG, "encr_alg", EA, "encryption algorithm is not supported") \
	X(HASH, "hash", HA, "hash function is not supported") \
	X(DH_GROUP, "dh_group", DH, "DH group is not supported") \
	X(DH_VALUE, "dh_value", DH, "DH value is out of range") \
	X(IDENTITY, "identity", ID, "identity is unknown") \
	X(FORBIDDEN, "forbidden", ID, "policy forbids this identity or mode") \
	X(OTHER_IDENTITY, "other_identity", ID, "identity differs from that of the exchange") \
	X(AUTH, "auth", AUTH, "MAC or signature does not verify") \
	X(KEYS, "keys", AUTH, "key data does not decrypt to keys") \
	X(SHARED_KEY, "shared_key", UNSPECIFIED, "crypto sessions share a key, or a key is all zeroes") \
	X(TIME, "time", TS, "timestamp is outside of the allowed clock skew") \
	X(REPLAY, "replay", TS, "message was received before") \
	X(REPLAY_FULL, "replay_full", TS, "replay memory of this peer is full") \
	X(RATE, "rate", UNSPECIFIED, "too many exchanges with public keys: try again later") \
	X(FULL, "full", UNSPECIFIED, "too many exchanges are in progress: try again later") \
	X(VALIDITY, "validity", UNSPECIFIED, "key is not valid for all packets of a call") \
	X(CERT, "cert", CERT, "certificate is absent, malformed, or its key is not accepted") \
	X(CERT_CHAIN, "cert_chain", CERT, "certificate has no chain to a trusted root") \
	X(CERT_EXPIRED, "cert_expired", CERT, "certificate is expired or not yet valid") \
	X(CERT_REVOKED, "cert_revoked", CERT, "certificate is revoked, or has no valid list") \
	X(CERT_NAME, "cert_name", CERT, "certificate does not have the identity of the message") \
	X(SDP_IDS, "sdp_ids", AUTH, "list of key management protocols is not that of the SDP") \
	X(POLICY, "policy", SPPAR, "no SRTP policy in common") \
	X(SESSIONS, "sessions", UNSPECIFIED, \
		"crypto sessions are not two for each m-line, one for each direction") \
	X(REFUSED, "refused", UNSPECIFIED, "peer sent an Error message") \
	X(STATE, "state", UNSPECIFIED, "exchange is not in this state") \
	X(INTERNAL, "internal", UNSPECIFIED, "out of memory, or an error of OpenSSL")
/* clang-format on */

enum mikey_mode {
#define X(id, name, type, rfc) MIKEY_##id,
	MIKEY_MODES(X)
#undef X
		MIKEY_MODE_COUNT
};
const char *mikey_mode_name(enum mikey_mode m); /* "" if out of range */
/* By name, ASCII case-insensitive. MIKEY_MODE_COUNT: unknown. */
enum mikey_mode mikey_mode_find(struct str name);

enum mikey_failure {
	MIKEY_OK,
#define X(id, name, error, text) MIKEY_FAIL_##id,
	MIKEY_FAILURES(X)
#undef X
		MIKEY_FAIL_COUNT
};
const char *mikey_failure_name(enum mikey_failure f); /* "" for MIKEY_OK */
const char *mikey_failure_text(enum mikey_failure f);

#define MIKEY_PROTOCOL STR("mikey") /* its name in SDP */

#define MIKEY_PSK_MAX    64u
#define MIKEY_PSK_MIN    16u /* shorter keys are refused: RFC 3830 9.2 */
#define MIKEY_SKEW_S     300u
#define MIKEY_MEDIA_MAX  16u
#define MIKEY_SUITES_MAX SUITE_COUNT
#define MIKEY_TGK_MAX    192u /* a DH secret of OAKLEY 5 */

/* An identity; len = 0: none. */
struct mikey_id {
	uint8_t type; /* MIKEY_ID_NAI, MIKEY_ID_URI */
	uint8_t len;
	char name[MIKEY_ID_MAX];
};
/* -EINVAL if it is longer than MIKEY_ID_MAX. */
int mikey_id_set(struct mikey_id *out, uint8_t type, struct str name);
bool mikey_id_eq(const struct mikey_id *a, const struct mikey_id *b);
/* The same name, as certificates have it: the part after "@", or all of a name without it, is a
 * domain, where ASCII case does not matter. */
bool mikey_name_eq(struct str a, struct str b);

/* A pre-shared key; len = 0: none. */
struct mikey_psk {
	uint8_t len;
	uint8_t key[MIKEY_PSK_MAX];
};

/* Ourselves. Certificate modes need cert with its private key. */
struct mikey_identity {
	struct mikey_id id;
	struct mikey_cert *cert; /* borrowed; NULL = none */
};

/* The other party. */
struct mikey_peer {
	struct mikey_id id;
	/* Name under which the limits count its messages; len 0: id. Identities that use one key
	 * share an owner: the holder of the key can choose among them. */
	struct mikey_id owner;
	uint32_t rate; /* exchanges with public keys per second, see mikey_budget.h; 0: no limit */
	struct mikey_psk psk;      /* PSK, DHHMAC */
	struct mikey_cert *cert;   /* borrowed. Known before: PKE encrypts for it. NULL = none */
	struct mikey_trust *trust; /* borrowed. DH, RSAR, and PKE as a responder */
};

/* Time and randomness. now_ntp: seconds since 1900 in the upper half. random: NULL = that of the
 * kernel. */
struct mikey_env {
	uint64_t now_ntp;
	int (*random)(void *arg, void *p, size_t len); /* 0 or -errno */
	void *arg;
};
/* From a wall clock in nanoseconds since 1970. */
uint64_t mikey_ntp(uint64_t unix_ns);
/* Seconds since 1970. NTP seconds below 0x80000000 count from 2036, the next NTP era. */
int64_t mikey_unix_s(uint64_t ntp);

/* Crypto sessions of the exchange: two per medium, first the initiator's stream, then the
 * responder's (RFC 4567 7.1). One per medium is refused: one key would serve both directions, and
 * packets that somebody reflects would be authentic. */
struct mikey_stream {
	uint32_t ssrc; /* 0: unknown */
	uint32_t roc;
};

/* Our offer. */
struct mikey_offer {
	uint8_t media;    /* m-lines that the message is for, 1 to MIKEY_MEDIA_MAX */
	bool no_verify;   /* PSK, PKE: do not ask for a verification message */
	uint8_t dh_group; /* MIKEY_DH_... */
	/* "mikey": the protocols that the SDP offers, which MIKEY authenticates (RFC 4567 5.1.1);
	 * empty: none. */
	struct str sdp_ids;
	bool oaep; /* PKE: RSAES-OAEP instead of RSAES-PKCS1-v1_5 */
	uint8_t suites;
	/* In order of preference. Only the responder of RSA-R may choose (RFC 4738 3.6): other
	 * modes offer the first one. */
	uint8_t suite[MIKEY_SUITES_MAX];             /* enum srtp_suite_id */
	struct mikey_stream stream[MIKEY_MEDIA_MAX]; /* ours, one per medium */
};

/* Limits of what a responder accepts. */
struct mikey_accept {
	uint32_t modes; /* bit 1 << MIKEY_PSK and so on */
	uint8_t media;  /* m-lines that the message is for */
	uint8_t suites;
	uint8_t suite[MIKEY_SUITES_MAX];
	bool null_key_encryption; /* accept KEMAC with NULL encryption: for SDP that TLS protects */
	bool weak_dh;             /* accept OAKLEY 1 and 2, of 768 and 1024 bits */
	/* Protocols of the SDP, which the message has to list (RFC 4567 5.1.1), unless MIKEY is the
	 * only one; s = NULL: not compared. */
	struct str sdp_ids;
	uint32_t skew_s;                             /* allowed clock skew; 0 = MIKEY_SKEW_S */
	struct mikey_stream stream[MIKEY_MEDIA_MAX]; /* ours, for the response */
};

/* Suites that MIKEY can name. */
bool mikey_suite_known(enum srtp_suite_id suite);

/* --- State and results ----------------------------------------------------------------------*/

enum mikey_state {
	MIKEY_IDLE,
	MIKEY_SENT, /* initiator: waits for the R_MESSAGE */
	MIKEY_DONE,
	MIKEY_FAILED,
};

/* State of one exchange. It has no pointers: it may be copied, and saved as bytes (sealed: it has
 * keys). mikey_run_check() after loading. Wipe it with secmem_wipe(). */
struct mikey_run {
	uint32_t layout; /* MIKEY_RUN_LAYOUT */
	uint8_t state;   /* enum mikey_state */
	uint8_t mode;    /* enum mikey_mode */
	bool initiator;
	bool verify;
	bool believed;      /* the peer's MAC or signature was right */
	uint8_t failure;    /* enum mikey_failure */
	uint8_t peer_error; /* MIKEY_FAIL_REFUSED: number of the peer's Error message */
	uint8_t ts_type;    /* of the I_MESSAGE */
	uint8_t dh_group;
	uint8_t media;
	uint8_t sessions; /* crypto sessions: 2 * media */
	uint8_t rand_len;
	uint8_t secret_len; /* DH: our exponent */
	uint8_t tgk_len;
	uint8_t suites;
	uint8_t suite[MIKEY_SUITES_MAX];
	uint32_t csb_id;
	uint64_t time; /* T of the I_MESSAGE */
	uint8_t rand[255];
	uint8_t auth_key[MIKEY_MAC_LEN]; /* PSK, PKE, DHHMAC */
	uint8_t secret[MIKEY_TGK_MAX];   /* DH, DHHMAC */
	uint8_t tgk[MIKEY_TGK_MAX];      /* PSK, PKE: what we sent; DH: our public value */
	struct mikey_cs cs[2 * MIKEY_MEDIA_MAX];
	uint8_t cs_suite[2 * MIKEY_MEDIA_MAX]; /* enum srtp_suite_id */
	struct mikey_id mine, peer;            /* peer: as the exchange proved it */
	struct mikey_id idi, idr;              /* identities in the messages */
};
#define MIKEY_RUN_LAYOUT 1u
/* 0, or -EINVAL: not a run of this layout, or a length out of range. */
int mikey_run_check(const struct mikey_run *r);

/* Keys of one medium: rx opens the peer's packets, tx protects ours. SSRC and ROC of the crypto
 * sessions are not among the results: a leg accepts each SSRC, and finds its ROC by authentication
 * (media/roc.h). */
struct mikey_medium {
	struct srtp_master rx, tx;
};
struct mikey_keys {
	uint8_t media;
	struct mikey_medium medium[MIKEY_MEDIA_MAX];
};

/* Output buffer of a message. len: 0 = none. */
struct mikey_out {
	uint8_t *buf;
	size_t cap; /* MIKEY_MESSAGE_MAX is always enough */
	size_t len;
};

/* --- Replay memory --------------------------------------------------------------------------*/

/* Remembers accepted I_MESSAGEs until their timestamps leave the allowed skew (RFC 3830
 * 5.4). If the clock is set or the skew raised, so that it allows older messages again, these are
 * refused. Counters (MIKEY_TS_COUNTER) are refused: the highest of each peer would have to be kept
 * forever, over restarts, too. A peer may use half of the places that others leave free, and its
 * further messages are refused. So no peer can use up the memory. One thread at a time. */
struct mikey_replay;
/* entries: messages remembered, 40 bytes each. 0 or -ENOMEM, -EINVAL. */
int mikey_replay_create(struct mikey_replay **out, uint32_t entries);
void mikey_replay_destroy(struct mikey_replay *r); /* NULL is fine */
/* Refuses messages with timestamps before this time: for the start of the daemon, which remembers
 * nothing of the time before. A peer whose clock is late is refused for as long as it is late. */
void mikey_replay_since(struct mikey_replay *r, uint64_t ntp);
/* Another process accepted a message of this sender with this timestamp. Refuses messages of this
 * sender that are not later. mikey_replay_since() does so for all senders, but does not cover a
 * sender whose clock is ahead. */
void mikey_replay_passed(struct mikey_replay *r, struct str from, uint64_t time);
/* Records the latest timestamp of each peer in a file. Refuses messages that are not later than the
 * timestamps that the file has at this call. Without the file, a message from before the start is
 * accepted again if the peer's clock was ahead. Creates the file if it is absent. 0 or -errno.
 * -EINVAL: another kind of file; -EPERM: other users can change it; -EBUSY: another daemon has
 * it. */
int mikey_replay_keep(struct mikey_replay *r, const char *path);

/* --- Exchange -------------------------------------------------------------------------------*/

struct mikey_start {
	enum mikey_mode mode;
	const struct mikey_identity *mine;
	const struct mikey_peer *peer;
	const struct mikey_offer *offer;
	struct mikey_env env;
};
/* Makes an I_MESSAGE. INTERNAL, POLICY (no suite that MIKEY can name), IDENTITY (the mode needs a
 * key or certificate that is absent), DH_GROUP, SESSIONS, CERT_EXPIRED, CERT_REVOKED. */
enum mikey_failure mikey_initiate(
	struct mikey_run *run, const struct mikey_start *s, struct mikey_out *out);

/* Whom an I_MESSAGE is from and for, as it claims. from of a message with only a certificate is the
 * first name of the certificate. */
struct mikey_ask {
	enum mikey_mode mode;
	struct mikey_id from, to; /* len 0: not named */
};
/* Fills in both parties. Pointers have to stay valid until mikey_respond() returned. 0, -ENOENT:
 * unknown, -EACCES: forbidden. */
struct mikey_store {
	int (*find)(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
		struct mikey_peer *peer);
	/* Whether public-key operations for an authenticated peer are within the limits now. NULL:
	 * always. */
	bool (*afford)(void *arg, const struct mikey_peer *peer);
	void *arg;
};

struct mikey_answer {
	const struct mikey_store *store;
	const struct mikey_accept *accept;
	struct mikey_replay *replay;
	struct mikey_env env;
};
/* Takes an I_MESSAGE. Makes an R_MESSAGE if the mode or the V flag demands one. */
enum mikey_failure mikey_respond(struct mikey_run *run, const struct mikey_answer *a,
	struct str message, struct mikey_out *out, struct mikey_keys *keys);

struct mikey_end {
	const struct mikey_identity *mine;
	const struct mikey_peer *peer;
	struct mikey_env env;
};
/* Takes the R_MESSAGE. An empty message is right if none was asked for (no_verify). An Error
 * message fails with REFUSED, and a forged message with AUTH or another reason. After a failure the
 * run still waits for the right message: anybody can send a wrong one. */
enum mikey_failure mikey_finish(struct mikey_run *run, const struct mikey_end *e,
	struct str message, struct mikey_keys *keys);

/* Writes an Error message (RFC 3830 5.1.2, 6.12) for a failed mikey_respond(). The daemon does not
 * send it, because a SIP refusal of an offer has no SDP. Tests send it, as peers may. It is
 * authenticated if the peer was before the failure. 0 or -EMSGSIZE, -EINVAL (nothing failed). */
int mikey_error(const struct mikey_run *run, struct mikey_out *out);

#endif
