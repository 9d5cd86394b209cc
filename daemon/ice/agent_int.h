/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the agent share. A call goes down this list, never up: agent.c, agent_take.c,
 * agent_tick.c, agent_check.c, agent_select.c, agent_pairs.c, agent_out.c, agent_draw.c. */
#ifndef ICE_AGENT_INT_H
#define ICE_AGENT_INT_H

#include "ice/agent.h"

#define ICE_MS           1000000ull
#define ICE_S            (1000 * ICE_MS)
#define ICE_PACE_NS      (50 * ICE_MS)     /* RFC 8445 14.2 */
#define ICE_PACE_MIN_NS  (5 * ICE_MS)      /* RFC 8445 14.2 */
#define ICE_RTO_NS       (500 * ICE_MS)    /* RFC 8445 14.3 */
#define ICE_TRIES        7u                /* Rc of RFC 8489 6.2.1 */
#define ICE_LAST_WAIT    16u               /* Rm of RFC 8489 6.2.1, in RTOs */
#define ICE_PATIENCE_NS  (39500 * ICE_MS)  /* RFC 8863 4 */
#define ICE_YIELD_NS     (200 * ICE_MS)    /* the controlling peer begins: see struct ice_agent */
#define ICE_GRACE_NS     (100 * ICE_MS)    /* better pairs may still succeed before we nominate */
#define ICE_CONSENT_NS   (5 * ICE_S)       /* RFC 7675 5.1, +-20 % */
#define ICE_CLAIMS       3u                /* so many nominations in a row: the peer has moved */
#define ICE_MOVE_NS      (1 * ICE_S)       /* before a second such change: each is a command */
#define ICE_RENEWS_NS    (4 * ICE_S)       /* later checks are of consent: 80 % of 5 s */
#define ICE_EXPIRY_NS    (30 * ICE_S)      /* RFC 7675 5.1 */
#define ICE_SEEK_NS      (120 * ICE_S)     /* shortest time between searches for another pair */
#define ICE_SILENT_NS    (12 * ICE_S)      /* two consent checks unanswered: others may take over */
#define ICE_KEEPALIVE_NS (15 * ICE_S)      /* Tr of RFC 8445 11 */
#define ICE_LEARNED      (ICE_REMOTES / 2) /* peer-reflexive candidates at most */
#define ICE_ERROR_BURST  8u
#define ICE_ERROR_NS     (100 * ICE_MS) /* one error response per this time */

enum pair_state { PAIR_FROZEN, PAIR_WAITING, PAIR_PROGRESS, PAIR_SUCCEEDED, PAIR_FAILED };

struct remote {
	struct endpoint addr;
	uint32_t priority, foundation;
	uint8_t component, type;
};

struct pair {
	uint64_t priority;
	uint64_t due_ns; /* of an open transaction: retransmit, or give up */
	uint64_t ok_ns;  /* last response */
	uint8_t txid[STUN_TXID_LEN];
	uint8_t local, remote, state, tries, component;
	bool open;       /* a transaction waits for its response */
	bool triggered;  /* check it before all others */
	bool nominating; /* the transaction carries USE-CANDIDATE */
	bool wanted;     /* we are controlled: the peer nominated it */
	bool prev;       /* the peer checks it with our previous name, and expects that name */
	uint8_t claims;  /* nominations in a row, none for another pair between them */
	uint32_t claim;  /* transaction of the last of these */
};

/* A request from a peer whose credentials are not known yet (RFC 8445 7.3). */
struct early {
	struct endpoint src;
	uint32_t priority, ufrag_hash;
	uint32_t id; /* its transaction */
	uint8_t local;
	bool use_candidate, prev;
};

struct selected {
	bool set, nominated;
	bool old;    /* under the credentials before the restart */
	bool prev;   /* as pair.prev */
	bool moved;  /* the peer has moved to a pair of lower priority in this round */
	bool renews; /* we are lite: the peer goes on with checks, which prove its consent */
	uint8_t local;
	struct endpoint remote;
	uint64_t priority;
	uint64_t since_ns; /* when it was selected */
	uint64_t ok_ns;    /* last proof of consent */
	uint64_t seek_ns;  /* earliest next search for another pair */
	uint64_t next_ns;  /* next consent check or keepalive */
	uint8_t txid[ICE_CONSENTS][STUN_TXID_LEN];
	uint8_t tx_count, tx_at; /* those in use; the next to be overwritten */
};

enum out_kind { OUT_CHECK, OUT_SUCCESS, OUT_ERROR, OUT_INDICATION };

struct waiting_out {
	struct endpoint dst;
	uint8_t txid[STUN_TXID_LEN];
	uint32_t priority;
	uint16_t error, request_len;
	uint16_t unknown[STUN_UNKNOWN_MAX];
	uint8_t unknown_count, kind, local;
	bool use_candidate, controlling, authentic, old, prev;
};

/* A name of ours, and the key of its password. */
struct own_name {
	char ufrag[ICE_UFRAG_LEN];
	struct stun_key key;
};

/* The credentials of one round of checks. prev: ours of the round before. Chromium may check new
 * pairs with that name, if it restarts ICE and has no answer yet, and then never changes it. */
struct generation {
	struct own_name own, prev;
	bool has_prev;
	char pwd[ICE_PWD_LEN]; /* of own */
	bool has_remote;
	uint16_t remote_ufrag_len;
	char remote_ufrag[SDP_ICE_TEXT_MAX];
	struct stun_key remote_key;
};

struct ice_agent {
	uint64_t now_ns;
	struct hmac_sha1_key seed;
	uint64_t drawn; /* random blocks taken from the seed */
	uint64_t tie_breaker, pace_ns;
	bool lite, remote_lite, controlling, last;
	bool failed, lost;
	uint8_t components, local_count, remote_count, pair_count, early_count;
	uint8_t remote_room, pair_room; /* entries allocated */
	uint8_t out_at, out_count;
	uint8_t error_tokens;
	uint8_t state;
	uint32_t changes;
	uint64_t error_ns;     /* the tokens are those of this time */
	uint64_t pace_next_ns; /* the next check may start */
	uint64_t start_ns;     /* of the round of checks */
	/* As the controlled side we only answer checks until then. Our checks would reach the peer
	 * before our SDP does. pion then takes our candidate for a peer-reflexive one, and
	 * nominates its pair 1 s later. */
	uint64_t yield_ns;
	uint64_t valid_ns[ICE_COMPONENTS]; /* first valid pair of the round; 0 = none */
	struct generation cur;
	struct generation *old; /* NULL: no selected pair uses it */
	struct selected selected[ICE_COMPONENTS];
	struct ice_local local[ICE_LOCALS];
	uint16_t local_pref[ICE_LOCALS];
	uint8_t local_foundation[ICE_LOCALS];
	/* Most calls have few candidates, so these lists grow as needed, up to ICE_REMOTES and
	 * ICE_PAIRS. An addition may move them. */
	struct remote *remote;
	struct pair *pair;
	struct early *early;     /* ICE_EARLY of them; NULL while none waits */
	struct waiting_out *out; /* ICE_OUT of them; NULL while none waits */
	uint32_t count[ICE_COUNT_N];
};

/* agent_draw.c: random bytes from the seed, at most HMAC_SHA1_LEN at a time. */
void ice_draw(struct ice_agent *a, void *out, size_t len);
/* Time from now on, randomised by +-20 %. */
uint64_t ice_draw_around(struct ice_agent *a, uint64_t ns);
void ice_new_credentials(struct ice_agent *a);
uint32_t ice_hash(const void *p, size_t len);

/* agent_out.c: false if the queue is full, or without memory. */
bool ice_push(struct ice_agent *a, const struct waiting_out *o);

/* agent_pairs.c */
void ice_advance(struct ice_agent *a, uint64_t now_ns);
uint32_t ice_local_priority(const struct ice_agent *a, uint8_t local, enum ice_candidate_type type);
void ice_prefer_locals(struct ice_agent *a);
/* The index, or -1. */
int ice_remote_find(const struct ice_agent *a, uint8_t component, const struct endpoint *e);
int ice_remote_add(struct ice_agent *a, const struct remote *r);
/* Adds it whatever its type. False: the list is full, or without memory. */
bool ice_remote_put(struct ice_agent *a, const struct remote *r);
int ice_pair_find(const struct ice_agent *a, uint8_t local, uint8_t remote);
int ice_pair_add(struct ice_agent *a, uint8_t local, uint8_t remote);
/* Pairs with all local candidates. */
void ice_pair_all(struct ice_agent *a, uint8_t remote);
void ice_pairs_reprioritise(struct ice_agent *a);
/* The pair to check next, or -1. */
int ice_pair_next(const struct ice_agent *a);
void ice_pairs_unfreeze(struct ice_agent *a, const struct pair *like);
void ice_round_clear(struct ice_agent *a);

/* agent_select.c */
void ice_forget_old(struct ice_agent *a);
void ice_update(struct ice_agent *a);
void ice_select(struct ice_agent *a, uint8_t component, const struct selected *s);
void ice_select_pair(struct ice_agent *a, const struct pair *p, bool nominated);
void ice_nominate(
	struct ice_agent *a); /* if controlling: nominates the pairs whose time has come */
uint64_t ice_nominate_ns(const struct ice_agent *a);
bool ice_may_expire(const struct ice_agent *a, const struct selected *s);
void ice_select_lite(struct ice_agent *a); /* both are lite (RFC 8445 8.2) */

/* agent_check.c */
void ice_check_start(struct ice_agent *a, struct pair *p);
void ice_check_again(struct ice_agent *a, struct pair *p);
void ice_check_switch(struct ice_agent *a, bool controlling);
void ice_check_response(struct ice_agent *a, uint8_t local, const struct endpoint *src,
	const struct stun_msg *m, const uint8_t *packet);

/* agent_take.c: what an authenticated request of the peer means for the checks. */
void ice_triggered(struct ice_agent *a, const struct early *e);

#endif
