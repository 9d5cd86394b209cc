/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ran out, told to the operator, who can do something about it; the caller learns only that
 * there is no room. */
#include "bridge/bridge_int.h"

#include "base/clock.h"

#define SHORTAGE_LOG_NS (10 * NS_PER_SEC)

/* Clients go to their next relay on "Ran out of ports", whatever it was: so -ENOSPC for all of
 * them, but the operator is told which. Returns what the call gets. */
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
