/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of zrtp. zrtp.c has life, packets and timers; zrtp_hello.c makes and reads
 * Hellos and chooses algorithms; zrtp_commit.c, zrtp_dh.c and zrtp_confirm.c are the messages of an
 * exchange in their order; zrtp_keys.c derives keys, and zrtp_sas.c writes the SAS; zrtp_after.c
 * has what an open exchange can do; zrtp_multi.c has the secret for further streams, and
 * zrtp_further.c the exchange of one; zrtp_cache.c matches retained secrets; zrtp_rivals.c has what
 * strangers sent in the peer's name. Sections are of RFC 6189. */
#ifndef KEYING_ZRTP_INT_H
#define KEYING_ZRTP_INT_H

#include "keying/zrtp.h"
#include "keying/zrtp_crypto.h"
#include "keying/zrtp_wire.h"

#define ZRTP_OUT   6u
#define ZRTP_ID    8u  /* of a retained secret */
#define ZRTP_IMAGE 32u /* of the hash chain */

/* Offsets in messages. */
#define HELLO_H3      32u
#define HELLO_ZID     64u
#define HELLO_FLAGS   76u
#define FLAG_DISCLOSE 1u /* of Confirm and SASrelay, like the next two */
#define FLAG_CLEAR    2u
#define FLAG_VERIFIED 4u
#define HELLO_PASSIVE 0x10u /* in the first byte of the flags: it never commits */
#define HELLO_MITM    0x20u /* likewise: a trusted man in the middle */
#define COMMIT_H2     12u
#define COMMIT_ZID    44u
#define COMMIT_ALGS   56u
#define COMMIT_HVI    76u
#define DHPART_H1     12u
#define DHPART_IDS    44u
#define DHPART_VALUE  76u
#define CONFIRM_MAC   12u
#define CONFIRM_IV    20u
#define CONFIRM_BODY  36u

#define ERROR_NO_SECRET 0x56u /* Diffie-Hellman is needed (5.9) */

enum zrtp_phase {
	PH_IDLE,
	PH_HELLO, /* both: Hellos are sent */
	PH_NO_PEER,
	PH_COMMIT,   /* initiator: waits for DHPart1, or for Confirm1 without public keys */
	PH_DHPART1,  /* responder: waits for DHPart2 */
	PH_DHPART2,  /* initiator: waits for Confirm1 */
	PH_CONFIRM1, /* responder: waits for Confirm2 */
	PH_CONFIRM2, /* initiator: waits for Conf2ACK */
	PH_OPEN,
	PH_CLEAR,
	PH_RESTORED, /* open in an earlier process: it has no SRTP keys */
	PH_FAILED,   /* a Hello or a Commit begins another attempt */
};

/* Retained secrets, in the order of a DHPart. */
enum { ZRTP_RS1, ZRTP_RS2, ZRTP_AUX, ZRTP_PBX, ZRTP_SECRETS_N };

struct zrtp_party { /* what one of the two sent; [0] of ours: made before it is sent */
	struct zrtp_msg hello, commit, dhpart;
	uint8_t zid[ZRTP_ZID];
};

struct zrtp_timer {
	const struct zrtp_msg *msg; /* sent at each step; NULL: none */
	uint64_t at_ns, step_ns, most_ns;
	uint32_t left; /* steps */
	uint32_t sent; /* times that msg was sent */
};

struct zrtp_session {                  /* after the exchange; all of it follows from s0 */
	uint8_t sess[ZRTP_DIGEST_MAX]; /* ZRTPSess */
	uint8_t mac_key[2][ZRTP_DIGEST_MAX], key[2][ZRTP_KEY_MAX]; /* [initiator] */
	uint8_t srtp_key[2][ZRTP_KEY_MAX], srtp_salt[2][14];
	uint8_t sas_hash[32], rs1[ZRTP_SECRET], pbx[ZRTP_SECRET];
	char sas[ZRTP_SAS_MAX];
};

struct zrtp {
	struct zrtp_config cfg; /* zid, prefs: into the members below */
	struct zrtp_prefs prefs;
	enum zrtp_phase phase;
	enum zrtp_failure failure;
	bool initiator, hello_acked, peer_known;
	bool refused;                 /* the peer sent an Error */
	bool needs_values;            /* it does not have our secret: no Mult, no Prsh */
	bool stale;                   /* our Commit answered a stranger's Hello */
	bool tried;                   /* an attempt got no answer */
	bool wants_secrets;           /* the cache is asked */
	struct zrtp_msg relay;        /* Error, GoClear or SASrelay, until it is acknowledged */
	uint8_t image[4][ZRTP_IMAGE]; /* H0 to H3 of ours */
	struct zrtp_party me, peer;
	struct zrtp_rivals *rivals;        /* NULL: none */
	uint8_t alg[ZRTP_KINDS];           /* chosen by the Commit */
	struct zrtp_pair *pair[ZRTP_PRSH]; /* by agreement; NULL: not needed yet */
	uint8_t nonce[16];
	struct zrtp_secrets secrets;
	bool has_secrets, mismatched;
	int8_t matched; /* ZRTP_RS1, ZRTP_RS2 or -1 */
	bool matched_aux, matched_pbx;
	bool multi; /* multi_sess is the sess of another stream */
	uint8_t multi_sess[ZRTP_DIGEST_MAX];
	/* Of an earlier process. with_keys: s.mac_key and s.key are known. */
	bool restored, with_keys;
	enum zrtp_hash multi_hash;
	struct zrtp_msg confirm; /* ours, Confirm1 or Confirm2 */
	struct zrtp_session s;
	uint32_t expires; /* the lesser of both sides' cache expiration intervals, seconds */
	bool peer_verified, peer_allows_clear, peer_enrols, peer_discloses;
	bool confirmed;   /* the peer has the keys, too: by its Confirm2, Conf2ACK or SRTP */
	bool was_relayed; /* the peer told us its far side's SAS */
	uint8_t relayed[32];
	struct zrtp_timer timer;
	uint64_t patience_ns; /* responder: when it gives up, in the phases that wait; 0: never */
	uint64_t yield_ns;    /* until then no other exchange takes the place of this one */
	struct zrtp_further *further; /* cfg.only_multi, until there are keys; NULL: none */
	uint16_t seq;
	uint32_t peer_ssrc;
	uint32_t outs;
	struct { /* packets to send */
		uint16_t len;
		uint8_t b[ZRTP_PACKET_MAX];
	} out[ZRTP_OUT];
};

/* --- zrtp.c ----------------------------------------------------------------------------------- */

void zrtp_send(struct zrtp *z, const struct zrtp_msg *m);
/* An answer to a packet that anybody can send: only if there is room. _empty: without contents. */
void zrtp_reply(struct zrtp *z, const struct zrtp_msg *m);
void zrtp_reply_empty(struct zrtp *z, enum zrtp_message type);
void zrtp_reply_error(struct zrtp *z, uint32_t code);
/* Sends it, and again by timer T1 (Hello) or T2, until zrtp_stop() or another message. */
void zrtp_repeat(struct zrtp *z, const struct zrtp_msg *m, bool hello, uint64_t now_ns);
void zrtp_stop(struct zrtp *z);
/* An acknowledgement without a MAC was received, which anybody can forge. The message is still sent
 * three times in all, because earlier ones may have been lost. */
void zrtp_acked(struct zrtp *z);
/* As responder, which repeats nothing by itself: sets the time to give up if the initiator does not
 * continue. */
void zrtp_wait(struct zrtp *z, uint64_t now_ns);
/* Ends the attempt. Except after INTERNAL, another one can follow, with the same key pairs: anybody
 * may have caused it. The failure is reported until there are keys. */
void zrtp_fail(struct zrtp *z, enum zrtp_failure why);
/* The same because of a message that cannot be accepted, with an Error that is repeated until it is
 * acknowledged (5.9). If there are other Hellos, the next attempt goes before it. */
void zrtp_refuse(struct zrtp *z, enum zrtp_failure why, uint32_t code, uint64_t now_ns);
/* Counts it. Returns -EBADMSG. */
int zrtp_drop(struct zrtp *z, enum zrtp_drop why);
/* Appends the MAC under this image, and completes the length (9.1). 0 or -EIO. */
int zrtp_add_mac(struct zrtp_msg *m, const uint8_t image[ZRTP_IMAGE]);
/* Whether its MAC is by this image. */
bool zrtp_has_mac_of(const struct zrtp_msg *m, const uint8_t image[ZRTP_IMAGE]);
/* Whether the hash of image is next. */
bool zrtp_image_fits(const uint8_t image[ZRTP_IMAGE], const uint8_t next[ZRTP_IMAGE]);

/* --- zrtp_hello.c ----------------------------------------------------------------------------- */

/* The images, the ZID and the Hello, from the seed. 0, -EINVAL, -EIO. */
int zrtp_hello_make(struct zrtp *z);
int zrtp_on_hello(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);
/* Whether the sender of this image may begin another exchange: the present one waits for a Confirm,
 * and is of another Hello. Then it is remembered, and its Confirm can still come. */
bool zrtp_yield(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE], uint64_t now_ns);
/* Whether a Hello of the peer's fits the image; then it is the peer's from now on. */
bool zrtp_hello_of(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE]);
/* The number of an algorithm; -1: not known here, or not in our preferences. */
int zrtp_alg_find(const struct zrtp *z, enum zrtp_kind kind, const uint8_t name[4]);
const char *zrtp_alg_name(enum zrtp_kind kind, uint32_t alg);
/* Nobody has shown that our Hello reached it: any Commit can be the peer's. */
bool zrtp_waits_for_all(const struct zrtp *z);
/* A Hello of our version, with lists of algorithms that end where it ends. */
bool zrtp_hello_is_sound(const uint8_t *m, uint32_t len);
/* Chooses from what both have. */
void zrtp_choose(struct zrtp *z);

/* --- zrtp_commit.c ---------------------------------------------------------------------------- */

/* Sends a Commit, once both have the other's Hello and the cache has answered. */
void zrtp_may_commit(struct zrtp *z, uint64_t now_ns);
int zrtp_on_commit(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);
/* Makes our Commit by z->alg. 0, -EIO, -ENOENT. */
int zrtp_commit_make(struct zrtp *z);
/* The algorithms of a Commit. 0, or the code of the Error for one that was not offered. */
uint32_t zrtp_commit_algorithms(uint8_t alg[ZRTP_KINDS], const struct zrtp *z, const uint8_t *m);

/* --- zrtp_dh.c -------------------------------------------------------------------------------- */

void zrtp_pairs_free(struct zrtp *z);
/* Makes our DHPart. 0 or -EIO. */
int zrtp_dhpart_make(struct zrtp *z, enum zrtp_message type);
int zrtp_on_dhpart1(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);
int zrtp_on_dhpart2(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);
/* hash(DHPart2 | Hello of the responder), its first 32 bytes (4.4.1.1). */
int zrtp_hvi(uint8_t hvi[32], enum zrtp_hash h, const struct zrtp_msg *dhpart2,
	const struct zrtp_msg *hello);

/* --- zrtp_confirm.c --------------------------------------------------------------------------- */

/* Our Confirm asks the peer to enrol. Then it must not end SRTP (7.3.1). */
bool zrtp_asks_enrol(const struct zrtp *z);
int zrtp_confirm_make(struct zrtp *z);
int zrtp_on_confirm(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);
/* The same under the keys in z->s. 0, or 1 + enum zrtp_drop: nothing has changed. */
int zrtp_confirm_try(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);

/* --- zrtp_keys.c ------------------------------------------------------------------------------ */

/* From the result of an agreement (result_len 0: Mult or Prsh) to z->s. 0 or -EIO. */
int zrtp_derive(struct zrtp *z, const uint8_t *result, uint32_t result_len);
/* Replaces ZRTPSess after a GoClear, so that it no longer leads to the keys before (4.7.2.1). 0 or
 * -EIO. */
int zrtp_renew_session(struct zrtp *z);

/* --- zrtp_sas.c ------------------------------------------------------------------------------- */

/* The SAS as people read it. */
void zrtp_render(char out[ZRTP_SAS_MAX], const uint8_t hash[32], enum zrtp_sas kind);

/* --- zrtp_cache.c ----------------------------------------------------------------------------- */

/* The identifiers of our secrets, as the initiator or the responder writes them (4.3.1). 0, -EIO.
 */
int zrtp_ids(uint8_t out[ZRTP_SECRETS_N][ZRTP_ID], const struct zrtp *z, bool of_initiator);
/* Finds out which secrets the peer shares, by its DHPart. 0 or -EIO. */
int zrtp_match(struct zrtp *z);
/* In preshared mode, where both have the key of zrtp_preshared(): every secret of ours is in it. */
void zrtp_match_preshared(struct zrtp *z);
/* The preshared key and its identifier (4.4.2.1). 0; -ENOENT: nothing is shared; -EIO. */
int zrtp_preshared(const struct zrtp *z, uint8_t key[ZRTP_DIGEST_MAX], uint8_t id[ZRTP_ID]);

/* --- zrtp_rivals.c ---------------------------------------------------------------------------- */

void zrtp_rivals_free(struct zrtp *z);
/* Remembers a Hello that is not the current one. Known ones change nothing. */
void zrtp_rivals_hello(struct zrtp *z, const uint8_t *m, uint32_t len);
/* Exchanges the current Hello for the one that this image proves. False: none. */
bool zrtp_rivals_take_hello(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE]);
/* Replaces the current Hello by the latest rival, and removes that rival. False: none. */
bool zrtp_rivals_next_hello(struct zrtp *z);
/* Remembers the Commit that was answered by a DHPart1, and the state that belongs to it. Nothing
 * changes if it is known. */
void zrtp_rivals_commit(struct zrtp *z);
/* Our DHPart1 for a Commit that is remembered; NULL: it is not. */
const struct zrtp_msg *zrtp_rivals_answer(const struct zrtp *z, const uint8_t *m, uint32_t len);
/* Restores the state of the Commit that this DHPart2 proves and belongs to, if it is remembered. */
bool zrtp_rivals_take_commit(struct zrtp *z, const struct zrtp_msg *dhpart2);
/* Remembers our Commit, before we answer another one or commit again. */
void zrtp_rivals_own_commit(struct zrtp *z);
/* Restores the state of a Commit of ours that was for the Hello of this image. False: none. */
bool zrtp_rivals_take_own(struct zrtp *z, const uint8_t h2[ZRTP_IMAGE]);
void zrtp_rivals_forget_commits(struct zrtp *z); /* ours, too */
/* Whether a rival Hello fits this image. */
bool zrtp_rivals_has_hello(const struct zrtp *z, const uint8_t h2[ZRTP_IMAGE]);
/* Remembers the exchange, which waits for a Confirm, before another one begins. */
void zrtp_rivals_try(struct zrtp *z);
bool zrtp_rivals_tried(const struct zrtp *z);
/* Our Confirm1 for a DHPart2 of such an exchange; NULL: it is of none. */
const struct zrtp_msg *zrtp_rivals_confirm_for(
	const struct zrtp *z, const uint8_t *m, uint32_t len);
/* Whether this Confirm is that of such an exchange, which then is the present one. */
bool zrtp_rivals_confirm(struct zrtp *z, const uint8_t *m, uint32_t len, uint64_t now_ns);

/* --- zrtp_after.c ----------------------------------------------------------------------------- */

int zrtp_on_after(struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len);
/* It is open, and the ZRTP keys are known. */
bool zrtp_is_open(const struct zrtp *z);

/* --- zrtp_further.c --------------------------------------------------------------------------- */

int zrtp_further_create(struct zrtp *z); /* 0 or -ENOMEM */
void zrtp_further_destroy(struct zrtp *z);
/* first: the exchange with the secret. */
void zrtp_further_of(struct zrtp *z, const struct zrtp *first);
void zrtp_further_start(struct zrtp *z, uint64_t now_ns);
int zrtp_further_take(
	struct zrtp *z, enum zrtp_message type, const uint8_t *m, uint32_t len, uint64_t now_ns);
uint64_t zrtp_further_deadline(const struct zrtp *z);
void zrtp_further_tick(struct zrtp *z, uint64_t now_ns);

#endif
