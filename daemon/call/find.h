/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Selects calls for an operator: the words of a filter, and an order. Parsing is pure. */
#ifndef CALL_FIND_H
#define CALL_FIND_H

#include "call/sight.h"

/* X(id, name, help): a call must meet all words */
#define FIND_WORDS(X)                                                              \
	X(ONE_WAY, "one-way", "one terminal sends, the other is silent")           \
	X(BAD_TAGS, "bad-tags", "many packets fail authentication")                \
	X(TROUBLE, "trouble", "anything is wrong: one-way, bad tags, low quality") \
	X(PLAIN, "plain", "some of its media is RTP in clear")                     \
	X(EARLY, "early", "not answered yet")                                      \
	X(UP, "up", "answered, and media flows both ways by SDP")                  \
	X(HOLD, "hold", "answered, and on hold")                                   \
	X(ENDING, "ending", "deleted, and relayed until delete-delay is over")     \
	X(EMERGENCY, "emergency", "marked as an emergency call")

/* X(id, name, help) */
#define FIND_ORDERS(X)                                        \
	X(NEW, "new", "the newest first")                     \
	X(AGE, "age", "the oldest first")                     \
	X(MOS, "mos", "the lowest mean opinion score first")  \
	X(LOSS, "loss", "the highest loss first")             \
	X(RTT, "rtt", "the longest round trip first")         \
	X(JITTER, "jitter", "the most jitter first")          \
	X(ERRORS, "errors", "the most dropped packets first") \
	X(PACKETS, "packets", "the most packets first")       \
	X(SILENCE, "silence", "the longest silence first")

enum find_word {
#define X(id, name, help) FIND_##id,
	FIND_WORDS(X)
#undef X
		FIND_WORD_COUNT
};

enum find_order {
#define X(id, name, help) FIND_BY_##id,
	FIND_ORDERS(X)
#undef X
		FIND_ORDER_COUNT
};

struct find {
	struct str part;     /* of a Call-ID, tag or name; empty = any */
	struct str suite;    /* a part of a suite's name, or "plain"; empty = any */
	struct str codec;    /* a part of it; empty = any */
	struct endpoint ip;  /* of a terminal; family 0 = any */
	uint32_t words;      /* bit per enum find_word */
	uint32_t mos_below;  /* hundredths; 0 = any */
	uint32_t loss_above; /* hundredths of a percent */
	bool by_loss;        /* loss_above is given */
	uint64_t since_ns;   /* began within this time; 0 = any */
	enum find_order order;
};

/* Reads words like "one-way mos-below=3.5 ip=192.0.2.1 since=10m"; a word that is none of them is a
 * part of a Call-ID, tag or name. Strings are slices of text. NULL, or what is wrong: a constant.
 */
const char *find_parse(struct find *out, struct str text);
/* Finds an order by name; empty = the newest first. False: unknown name. */
bool find_order(enum find_order *out, struct str name);

/* Whether the call matches. *s is filled if it does, or if only a condition on its figures failed.
 */
bool find_matches(const struct find *f, const struct relay *relay, const struct call *c,
	uint64_t now_ns, struct sight *s);
/* Sort key of a call in this order: the lowest comes first. */
double find_rank(enum find_order order, const struct call *c, const struct sight *s);

#endif
