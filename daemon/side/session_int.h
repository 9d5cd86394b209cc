/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of a session. */
#ifndef SIDE_SESSION_INT_H
#define SIDE_SESSION_INT_H

#include "side/session.h"

#define COMPONENTS 2u

struct component {
	struct dtls *dtls;        /* NULL: none */
	struct endpoint proven;   /* without ICE: a source that returned a cookie */
	uint64_t proven_ns;       /* since when */
	uint64_t turn_ns[2];      /* no other source before that, by [signalled] */
	struct endpoint dst;      /* where DTLS goes to, family 0: not known yet */
	struct endpoint told;     /* the last pair that was reported */
	uint8_t at, told_at;      /* local addresses of dst and told */
	bool keys_told, end_told; /* of the association */
	uint8_t retries;          /* fresh associations in place of failed ones */
	uint8_t failure;          /* enum dtls_failure of the first that failed, to be reported */
	/* When its handshake began; 0: it did not. counted: its result was. */
	uint64_t began_ns;
	bool counted;
};

/* The terminal's ICE credentials and candidates. Allocated at exactly their size. */
struct session_ice_peer {
	char *ufrag, *pwd; /* NULL: not known yet */
	struct ice_candidate *candidate;
	uint32_t candidates;
	bool last;
};

/* Members of struct session_cfg that later orders and packets need, under the same names. */
struct session_kept {
	bool mux;
	struct endpoint remote[2];
	struct {
		uint8_t generation, peer;
	} ice;
	struct {
		bool on;
		uint8_t role;
		uint32_t association, suites;
		struct dtls_fingerprints *prints; /* NULL: none known, or no handshake needs them */
	} dtls;
	struct session_zrtp zrtp;
};

/* Candidates of an ICE restart that waits for its answer. */
struct session_ice_next {
	char ufrag[SDP_ICE_TEXT_MAX + 1];
	struct ice_candidate candidate[SDP_ICE_CANDIDATES];
	uint32_t candidates;
};

struct exchange {               /* of ZRTP, for RTP */
	struct zrtp *zrtp;      /* NULL: none */
	struct endpoint proven; /* a source that may take part; family 0: none yet */
	uint64_t turn_ns;       /* no other source before that */
	struct endpoint dst;    /* where its packets go to, family 0: not known yet */
	uint8_t at;             /* local address that they are sent from */
	bool keys_told;         /* reported */
	uint8_t told;           /* enum zrtp_state that was reported */
	uint64_t began_ns;      /* the first packet of the peer; 0: none */
	uint8_t counted;        /* enum zrtp_state that is in the counters: its result */
	/* Waits until then for another exchange of its party; 0: does not wait. */
	uint64_t wait_ns;
	/* Results of the exchange whose secret it uses, or of the restored one itself. */
	struct session_said first;
	bool kept;           /* its secrets were put into the cache */
	uint8_t relayed[32]; /* SAS hash last sent by SASrelay */
	/* Of a stream that the terminal begins in mid-call, with the secret of zrtp; NULL: none. */
	struct zrtp *again;
	uint64_t again_ns;       /* none before that */
	uint64_t again_began_ns; /* its first packet */
	uint64_t again_until_ns; /* its end, if nothing more arrives */
	/* Of the last such stream with keys, which are those in use; NULL: zrtp's are. */
	struct zrtp *later;
	bool later_told;
	uint8_t later_counted; /* as counted */
};

struct session {
	struct session_env *env;
	struct session_kept cfg;
	uint8_t locals; /* addresses in local: those of the agent */
	struct endpoint local[SESSION_LOCALS][2];
	struct dtls_cert *cert; /* of new associations */
	struct ice_agent *ice;  /* NULL: not in use */
	struct session_ice_peer ice_peer;
	struct session_ice_next *ice_next; /* of a restart that was offered, or NULL */
	uint8_t ice_told;                  /* enum ice_state that was reported */
	uint8_t ice_counted;               /* enum ice_state that was counted, + 1; 0: none */
	uint32_t ice_counts[ICE_COUNT_N];  /* the agent's counters at the last report */
	struct component part[COMPONENTS];
	struct exchange exchange;
	uint32_t over;              /* number of a restored association, whose handshake is over */
	uint8_t rtp_suite;          /* its RTP suite, if the RTCP handshake has to be repeated */
	uint32_t zrtp_over;         /* number of a restored exchange */
	bool broken, broken_told;   /* no memory for a part */
	struct session *party_next; /* next in its bucket of session_env.party */
	struct session **party;     /* head of that bucket; NULL: in none */
};

static inline uint32_t session_components(const struct session *s)
{
	return s->cfg.mux ? 1 : COMPONENTS;
}

static inline bool session_is_client(const struct session *s)
{
	return s->cfg.dtls.role == DTLS_ROLE_CLIENT;
}

/* Whether the association was restored, so that its handshake is over. */
static inline bool session_is_over(const struct session *s)
{
	return s->over && s->over == s->cfg.dtls.association;
}

/* The number that the ICE agent knows a local port by. */
static inline uint8_t session_port(uint8_t at, bool rtcp)
{
	return (uint8_t)(2 * at + rtcp);
}

/* Destination of component k by ICE, and *at: the local address to send from. Family 0: none. */
static inline struct endpoint session_ice_selected(const struct session *s, uint32_t k, uint8_t *at)
{
	struct ice_pair_selected pair;

	if (!ice_selected(s->ice, (uint8_t)(k + 1), &pair))
		return (struct endpoint){0};
	*at = pair.local / 2;
	return pair.remote;
}

/* session_ice.c: adapts the agent to the order. before, had_two: the state before it. 0 or
 * -errno. */
int session_ice_set(struct session *s, const struct session_order *order,
	const struct session_kept *before, bool had_two, uint64_t now_ns);
void session_ice_drop(struct session *s);
/* Called first with a new order. Stores its candidates and credentials of the terminal. Candidates
 * of an offered restart wait until its credentials come into force. 0 or -ENOMEM. */
int session_ice_keep(struct session *s, const struct session_ice *said);
/* Forgets the terminal's credentials and candidates. */
void session_ice_forget(struct session *s);

/* session_zrtp.c: adapts the exchange to s->cfg.zrtp. 0 or -errno. */
int session_zrtp_set(
	struct session *s, const struct session_kept *before, const struct session_zrtp_past *past);
void session_zrtp_drop(struct session *s);
void session_zrtp_proceed(struct session *s, uint64_t now_ns);
void session_zrtp_take(struct session *s, const struct session_in *in, uint64_t now_ns);
/* SRTP came under the keys of this exchange. */
void session_zrtp_settle(struct session *s, uint32_t exchange, uint64_t now_ns);
void session_zrtp_tick(struct session *s, uint64_t now_ns);
uint64_t session_zrtp_deadline(const struct session *s);
bool session_zrtp_next(struct session *s, struct session_out *out);
bool session_zrtp_event(struct session *s, struct session_event *out);
struct session_said session_zrtp_said(const struct session *s);
/* Sets the secrets of an event. */
void session_zrtp_secrets(const struct session *s, struct session_event *out);

/* session_again.c: a stream that the terminal begins in mid-call. _take: true if it took the
 * packet. _proceed: puts an exchange with keys in the place of the last one. */
void session_again_drop(struct session *s);
/* Restores the stream in use of an earlier process. A damaged one is left out. 0 or -ENOMEM. */
int session_again_restore(struct session *s, const struct zrtp_secret *secret);
bool session_again_take(struct session *s, const struct session_in *in, uint64_t now_ns);
void session_again_tick(struct session *s, uint64_t now_ns);
void session_again_proceed(struct session *s, uint64_t now_ns);
uint64_t session_again_deadline(const struct session *s);
bool session_again_event(struct session *s, struct session_event *out);
/* Of the stream whose keys are in use. */
enum zrtp_state session_again_state(const struct session *s);

/* session_party.c: connects the exchanges of one terminal in a call (RFC 6189 4.4.3). */
void session_party_join(struct session *s);
void session_party_leave(struct session *s);
/* The exchange whose secret this one uses, or waits for. NULL: none. */
const struct session *session_party_first(const struct session *s);

/* session_count.c: adds the changes since the last call to the counters of the environment. */
void session_count(struct session *s, uint64_t now_ns);
/* Counts a terminal that answered no Hello. */
void session_count_absent(struct session *s);
/* Counts the end of the agent. */
void session_count_ice_end(struct session *s);

#endif
