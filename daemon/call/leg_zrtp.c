/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of ZRTP: keys and SAS, a terminal without ZRTP, GoClear. RFC 6189. */
#include "call/leg_zrtp.h"

#include "base/secmem.h"
#include "call/history.h"
#include "call/in_force.h"
#include "keying/keying.h"
#include "keying/preauth_policy.h"

static bool set_keys(struct leg *l, const struct session_event *e, uint8_t preauth)
{
	struct srtp_params rx = {.keys = 1, .key[0] = e->rx}, tx = {.keys = 1, .key[0] = e->tx};

	rx.preauth = tx.preauth = keying_preauth_fits(preauth, &e->rx, false);
	leg_set_rx(l, &rx);
	leg_set_tx(l, &tx);
	keying_exchanged(&l->keying, e);
	secmem_wipe(&rx, sizeof(rx));
	secmem_wipe(&tx, sizeof(tx));
	return true;
}

bool leg_zrtp_event(struct leg *l, const struct session_event *e)
{
	struct keying_exchange x;

	if (!keying_exchange(&x, &l->keying) || x.number != e->association)
		return false;
	switch (e->kind) {
	case SESSION_KEYS:
		if (!(x.suites >> e->rx.suite & 1))
			return false;
		if (!x.keyed)
			l->settled[0] = l->settled[1] = 0;
		return set_keys(l, e, x.preauth);
	case SESSION_FAILED:
	case SESSION_ABSENT:
		if (!l->rx.awaited ||
			!(e->kind == SESSION_ABSENT ? keying_may_clear(&l->keying)
						    : keying_falls_back(&l->keying)))
			return false;
		leg_set_rx(l, NULL);
		leg_set_tx(l, NULL);
		return true;
	case SESSION_CLEAR:
		if (!keying_go_clear(&l->keying, e))
			return false;
		leg_set_rx(l, NULL);
		leg_set_tx(l, NULL);
		return true;
	}
	return false;
}

void leg_zrtp_note(struct call *c, struct str tag, const struct session_event *e, uint64_t now_ns)
{
	switch (e->kind) {
	case SESSION_KEYS:
		history_add(&c->history, now_ns, HISTORY_KEYS, tag,
			"ZRTP exchange completed: %s, SAS %s, %s%s%s",
			srtp_suite_get(e->rx.suite)->name, e->said.sas,
			e->said.verified ? "verified" : "not verified",
			e->said.mismatched ? ", retained secrets do not match" : "",
			e->said.discloses ? ", the terminal may disclose keys or media" : "");
		break;
	case SESSION_ABSENT:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag,
			"the terminal does not answer ZRTP: its media are in clear");
		break;
	case SESSION_FALLBACK:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag,
			"ZRTP failed: %s; its media are in clear, as the request allows (fallback)",
			e->why ? e->why : "the terminal does not answer");
		break;
	case SESSION_CLEAR:
		history_add(&c->history, now_ns, HISTORY_TROUBLE, tag,
			"the terminal ended SRTP by GoClear: its media are in clear");
		break;
	}
}
