/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits exchanges with public keys per second, for each peer and for all peers together. Each
 * takes some milliseconds of the thread that executes ng. Pure: the caller passes the time. */
#ifndef KEYING_MIKEY_BUDGET_H
#define KEYING_MIKEY_BUDGET_H

#include "base/bytes.h"

#define MIKEY_BUDGET_PEERS 4096u /* places; peers with the same hash share one */

struct mikey_budget {
	/* Time at which the exchanges begun so far no longer count. */
	uint64_t all_ns, peer_ns[MIKEY_BUDGET_PEERS];
};

struct mikey_rates { /* exchanges per second, and largest burst; 0: no limit */
	uint32_t all, peer;
};

/* Whether one more exchange may begin now. Counts it if so. peer: hash of the name. exempt: counts
 * it, and returns true. */
bool mikey_budget_take(struct mikey_budget *b, const struct mikey_rates *r, uint64_t peer,
	bool exempt, uint64_t now_ns);

#endif
