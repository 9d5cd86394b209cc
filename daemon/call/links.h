/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links between calls. A link is a stream whose destination is a media port of this relay; calls
 * that pass through the relay twice have links. They form a graph. In a cycle a packet would
 * circulate for ever. So before a change of a call comes into force, the graph is searched: the
 * streams of the call, their destinations, and the calls that these lead to.
 *
 * A link ends with the call that it leads to. The stream then has no destination, because the port
 * will belong to another call. Control thread only. */
#ifndef CALL_LINKS_H
#define CALL_LINKS_H

#include "call/model.h"

#define LINKS_DEPTH \
	32u /* calls in a chain; SIP limits a spiral to 70 hops, and two of our calls take 4 hops */
#define LINKS_VISITS  512u /* streams looked at for one change */
#define LINKS_ALIASES 16u  /* addresses of requests' media-address that are remembered */

struct calls;
struct link;

struct link_cell {          /* a pair of media ports */
	struct call *owner; /* NULL: no call has it */
	uint8_t side, media;
	struct link *named; /* list of links that lead to it */
};

struct links {
	struct link_cell **cell; /* [locals][LINK_CELLS], each made when it is needed */
	uint32_t locals;
	struct endpoint alias
		/* ring of media-address values: they may lead back to this relay */
		[LINKS_ALIASES];
	uint32_t aliases;
	uint64_t walk;
};

int links_init(struct links *l, uint32_t locals);
void links_fini(struct links *l);

/* reach_check(), and for media ports of this relay a check of their owner: OK for ports of another
 * call than `call_id`. */
enum reach_verdict links_check(
	const struct calls *c, struct str call_id, const struct endpoint *to);
/* Remembers a media-address: a request put it into SDP in place of our address. links_adopt() does
 * so for a restored call. */
void links_alias(struct links *l, const struct endpoint *addr);

/* Plans the links of next, before it comes into force. 0; -ENOMEM; -EADDRNOTAVAIL: a new link does
 * not lead to another call; -ELOOP: a circle, or too long a path. On success pass *out to
 * links_replace() or links_drop(). */
int links_plan(struct calls *c, struct call *prev, struct call *next, struct link **out);
void links_drop(struct link *planned);
/* next replaced prev (NULL: it is new), linked as planned. Ports of prev that next does not have
 * become free. */
void links_replace(struct calls *c, struct call *prev, struct call *next, struct link *planned);
/* A restored call came into force. Calls that it links to may be restored later. A link that closes
 * a circle is cut. */
void links_adopt(struct calls *c, struct call *call);
/* Before the call is freed. */
void links_end(struct calls *c, struct call *call);

#endif
