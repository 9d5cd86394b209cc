/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Periodic work on calls: timeouts, key lifetimes, debug lines. */
#ifndef CALL_TICK_H
#define CALL_TICK_H

#include "call/call.h"
#include "call/timeout_report.h"
#include "call/trace.h"

struct call_key_notice {
	struct str call_id, tag; /* of the terminal */
	uint32_t media;          /* from 1 */
	bool ours;               /* our sending key, or one of the terminal's */
	bool expired;            /* 100 % of its lifetime is used up; otherwise 90 % */
	uint64_t lifetime;       /* packets, as signalled; 0 = RFC 3711's limit */
};

struct call_handover { /* a terminal's confirmed source was replaced by another */
	struct str call_id, tag;
	uint32_t media; /* from 1 */
	bool rtcp;
	uint32_t times;           /* since the last notice; 0 = none, as this reports a short tag */
	bool short_tag, accepted; /* its SRTCP has tags of 32 bits; they are accepted */
	struct media_handover last;
	struct endpoint remote; /* destination of media now */
};

/* Called by calls_tick(), once per key and stage. */
void calls_on_key_life(
	struct calls *c, void (*notice)(void *arg, const struct call_key_notice *n), void *arg);

/* Called by calls_tick(), once per stream and second at most. */
void calls_on_handover(
	struct calls *c, void (*handover)(void *arg, const struct call_handover *h), void *arg);

/* Called by calls_tick() just before a call ends by a timeout. t is valid until it returns. */
void calls_on_timeout(
	struct calls *c, void (*timeout)(void *arg, const struct call_timeout *t), void *arg);

/* Called for every stream of a call that is debugged: after each change, every 10 seconds, and at
 * its end. */
void calls_on_trace(
	struct calls *c, void (*trace)(void *arg, const struct call_trace *line), void *arg);

/* Turns debug lines of a call on or off, like the signalling flag "debug". False: no such call. */
bool calls_set_debug(struct calls *c, struct str call_id, bool on);
bool calls_debug(const struct calls *c, struct str call_id);

/* Once a second: ends calls without media, carries out delayed deletes. Bounded work per run. */
void calls_tick(struct calls *c, uint64_t now_ns);

/* CLOCK_REALTIME was stepped by step_ns and is now now_ns: moves all times of calls by the same
 * amount, so that no timeout changes. step_ns 0: the process did not run for a while, so timeouts
 * without media start again. */
void calls_clock_set(struct calls *c, uint64_t now_ns, int64_t step_ns);

#endif
