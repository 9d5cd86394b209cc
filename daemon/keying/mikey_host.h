/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What MIKEY has of this process: identities, the replay memory, exchanges that wait for their
 * second half, counters. Legs refer to exchanges by number; one that was forgotten makes the answer
 * fail. They are not saved: after a restart, an answer to an offer from before it is refused.
 * Control thread only. */
#ifndef KEYING_MIKEY_HOST_H
#define KEYING_MIKEY_HOST_H

#include "keying/mikey_config.h"

#define MIKEY_TALKS_MAX    4096u   /* exchanges of all calls; further ones replace spent ones */
#define MIKEY_TALKS_CALL   128u    /* of one call; its oldest is forgotten */
#define MIKEY_REPLAYS      131072u /* messages remembered; one peer has a third at most */
#define MIKEY_TALK_SECONDS 3600u   /* after which an exchange without an answer is forgotten */
#define MIKEY_KEEP_SECONDS 180u    /* after the answer, while keys are kept for repeated answers */

/* The operator's default, if a request names none. */
enum mikey_use { MIKEY_USE_OFF, MIKEY_USE_ACCEPT, MIKEY_USE_OFFER, MIKEY_USE_REQUIRE };

struct mikey_talk { /* in secure memory */
	struct mikey_talk *next, *older, *newer;
	uint64_t id, born_ns; /* times are of mikey_clocks.mono */
	uint64_t call;        /* hash of its Call-ID */
	/* Time of the answer; 0: none yet. For a responder: the time from which a leg uses the
	 * keys, so no other leg may. */
	uint64_t answered_ns;
	bool responder;
	bool spent;    /* its keys were wiped; the response is still there */
	uint8_t media; /* m-lines that it has keys for */
	/* For an initiator: a response was checked. The offer's unit of the rate limit covered it;
	 * each further check needs one of its own. */
	bool tried;
	/* The response that gave the keys, and whose it is. */
	uint64_t got; /* hash, 0: none */
	struct mikey_id answerer;
	/* Number of the m-line, from 1, that has the keys of each place; 0: none yet. */
	uint8_t line[MIKEY_MEDIA_MAX];
	struct mikey_run run;
	struct mikey_keys keys;
	size_t len;
	uint8_t *response; /* R_MESSAGE, outside secure memory */
};

struct mikey_clocks {           /* nanoseconds */
	uint64_t (*real)(void); /* since 1970, for messages */
	/* For ages and rates: setting the real clock neither ends nor prolongs an exchange. */
	uint64_t (*mono)(void);
};

#define MIKEY_CHECK_SECONDS 86400u /* between checks of the same configuration */

struct mikey_host {
	struct mikey_config *config; /* a reload replaces it */
	uint64_t check_ns;           /* mono time of its next check; 0: at once */
	struct mikey_replay *replay;
	enum mikey_use use;
	struct mikey_clocks clock;
	/* Exchanges that ended, by [MIKEY_MODE_COUNT: unknown][initiator][enum mikey_failure]. */
	uint64_t count[MIKEY_MODE_COUNT + 1][2][MIKEY_FAIL_COUNT];
	uint8_t hash_key[16];
	struct mikey_talk *bucket[256], *oldest, *newest;
	uint32_t talks;
	struct mikey_budget budget;
};

/* Takes config over. 0 or -ENOMEM. */
int mikey_host_init(struct mikey_host *h, struct mikey_config *config, enum mikey_use use,
	const struct mikey_clocks *clock);
void mikey_host_fini(struct mikey_host *h);
/* Takes config over, in place of the one before. */
void mikey_host_reload(struct mikey_host *h, struct mikey_config *config);

/* Call it each second, and after a reload. Runs mikey_config_check() for a new configuration, and
 * then once a day. */
void mikey_host_check(struct mikey_host *h, void (*warn)(void *arg, const char *line), void *arg);

/* Keeps timestamps over restarts; see mikey_replay_keep(). */
int mikey_host_keep(struct mikey_host *h, const char *path);

/* Another process was active until now: refuses messages that it may have accepted. */
void mikey_host_take_over(struct mikey_host *h);

/* Whether the limits allow an exchange with public keys for the peer now (mikey_budget.h). */
bool mikey_host_afford(struct mikey_host *h, const struct mikey_peer *peer, bool emergency);

/* A number for text that terminals choose. It holds until the process ends, and nobody else can
 * compute it, so nobody can make another text with the same number. */
uint64_t mikey_host_hash(const struct mikey_host *h, struct str text);

/* Allocates an exchange of a call, with this room for the response. The host does not know it
 * before mikey_talk_add(). Forgets no other exchange. MIKEY_OK, MIKEY_FAIL_FULL or
 * MIKEY_FAIL_INTERNAL. */
enum mikey_failure mikey_talk_create(
	struct mikey_talk **out, struct mikey_host *h, struct str call_id, size_t room);
/* Frees an exchange that was not added. NULL is fine. */
void mikey_talk_destroy(struct mikey_talk *t);
/* Hands the exchange to the host under this number, which is not 0. Cannot fail, because
 * mikey_talk_create() checked the room. Frees the memory that the response does not use. May
 * replace the oldest exchange of the same call, or one of another call whose keys were wiped. */
void mikey_talk_add(struct mikey_host *h, struct mikey_talk *t, uint64_t id);
/* Each second: wipes keys that are no longer needed, and forgets exchanges without an answer. */
void mikey_host_tick(struct mikey_host *h);
/* NULL: none, or forgotten. */
struct mikey_talk *mikey_talk_find(struct mikey_host *h, uint64_t id);

void mikey_host_count(
	struct mikey_host *h, enum mikey_mode mode, bool initiator, enum mikey_failure f);

#endif
