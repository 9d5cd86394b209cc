/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of Redis. */
#ifndef PERSIST_REDIS_INT_H
#define PERSIST_REDIS_INT_H

#include "base/log.h"
#include "call/unsaved.h"
#include "persist/redis.h"
#include "persist/redis_crypt.h"

#define REDIS_PREFIX   "xcipher:call:"
#define REDIS_NAME_MAX (sizeof(REDIS_PREFIX) + SAVE_ID_MAX + 24)

/* A stored call. */
struct redis_entry {
	struct redis_entry *next, *chain;
	uint32_t walk; /* the last walk that found it, or during which it was published */
	bool heard;
	struct str id, whole, state; /* heap; sealed */
};

/* Replaces *to by a heap copy; false without memory. */
bool redis_str_set(struct str *to, struct str from);
void redis_entry_free(struct redis_entry *e);
struct redis_entry *redis_entry_new(struct str id, struct str whole, struct str state);

#define REDIS_ID_LEN 16

enum redis_mode {
	REDIS_RESTORING, /* restores calls before writing anything */
	REDIS_ACTIVE,    /* writes every change */
	REDIS_FOLLOWING, /* another node is active */
};

struct redis_scan { /* one walk through all stored calls */
	bool running, failed, asked,
		again; /* asked: a page is requested; again: restart after it arrives */
	uint32_t gets; /* requests without a reply yet */
	uint32_t walk; /* counts */
	uint32_t pages;
	char cursor[24];
};

#define REDIS_NONCE_LEN  16
#define REDIS_SAYS_CLAIM 'c'
#define REDIS_SAYS_ASK   'q'

struct redis_claim { /* claim to be the active node, or question for such a claim */
	uint8_t id[REDIS_ID_LEN];
	uint64_t number;
	uint8_t nonce[REDIS_NONCE_LEN]; /* nonce of the question that a claim answers */
};

struct redis_proof {
	bool proved; /* the active node answered the question */
	/* its salt, and the counter of its last accepted message */
	struct redis_crypt_origin active;
	bool pending; /* a question was published and not answered yet */
	uint8_t nonce[REDIS_NONCE_LEN];
	uint64_t began_ns, again_ns, failed_ns;
	uint64_t answers_ns; /* start of the second that answers counts in */
	uint32_t answers;
};

struct redis_mirror { /* calls of another node, by Call-ID */
	struct redis_entry **bucket;
	uint32_t count, lost;
	uint8_t seed[16];
};
#define REDIS_MIRROR_MAX 131072u

struct redis {
	struct redis_config cfg;
	struct redis_crypt *crypt;
	struct redis_tls *tls;
	struct redis_link *link, *read,
		*sub; /* read: the same as link, unless calls are read from another server; sub:
		       * subscriptions */
	enum redis_mode mode;
	struct loop_timer *pump, *tick, *deadline;
	struct redis_clock {
		bool pending, refused, differs;
		uint64_t asked_ns; /* CLOCK_MONOTONIC */
		int64_t ahead_ns;  /* lead over CLOCK_REALTIME at the last reading */
	} clock;
	uint64_t pumped_ns; /* CLOCK_MONOTONIC of the last run of on_pump() */
	char channel[32], owners[32];
	/* Ownership: which node is active (redis_owner.c). */
	uint8_t id[REDIS_ID_LEN];
	uint64_t number; /* number of our claim, or the highest known */
	uint64_t renew_ns;
	bool claimed, claim_due; /* we are active; the claim is not sent yet */
	bool decided;            /* no other node is active, as far as Redis knows */
	bool unsure, give_way;   /* unsure: asked without answer, so nothing is written;
				  * give_way: another node is active */
	bool listening;          /* subscribed to the channel of claims */
	bool scan_due;           /* read all calls as soon as the active node is known */
	struct redis_proof proof;
	uint64_t leave_ns; /* deadline for going to standby; 0 = not scheduled */
	/* Reading back. */
	struct redis_scan scan;
	struct redis_entry *first, *last; /* calls that wait to be restored */
	uint32_t queued;
	bool scanned; /* a walk has ended */
	uint64_t began_ns;
	uint64_t restored, skipped, restoring_skipped;
	bool waiting; /* redis_wait() */
	/* Writing. */
	bool trouble; /* Redis returns errors: retries with one write at a time */
	uint64_t pause_ns, retry_ns;
	uint64_t written, errors, disconnects;
	bool told_down, lost_keys; /* keys had disappeared, and not all are written again */
	uint64_t lost_key_ns,
		/* when a key had disappeared; until when keys are removed before writing */
		force_ns;
	struct sbuf plain, sealed;
	/* Following. */
	struct redis_mirror mirror;
	uint64_t refused;  /* values and messages that were not authentic, or repeated */
	uint64_t too_long; /* logged calls with a too long Call-ID */
	struct log_limit log, refused_log, told_log, lost_log, too_long_log;
};

/* The name that a value is sealed under: "xcipher:DB:call:ID/c", "/s", or "/d" for a removal. */
struct str redis_name(const struct redis *r, char out[REDIS_NAME_MAX], struct str id, char field);
/* Counts and logs a value that was refused because it is not authentic. */
void redis_refused(struct redis *r, const char *what);
/* Logs an error reply that does not stop the writing of calls. */
void redis_told_error(struct redis *r, struct str text);
void redis_on_published(void *arg, void *priv, const struct resp *reply);

const struct redis_server *redis_writing_to(const struct redis *r);

/* redis_write.c */
const char *redis_address(const struct redis *r, char out[ENDPOINT_STRLEN]);
/* Sends as many commands as may be pending. */
void redis_write_some(struct redis *r);
/* Writes all calls again, once a second at most, if keys were gone. */
void redis_write_lost(struct redis *r);
/* Logs calls that cannot be written. */
void redis_write_too_long(struct redis *r);

/* redis_clock.c */
/* Reads the clock of Redis, once a second at most. */
void redis_clock_ask(struct redis *r);
/* The reply to TIME, [seconds, microseconds] since 1970, in nanoseconds. False: it is not one, or
 * later than the year 2100. */
bool redis_read_time(uint64_t *ns, const struct resp *reply);

/* redis_restore.c */
void redis_scan_start(struct redis *r);
/* Restores waiting calls while there is room; true when all are restored and no more will come. */
bool redis_restore_some(struct redis *r);
void redis_restore_add(struct redis *r, struct redis_entry *e);
void redis_restore_drop(struct redis *r);

/* redis_owner.c */
void redis_owner_init(struct redis *r);
/* Claims to be the active node. */
void redis_owner_claim(struct redis *r);
void redis_owner_renew(struct redis *r);
/* Gives up the claim, by command. */
void redis_owner_release(struct redis *r);
/* The subscription has begun: claims and answers are received from now on. */
void redis_owner_listening(struct redis *r);
void redis_owner_ask(struct redis *r);
/* A claim or a question was received. */
void redis_owner_heard(struct redis *r, struct str text);
/* Outcome of a proof. new_life: another node or process than the last one proved. */
void redis_owner_proved(struct redis *r, const struct redis_claim *c, bool new_life);
void redis_owner_unproved(struct redis *r);

/* redis_proof.c */
/* Appends to out. kind: REDIS_SAYS_.... 0 or -errno. */
int redis_claim_write(struct redis *r, struct sbuf *out, char kind, const struct redis_claim *c);
/* Returns the kind, or -errno if text is not authentic. from: zero if nothing is sealed. */
int redis_claim_read(
	struct redis *r, struct redis_claim *out, struct redis_crypt_origin *from, struct str text);
void redis_proof_start(struct redis *r);
/* Call periodically: repeats the question, or gives up. */
void redis_proof_step(struct redis *r);
/* True if this claim answers our question; then reports the outcome by redis_owner_proved(). */
bool redis_proof_check(
	struct redis *r, const struct redis_claim *c, const struct redis_crypt_origin *from);
/* Whether it was sealed by the process that proved to be the active node. */
bool redis_proof_known(const struct redis *r, const struct redis_crypt_origin *from);
/* The same, and newer than all accepted messages; then counts it as accepted. */
bool redis_proof_is_next(struct redis *r, const struct redis_crypt_origin *from);
void redis_proof_answer(struct redis *r, const struct redis_claim *question);

/* redis_follow.c: the connection "sub" always receives claims. On standby it receives the active
 * node's calls, too. */
int redis_follow_start(struct redis *r);
void redis_follow_stop(struct redis *r);
/* Reads all calls. The subscription has begun, so no change is missed. */
void redis_follow_scan(struct redis *r);
int redis_listen(struct redis *r);
/* Puts an authentic value into the mirror, or removes the call (field 'd'). heard: the value was
 * published, so it is newer than one found by a walk. */
void redis_mirror_put(struct redis *r, struct str id, char field, struct str value, bool heard);
/* The walk found this call, but its value was refused: keep what the mirror has. */
void redis_mirror_keep(struct redis *r, struct str id);
/* Whether value was sealed with our key as this field of this call. */
bool redis_is_genuine(struct redis *r, struct str id, char field, struct str value);
/* Removes calls that this walk did not find. */
void redis_mirror_sweep(struct redis *r);
void redis_mirror_clear(struct redis *r);
/* Queues all mirrored calls for restoring. */
void redis_mirror_hand_over(struct redis *r);

#endif
