/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits how many exchanges with public keys are computed per second, for each peer and for all
 * together: each takes some milliseconds of the thread that executes ng. Pure: the caller has the
 * clock. */
#ifndef KEYING_MIKEY_BUDGET_H
#define KEYING_MIKEY_BUDGET_H

#include "base/bytes.h"

#define MIKEY_BUDGET_PEERS 4096u /* places of peers, by a hash of their names */

struct mikey_budget {
	/* When the exchanges that were begun are paid for, in nanoseconds. */
	uint64_t all_ns, peer_ns[MIKEY_BUDGET_PEERS];
};

struct mikey_rates { /* exchanges per second; 0: no limit. As many may come at once. */
	uint32_t all, peer;
};

/* Whether one more may begin now; if so, it is counted. peer: hash of its name. exempt: always
 * true, and counted. */
bool mikey_budget_take(struct mikey_budget *b, const struct mikey_rates *r, uint64_t peer,
	bool exempt, uint64_t now_ns);

#endif
