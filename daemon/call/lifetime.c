/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See lifetime.h. */
#include "call/lifetime.h"

#include "base/clock.h"
#include "call/call.h"
#include "call/dialog.h"

/* A packet with a later timestamp was received before the clock was set back. calls_clock_set() has
 * handled that. */
#define AHEAD_NS (uint64_t) CLOCK_STEP_NS

struct judge {
	const struct call_policy *policy;
	const struct relay *relay;
	const struct call *c;
	uint64_t now_ns;
	uint32_t done; /* sides judged already, or ended */
	struct lifetime_end *out;
	uint32_t n;
};

void lifetime_signalled(struct side *s, uint64_t now_ns)
{
	s->signal_ns = now_ns;
	if (!s->created_ns)
		s->created_ns = now_ns;
}

void lifetime_answered(struct side *s, bool early)
{
	s->early = early && (s->early || !s->answered);
	s->answered = true;
}

static bool is_party(const struct call *c, uint32_t i)
{
	return !c->side[i]->gone && !c->side[i]->listener;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Records of earlier versions do not say whether a side was answered. */
static bool was_answered(const struct side *s)
{
	bool active = false;

	for (uint32_t i = 0; i < s->legs; i++)
		active |= s->leg[i] && s->leg[i]->active;
	return s->answered || active;
}

/* --- Silence ---------------------------------------------------------------------------------- */

static uint64_t leg_heard(const struct judge *j, const struct leg *l)
{
	uint64_t last = 0, heard;

	for (int k = 0; k < 2; k++) {
		heard = leg_heard_ns(j->relay, j->c, l, k);
		if (heard <= j->now_ns + AHEAD_NS)
			last = later(last, heard);
	}
	return last;
}

/* The last authentic packet or request of these sides. While the daemon is down, nobody can send to
 * it. */
static uint64_t last_of(const struct judge *j, uint32_t sides)
{
	uint64_t last = j->c->resumed_ns;

	for (uint32_t i = 0; i < j->c->sides; i++) {
		const struct side *s = j->c->side[i];

		if (!(sides >> i & 1))
			continue;
		/* Records of earlier versions know the call's last request only. */
		last = later(last, s->signal_ns ? s->signal_ns : j->c->signal_ns);
		for (uint32_t k = 0; k < s->legs; k++)
			if (s->leg[k] && s->leg[k]->has_port)
				last = later(last, leg_heard(j, s->leg[k]));
	}
	return last;
}

/* No terminal of these sides both sends and receives. */
static bool is_held(const struct call *c, uint32_t sides)
{
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t k = 0; sides >> i & 1 && k < c->side[i]->legs; k++) {
			const struct side *s = c->side[i];
			const struct leg *l = s->leg[k], *o = leg_peer(c, s, k);

			if (!l || !l->has_port || !l->active)
				continue;
			if (s->publisher && l->dir != SDP_DIR_INACTIVE)
				return false;
			if (o && o->active && l->dir == SDP_DIR_SENDRECV &&
				o->dir == SDP_DIR_SENDRECV)
				return false;
		}
	return true;
}

/* limit_ns 0: never. */
static bool is_silent(const struct judge *j, uint32_t sides, uint64_t limit_ns)
{
	uint64_t last = last_of(j, sides);

	return limit_ns && j->now_ns >= last && j->now_ns - last >= limit_ns;
}

static void add(struct judge *j, uint32_t sides, enum call_end why)
{
	j->out[j->n++] = (struct lifetime_end){sides & ~j->done, why};
	j->done |= sides;
}

/* --- Dialogs ---------------------------------------------------------------------------------- */

/* The other branches of this side. */
static uint32_t others_of(const struct call *c, uint8_t head, uint8_t branch)
{
	uint32_t sides = 0;

	for (uint32_t i = 0; i < c->sides; i++)
		if (i != branch && is_party(c, i) && c->side[i]->peer == head)
			sides |= 1u << i;
	return sides;
}

/* No answer to this side's offers was final. */
static bool is_undecided(const struct side *s)
{
	return !was_answered(s) || s->early;
}

static bool branch_is_over(struct judge *j, uint8_t i, enum call_end *why)
{
	const struct side *s = j->c->side[i], *head = j->c->side[s->peer];
	bool decided = was_answered(s) && (s->settled || head->settled);

	*why = decided ? CALL_END_TIMEOUT : CALL_END_OFFER_TIMEOUT;
	return is_silent(j, 1u << i, decided ? j->policy->timeout_ns : j->policy->offer_timeout_ns);
}

/* Judges branches without the media of their side. Returns those that continue. */
static uint32_t judge_branches(struct judge *j, uint32_t branches)
{
	enum call_end why;

	for (uint32_t i = 0; i < j->c->sides; i++)
		if (branches >> i & 1 && branch_is_over(j, (uint8_t)i, &why)) {
			add(j, 1u << i, why);
			branches &= ~(1u << i);
		}
	return branches;
}

static uint32_t settled_of(const struct call *c, uint32_t sides)
{
	uint32_t out = 0;

	for (uint32_t i = 0; i < c->sides; i++)
		out |= c->side[i]->settled ? sides & 1u << i : 0;
	return out;
}

/* Sides that share a limit. ringing: further branches of the same offer may still be answered. */
static bool group_is_over(
	const struct judge *j, uint32_t sides, bool answered, bool ringing, enum call_end *why)
{
	bool held = is_held(j->c, sides);

	*why = !answered || ringing ? CALL_END_OFFER_TIMEOUT
		: held              ? CALL_END_SILENT_TIMEOUT
				    : CALL_END_TIMEOUT;
	return is_silent(j, sides,
		!answered || ringing ? j->policy->offer_timeout_ns
			: held       ? j->policy->silent_timeout_ns
				     : j->policy->timeout_ns);
}

/* Two sides that exchange media with each other, and the other branches of one of them. */
static void judge_pair(struct judge *j, uint8_t a, uint8_t b)
{
	const struct call *c = j->c;
	uint8_t head = others_of(c, a, b) ? a : b, branch = head == a ? b : a;
	uint32_t others = others_of(c, head, branch) | others_of(c, branch, head), live;
	bool undecided = is_undecided(c->side[head]), over;
	uint32_t pair = 1u << a | 1u << b, before = j->n;
	enum call_end why;

	over = group_is_over(j, pair, was_answered(c->side[a]) && was_answered(c->side[b]),
		undecided && others, &why);
	live = judge_branches(j, others);
	if (!over)
		return;
	live = undecided ? live : settled_of(c, live);
	if (live) {
		add(j, 1u << branch, why);
		return;
	}
	j->n = before; /* the whole dialog ends, for this reason */
	j->done &= ~others;
	add(j, pair | others, why);
}

/* One dialog with its branches. */
static void judge_dialog(struct judge *j, uint32_t sides)
{
	const struct call *c = j->c;
	bool connected = false, answered = true;
	uint64_t from_ns = UINT64_MAX;
	enum call_end why;

	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];
		uint64_t born = s->created_ns ? s->created_ns : c->created_ns;

		if (!(sides >> i & 1))
			continue;
		connected |= s->connected;
		answered &= was_answered(s);
		from_ns = born < from_ns ? born : from_ns;
	}
	if (j->policy->final_timeout_ns && j->now_ns >= from_ns &&
		j->now_ns - from_ns >= j->policy->final_timeout_ns) {
		add(j, sides, CALL_END_FINAL_TIMEOUT);
		return;
	}
	for (uint8_t i = 0; !connected && i < c->sides; i++) {
		uint8_t peer = c->side[i]->peer;

		if (sides >> i & 1 && peer != SIDE_NONE && c->side[peer]->peer == i && i < peer) {
			judge_pair(j, i, peer);
			return;
		}
	}
	if (group_is_over(j, sides, answered, false, &why))
		add(j, sides, why);
}

/* Listeners that receive from nobody else. */
static uint32_t listeners_of(const struct call *c, uint32_t sides)
{
	uint32_t out = 0;

	for (uint32_t i = 0; i < c->sides; i++) {
		const struct side *s = c->side[i];
		bool hears = false, others = false;

		for (uint32_t k = 0; s->listener && !s->gone && k < s->legs; k++) {
			const struct leg *l = s->leg[k];

			if (!l || !l->used || !l->hears)
				continue;
			hears |= sides >> l->hears_side & 1;
			others |= !(sides >> l->hears_side & 1) && !c->side[l->hears_side]->gone;
		}
		out |= hears && !others ? 1u << i : 0;
	}
	return out;
}

static uint32_t all_of(const struct call *c)
{
	return (1u << c->sides) - 1;
}

uint32_t lifetime_over(struct lifetime_end out[CALL_MAX_SIDES], const struct call_policy *policy,
	const struct relay *relay, const struct call *c, uint64_t now_ns)
{
	struct judge j = {.policy = policy, .relay = relay, .c = c, .now_ns = now_ns, .out = out};
	uint32_t seen = 0, over = 0;

	for (uint8_t i = 0; i < c->sides; i++) {
		uint32_t sides;

		if (!is_party(c, i) || seen >> i & 1)
			continue;
		sides = dialog_sides(c, i);
		seen |= sides;
		judge_dialog(&j, sides);
	}
	if (!seen && is_silent(&j, all_of(c), policy->timeout_ns)) /* listeners only */
		add(&j, all_of(c), CALL_END_TIMEOUT);
	for (uint32_t i = 0; i < j.n; i++)
		over |= out[i].sides;
	if (j.n)
		out[0].sides |= listeners_of(c, over);
	return j.n;
}
