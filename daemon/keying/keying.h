/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How two parties agree on SRTP keys. Each leg has a keying_state; the functions below ask every
 * keying, one row of operations each, and nothing outside keying/ knows which one a leg uses. Pure
 * state machines: no sockets, no clock, and after creation no allocation except text in the pool of
 * the request. Results are srtp_params, which the model puts into force.
 *
 * A new keying is a member of keying_state (state.h), a file with its row, and an entry in
 * keying.c. A keying whose keys come in packets (DTLS-SRTP, ZRTP) adds four operations at the end
 * of keying_ops: take a packet, next deadline, packets to send, state and keys. The keying thread
 * calls them. Its answers agree on parameters without keys, with srtp_params.awaited set: nothing
 * is relayed until leg_set_rx() and leg_set_tx() bring the keys. */
#ifndef KEYING_KEYING_H
#define KEYING_KEYING_H

#include "keying/policy.h"
#include "keying/session.h"
#include "keying/state.h"
#include "proto/ng.h"
#include "proto/sdp.h"
#include "srtp/params.h"

struct keying_random { /* each byte is used once and wiped */
	uint8_t *at;
	size_t len;
};

/* Moves len bytes to out, and wipes them where they were. False: too few are left. */
bool keying_draw(struct keying_random *random, void *out, size_t len);

/* The most keys that one m-line needs: a fresh one for each suite. */
#define KEYING_RANDOM_PER_MEDIA                                                           \
	((size_t)SUITE_COUNT * (SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN) + KEYING_TLS_ID + \
		KEYING_ZRTP_SEED + KEYING_ZRTP_ZID + 8)

struct mikey_host;
struct zrtp_store;

/* Services of this host that keyings use. */
struct keying_host {
	bool dtls;                     /* there are keying threads, and a certificate */
	uint32_t profiles;             /* bit per suite: SRTP profiles of DTLS */
	bool sha1;                     /* SHA-1 in a=fingerprint is accepted */
	struct dtls_fingerprint print; /* of the certificate, by the hash of the request */
	uint64_t cert;                 /* dtls_cert_id() of the certificate */
	struct mikey_host *mikey;      /* NULL: MIKEY is off */
	bool zrtp;                     /* there are keying threads */
	enum zrtp_policy zrtp_policy;  /* used if the request has none */
	const uint8_t *zid;  /* our ZID [KEYING_ZRTP_ZID] from the cache; NULL: no cache */
	bool zrtp_preshared; /* with the cache: preshared mode is offered */
};

struct keying_in { /* an exchange */
	const struct ng_request *r;
	const struct sdp *sdp;
	const struct keying_host *host;
	const struct sdes_policy *policy;
	struct pool *p;
	struct keying_random *random;
	bool emergency; /* exempt from limits of computation */
	/* NULL, or why the terminal must not send under this key. end_to_end: the other terminal
	 * may use it, too. */
	const char *(*refusal)(const void *arg, const struct srtp_master *key, bool end_to_end);
	/* NULL, or why we must not send under this key, which the terminal chose. leg: that is to
	 * have it. Only MIKEY calls it. */
	const char *(*tx_refusal)(
		const void *arg, const struct srtp_master *key, const struct keying_state *leg);
	const void *arg;
};

struct keying_leg {
	struct keying_state *state;
	/* in force, from the terminal and to it */
	const struct srtp_params *rx, *tx;
	bool active;
	bool in_mid_stream; /* the ROC of the key in force is not 0 */
};

/* Attributes of an m-line, without "a=", such as "crypto:1 AES_CM_128_HMAC_SHA1_80 inline:...". In
 * the request's pool. */
#define KEYING_LINES 16u
struct keying_lines {
	struct str line[KEYING_LINES];
	uint32_t n;
	struct str session; /* for the session level; the same for all m-lines that have one */
};

/* Why something failed; detail may be empty, and does not name the media. */
struct keying_error {
	const char *reason; /* NGE_*, NULL: it did not */
	struct str detail;
};

struct keying_offer {
	struct keying_leg from, to; /* whose offer it is; whom it goes to */
	bool paired;                /* these two spoke to each other so far */
	bool ours_only; /* only keys of ours serve: the m-line is doubled, or a subscriber's */
	bool wanted;    /* SRTP, or RTP with keys (RFC 8643) */
	const struct sdp_media *media; /* the offerer's */
	enum sdp_proto proto;          /* of the m-line that is written */

	bool later; /* keying_end_offer() follows */

	struct keying_lines *lines; /* result */
	struct str warning;         /* "media 1 " comes before it */
	bool weaker; /* a keying that was wished for is left out: the log has the warning, too */
	struct keying_error error;
};

struct keying_written { /* an m-line of our offer, for keying_end_offer() */
	struct keying_state *to;
	struct keying_lines *lines;
	struct str warning; /* result, as in keying_offer; set: the offer is weaker */
	struct keying_error error;
};

struct keying_answer {
	struct keying_leg answerer, offerer;
	bool paired;
	const struct sdp_media *media; /* the answerer's */
	/* Keys in the offerer's SDP do not count: only a keying in the media path may take it. */
	bool in_band_only;
	/* The suite that goes first among the offerer's; SUITE_PLAIN: none. */
	enum srtp_suite_id prefer;

	struct srtp_params rx, tx; /* result: of the leg that was asked for. Wipe them. */
	bool joint;                /* the same keying holds for both legs: write_answer follows */
	const struct keying_ops *row; /* that read the answer, if joint */
	struct keying_lines *lines;
	struct str warning; /* "media 1 " comes before it */
	struct keying_error error;
};

struct keying_exchange { /* of ZRTP, see session_zrtp */
	uint32_t number;
	uint32_t flags;  /* NG_ZRTP_* */
	uint32_t suites; /* bit per suite: what may be agreed on */
	uint8_t preauth; /* as keying_association.preauth */
	/* Our Hello is computed from seed, zid and preshared. */
	const uint8_t *seed;              /* [KEYING_ZRTP_SEED] */
	const uint8_t *zid, *party;       /* [KEYING_ZRTP_ZID] */
	bool preshared;                   /* it offers preshared mode */
	const struct sdp_zrtp *theirs;    /* of the terminal's Hello */
	bool keyed;                       /* its keys are in force */
	bool cleared;                     /* GoClear ended them */
	const struct zrtp_secret *secret; /* for further streams */
	const struct zrtp_secret *later;  /* as in session_zrtp_past */
};

enum keying_result {
	KEYING_PASSES,  /* not its case: the next keying may try */
	KEYING_ADDS,    /* offers: wrote lines, and the next keying may add its own */
	KEYING_AGREES,  /* offers: wrote all lines. Answers: rx and tx are agreed on */
	KEYING_REFUSES, /* see error */
};

struct keying_association { /* see session_dtls */
	uint32_t number;
	uint32_t suites; /* bit per suite: profiles that may be agreed on */
	uint8_t role;    /* enum dtls_role; NONE: the answer decides */
	uint8_t preauth; /* SRTP+ of its keys: 0 = none, else 1 + enum preauth_scheme */
	uint64_t cert;   /* dtls_cert_id() of ours, which SDP names; 0: not known */
	const struct dtls_fingerprints *prints; /* NULL: not known yet */
};

/* Keys that are not in force, and may be again. Every operation is set. */
struct keying_key_ops {
	/* The n-th key of ours that the terminal knows; NULL: no more. */
	const struct keying_key *(*ours)(const struct keying_state *s, uint32_t n);
	/* Notes the slot with the key, if it is one of ours. */
	void (*hold)(struct keying_state *s, const struct srtp_master *key, uint32_t slot);
	/* Keeps those that the caller names, and forgets the rest. */
	void (*keep)(struct keying_state *s,
		bool (*keep)(const void *arg, const struct keying_key *k), const void *arg);
	/* The terminal offered this key; only key bytes are compared. */
	bool (*is_theirs)(const struct keying_state *s, const struct srtp_master *key);
};

/* One keying. Every operation is set, but for those at the end. */
struct keying_ops {
	enum keying_id id;
	/* For people, by what is in force. */
	const char *name;
	bool end_to_end; /* the terminals agree on the keys with each other */
	/* For people, while the keys are awaited. NULL: they come in SDP. */
	const char *awaited;
	/* query's flag if packets prove who sends under the keys in force. NULL: none do. */
	const char *proof;

	/* --- Offers and answers --------------------------------------------------------------- */
	/* Stores what we could accept. suites: bit per suite that the request allows. False:
	 * nothing; why is set if something was there. */
	bool (*read_offer)(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
		const struct keying_in *in, struct keying_error *why);
	/* Whether we could accept that; stores nothing. l->state is NULL before there is a leg. */
	bool (*could_accept)(
		const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in);
	/* An m-line that may be the last offer, sent again. */
	bool (*is_same_offer)(
		const struct keying_state *s, const struct sdp *sdp, const struct sdp_media *m);
	enum keying_result (*write_offer)(struct keying_offer *o, const struct keying_in *in);
	/* The answer to our offer: keys of the answerer's leg. */
	enum keying_result (*read_answer)(struct keying_answer *a, const struct keying_in *in);
	/* Our answer to the offerer: lines, and keys of its leg. */
	enum keying_result (*write_answer)(struct keying_answer *a, const struct keying_in *in);

	/* --- State ---------------------------------------------------------------------------- */
	/* The terminal offered this keying, and we could accept it. */
	bool (*was_offered)(const struct keying_state *s);
	/* Our last offer to it has this keying. */
	bool (*asks)(const struct keying_state *s);
	void (*drop_offered)(struct keying_state *s);
	void (*drop_asked)(struct keying_state *s);
	/* Removes the keys in force; pending offers stay. */
	void (*end)(struct keying_state *s);
	/* The keys in force are of these suites. */
	bool (*is_of)(const struct srtp_params *rx, uint32_t suites);
	/* query's flags while this keying is in force, with rtpengine's names; NULL ends them. */
	const char *const *(*flags)(const struct keying_state *s);
	/* Appends the suites that our last offer names, for people. */
	void (*describe)(const struct keying_state *s, struct sbuf *b);
	/* A saved state makes sense. */
	bool (*is_sound)(const struct keying_state *s);

	/* --- Optional operations: NULL if absent ---------------------------------------------- */
	/* The keying draws keys for offers, and one may come into force again. */
	const struct keying_key_ops *keys;
	/* Called after write_offer() of all m-lines. */
	void (*end_offer)(
		struct keying_written *w, uint32_t n, bool whole, const struct keying_in *in);
	/* Its keys come in packets. The DTLS association that the leg needs; false: none. */
	bool (*association)(struct keying_association *out, const struct keying_state *s);
	/* Likewise, the exchange of ZRTP. It begins with the answer. */
	bool (*exchange)(struct keying_exchange *out, const struct keying_state *s);
};

/* In the order in which they are tried. */
#define KEYING_ROWS (KEYING_COUNT - 1u)
const struct keying_ops *keying_row(uint32_t i);

/* --- Offers and answers ----------------------------------------------------------------------- */

/* Whether the terminal's m-line offers keys that we could accept, which are then stored. False:
 * *why has the reason. True: if *why has a detail, an earlier keying was left out for that reason,
 * in favour of a later one. */
bool keying_read_offer(const struct keying_leg *l, const struct sdp_media *m, uint32_t suites,
	const struct keying_in *in, struct keying_error *why);
bool keying_could_accept(
	const struct keying_leg *l, const struct sdp_media *m, const struct keying_in *in);
bool keying_is_same_offer(
	const struct keying_state *s, const struct sdp *sdp, const struct sdp_media *m);
/* The m-line that goes to o->to. Fails if it is in SRTP and nothing can be offered. */
bool keying_write_offer(struct keying_offer *o, const struct keying_in *in);
/* Call it after all m-lines of an offer were written. Writes lines that serve several of the
 * m-lines in w. whole: w has all m-lines of the SDP. False: one of them has an error. */
bool keying_end_offer(struct keying_written *w, uint32_t n, bool whole, const struct keying_in *in);
/* KEYING_AGREES: rx and tx of the answerer. KEYING_PASSES: it answers in RTP, or with keys of no
 * offer; detail says why if the m-line had some. KEYING_REFUSES: see error. */
enum keying_result keying_read_answer(struct keying_answer *a, const struct keying_in *in);
/* Our answer, after keying_read_answer(). KEYING_PASSES: the offerer gets RTP. */
enum keying_result keying_write_answer(struct keying_answer *a, const struct keying_in *in);
/* The profile of our offer for one that was ordered. *instead: NULL, or how it differs from the
 * order. */
enum sdp_proto keying_profile(
	enum sdp_proto ordered, const struct keying_host *host, const char **instead);

/* --- State ------------------------------------------------------------------------------------ */

bool keying_was_offered(const struct keying_state *s);
bool keying_asks(const struct keying_state *s);
/* It asks for keys that the terminals agree on with each other. */
bool keying_asks_end_to_end(const struct keying_state *s);
void keying_drop_offered(struct keying_state *s);
void keying_drop_asked(struct keying_state *s);
void keying_end(struct keying_state *s);
/* "SDES", "SDES end-to-end"; "": RTP in clear. */
const char *keying_name(const struct keying_state *s);
/* True if the terminal sends with one of these suites, or if we do not choose its keys. */
bool keying_is_of(const struct keying_state *s, const struct srtp_params *rx, uint32_t suites);
/* The DTLS association that the leg needs; false: none. */
bool keying_association(struct keying_association *out, const struct keying_state *s);
/* The exchange of ZRTP that the leg needs; false: none. */
bool keying_exchange(struct keying_exchange *out, const struct keying_state *s);
/* Call it when the keys of this SESSION_KEYS are in use. */
void keying_exchanged(struct keying_state *s, const struct session_event *e);
/* The results of that exchange, as keying_exchanged() got them. */
void keying_said(struct session_said *out, const struct keying_state *s);
/* Marks the SAS as compared by the operator, or as not compared, also in the cache. False: no
 * exchange with a SAS. */
bool keying_verify(struct keying_state *s, struct zrtp_store *store, bool verified);
/* Data for display about the exchange whose keys are in force; NULL: none. */
const struct keying_zrtp *keying_sas(const struct keying_state *s);
/* The identity that MIKEY proved, if its keys are in force; empty: none. */
struct str keying_mikey_peer(const struct keying_state *s);
/* Puts the ZRTP exchanges of two m-lines of one terminal into one party. */
void keying_share_party(struct keying_state *s, const struct keying_state *other);
/* The terminal ended SRTP by GoClear, as this SESSION_CLEAR reports; false: it may not. */
bool keying_go_clear(struct keying_state *s, const struct session_event *e);
/* True: if the exchange fails, media continue in clear, because the request allows that (for
 * emergency calls). */
bool keying_falls_back(const struct keying_state *s);
/* The terminal does not speak ZRTP. True: its media may continue in clear. */
bool keying_may_clear(const struct keying_state *s);
/* True: after the terminal declined the DTLS handshake, its media may continue in clear. The call
 * is an emergency call, and the request allows RTP. */
bool keying_may_do_without(const struct keying_state *s);
/* The terminal's last offer is in RTP, and announces a keying in the media path. */
bool keying_is_announced(const struct keying_state *s);
/* query's flags about the keying in force, with rtpengine's names; NULL ends them. keyed: keys
 * are in force. */
const char *const *keying_flags(const struct keying_state *s, bool keyed);
/* query's flag about keys in force: "DTLS fingerprint verified"; "": nothing is proven. */
const char *keying_proof(const struct keying_state *s);
/* For people, of awaited keys: "ZRTP, no keys yet". */
const char *keying_awaited(const struct keying_state *s);
void keying_describe(const struct keying_state *s, struct sbuf *b);
bool keying_is_sound(const struct keying_state *s);

/* Forgets what a keying keeps outside of the call's legs. m may be NULL. */
void keying_call_ended(struct mikey_host *m, struct str call_id);
/* For a leg restored from another process: the message that it accepted is refused if it comes
 * again. m may be NULL. */
void keying_restored(const struct keying_state *s, struct mikey_host *m);

/* --- Retired keys: not in force, but their indexes are kept ----------------------------------- */

/* NULL: it is not ours, or forgotten. */
const struct keying_key *keying_ours(const struct keying_state *s, const struct srtp_master *key);
/* The n-th, of all keyings. */
const struct keying_key *keying_our_key(const struct keying_state *s, uint32_t n);
void keying_hold(struct keying_state *s, const struct srtp_master *key, uint32_t slot);
void keying_keep_ours(struct keying_state *s,
	bool (*keep)(const void *arg, const struct keying_key *k), const void *arg);
void keying_forget_ours(struct keying_state *s);
bool keying_is_theirs(const struct keying_state *s, const struct srtp_master *key);

#endif
