/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An ICE agent of one leg (RFC 8445): full in both roles, or lite; consent (RFC 7675). Sans I/O:
 * packets, the clock and random bytes are arguments. Memory is bounded: ICE_REMOTES and ICE_PAIRS
 * limit its lists. They grow with what the peer signals and with authentic checks. A stranger's
 * packet allocates nothing that stays after ice_next() returned false.
 *
 * The owner calls ice_take() for each STUN packet and ice_tick() when ice_deadline() has passed.
 * After either call, and after each call that is given now_ns, it sends what ice_next() returns,
 * until that returns false, and compares ice_state() and ice_changes() with the last ones.
 *
 * now_ns is CLOCK_MONOTONIC. A call with an earlier time than before counts as the earlier call's
 * time. */
#ifndef ICE_AGENT_H
#define ICE_AGENT_H

#include "ice/stun.h"
#include "proto/sdp_ice.h"

#define ICE_COMPONENTS 2u
#define ICE_LOCALS     8u  /* local addresses, of all components together */
#define ICE_REMOTES    28u /* remote candidates of all components together */
#define ICE_LEARNABLE  6u  /* of these kept for peer-reflexive ones */
#define ICE_PAIRS      64u
#define ICE_EARLY      8u  /* remembered requests from before the answer */
#define ICE_OUT        16u /* packets that wait for ice_next() */
#define ICE_CONSENTS   8u  /* consent checks that may still be answered */
#define ICE_SEED_LEN   32u
#define ICE_UFRAG_LEN  8u  /* of ours: 48 random bits */
#define ICE_PWD_LEN    24u /* of ours: 144 random bits */
#define ICE_PACKET_MAX 512u
#define ICE_NEVER      UINT64_MAX

/* clang-format off */
/* X(id, text) */
#define ICE_STATES(X) \
	X(NEW, "new")               /* no remote credentials yet */ \
	X(CHECKING, "checking")     /* some component has no valid pair */ \
	X(CONNECTED, "connected")   /* each component has a valid pair, not all are nominated */ \
	X(COMPLETED, "completed")   /* each component has a nominated pair */ \
	X(FAILED, "failed")         /* no valid pair after 39.5 s (RFC 8863) */ \
	X(LOST, "consent lost")     /* do not send media; a restart or a new check may mend it */
/* X(id, text): fates of packets */
#define ICE_COUNTS(X) \
	X(REQUESTS, "requests")             /* answered with success */ \
	X(RESPONSES, "responses")           /* that matched a transaction */ \
	X(MALFORMED, "malformed")           /* not a binding message, or a wrong fingerprint */ \
	X(UNAUTHENTIC, "unauthenticated")   /* missing or wrong USERNAME or integrity */ \
	X(CONFLICTS, "role conflicts")      \
	X(STRAY, "stray responses")         /* no transaction, wrong address, wrong integrity */ \
	X(SUPPRESSED, "suppressed")         /* answers not sent: rate, queue, or size */ \
	X(BEYOND, "beyond limits")          /* candidates, pairs, early requests */
/* clang-format on */
enum ice_state {
#define X(id, text) ICE_##id,
	ICE_STATES(X)
#undef X
		ICE_STATE_N
};
enum ice_count {
#define X(id, text) ICE_COUNT_##id,
	ICE_COUNTS(X)
#undef X
		ICE_COUNT_N
};
const char *ice_state_name(enum ice_state s);
const char *ice_count_name(enum ice_count c);

/* A host candidate. Its number is its index in the configuration: ice_take(), struct ice_out and
 * struct ice_pair_selected use that number. */
struct ice_local {
	struct endpoint addr; /* sent to the peer; packets of this number leave from it */
	uint8_t component;    /* 1 or 2 */
};

struct ice_config {
	bool lite;
	bool controlling; /* we sent the offer. ice_set_remote() corrects it if one side is lite */
	uint8_t components; /* 1 or 2 */
	uint8_t local_count;
	struct ice_local local[ICE_LOCALS]; /* the most preferred first, families interleaved by the
					       agent (RFC 8421) */
	uint64_t pace_ns;                   /* Ta; 0 = 50 ms (RFC 8445 14.2); at least 5 ms */
};

/* The peer's SDP. Slices are copied. */
struct ice_remote {
	struct str ufrag, pwd;
	bool lite;
	bool last; /* no more candidates will come: not trickled, or end-of-candidates */
	const struct ice_candidate *candidate;
	uint32_t count;
};

struct ice_out {
	uint8_t local; /* number of the local candidate to send from */
	bool proved;   /* the answer to an authentic check from dst */
	struct endpoint dst;
	uint16_t len;
	uint8_t packet[ICE_PACKET_MAX];
};

struct ice_pair_selected {
	uint8_t local;
	bool nominated; /* false: valid, and media may be sent, but another may take its place */
	struct endpoint remote;
};

struct ice_agent; /* about 2 KiB, see ice/agent_int.h */
/* For the owner's allocation. It holds passwords. */
size_t ice_size(void);
/* Bytes of the agent and its lists. */
size_t ice_memory(const struct ice_agent *a);

/* Makes credentials and the tie-breaker from the seed: ICE_SEED_LEN random bytes, used
 * once. 0, or -EINVAL: no local candidate for a component, or bad numbers. Does not free the
 * lists of an agent that was in this memory before: call ice_fini() first. */
int ice_init(struct ice_agent *a, const struct ice_config *c, const uint8_t seed[ICE_SEED_LEN],
	uint64_t now_ns);
/* Wipes it, and frees its lists. Zeroed memory is fine. */
void ice_fini(struct ice_agent *a);
/* In place of the credentials that ice_init() or ice_restart() made: these are in SDP already. Call
 * it right after. */
void ice_set_credentials(
	struct ice_agent *a, const char ufrag[ICE_UFRAG_LEN], const char pwd[ICE_PWD_LEN]);

/* Ours, for SDP; valid until the next call other than these. */
struct str ice_ufrag(const struct ice_agent *a);
struct str ice_pwd(const struct ice_agent *a);
bool ice_is_lite(const struct ice_agent *a);
bool ice_is_controlling(const struct ice_agent *a);
/* Writes up to cap candidates of the components in use for SDP. Their number. */
uint32_t ice_local_candidates(const struct ice_agent *a, struct ice_candidate *out, uint32_t cap);

/* Offer or answer of the peer. The same credentials as before: its candidates are added, as by
 * trickling. Others: a new round of checks begins; a selected pair remains until the new round has
 * nominated one for its component. Call ice_restart() first where we answer a restart. 0, or
 * -EINVAL: credentials of a bad length. */
int ice_set_remote(struct ice_agent *a, const struct ice_remote *r, uint64_t now_ns);
/* The next ice_set_remote() is of another terminal, which answered the same offer: selected pairs
 * end. */
void ice_forget_peer(struct ice_agent *a, uint64_t now_ns);
/* The peer agreed to rtcp-mux: component 2 ends. */
void ice_use_one_component(struct ice_agent *a, uint64_t now_ns);
/* Makes new credentials (RFC 8445 9). The role stays. The selected pair continues under the old
 * credentials of both sides. */
void ice_restart(struct ice_agent *a, uint64_t now_ns);

/* A STUN packet (stun_is()) that arrived for local candidate number local from src. Never fails. */
void ice_take(struct ice_agent *a, uint8_t local, const struct endpoint *src, const uint8_t *packet,
	size_t len, uint64_t now_ns);
/* The next packet to send; false: none. */
bool ice_next(struct ice_agent *a, struct ice_out *out);
/* When ice_tick() has to be called; ICE_NEVER: not before another call. */
uint64_t ice_deadline(const struct ice_agent *a);
void ice_tick(struct ice_agent *a, uint64_t now_ns);

enum ice_state ice_state(const struct ice_agent *a);
/* A number that increases when a selected pair, the state or the role changes. */
uint32_t ice_changes(const struct ice_agent *a);
/* Of component 1 or 2: where media goes to, and the only source to believe. False: no valid pair,
 * or consent lost. */
bool ice_selected(const struct ice_agent *a, uint8_t component, struct ice_pair_selected *out);
/* Whether media may come from src: some valid pair has both ends. The peer may send on any valid
 * pair before nomination (RFC 8445 12.1). */
bool ice_is_valid_source(const struct ice_agent *a, uint8_t local, const struct endpoint *src);
uint32_t ice_counter(const struct ice_agent *a, enum ice_count c);

/* --- Restoring, so that a restarted gateway continues with consent checks --------------------- */

struct ice_saved_candidate {
	struct endpoint addr;
	uint32_t priority, foundation; /* foundation: a hash of its text */
	uint8_t component, type;
};

/* Plain numbers and text, no pointers. Holds secrets: seal it, wipe it. */
struct ice_saved {
	uint8_t version; /* ICE_SAVED_VERSION */
	uint8_t lite, remote_lite, controlling, components, last, has_remote;
	uint8_t remote_count, local_count;
	uint16_t remote_ufrag_len;
	uint64_t tie_breaker; /* 0: ice_restore() draws one */
	char ufrag[ICE_UFRAG_LEN], pwd[ICE_PWD_LEN];
	/* Our name before the last ICE restart, which the peer may still use. */
	bool has_prev;
	char prev_ufrag[ICE_UFRAG_LEN];
	struct stun_key prev_key; /* stands for its password */
	char remote_ufrag[SDP_ICE_TEXT_MAX];
	struct stun_key remote_key; /* stands for the peer's password */
	struct {
		uint8_t set, nominated, local;
		struct endpoint remote;
	} selected[ICE_COMPONENTS];
	struct ice_local local[ICE_LOCALS];
	struct ice_saved_candidate remote[ICE_REMOTES];
};
#define ICE_SAVED_VERSION 1u

/* In place of ice_init(). The seed is a new one. Selected pairs get 30 s to prove consent.
 * Unfinished checks begin again. 0, or -EINVAL: impossible content; then only ice_fini() may
 * follow. Without memory, candidates are missing. */
int ice_restore(struct ice_agent *a, const struct ice_saved *s, const uint8_t seed[ICE_SEED_LEN],
	uint64_t now_ns);

#endif
