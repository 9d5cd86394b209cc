/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemons: a table in shared memory, the choice among them, and which call is where. */
#ifndef MODULE_NODE_H
#define MODULE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire.h"

#define NODES_MAX   64
#define NODE_ID_LEN 128
#define TRIES_MAX   4 /* nodes that one request may be sent to */

struct node {
	/* "udp:host:port" as it was configured: what the choice hashes, so it survives restarts */
	char id[NODE_ID_LEN];
	struct sockaddr_storage addr;
	socklen_t addr_len;
	uint32_t weight, set;
	bool listed;  /* enabled, as the list says; a change there is the operator's word, too */
	bool enabled; /* the operator's word */
	uint64_t down_until; /* ms; 0 = up */
	uint64_t sent, answered, timeouts, refused, load_limit;
};

struct target { /* a copy: the table may change while a request is under way */
	char id[NODE_ID_LEN];
	struct sockaddr_storage addr;
	socklen_t addr_len;
};

enum node_event {
	NODE_SENT,
	NODE_ANSWERED,
	NODE_TIMEOUT,
	NODE_UNREACHABLE,
	NODE_REFUSED,
	NODE_LOAD_LIMIT
};

uint64_t now_ms(void);
int nodes_init(void); /* before processes fork; -1 */
void nodes_destroy(void);

/* "udp:host:port[=weight] [disabled]", separated by blanks or lines. "set N ==" sets the set for
 * the following nodes; '#' comments out a line. replace: removes nodes that are not named. Returns
 * the number of nodes, or -1 with nothing changed. */
int nodes_load(const char *text, uint32_t set, bool replace);
/* Loads the file, the database and the parameters. On an error nothing is changed. */
int nodes_load_all(bool replace);

/* The nodes to ask about this call, best first. all: also those that are down (an emergency call
 * does not give up before it has asked). A disabled node, or one of another set, is asked only
 * about calls that are on it. Returns how many. */
int nodes_choose(struct target *out, int max, struct text call_id, uint32_t set, bool all);
/* The call is on this node. */
void nodes_placed(struct text call_id, const char *id);
/* Marks the call that the owner of this tag began as an emergency call, or removes the mark. Later
 * messages inherit it if they have this tag as From or To tag; a Call-ID alone does not suffice. */
void nodes_mark_emergency(struct text call_id, struct text tag, bool on);
bool nodes_is_emergency(struct text call_id, struct text tag, struct text other_tag);
void nodes_forget(struct text call_id);

void nodes_note(const char *id, enum node_event e);
/* Of a datagram's source or of an ICMP message. */
bool nodes_same_address(const struct target *t, const struct sockaddr_storage *a);

bool nodes_enable(struct text id, bool on); /* id: "all" or one node; false: unknown */
int nodes_copy(struct node *out, int max);

#endif
