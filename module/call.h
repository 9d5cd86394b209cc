/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a script function: message to request, policy, exchange, reply to message. */
#ifndef MODULE_CALL_H
#define MODULE_CALL_H

#include <core/parser/msg_parser.h>

#include "job.h"
#include "policy.h"

#define ROUTE_LEN 64

/* Return code of a function: true is 1, everything negative is false. 0 stops the script: the
 * transaction is suspended. */
enum verdict {
	V_OK = 1,
	V_SUSPENDED = 0,
	V_NO_NODE = -1,  /* no node replied; 503 */
	V_MESSAGE = -2,  /* no SDP, no Call-ID, ...; 400 */
	V_POLICY = -3,   /* the security policy is not met; 488 */
	V_REFUSED = -4,  /* refused by the daemon; 488 for a body, else 500 */
	V_LOAD = -5,     /* all nodes are at their limit; 503 */
	V_INTERNAL = -6, /* memory, tm; 500 */
};

/* The state needed when the reply comes, perhaps in another process. Plain data. */
struct context {
	struct job job;
	struct policy policy;
	char in_suites[WIRE_SUITES]; /* of the received body */
	char fallback[32];           /* emergency: which were used */
	bool retried;
	bool rtp; /* emergency: request RTP */
	/* Strings, stored after the datagram in the same block of memory: */
	struct text call_id, from_tag, to_tag, via_branch;
	char route[ROUTE_LEN]; /* route to continue in; "" = synchronous */
};

/* The last result in this process, for variables. */
struct last {
	enum verdict verdict;
	int code; /* for SIP */
	char reason[WIRE_REASON], warning[WIRE_WARNING], node[NODE_ID_LEN];
	char suite_from[WIRE_SUITES], suite_to[WIRE_SUITES];
	struct wire_sas sas_from, sas_to;
	char mikey_from[WIRE_PEER], mikey_to[WIRE_PEER];
	char fallback[32];
	bool emergency;
	struct kept {
		char *s; /* pkg; NULL = none */
		size_t len;
	} json, sdp; /* a query's reply; the answer to a publisher */
};
extern struct last last;

/* The usual reason phrase of a SIP code. Reveals nothing about this network. */
const char *call_phrase(int code);
/* For SIP: the value of a Warning header field (RFC 3261 20.43) that says why keys could not be
 * agreed on. "" for any other result, because its reason may name addresses and limits of this
 * network. Valid until the next call. */
const char *call_sip_warning(void);

int call_run(struct sip_msg *msg, enum op op, struct text flags, struct text route);
int call_manage(struct sip_msg *msg, struct text flags, struct text route);
/* In a failure route: offers the INVITE again, with RTP, if it is an emergency call and
 * emergency_fallback contains "rtp"; otherwise returns V_POLICY and sends nothing. */
int call_retry(struct sip_msg *msg, struct text flags);
/* Finishes an exchange. reply NULL: no node replied. */
enum verdict call_finish(struct sip_msg *msg, struct context *c, const struct wire_reply *reply);
/* An emergency call was refused: the same request with looser flags, if the operator allows it.
 * Writes the datagram (with a cookie of the same length) and returns its length; 0: not allowed. */
int call_loosen(struct context *c, const struct wire_reply *reply, char *buf, size_t size,
	const char *cookie);

/* Deletes the call of a first offer at the nodes that did not reply. A node that hung would read
 * the offer later, and keep its call until the offer-timeout. Does not wait for replies. */
void call_recall(const struct context *c);
/* Deletes a call that the daemon created and that must not exist. Does not wait for the reply. */
void call_undo(const struct context *c);

/* sync.c: runs the job in this process; wire_fini() must wipe reply->pool. True if there is a
 * reply. */
bool sync_exchange(struct context *c, struct wire_reply *reply, char *buf, size_t size);
/* Creates a cookie for a synchronous request. */
void sync_cookie(char *out);

/* async.c */
int async_init(void);    /* mod_init */
int async_sockets(void); /* Call it before Kamailio forks. */
int async_fork(void);    /* main process */
void async_destroy(void);
/* Suspends and sends; with msg NULL only sends, without waiting for the reply. V_OK: not possible,
 * use the synchronous exchange; V_SUSPENDED; V_INTERNAL. */
enum verdict async_start(struct sip_msg *msg, struct context *c, const struct wire_request *r);
bool async_possible(struct sip_msg *msg);
bool async_route(struct text name); /* the script has this route; true if it is empty or in another
	                    * language */
int async_in_use(void);

#endif
