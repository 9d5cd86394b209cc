/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemons: a table in shared memory, the choice among them, and the node of each call. */
#ifndef MODULE_NODE_H
#define MODULE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire.h"

#define NODES_MAX   64
#define NODE_ID_LEN 128
#define TRIES_MAX   4 /* nodes tried for one request */

struct node {
	/* "udp:host:port" as configured. The choice hashes this text, so it survives restarts */
	char id[NODE_ID_LEN];
	struct sockaddr_storage addr;
	socklen_t addr_len;
	uint32_t weight, set;
	bool listed;  /* enabled in the list; a changed list overrides the operator's command */
	bool enabled; /* enabled by the operator */
	uint64_t down_until; /* ms since it went down; 0 = up */
	uint64_t sent, answered, timeouts, refused, load_limit;
};

struct target { /* a copy, because the table may change during a request */
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

/* The nodes to try for this call, best first. all: also those that are down (an emergency call
 * tries them, too). A disabled node, or one of another set, is used only for its own calls. Returns
 * their number. */
int nodes_choose(struct target *out, int max, struct text call_id, uint32_t set, bool all);
/* Records that this node has the call. */
void nodes_placed(struct text call_id, const char *id);
/* Marks the call begun by the owner of this tag as an emergency call, or removes the mark. Later
 * messages inherit it if they have this tag as From or To tag; a Call-ID alone does not suffice. */
void nodes_mark_emergency(struct text call_id, struct text tag, bool on);
bool nodes_is_emergency(struct text call_id, struct text tag, struct text other_tag);
void nodes_forget(struct text call_id);

void nodes_note(const char *id, enum node_event e);
/* Finds a node by a datagram's source, or by an ICMP message. */
bool nodes_same_address(const struct target *t, const struct sockaddr_storage *a);

bool nodes_enable(struct text id, bool on); /* id: "all" or one node; false: unknown */
int nodes_copy(struct node *out, int max);

#endif
