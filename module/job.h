/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request to one node, then perhaps to the next: a state machine without sockets and clock.
 * sync.c drives it in a SIP worker, async.c in a receiver process. Plain data, on a stack or in
 * shared memory. */
#ifndef MODULE_JOB_H
#define MODULE_JOB_H

#include "node.h"

#define COOKIE_LEN 48

enum op {
	OP_OFFER,
	OP_ANSWER,
	OP_DELETE,
	OP_QUERY,
	OP_START_RECORDING,
	OP_STOP_RECORDING,
	OP_PUBLISH,
	OP_FRAGMENT, /* an offer with further ICE candidates (RFC 8840) */
	OP_COUNT
};
const char *op_name(enum op op);

/* Both the request and the reply have SDP. */
static inline bool op_has_sdp(enum op op)
{
	return op == OP_OFFER || op == OP_ANSWER || op == OP_PUBLISH;
}

/* The daemon makes a call of it. */
static inline bool op_begins(enum op op)
{
	return op == OP_OFFER || op == OP_PUBLISH;
}

enum step { STEP_WAIT, STEP_SEND, STEP_DONE };

struct job {
	enum op op;
	uint32_t set;
	char cookie[COOKIE_LEN];
	const char *msg; /* cookie included */
	size_t len;
	struct target target[TRIES_MAX];
	int targets, at;
	unsigned silent; /* bit n: target n got the request and did not reply in time */
	bool pinned;     /* only target[0] is tried */
	int sent;        /* datagrams sent to the current target */
	uint64_t due;    /* ms */
};

/* Whether a reply with our cookie is signed with ng_key_file. An unsigned one is counted, and
 * logged once in 10 s. */
bool job_genuine(const struct job *j, const char *p, size_t len);
bool reply_genuine(
	const char *node, const char *request, size_t request_len, const char *p, size_t len);
/* The signer for requests: the keys of ng_key_file, if set, and the current time. */
struct wire_sign sign_now(void);

static inline const struct target *job_target(const struct job *j)
{
	return &j->target[j->at];
}

/* STEP_DONE: no node is available. */
enum step job_start(struct job *j, struct text call_id, bool emergency);
/* Reports that the datagram was sent, or could not be. */
void job_sent(struct job *j, uint64_t now);
enum step job_tick(struct job *j, uint64_t now);
enum step job_unreachable(struct job *j);
/* STEP_DONE: r is the result. STEP_SEND: send to the next node. STEP_WAIT: r is not a reply to this
 * request. */
enum step job_reply(struct job *j, const struct wire_reply *r);

#endif
