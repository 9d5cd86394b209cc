/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two ZRTP exchanges and the network between them, for tests. Time is the rig's: no test waits. */
#ifndef T_ZRTP_RIG_H
#define T_ZRTP_RIG_H

#include "keying/zrtp.h"

enum { US, THEM };

struct zrtp_rig {
	struct zrtp *z[2];
	struct zrtp_counts counts[2];
	struct zrtp_config cfg[2];
	struct zrtp_prefs prefs[2];
	struct zrtp_secrets known[2]; /* of the caches; used if has[] */
	bool has[2];
	uint64_t now_ns;
	uint32_t packets; /* that were sent */
	/* Called for each packet, which it may change. False: the packet is lost. */
	bool (*wire)(struct zrtp_rig *r, int to, uint8_t *p, int *len);
	uint32_t a, b; /* the wire's own */
	bool persists; /* a failure does not end zrtp_rig_run() */
};

/* All algorithms, and other seeds. The exchanges are made by zrtp_rig_begin(). */
void zrtp_rig_init(struct zrtp_rig *r);
void zrtp_rig_begin(struct zrtp_rig *r);
/* Passes packets and time, in steps of 10 ms, until both are open, one has failed, or ms passed.
 */
void zrtp_rig_run(struct zrtp_rig *r, uint32_t ms);
bool zrtp_rig_open(const struct zrtp_rig *r);
/* Both have the same SAS, and what one sends the other opens. */
void zrtp_rig_agreed(const struct zrtp_rig *r);
void zrtp_rig_end(struct zrtp_rig *r);
/* One algorithm of a kind at one side. */
void zrtp_rig_only(struct zrtp_rig *r, int side, enum zrtp_kind kind, uint8_t alg);

#endif
