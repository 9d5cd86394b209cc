/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts and logs each resource that ran out. The operator can act on it; the caller only learns
 * that there was no room. */
#include "bridge/bridge_int.h"

#include "base/clock.h"

#define SHORTAGE_LOG_NS (10 * NS_PER_SEC)

/* Clients use their next relay after "Ran out of ports", whatever ran out. So every shortage is
 * -ENOSPC for the call, and only the log names the resource. Returns err. */
int bridge_shortage(struct bridge *r, enum shortage what, int err)
{
	static const char *const text[] = {
#define X(id, text) text,
		SHORTAGES(X)
#undef X
	};
	uint64_t held;

	r->shortages[what]++;
	if (log_limit_pass(&r->shortage_log[what], clock_mono_ns(), SHORTAGE_LOG_NS, &held))
		log_warn("out of %s%s", text[what], log_held((char[LOG_HELD]){0}, held));
	return err;
}
