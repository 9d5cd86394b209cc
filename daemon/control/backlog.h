/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of ng datagrams that wait for execution. Sources take turns (source.h), one datagram each,
 * so a source that floods delays only itself. The queue is bounded for each source and as a whole.
 * Control thread only. */
#ifndef CONTROL_BACKLOG_H
#define CONTROL_BACKLOG_H

#include <sys/socket.h>

#include "base/endpoint.h"

#define BACKLOG_SOURCE 1024u       /* datagrams of one source: half a second of a very busy proxy */
#define BACKLOG_BYTES  (4u << 20)  /* of one source */
#define BACKLOG_ALL    (16u << 20) /* bytes of all sources together */

struct ng_peer { /* sender of a datagram, and the local address that received it */
	struct sockaddr_storage sa;
	socklen_t sa_len;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	size_t control_len;
	struct endpoint from;
};

struct waiting {
	struct waiting *next;
	struct ng_peer peer;
	size_t len;
	char bytes[];
};

struct backlog;

/* hash_key: random. 0 or -ENOMEM. */
int backlog_create(struct backlog **out, const uint8_t hash_key[16]);
void backlog_destroy(struct backlog *b); /* wipes; NULL is fine */

/* Queues a copy. 0; -ENOBUFS: too many datagrams of this source wait, so this one is dropped;
 * -ENOMEM. *dropped: number of dropped datagrams: this one with -ENOBUFS, otherwise the oldest of
 * the source that has most. */
int backlog_put(
	struct backlog *b, const struct ng_peer *peer, struct str datagram, uint32_t *dropped);
/* The oldest datagram of the source whose turn it is; free it with waiting_free(). NULL: none
 * waits. */
struct waiting *backlog_take(struct backlog *b);
void waiting_free(struct waiting *w); /* wipes: SDP holds keys */
bool backlog_empty(const struct backlog *b);

#endif
