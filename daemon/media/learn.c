/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address learning as rtpengine's users know it: off, immediate, delayed, heuristic; strict source; handover. Behind address
 * translation a terminal's real address is not the one in its SDP; on the open Internet anybody can send to our port. */
#include "media/learn.h"

/* SDP named an address to send to: it is neither missing nor "on hold". */
static bool named(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

static void reset(struct learn *l)
{
	l->confirmed = false;
	l->rank = LEARN_NOTHING_YET;
	l->candidate = (struct endpoint){0};
}

void learn_signal(struct learn *l, const struct endpoint *signalled, bool restart, uint64_t now_ns)
{
	bool changed = !endpoint_eq(&l->signalled, signalled);

	if (changed || restart || l->since_ns == 0) {
		l->signalled = *signalled;
		/* On hold (0.0.0.0) SDP names no address: what was learned stays good for when it is resumed. */
		if (named(signalled))
			l->remote = *signalled;
		reset(l);
	}
	l->since_ns = now_ns ? now_ns : 1;
}

static int rank_of(const struct endpoint *signalled, const struct endpoint *src)
{
	bool addr = endpoint_addr_eq(signalled, src), port = signalled->port == src->port;

	return addr && port ? LEARN_EXACT
		: addr      ? LEARN_SAME_ADDR
		: port      ? LEARN_SAME_PORT
			    : LEARN_ANY;
}

bool learn_accepts(
	const struct learn *l, const struct media_stream_cfg *cfg, const struct endpoint *src)
{
	if (cfg->asymmetric || !cfg->strict_source || cfg->media_handover)
		return true;
	if (cfg->learning == MEDIA_LEARN_OFF)
		return !named(&l->signalled) || endpoint_eq(src, &l->signalled);
	if (l->confirmed)
		return endpoint_eq(src, &l->remote);
	/* While the best source is being looked for, worse ones are not heard. */
	return cfg->learning != MEDIA_LEARN_HEURISTIC || rank_of(&l->signalled, src) >= l->rank;
}

static bool confirm(struct learn *l, const struct endpoint *src)
{
	l->remote = *src;
	l->confirmed = true;
	return true;
}

static bool heuristic(struct learn *l, const struct endpoint *src, uint64_t now_ns)
{
	int rank = rank_of(&l->signalled, src);
	bool moved;

	if (rank == LEARN_EXACT)
		return confirm(l, src);
	if (rank > l->rank) {
		l->rank = rank;
		l->candidate = *src;
	}
	if (now_ns >= l->since_ns + LEARN_PERIOD_NS)
		return confirm(l, &l->candidate);
	/* Until then the best so far is answered: a terminal behind address translation must hear something. */
	moved = !endpoint_eq(&l->remote, &l->candidate);
	l->remote = l->candidate;
	return moved;
}

bool learn_packet(struct learn *l, const struct media_stream_cfg *cfg, const struct endpoint *src,
	uint64_t now_ns)
{
	if (cfg->asymmetric || cfg->learning == MEDIA_LEARN_OFF)
		return false;
	if (l->confirmed)
		return cfg->media_handover && !endpoint_eq(&l->remote, src) && confirm(l, src);
	switch (cfg->learning) {
	case MEDIA_LEARN_IMMEDIATE:
		return confirm(l, src);
	case MEDIA_LEARN_DELAYED:
		return now_ns >= l->since_ns + LEARN_PERIOD_NS && confirm(l, src);
	case MEDIA_LEARN_HEURISTIC:
		return heuristic(l, src, now_ns);
	case MEDIA_LEARN_OFF:
		break;
	}
	return false;
}
