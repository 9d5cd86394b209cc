/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of a function: numbers, and texts that the script's variables show. */
#ifndef LOST_ANSWER_H
#define LOST_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return code of a function and value of $xlost(result). 0 stops the script: the transaction is
 * suspended. */
enum result {
	RESULT_OK = 1,
	RESULT_SUSPENDED = 0,
	RESULT_NO_ANSWER = -1,   /* no server answered properly in time */
	RESULT_NO_LOCATION = -2, /* no usable location in the message */
	RESULT_REFUSED = -3,     /* the server answered with an error */
	RESULT_REFERENCE = -4,   /* a location reference could not be fetched */
	RESULT_BUSY = -5,        /* too many queries in flight */
	RESULT_INTERNAL = -6,    /* memory, tm */
};

/* X(id), the name of the variable. error: name of a LoST or HELD error, or why no server answered;
 * message: text for people; uri: the one to route to; method: cid, reference, held or argument. */
#define ANSWER_TEXTS(X) \
	X(error)        \
	X(message)      \
	X(uri)          \
	X(uris)         \
	X(name)         \
	X(number)       \
	X(service)      \
	X(services)     \
	X(boundary)     \
	X(boundary_key) \
	X(warnings)     \
	X(expires)      \
	X(source)       \
	X(source_id)    \
	X(updated)      \
	X(profile)      \
	X(server)       \
	X(pidf)         \
	X(location_uri) \
	X(method)       \
	X(exchanges)

enum answer_text {
#define X(id) A_##id,
	ANSWER_TEXTS(X)
#undef X
		ANSWER_TEXT_COUNT
};

struct answer {
	int result;
	bool cached;
	int tries;                     /* HTTP exchanges */
	char *text[ANSWER_TEXT_COUNT]; /* NULL: none. Owned, unless the answer is flat */
};

/* Takes ownership of text, which malloc() returned; NULL clears. */
void answer_set(struct answer *a, enum answer_text i, char *text);
/* Copies the string. */
void answer_put(struct answer *a, enum answer_text i, const char *text);
void answer_clear(struct answer *a);

/* A flat answer is one block without pointers into other memory, for shared memory. */
size_t answer_flat_size(const struct answer *a);
struct answer *answer_flatten(const struct answer *a, void *block);
/* A deep copy with malloc(); *to is overwritten. False: out of memory, nothing is owned. */
bool answer_copy(struct answer *to, const struct answer *from);

#endif
