/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a datagram's source address is possible at the receiving interface. These are the checks
 * of the host's own IP stack, for packets that steering takes before the stack checks them (xdp,
 * nfqueue before routing). One judge per thread. */
#ifndef HOST_JUDGE_H
#define HOST_JUDGE_H

#include "host/host.h"

struct host_judge;

enum host_belief {
	HOST_BELIEVED,
	HOST_MARTIAN,  /* the stack would drop it */
	HOST_UNCHECKED /* not checked, as too many new sources came in a short time: drop it */
};

struct host_claim {
	struct endpoint src,
		dst;   /* dst: our address, or unspecified when only the family is known */
	uint32_t dev;  /* interface index */
	bool expected; /* signalling named this source: it has its own budget of look-ups */
};

/* strict_local: never accept this host's addresses as sources, even if accept_local is set. host
 * must outlive it. 0 or -errno. */
int host_judge_create(struct host_judge **out, const struct host *host, bool strict_local);
/* NULL is fine. */
void host_judge_destroy(struct host_judge *j);
/* now_ns: monotonic. Asks the kernel at most once in two seconds for a source, interface and
 * destination. Look-ups are limited to a thousand per second for expected sources, and a thousand
 * for all others. */
enum host_belief host_believes(struct host_judge *j, const struct host_claim *c, uint64_t now_ns);

#endif
