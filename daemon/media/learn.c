/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address learning with the modes that rtpengine's users know: off, immediate, delayed, heuristic;
 * strict source; handover. Behind address translation a terminal's real address is not the one in
 * its SDP; on the open Internet anybody can send to our port. Ranks and probation decide between
 * the two (learn.h). */
#include "media/learn.h"

/* A longer pause of its source ends a run. */
#define RTP_PAUSE_NS  2000000000ull
#define RTCP_PAUSE_NS 30000000000ull
#define COMFORT_NOISE 13 /* RFC 3389: may occur between packets of any other payload type */

const char *learn_rank_name(enum learn_rank rank)
{
	static const char *const name[] = {[LEARN_ANY] = "any address",
		[LEARN_SAME_ADDR] = "same address",
		[LEARN_EXACT] = "exact"};

	return name[rank];
}

const char *learn_cause_name(enum learn_cause cause)
{
	static const char *const names[] = {[LEARN_KEPT] = "",
#define X(id, name, text) [LEARN_BY_##id] = (name),
		LEARN_CAUSES(X)
#undef X
	};

	return names[cause];
}

const char *learn_cause_text(enum learn_cause cause)
{
	static const char *const text[] = {[LEARN_KEPT] = "",
#define X(id, name, text) [LEARN_BY_##id] = (text),
		LEARN_CAUSES(X)
#undef X
	};

	return text[cause];
}

/* An address that is not routed on the Internet (RFC 1918, 3927, 4193, 4291 2.5.6, 6598). */
static bool is_private(const struct endpoint *e)
{
	const uint8_t *a = e->addr;

	if (e->family == AF_INET6)
		return (a[0] & 0xfe) == 0xfc || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80);
	return a[0] == 10 || (a[0] == 172 && a[1] >> 4 == 1) || (a[0] == 192 && a[1] == 168) ||
		(a[0] == 169 && a[1] == 254) || (a[0] == 100 && a[1] >> 6 == 1);
}

/* SDP named an address: neither missing nor "on hold". */
static bool named(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

enum learn_rank learn_rank_of(const struct endpoint *signalled, const struct endpoint *src)
{
	if (!named(signalled) || !endpoint_addr_eq(signalled, src))
		return LEARN_ANY;
	return signalled->port == src->port ? LEARN_EXACT : LEARN_SAME_ADDR;
}

static bool is_source(const struct learn *l, const struct endpoint *src)
{
	return l->source.family && endpoint_eq(&l->source, src);
}

/* Starts learning again. The previous source remains a candidate (struct learn_trials), because a
 * terminal behind address translation often keeps it while its SDP names another address. Its
 * packets are still relayed, with two exceptions: another terminal answered from another address,
 * or SDP named no address so far (known is false) and the source was not confirmed. */
static void restart_learning(struct learn *l, struct learn_trials *t, bool other_terminal,
	bool other_address, bool known)
{
	*t = (struct learn_trials){.old = l->source,
		.old_confirmed = l->confirmed,
		.old_heard = !other_terminal && (known || l->confirmed),
		.old_barred = other_terminal && other_address};
	l->source = (struct endpoint){0};
	l->confirmed = l->proved = l->tentative = false;
}

void learn_signal(struct learn *l, struct learn_trials *t, const struct endpoint *signalled,
	bool restart, uint64_t now_ns)
{
	bool known = named(&l->signalled), changed = !endpoint_eq(&l->signalled, signalled);

	/* The terminal signals a new address, so the displaced source must not return. Hold
	 * names no address. */
	if (changed && named(signalled) && t->old_waits)
		*t = (struct learn_trials){0};
	if (named(signalled)) {
		/* Media before the answer came from the answer's address, possibly from another
		 * port. */
		bool early = !known && l->source.family && endpoint_addr_eq(signalled, &l->source);
		/* While SDP named no address (hold), nothing set the terminal apart: keep only a
		 * proved source. */
		bool kept = !l->tentative &&
			(early ||
				(l->confirmed &&
					(is_source(l, signalled) || !changed ||
						(!known && l->proved))));

		l->signalled = *signalled;
		if (restart || (changed && !kept))
			restart_learning(l, t, restart, changed, known);
		/* An asymmetric side's source is not where we send. */
		if (restart || (changed && !(kept && is_source(l, &l->remote))))
			l->remote = *signalled;
	} else if (l->since_ns == 0) {
		l->signalled = *signalled;
	} else if (restart) {
		restart_learning(l, t, true, true, known);
	}
	l->since_ns = now_ns ? now_ns : 1;
}

void learn_forget(struct learn *l, struct learn_trials *t)
{
	*t = (struct learn_trials){0};
	l->source = (struct endpoint){0};
	l->confirmed = l->proved = l->tentative = false;
	l->dev = 0;
	l->remote = named(&l->signalled) ? l->signalled : (struct endpoint){0};
}

bool learn_is_old(const struct learn *l, const struct learn_trials *t)
{
	return l->source.family && !l->confirmed && !l->tentative &&
		endpoint_eq(&l->source, &t->old);
}

bool learn_moved(struct learn *l, const struct learn_trials *t, uint64_t now_ns)
{
	if (!learn_is_old(l, t) || now_ns < l->heard_ns + LEARN_MOVED_NS)
		return false;
	l->source = (struct endpoint){0};
	l->proved = false;
	l->dev = 0;
	l->remote = l->signalled;
	return true;
}

/* Whether this source could become the followed one, by rank and state, before any probation. */
static bool could_lead(const struct learn *l, const struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct endpoint *src, bool proves)
{
	enum learn_rank rank = learn_rank_of(&l->signalled, src), now;

	if (!l->source.family || rank == LEARN_EXACT || learn_is_old(l, t))
		return true;
	if ((l->tentative || t->old_waits) && endpoint_eq(&t->old, src))
		return true;
	if (proves && !l->proved)
		return true;
	if (cfg->media_handover)
		return true;
	now = learn_rank_of(&l->signalled, &l->source);
	if (l->confirmed || l->tentative)
		return rank == LEARN_SAME_ADDR && now < rank;
	return rank >= now;
}

bool learn_accepts(const struct learn *l, const struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct endpoint *src, bool proves)
{
	if (!cfg->strict_source)
		return true;
	if (cfg->learning == MEDIA_LEARN_OFF) {
		enum learn_rank rank = learn_rank_of(&l->signalled, src);

		return !named(&l->signalled) ||
			rank >= (cfg->asymmetric ? LEARN_SAME_ADDR : LEARN_EXACT);
	}
	return is_source(l, src) || could_lead(l, t, cfg, src, proves);
}

/* --- Probation -------------------------------------------------------------------------------- */

static bool is_over(const struct learn_trial *r, const struct learn_seen *s)
{
	return s->now_ns > r->last_ns + (s->rtcp ? RTCP_PAUSE_NS : RTP_PAUSE_NS);
}

/* The entry for a source on probation: its own, a free one, one whose source pauses, or that of the
 * least likely source which does not rank higher. */
static struct learn_trial *trial_of(
	struct learn_trials *t, const struct endpoint *signalled, const struct learn_seen *s)
{
	enum learn_rank rank = learn_rank_of(signalled, s->src), least = rank;
	struct learn_trial *worst = NULL;

	for (int i = 0; i < LEARN_TRIALS; i++)
		if (t->of[i].src.family && endpoint_eq(&t->of[i].src, s->src))
			return &t->of[i];
	for (int i = 0; i < LEARN_TRIALS; i++) {
		struct learn_trial *r = &t->of[i];
		enum learn_rank its;

		if (!r->src.family || is_over(r, s))
			return r;
		its = learn_rank_of(signalled, &r->src);
		if (its > least)
			continue;
		if (!worst || its < least || r->count < worst->count ||
			(r->count == worst->count && r->last_ns < worst->last_ns))
			worst = r;
		least = its;
	}
	return worst;
}

static bool is_event(const struct media_stream_cfg *cfg, uint8_t type)
{
	return type == COMFORT_NOISE || (cfg->events[type / 64 & 1] >> type % 64 & 1);
}

static bool follows(const struct learn_trial *r, const struct media_stream_cfg *cfg,
	const struct learn_seen *s, uint16_t step)
{
	return s->rtcp ||
		(step >= 1 && step <= LEARN_STEP && (s->type == r->type || is_event(cfg, s->type)));
}

/* Counts a packet of a source on probation. True when it has passed. */
static bool passes(struct learn_trials *t, const struct learn *l,
	const struct media_stream_cfg *cfg, const struct learn_seen *s)
{
	struct learn_trial *r = trial_of(t, &l->signalled, s);
	uint16_t step;

	if (s->vouched)
		return true;
	if (!r)
		return false;
	step = (uint16_t)(s->seq - r->seq);
	if (!r->src.family || !endpoint_eq(&r->src, s->src) || is_over(r, s) || r->ssrc != s->ssrc)
		*r = (struct learn_trial){.src = *s->src, .count = 1, .type = s->type};
	else if (!s->rtcp && (step == 0 || step > UINT16_MAX - LEARN_STEP))
		return false; /* late, or a duplicate: does not count */
	else if (follows(r, cfg, s, step))
		r->count += r->count < UINT8_MAX;
	else
		*r = (struct learn_trial){.src = *s->src, .count = 1, .type = s->type};
	r->ssrc = s->ssrc;
	r->seq = s->seq;
	r->last_ns = s->now_ns;
	return r->count >= (s->rtcp ? LEARN_REPORTS : LEARN_PACKETS);
}

/* Whether the source that the signalled address displaced still sends. */
static bool old_goes_on(const struct learn_trials *t, const struct learn_seen *s)
{
	for (int i = 0; i < LEARN_TRIALS; i++)
		if (t->of[i].src.family && endpoint_eq(&t->of[i].src, &t->old))
			return !is_over(&t->of[i], s);
	return false;
}

/* --- The followed source ---------------------------------------------------------------------- */

static bool at_once(const struct learn *l, const struct media_stream_cfg *cfg, uint64_t now_ns)
{
	return cfg->learning == MEDIA_LEARN_IMMEDIATE || cfg->learning == MEDIA_LEARN_OFF ||
		now_ns >= l->since_ns + LEARN_PERIOD_NS ||
		learn_rank_of(&l->signalled, &l->source) == LEARN_EXACT;
}

/* Why this source replaces a confirmed one. */
static enum learn_cause cause_of(const struct learn *l, const struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct learn_seen *s)
{
	enum learn_rank rank = learn_rank_of(&l->signalled, s->src),
			now = learn_rank_of(&l->signalled, &l->source);

	return rank == LEARN_EXACT                             ? LEARN_BY_EXACT
		: l->tentative && endpoint_eq(&t->old, s->src) ? LEARN_BY_RESTORED
		: s->proved && !l->proved                      ? LEARN_BY_AUTHENTIC
		: rank > now                                   ? LEARN_BY_BETTER
		: cfg->media_handover                          ? LEARN_BY_HANDOVER
							       : LEARN_KEPT;
}

/* Whether this is a source from before signalling, while all others take precedence. */
static bool is_from_before(
	const struct learn *l, const struct learn_trials *t, const struct learn_seen *s)
{
	return !l->tentative && !t->old_waits && t->old.family && endpoint_eq(&t->old, s->src) &&
		s->now_ns < l->since_ns + LEARN_PERIOD_NS &&
		learn_rank_of(&l->signalled, s->src) < LEARN_EXACT;
}

/* A source that SDP does not name takes the place of the one that was confirmed before signalling.
 */
static bool displaces_old(
	const struct learn *l, const struct learn_trials *t, const struct learn_seen *s)
{
	return t->old_confirmed && !endpoint_eq(&t->old, s->src) &&
		learn_rank_of(&l->signalled, s->src) < LEARN_EXACT;
}

static void follow(struct learn *l, struct learn_trials *t, const struct media_stream_cfg *cfg,
	const struct learn_seen *s, struct learn_result *r)
{
	bool replaced = l->confirmed || l->tentative, before = is_from_before(l, t, s);
	bool tentative =
		l->confirmed && !s->proved && learn_rank_of(&l->signalled, s->src) == LEARN_EXACT;

	r->heard = r->changed = true;
	if (replaced) {
		r->cause = cause_of(l, t, cfg, s);
		r->from = learn_rank_of(&l->signalled, &l->source);
		r->to = learn_rank_of(&l->signalled, s->src);
	} else if (displaces_old(l, t, s)) {
		r->cause = LEARN_BY_SIGNALLED;
		r->from = learn_rank_of(&l->signalled, &t->old);
		r->to = learn_rank_of(&l->signalled, s->src);
		t->old_confirmed = false; /* told once */
	}
	/* Anybody may forge one packet from the address in SDP. If no further packets follow, the
	 * previous source is restored. */
	if (replaced)
		*t = (struct learn_trials){0};
	else
		memset(t->of, 0, sizeof(t->of));
	if (tentative)
		t->old = l->source;
	l->source = *s->src;
	l->heard_ns = s->now_ns;
	l->proved = s->proved;
	l->tentative = tentative;
	l->confirmed = !tentative && !before && (replaced || at_once(l, cfg, s->now_ns));
	if (!cfg->asymmetric)
		l->remote = *s->src;
	if (tentative)
		(void)passes(t, l, cfg, s);
}

/* The signalled address has passed its probation. If SDP names a private address, and the displaced
 * source had another, the terminal is probably behind address translation, and somebody forges
 * packets. So the displaced source may return (learn.h). */
static void confirm_tentative(struct learn *l, struct learn_trials *t, bool proved)
{
	struct endpoint old = t->old;
	bool waits = l->tentative && !proved && is_private(&l->signalled) && !is_private(&old);

	*t = (struct learn_trials){0};
	if (waits) {
		t->old = old;
		t->old_waits = true;
	}
	l->confirmed = true;
	l->tentative = false;
}

/* The displaced source has passed a probation. The signalled address keeps the media, but becomes
 * tentative again, so that the displaced source returns if that address is silent. */
static void doubt(struct learn *l, const struct learn_seen *s, struct learn_result *r)
{
	l->confirmed = false;
	l->tentative = true;
	l->heard_ns = s->now_ns;
	r->changed = true;
}

/* A packet of the followed source. */
static void goes_on(struct learn *l, struct learn_trials *t, const struct media_stream_cfg *cfg,
	const struct learn_seen *s, struct learn_result *r)
{
	bool confirm = l->tentative
		? s->proved || (passes(t, l, cfg, s) && !(t->old_waits && old_goes_on(t, s)))
		: at_once(l, cfg, s->now_ns) && !is_from_before(l, t, s);

	/* fast_path.c handles most packets of other confirmed sources, which need no time. */
	if (!l->confirmed || cfg->media_handover)
		l->heard_ns = s->now_ns;
	l->proved |= s->proved;
	if (!l->confirmed && confirm) {
		r->changed = true;
		confirm_tentative(l, t, s->proved);
	}
	/* The side was asymmetric until now. */
	if (!cfg->asymmetric && !endpoint_eq(&l->remote, s->src)) {
		l->remote = *s->src;
		r->changed = true;
	}
}

/* How long the followed source must have been silent before this one may replace it. */
static uint64_t quiet_ns(const struct learn *l, const struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct learn_seen *s)
{
	enum learn_rank rank = learn_rank_of(&l->signalled, s->src),
			now = learn_rank_of(&l->signalled, &l->source);

	if (!l->source.family || rank == LEARN_EXACT || (s->proved && !l->proved) ||
		learn_is_old(l, t))
		return 0;
	/* "delayed" follows the latest source of a rank. */
	if (!l->confirmed && !l->tentative && rank == now && cfg->learning == MEDIA_LEARN_DELAYED)
		return LEARN_STRAY_NS;
	if (t->old_waits && endpoint_eq(&t->old, s->src))
		return s->rtcp ? RTCP_PAUSE_NS : LEARN_QUIET_NS;
	if (l->tentative && endpoint_eq(&t->old, s->src))
		return LEARN_STRAY_NS;
	return rank > now || (cfg->media_handover && s->proved) ? 0 : LEARN_QUIET_NS;
}

/* Nothing is learned: the signalled address is the source as soon as it sends. */
static bool confirms_signalled(struct learn *l, const struct learn_seen *s)
{
	if (learn_rank_of(&l->signalled, s->src) != LEARN_EXACT ||
		(l->confirmed && is_source(l, s->src)))
		return false;
	l->source = *s->src;
	l->heard_ns = s->now_ns;
	l->confirmed = true;
	l->tentative = false;
	l->proved = s->proved;
	return true;
}

struct learn_result learn_packet(struct learn *l, struct learn_trials *t,
	const struct media_stream_cfg *cfg, const struct learn_seen *s)
{
	struct learn_result r = {.heard = !cfg->strict_source || s->proved};
	bool before = is_from_before(l, t, s);

	if (cfg->learning == MEDIA_LEARN_OFF) {
		r.heard = true; /* learn_accepts() has checked it against the SDP */
		r.changed = !(s->rtcp && cfg->rtp) && confirms_signalled(l, s);
	} else if (s->rtcp && cfg->rtp) {
		/* RTCP on the RTP port does not show the source of RTP. */
		r.heard |=
			is_source(l, s->src) || learn_rank_of(&l->signalled, s->src) == LEARN_EXACT;
	} else if (is_source(l, s->src)) {
		r.heard = true;
		goes_on(l, t, cfg, s, &r);
	} else if (before && (t->old_barred || l->source.family)) {
		r.heard |= t->old_heard && !l->source.family;
	} else if (could_lead(l, t, cfg, s->src, s->proved)) {
		bool quiet = s->now_ns >= l->heard_ns + quiet_ns(l, t, cfg, s);
		/* Authentic packets from the old address of a terminal that has moved may still
		 * arrive. */
		bool passed = (s->proved && !before) ||
			learn_rank_of(&l->signalled, s->src) == LEARN_EXACT || passes(t, l, cfg, s);

		r.heard |= before && t->old_heard;
		if (passed && !s->proved && l->confirmed && t->old_waits &&
			endpoint_eq(&t->old, s->src))
			doubt(l, s, &r);
		else if (passed && quiet)
			follow(l, t, cfg, s, &r);
	}
	return r;
}
