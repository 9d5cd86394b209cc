/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a session reports to the call: pairs, keys, failures and the end (keying/session.h). Each is
 * reported once. */
#include "side/session_int.h"

static bool pair_event(struct session *s, uint32_t k, struct session_event *out)
{
	struct component *c = &s->part[k];
	/* Without ICE, the peer's address is proven only after its certificate was checked. */
	bool known = s->ice ? c->dst.family
			    : c->proven.family && c->dtls && dtls_state(c->dtls) == DTLS_OPEN;

	if (!known || (endpoint_eq(&c->told, &c->dst) && c->told_at == c->at))
		return false;
	c->told = c->dst;
	c->told_at = c->at;
	*out = (struct session_event){.kind = SESSION_PAIR,
		.rtcp = k,
		.at = c->at,
		.controlling = s->ice && ice_is_controlling(s->ice),
		.remote = c->dst};
	return true;
}

/* The handshake is with the terminal, as far as can be known: anybody may return a cookie. */
static bool is_with_terminal(const struct session *s, uint32_t k)
{
	return s->ice || session_is_client(s) || endpoint_eq(&s->part[k].proven, &s->cfg.remote[k]);
}

static bool keys_event(struct session *s, uint32_t k, struct session_event *out)
{
	struct component *c = &s->part[k];
	enum dtls_state state = c->dtls ? dtls_state(c->dtls) : DTLS_IDLE;

	*out = (struct session_event){.rtcp = k, .association = s->cfg.dtls.association};
	/* Keys of RTCP are added to those of RTP. */
	if (k && !s->part[0].keys_told && !s->part[0].end_told && !session_is_over(s))
		return false;
	if (state == DTLS_OPEN && !c->keys_told && dtls_keys(c->dtls, &out->rx, &out->tx) == 0) {
		c->keys_told = true;
		out->kind = SESSION_KEYS;
		return true;
	}
	if (c->end_told || (state != DTLS_FAILED && state != DTLS_CLOSED && !c->failure))
		return false;
	c->end_told = true;
	out->kind = state == DTLS_CLOSED ? SESSION_CLOSED : SESSION_FAILED;
	if (state != DTLS_CLOSED) {
		enum dtls_failure f =
			c->failure ? (enum dtls_failure)c->failure : dtls_failure(c->dtls);

		out->why = dtls_failure_text(f);
		out->declined = (f == DTLS_FAIL_TIMEOUT || f == DTLS_FAIL_REFUSED) &&
			is_with_terminal(s, k);
	}
	return true;
}

static bool ice_event(struct session *s, struct session_event *out)
{
	enum ice_state state = s->ice ? ice_state(s->ice) : ICE_NEW;

	if (state == s->ice_told)
		return false;
	s->ice_told = state;
	*out = (struct session_event){0};
	if (state == ICE_FAILED) {
		out->kind = SESSION_FAILED;
		out->why = "no ICE connectivity check of the peer succeeded";
	} else if (state == ICE_LOST) {
		out->kind = SESSION_LOST;
		for (uint32_t k = 0; k < COMPONENTS; k++)
			s->part[k].told = (struct endpoint){0};
	}
	return out->kind != SESSION_NONE;
}

bool session_event(struct session *s, struct session_event *out)
{
	if (s->broken && !s->broken_told) {
		s->broken_told = true;
		*out = (struct session_event){.kind = SESSION_FAILED, .why = "out of memory"};
		return true;
	}
	if (ice_event(s, out))
		return true;
	for (uint32_t k = 0; k < session_components(s); k++)
		if (pair_event(s, k, out) || keys_event(s, k, out))
			return true;
	return session_zrtp_event(s, out);
}
