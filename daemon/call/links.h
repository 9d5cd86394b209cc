/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links between calls: a stream whose destination is a media port of this relay. Calls that pass through the relay twice have
 * them. They form a graph, which must not have a cycle, or a packet would go round for ever. So each change of a call is walked
 * before it comes into force: over its streams, their destinations, and the calls behind these.
 *
 * A link ends with the call that it leads to. The stream then has no destination, for the port will be somebody else's.
 * Control thread only. */
#ifndef CALL_LINKS_H
#define CALL_LINKS_H

#include "call/model.h"

#define LINKS_DEPTH \
	32u /* calls behind each other; SIP ends a spiral at 70 hops, two calls of ours are 4 of them */
#define LINKS_VISITS  512u /* streams looked at for one change */
#define LINKS_ALIASES 16u  /* addresses of requests' media-address that are remembered */

struct calls;
struct link;

struct link_cell {          /* a pair of media ports */
	struct call *owner; /* NULL: no call has it */
	uint8_t side, media;
	struct link *named; /* list of those who send to it */
};

struct links {
	struct link_cell **cell; /* [locals][LINK_CELLS], each made when it is needed */
	uint32_t locals;
	struct endpoint alias
		[LINKS_ALIASES]; /* ring: written into SDP by request, so they may lead to us */
	uint32_t aliases;
	uint64_t walk;
};

int links_init(struct links *l, uint32_t locals);
void links_fini(struct links *l);

/* reach_check(), and for media ports of ours whose they are: OK for those of another call than `call_id`. */
enum reach_verdict links_check(
	const struct calls *c, struct str call_id, const struct endpoint *to);
/* A request had this address written into SDP in place of ours. */
void links_alias(struct links *l, const struct endpoint *addr);

/* What next would link to, before it comes into force. 0; -ENOMEM; -EADDRNOTAVAIL: a new link does not lead to another call;
 * -ELOOP: a circle, or too long a way. On success *out goes to links_replace() or links_drop(). */
int links_plan(struct calls *c, struct call *prev, struct call *next, struct link **out);
void links_drop(struct link *planned);
/* next came into force in prev's place (NULL: it is new), linked as planned. Ports that prev had and next has not are nobody's. */
void links_replace(struct calls *c, struct call *prev, struct call *next, struct link *planned);
/* A restored call came into force. Calls that it links to may come later; a circle is cut. */
void links_adopt(struct calls *c, struct call *call);
/* Before the call is freed. */
void links_end(struct calls *c, struct call *call);

#endif
