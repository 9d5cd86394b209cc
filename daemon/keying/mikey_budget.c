/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keying/mikey_budget.h"

#define SECOND 1000000000ull

/* Time at which one more exchange no longer counts. paid_ns is at most a second ahead; if it is
 * further ahead, the clock was set back. */
static uint64_t after(uint64_t paid_ns, uint32_t rate, uint64_t now_ns)
{
	if (paid_ns < now_ns || paid_ns > now_ns + 2 * SECOND)
		paid_ns = now_ns;
	return rate ? paid_ns + SECOND / rate : now_ns;
}

bool mikey_budget_take(struct mikey_budget *b, const struct mikey_rates *r, uint64_t peer,
	bool exempt, uint64_t now_ns)
{
	uint64_t *of_peer = &b->peer_ns[peer % MIKEY_BUDGET_PEERS];
	uint64_t all = after(b->all_ns, r->all, now_ns), one = after(*of_peer, r->peer, now_ns);
	bool ok = all <= now_ns + SECOND && one <= now_ns + SECOND;

	if (!ok && !exempt)
		return false;
	b->all_ns = ok ? all : now_ns + SECOND;
	*of_peer = ok ? one : now_ns + SECOND;
	return true;
}
