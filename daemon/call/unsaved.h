/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that changed or ended since they were last saved. persist/ writes them. */
#ifndef CALL_UNSAVED_H
#define CALL_UNSAVED_H

#include "call/call.h"
#include "call/table.h"

#define SAVE_ID_MAX 4096

struct calls_save_usage {
	uint64_t waiting; /* calls */
	uint64_t ended;   /* waiting to be removed */
	uint64_t ended_lost;
	uint64_t too_long; /* calls not saved because of a too long Call-ID, since the start */
};

#define SAVE_ENDED_MAX \
	16384u /* limit of Call-IDs that wait for removal; further ones stay until they expire */

struct saver {
	bool on;
	struct call_table *table;
	const struct relay *relay;
	struct call *first, *last; /* calls that wait to be written */
	struct str *ended;         /* ring of ended calls, to be removed */
	uint32_t ended_at, ended_n;
	struct call *cursor, *asked; /* of save_tick() */
	uint32_t asked_n;
	uint64_t ended_lost, too_long;
	uint8_t seed[16]; /* for hashes of states */
	int64_t shared_ahead_ns;
	uint64_t boot; /* boot_number() */
};
int saver_init(struct saver *s, struct call_table *table, const struct relay *relay);
void saver_fini(struct saver *s);
/* Access for save and restore. */
struct saver *calls_saver(struct calls *c);

/* Records that next replaced prev; prev NULL: it is new. */
void save_changed(struct saver *s, struct call *prev, struct call *next);
void save_ended(struct saver *s, struct call *call);

/* Records changes from now on; all calls count as changed. */
void calls_save_start(struct calls *c);

/* How far the clock that all nodes can read is ahead of this node's CLOCK_REALTIME. Records carry
 * the shared time, so that their age does not depend on the clocks of two nodes. */
void calls_shared_clock(struct calls *c, int64_t ahead_ns);

/* Marks all calls as unsaved: the stored state is unknown. */
void calls_save_all(struct calls *c);

/* Removal of a stored call failed: try again, unless the call exists again. */
void calls_save_gone(struct calls *c, struct str call_id);
void calls_save_usage(struct calls *c, struct calls_save_usage *out);

/* Adds the call to the list of calls to write; whole: all of it. */
void unsaved_add(struct saver *s, struct call *c, bool whole);
/* Removes it from the list. */
void unsaved_remove(struct saver *s, struct call *c);

#endif
