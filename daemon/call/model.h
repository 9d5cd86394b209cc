/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call as it lies in memory: inside call/ only. */
#ifndef CALL_MODEL_H
#define CALL_MODEL_H

#include "call/negotiate.h"

#define CALL_MAX_TAGS 8 /* tag and aliases of a side; the oldest alias makes room */

struct call_side {
	char *tag[CALL_MAX_TAGS]; /* the latest first; n = 0: not known yet */
	uint32_t n;
	uint64_t created_ns;
	uint64_t sdp_version; /* latest that we wrote to it */
	uint64_t sdp_hash;
};

struct held { /* what an m-line holds of the packet side */
	bool has_port[2], has_ctx[2];
	struct relay_port port[2];
	uint32_t ctx[2], rx_key[2], tx_key[2]; /* key slots, 0 = none */
};

struct call {
	struct call *next_hash, *next, *prev;
	uint64_t hash;
	char *id;
	size_t id_len;
	uint32_t worker;
	struct nego nego;
	struct held *held; /* [nego.count] */
	struct call_side side[2];
	uint64_t created_ns, signal_ns;
	uint64_t delete_ns; /* 0 = stays */
};

struct calls {
	struct call_policy policy;
	struct relay relay;
	uint8_t seed[16];
	struct call **bucket;
	uint32_t mask;
	struct call *first;  /* all calls, a ring without an end mark */
	struct call *cursor; /* where the next tick goes on */
	struct calls_counters count;
};

struct call *calls_find(const struct calls *c, struct str id);
/* Index of the side with this tag, or -1. */
int call_side_find(const struct call *call, struct str tag);
void call_end(struct calls *c, struct call *call);

/* apply.c: what is needed for next and not held yet is taken; *out is the new set. On error nothing is held that was not
 * before. Then either commit (on error: nothing changed, to be followed by drop), or drop. */
int apply_take(const struct relay *r, uint32_t worker, const struct nego *old,
	const struct held *held, const struct nego *next, struct held **out);
int apply_commit(const struct relay *r, uint32_t worker, const struct nego *old,
	const struct held *held, const struct nego *next, const struct held *now, uint64_t now_ns);
/* Give back what is in a and not in b (which may be NULL, or shorter). */
void apply_release(const struct relay *r, uint32_t worker, const struct held *a, uint32_t n,
	const struct held *b, uint32_t n_b);

/* query.c */
void call_describe(struct calls *c, const struct call *call, struct pool *p, struct ngval *dict);

#endif
