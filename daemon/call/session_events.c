/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles keys and pairs from a leg's session during the call. Each event changes the call as a
 * request does: on a copy, completely or not at all. RFC 5764, RFC 8445. */
#include "call/session_places.h"

#include <errno.h>

#include "base/secmem.h"
#include "call/apply.h"
#include "call/history.h"
#include "call/in_force.h"
#include "call/leg_locals.h"
#include "call/leg_zrtp.h"
#include "keying/keying.h"
#include "keying/preauth_policy.h"

#define EVENT_POOL 65536u

/* --- Changes of a leg ------------------------------------------------------------------------- */

static struct srtp_params params_of(const struct srtp_master *key)
{
	return (struct srtp_params){.keys = 1, .key[0] = *key};
}

/* RTCP without mux has its own association and keys. The key pair is taken again with both keys.
 * RTP's key is the same, so its indexes continue. */
static bool set_rtcp_keys(struct leg *l, const struct session_event *e)
{
	if (!l->rx.keys || l->keyed != e->association || srtp_params_suite(&l->rx) != e->rx.suite)
		return false;
	l->rx.rtcp = e->rx;
	l->tx.rtcp = e->tx;
	l->rx_slot[0] = l->tx_slot = SLOT_UNSET;
	return true;
}

static bool set_keys(struct leg *l, const struct session_event *e)
{
	struct keying_association a;
	struct srtp_params rx = params_of(&e->rx), tx = params_of(&e->tx);

	if (!keying_association(&a, &l->keying) || a.number != e->association || !a.role ||
		(a.suites && !(a.suites >> e->rx.suite & 1)))
		return false;
	if (e->rtcp)
		return set_rtcp_keys(l, e);
	rx.preauth = tx.preauth = keying_preauth_fits(a.preauth, &e->rx, false);
	leg_set_rx(l, &rx);
	leg_set_tx(l, &tx);
	if (l->keyed != e->association)
		l->settled[0] = l->settled[1] = 0;
	l->keyed = e->association;
	secmem_wipe(&rx, sizeof(rx));
	secmem_wipe(&tx, sizeof(tx));
	return true;
}

/* An emergency call continues in clear if the request allows it, but never after a forged
 * handshake. */
static bool do_without(struct leg *l, const struct session_event *e)
{
	struct keying_association a;

	if (!e->declined || e->rtcp || !l->rx.awaited || !keying_association(&a, &l->keying) ||
		a.number != e->association || !keying_may_do_without(&l->keying))
		return false;
	leg_set_rx(l, NULL);
	leg_set_tx(l, NULL);
	return true;
}

/* Whether the leg changed. */
static bool change(struct leg *l, const struct session_event *e)
{
	if (e->zrtp)
		return leg_zrtp_event(l, e);
	switch (e->kind) {
	case SESSION_KEYS:
		return set_keys(l, e);
	case SESSION_PAIR:
		if (!l->ice.on ||
			(endpoint_eq(&l->ice.pair[e->rtcp], &e->remote) &&
				l->locals.at[e->rtcp] == e->at) ||
			!leg_locals_use(l, e->rtcp, e->at))
			return false;
		l->ice.controlling = e->controlling;
		l->ice.pair[e->rtcp] = e->remote;
		*(e->rtcp ? &l->rtcp_remote : &l->remote) = e->remote;
		if (l->mux)
			l->rtcp_remote = l->remote;
		return true;
	case SESSION_FAILED:
		return do_without(l, e);
	case SESSION_LOST:
		if (!l->ice.on)
			return false;
		memset(l->ice.pair, 0, sizeof(l->ice.pair));
		memset(l->ice.named, 0, sizeof(l->ice.named));
		l->remote = l->rtcp_remote = (struct endpoint){0};
		return true;
	}
	return false;
}

/* The same for m-lines that share the leg's transport. */
static bool change_all(struct side *s, uint8_t media, const struct session_event *e)
{
	if (!change(s->leg[media], e))
		return false;
	side_share(s, media);
	return true;
}

/* --- History and log -------------------------------------------------------------------------- */

static void note(struct call *c, struct str tag, const struct session_event *e, uint64_t now_ns)
{
	char addr[ENDPOINT_STRLEN];
	const char *part = e->rtcp ? "RTCP" : "RTP";

	if (e->zrtp && e->kind != SESSION_FAILED && e->kind != SESSION_CLOSED) {
		leg_zrtp_note(c, tag, e, now_ns);
		return;
	}
	switch (e->kind) {
	case SESSION_KEYS:
		history_add(&c->history, now_ns, HISTORY_KEYS, tag,
			"DTLS handshake for %s completed: %s", part,
			srtp_suite_get(e->rx.suite)->name);
		break;
	case SESSION_PAIR:
		history_add(&c->history, now_ns, HISTORY_SOURCE, tag, "ICE selected %s for %s",
			endpoint_fmt(&e->remote, addr), part);
		break;
	case SESSION_LOST:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag,
			"ICE consent was lost: nothing is sent until a check succeeds");
		break;
	case SESSION_FALLBACK:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag,
			"%s: media of this emergency call are in clear", e->why);
		break;
	case SESSION_CLOSED:
		history_add(&c->history, now_ns, HISTORY_KEYS, tag,
			"the terminal closed its DTLS association for %s", part);
		break;
	default:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag, "no media of %s: %s", part,
			e->why ? e->why : "");
	}
}

static void report(
	struct calls *c, const struct call *call, struct str tag, const struct session_event *e)
{
	struct call_session_notice n = {
		.call_id = call->id, .tag = tag, .kind = e->kind, .rtcp = e->rtcp, .why = e->why};

	if (e->zrtp) {
		n.sas = e->said.sas;
		n.verified = e->said.verified;
		n.mismatched = e->said.mismatched;
		n.discloses = e->said.discloses;
	}
	if (e->kind == SESSION_KEYS)
		n.why = srtp_suite_get(e->rx.suite)->name;
	if (c->session_notice)
		c->session_notice(c->session_notice_arg, &n);
}

/* 1: the call was replaced; 0: the event changes nothing; or a negative errno. */
static int bring_in_force(struct calls *c, struct session_place at, struct call **call,
	const struct session_event *e, uint64_t now_ns)
{
	struct call *next = call_clone(&c->keys, *call);
	struct pool *p = NULL;
	int err = next ? pool_create(&p, EVENT_POOL) : -ENOMEM;
	bool changes = !err && change_all(next->side[at.side], at.media, e);

	/* The check succeeded there, but the operator must allow media there, too. */
	if (changes && e->kind == SESSION_PAIR &&
		links_check(c, (*call)->id, &e->remote) != REACH_OK)
		err = -EACCES;
	if (changes && !err)
		err = apply_take(c->relay, *call, next);
	if (err || !changes)
		call_free(&c->keys, next);
	else
		err = calls_put_in_force(c, p, *call, next, now_ns);
	if (changes && !err)
		*call = next;
	pool_destroy(p);
	return err ? err : changes;
}

/* Its leg has no media before its keys. */
static bool is_awaited(const struct call *call, struct session_place at)
{
	return call->side[at.side]->leg[at.media]->rx.awaited;
}

/* Whether this event put its leg in clear, which the request prefers to a leg without media. */
static bool falls_back(
	const struct call *call, struct session_place at, const struct session_event *e)
{
	if (!e->zrtp)
		return e->kind == SESSION_FAILED;
	return (e->kind == SESSION_ABSENT || e->kind == SESSION_FAILED) &&
		keying_falls_back(&call->side[at.side]->leg[at.media]->keying);
}

int calls_session_event(
	struct calls *c, uint32_t session, const struct session_event *e, uint64_t now_ns)
{
	static const struct session_event no_room = {
		.kind = SESSION_FAILED, .why = "out of room for its keys"};
	static const struct session_event absent = {
		.kind = SESSION_FAILED, .zrtp = true, .why = "the terminal does not answer"};
	static const struct session_event no_way = {
		.kind = SESSION_FAILED, .why = "ICE selected an address that media may not go to"};
	struct session_place at =
		c->session_place ? c->session_place[session] : (struct session_place){0};
	struct call *call = at.call;
	bool says_all = e->kind == SESSION_FAILED || e->kind == SESSION_CLOSED;
	struct session_event fell = {.kind = SESSION_FALLBACK, .zrtp = e->zrtp};
	int changed;

	if (!call)
		return 0;
	changed = bring_in_force(c, at, &call, e, now_ns);
	if (changed == -EAGAIN) /* the same event may succeed soon */
		return changed;
	if (changed < 0)
		e = changed == -EACCES ? &no_way : &no_room;
	/* From waiting for keys to clear, as the request allows. */
	c->counters.keying_fallbacks +=
		changed > 0 && (e->kind == SESSION_FAILED || e->kind == SESSION_ABSENT);
	if (changed > 0 && falls_back(call, at, e)) {
		fell.why = e->why ? e->why : absent.why;
		e = &fell;
	}
	if (!changed && e->kind == SESSION_ABSENT && is_awaited(call, at))
		e = &absent;
	else if (!changed && !says_all)
		return 0;
	note(call, call->side[at.side]->tag, e, now_ns);
	report(c, call, call->side[at.side]->tag, e);
	return 0;
}

void calls_on_session(
	struct calls *c, void (*fn)(void *arg, const struct call_session_notice *n), void *arg)
{
	c->session_notice = fn;
	c->session_notice_arg = arg;
}
