/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a call is made of, for the files of this room only. A change is made on a copy (call_clone()): negotiate edits the
 * copy, apply takes what it needs, and only then it replaces the original. So an error needs no undoing of state. */
#ifndef CALL_MODEL_H
#define CALL_MODEL_H

#include "call/call.h"
#include "proto/sdes.h"

#define CALL_MAX_SIDES   16u
#define CALL_MAX_ALIASES 4u
#define LEG_MAX_LINES    16u /* a=crypto lines of a terminal that are looked at */
#define SIDE_NONE        UINT8_MAX
#define SLOT_UNSET       UINT32_MAX /* apply is to take a key slot */

enum key_life { LIFE_LEFT, LIFE_NEARLY_OVER, LIFE_OVER };

struct our_key { /* a key of ours towards a terminal, by which it receives */
	struct sdes s;
	bool used; /* was in force once: its packet indexes must go on, or it must never be used again */
};

/* One media (m-line) of one side. Lives in the keystore: holds keys. */
struct leg {
	/* what is to be held, and what is held: apply makes them one */
	bool used, has_port, has_ctx;
	struct relay_port port;
	uint32_t ctx;
	uint32_t rx_slot[SDES_MAX_KEYS], tx_slot;
	enum key_life rx_told[SDES_MAX_KEYS], tx_told; /* what was said of their lifetime */

	/* in force since the last answer */
	bool active; /* answered, rejected by nobody */
	enum sdp_proto proto;
	enum sdp_dir dir;
	struct endpoint remote, rtcp_remote;
	bool mux;
	uint64_t events[2]; /* bit per payload type: telephone events, of both sides */
	struct sdes rx, tx; /* SUITE_PLAIN: RTP */
	struct srtp_master rx_more[SDES_MAX_KEYS - 1];
	char kind[16]; /* "audio" */

	/* for the next commit only */
	bool rx_new, tx_new, relearn;

	/* all keys that we told this terminal, by suite */
	struct our_key ours[SUITE_COUNT];
	uint32_t ours_n;

	/* as the terminal said in its last offer: waits for the answer */
	struct leg_said {
		bool relayed, rejected, mux;
		enum sdp_proto proto;
		enum sdp_dir dir;
		struct endpoint remote, rtcp_remote;
		struct sdes line[LEG_MAX_LINES]; /* those that we could accept */
		uint32_t lines;
		struct sdes_bag bag; /* their further keys */
		uint64_t events[2];
	} said;

	/* as we last offered it to the terminal: its answer must fit */
	struct leg_asked {
		bool mux;
		enum sdp_proto proto;
		uint8_t suite[SUITE_COUNT]; /* a=crypto lines, in order */
		uint32_t suites;
	} asked;

	/* as the worker has it */
	bool committed;
	struct media_ctx_cfg ctx_cfg;
	struct media_stream_cfg rtp_cfg, rtcp_cfg;
};

struct side {                               /* one party */
	bool gone;                          /* stays as a gap: indexes of sides never change */
	struct str tag, via_branch, label;  /* heap; tag is empty until the answer tells it */
	struct str alias[CALL_MAX_ALIASES]; /* tags of earlier answers */
	uint32_t aliases;
	uint8_t peer; /* index of the side it talks to */
	bool has_local;
	uint8_t local; /* index of the local address */
	bool asymmetric, media_handover;
	uint8_t gate;                   /* MEDIA_GATE_*: of what comes from it, by ng command */
	uint32_t mux_flags, osrtp;      /* of its last offer: the answer needs them */
	bool offer_open;                /* no answer since its last offer */
	uint64_t out_version, out_hash; /* of the last SDP written to it */
	uint32_t legs;
	struct leg *leg[SDP_MAX_MEDIA];
};

struct call {
	struct call *chain, *prev, *next; /* table.c */
	uint64_t hash;
	struct str id, metadata; /* heap */
	uint32_t worker;
	uint64_t created_ns, signal_ns, delete_ns; /* delete_ns: 0 = not to be deleted */
	bool answered;
	bool emergency; /* once said, for good */
	uint8_t tos;
	bool strict_source;
	enum media_learning learning;
	uint32_t sides;
	struct side *side[CALL_MAX_SIDES];
};

/* --- Memory of legs: pages that are locked and left out of core dumps ----------------------------------------- */

struct keystore {
	void *chunk; /* list */
	void *free;  /* list */
	uint64_t live;
};

struct leg *keystore_take(struct keystore *k);          /* zeroed, or NULL */
void keystore_put(struct keystore *k, struct leg *leg); /* wipes */
void keystore_fini(struct keystore *k);

/* --- Model ------------------------------------------------------------------------------------------------------ */

struct call *call_new(struct str id, uint64_t now_ns);
/* A deep copy; NULL without memory. Flags for the next commit are cleared. */
struct call *call_clone(struct keystore *k, const struct call *c);
/* Memory only: whoever holds resources gives them back first. */
void call_free(struct keystore *k, struct call *c);

/* 0 or -ENOMEM: a heap copy instead of what was there. */
int str_replace(struct str *to, struct str from);

/* Index or SIDE_NONE. By tag or earlier tag. */
uint8_t call_side_by_tag(const struct call *c, struct str tag);
bool side_has_tag(const struct side *s, struct str tag);
/* SIDE_NONE without memory or when there are too many. */
uint8_t call_side_add(struct call *c, struct str tag, struct str via_branch);
/* A leg for this m-line, made if there is none. NULL without memory. */
struct leg *side_leg(struct keystore *k, struct side *s, uint32_t media);
static inline struct leg *side_leg_get(const struct side *s, uint32_t media)
{
	return media < s->legs ? s->leg[media] : NULL;
}

/* --- Call-IDs --------------------------------------------------------------------------------------------------- */

struct call_table {
	uint8_t seed[16];
	struct call **bucket;
	uint32_t mask, count;
	struct call *first, *last; /* in order of creation */
};

int call_table_init(struct call_table *t);
void call_table_fini(struct call_table *t);
struct call *call_table_find(const struct call_table *t, struct str id);
void call_table_add(struct call_table *t, struct call *c);
void call_table_remove(struct call_table *t, struct call *c);
/* neu takes old's place. */
void call_table_replace(struct call_table *t, struct call *old, struct call *neu);

/* --- Applying (apply.c) ----------------------------------------------------------------------------------------- */

/* Takes what next wants and does not have. On error nothing of it is left. */
int apply_take(const struct relay *relay, const struct call *prev, struct call *next);
/* Gives back what apply_take() took: what next holds and prev does not. */
void apply_undo(const struct relay *relay, const struct call *prev, struct call *next);
/* Tells the worker all that differs, at once or not at all. After success what prev holds and next does not is given back. */
int apply_commit(const struct relay *relay, struct pool *p, const struct call *prev,
	struct call *next, uint64_t now_ns);
/* Gives back everything. */
void apply_release_all(const struct relay *relay, struct call *c);

/* --- Gates (gate.c) --------------------------------------------------------------------------------------------- */

/* Sets or clears a MEDIA_GATE_* of the sides that the request means. NULL, or the error-reason: nobody is meant. */
const char *gate_set(struct call *c, const struct ng_request *r, uint8_t bit, bool on);

/* --- Reply trees (query.c) -------------------------------------------------------------------------------------- */

void query_tree(const struct relay *relay, struct pool *p, const struct call *c,
	struct str from_tag, struct str to_tag, struct ngval *dict);

/* --- A call in a few lines (view.c) ------------------------------------------------------------------------------ */

bool view_matches(const struct call *c, struct str part);
void view_call(const struct relay *relay, struct pool *p, const struct call *c, struct ngval *list);

#endif
