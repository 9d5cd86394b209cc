/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a call in plain words, for explanations. The list is bounded: it keeps the first
 * events, which show how the call began, and the latest ones. It never contains a key. */
#ifndef CALL_HISTORY_H
#define CALL_HISTORY_H

#include "base/bytes.h"
#include "proto/ngval.h"

#define HISTORY_FIRST  8u
#define HISTORY_LATEST 24u
#define HISTORY_TEXT   500u /* bytes of an event */

/* X(id, name) */
#define HISTORY_KINDS(X)        \
	X(OFFER, "offer")       \
	X(ANSWER, "answer")     \
	X(REFUSED, "refused")   \
	X(COMMAND, "command")   \
	X(KEYS, "keys")         \
	X(SOURCE, "source")     \
	X(HANDOVER, "handover") \
	X(TROUBLE, "trouble")   \
	X(RESTORED, "restored") \
	X(END, "end")

enum history_kind {
#define X(id, name) HISTORY_##id,
	HISTORY_KINDS(X)
#undef X
		HISTORY_KIND_COUNT
};

struct history;

/* Appends an event; the first call allocates *h. Replaces control characters by '?' and truncates
 * longer texts. Without memory the event is lost. tag: of the party concerned, or empty. */
void history_add(struct history **h, uint64_t now_ns, enum history_kind kind, struct str tag,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void history_free(struct history *h);

#define HISTORY_NAME_MAX 256
/* A Call-ID or tag for people and records. If longer than HISTORY_NAME_MAX bytes, it is truncated
 * and its length appended, in the pool. Parties choose these names, up to tens of kilobytes. */
struct str history_name(struct pool *p, struct str name);

/* Adds "events", a list of dictionaries with "time" (milliseconds since 1970), "event", "tag" and
 * "text", and "events left out". Copies texts to the pool. */
void history_tree(const struct history *h, struct pool *p, struct ngval *dict);

#endif
