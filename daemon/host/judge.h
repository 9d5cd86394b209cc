/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a datagram's source address is possible at the interface that it came by: the checks of the host's own IP stack, for
 * packets that are taken before it makes them (xdp, nfqueue before routing). One judge per thread. */
#ifndef HOST_JUDGE_H
#define HOST_JUDGE_H

#include "host/host.h"

struct host_judge;

enum host_belief {
	HOST_BELIEVED,
	HOST_MARTIAN,  /* the stack would drop it */
	HOST_UNCHECKED /* too many new sources in a short time: not believed */
};

struct host_claim {
	struct endpoint src,
		dst;   /* dst: our address, or unspecified when only the family is known */
	uint32_t dev;  /* interface index */
	bool expected; /* signalling named this source: has a share of the questions of its own */
};

/* strict_local: never believe our own addresses as sources, even where accept_local is set. host outlives it. 0 or -errno. */
int host_judge_create(struct host_judge **out, const struct host *host, bool strict_local);
/* NULL is fine. */
void host_judge_destroy(struct host_judge *j);
/* now_ns: monotonic. Asks the kernel at most once for a source, interface and destination in two seconds, and at most a
 * thousand times a second for all sources that nobody named, and as often for the others. */
enum host_belief host_believes(struct host_judge *j, const struct host_claim *c, uint64_t now_ns);

#endif
