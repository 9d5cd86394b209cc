/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ZRTP exchanges of one terminal in a call. They run in one keying thread, because a call has
 * one worker. One of them agrees on a secret by public keys, and the others use it (RFC 6189
 * 4.4.3). */
#include "side/session_int.h"

static bool has_party(const struct session *s)
{
	static const uint8_t none[SESSION_ZRTP_ZID];

	return memcmp(s->cfg.zrtp.party, none, sizeof(none)) != 0;
}

/* The party is random, so its bytes serve as a hash. */
static struct session **bucket_of(const struct session *s)
{
	return &s->env->party[s->cfg.zrtp.party[0] % SESSION_PARTIES];
}

void session_party_join(struct session *s)
{
	struct session **at = bucket_of(s);

	if (s->party || !has_party(s))
		return;
	s->party_next = *at;
	*at = s;
	s->party = at;
}

void session_party_leave(struct session *s)
{
	struct session **at = s->party;

	if (!at)
		return;
	while (*at != s)
		at = &(*at)->party_next;
	*at = s->party_next;
	s->party_next = NULL;
	s->party = NULL;
}

static bool leads(const struct session *s)
{
	enum zrtp_state state = zrtp_state(s->exchange.zrtp);

	return !zrtp_is_multi(s->exchange.zrtp) &&
		(state == ZRTP_DISCOVERY || state == ZRTP_WANTS_SECRETS || state == ZRTP_AGREEING ||
			state == ZRTP_OPEN);
}

const struct session *session_party_first(const struct session *s)
{
	if (!s->party)
		return NULL;
	for (const struct session *o = *bucket_of(s); o; o = o->party_next)
		if (o != s && o->exchange.zrtp &&
			memcmp(o->cfg.zrtp.party, s->cfg.zrtp.party, SESSION_ZRTP_ZID) == 0 &&
			leads(o))
			return o;
	return NULL;
}
