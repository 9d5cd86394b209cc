/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel steering: guards of streams under attack, which the module checks, and its counters. */
#include "steer/kernel/kernel_int.h"
#include "steer/sockets.h"

static struct kernel_guarded *find(struct steer *s, struct local_port local)
{
	struct kernel_guarded *free = NULL;

	for (uint32_t i = 0; i < KERNEL_GUARDED; i++) {
		struct kernel_guarded *p = &s->guarded[i];

		if (p->used && p->local.port == local.port && p->local.addr == local.addr)
			return p;
		if (!p->used && !free)
			free = p;
	}
	return free;
}

static void count(struct steer *s, struct kernel_guarded *p, const uint64_t *stats)
{
	struct steer_counters *c = s->counters;
	_Atomic uint64_t *const to[GUARD_RESULTS] = {
		[GUARD_SOURCE] = &c->guard_source,
		[GUARD_KIND] = &c->guard_kind,
		[GUARD_SSRC] = &c->guard_ssrc,
		[GUARD_TYPE] = &c->guard_type,
		[GUARD_INDEX] = &c->guard_index,
		[GUARD_TIME] = &c->guard_time,
		[GUARD_TAG] = &c->guard_tag,
	};

	for (uint32_t r = GUARD_SOURCE; r < GUARD_RESULTS; r++) {
		uint64_t now = stats[NFX_S_GUARD_SOURCE + r - GUARD_SOURCE];

		/* Lower: the module was loaded again. */
		steer_count(to[r], now >= p->seen[r] ? now - p->seen[r] : now);
		p->seen[r] = now;
	}
}

/* Counters are read with each change, so they are late by at most 8 authentic packets. A port
 * beyond KERNEL_GUARDED has a guard, but is not counted here. An older module has no guards: media
 * check the packets themselves then. */
void kernel_guard(struct steer *s, struct local_port local, const struct guard *g)
{
	struct endpoint e = kernel_endpoint(s, local);
	struct kernel_guarded *p = find(s, local);
	struct knl_seen seen;

	if (p && !p->used)
		*p = (struct kernel_guarded){.local = local, .used = g != NULL};
	if (s->features & NFX_FEATURE_GUARD && kernel_has(s, local)) {
		if (p && p->used && knl_target_get(s->knl, &e, &seen) == 0)
			count(s, p, seen.stats);
		(void)knl_guard_set(s->knl, &e, g);
	}
	if (p && !g)
		p->used = false;
}
