/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that the terminal begins in mid-call, as for another SSRC, with an exchange of its own
 * (RFC 6189 4.4.3). Only Multistream mode is used: it needs the secret of the leg's exchange, so
 * nobody else can replace the keys of a call whose SAS was compared. The keys in use stay until the
 * exchange has some. One exchange serves the terminal and all who forge its packets, so one Hello
 * of ours is valid at a time. A terminal without that secret sends a new offer. */
#include "side/session_int.h"

#include "base/secmem.h"
#include "keying/zrtp_self.h"

/* Least time between the keys of one stream and the beginning of the next. */
#define PAUSE_NS 1000000000ull
/* An exchange ends that received nothing for so long: a Hello may have been forged. */
#define LINGER_NS (30 * PAUSE_NS)

static void end(struct exchange *x)
{
	zrtp_destroy(x->again);
	x->again = NULL;
	x->again_until_ns = UINT64_MAX;
}

void session_again_drop(struct session *s)
{
	struct exchange *x = &s->exchange;

	end(x);
	zrtp_destroy(x->later);
	x->later = NULL;
	x->later_told = false;
	x->later_counted = ZRTP_IDLE;
}

static int create(struct zrtp **out, struct session *s, bool only_multi)
{
	uint8_t seed[ZRTP_SEED];
	const struct zrtp_self self = {.seed = seed, .zid = s->cfg.zrtp.zid};
	struct zrtp_prefs prefs;
	struct zrtp_config c;
	int err = secmem_random(seed, sizeof(seed));

	if (err)
		return err;
	zrtp_self_config(&c, &prefs, &self);
	c.counts = &s->env->zrtp_counts;
	c.may_clear = s->cfg.zrtp.goclear;
	c.disclose = s->env->zrtp_disclose;
	c.only_multi = only_multi;
	err = zrtp_create(out, &c);
	secmem_wipe(seed, sizeof(seed));
	secmem_wipe(&c, sizeof(c));
	return err;
}

static int make(struct session *s)
{
	struct exchange *x = &s->exchange;
	int err = create(&x->again, s, true);

	if (!err)
		err = zrtp_multi(x->again, x->zrtp);
	if (err)
		end(x);
	return err;
}

int session_again_restore(struct session *s, const struct zrtp_secret *secret)
{
	struct exchange *x = &s->exchange;
	int err = secret->known ? create(&x->later, s, false) : 0;

	if (!err && x->later && zrtp_restore(x->later, secret)) {
		zrtp_destroy(x->later);
		x->later = NULL;
	}
	x->later_told = x->later;
	x->later_counted = x->later ? ZRTP_OPEN : ZRTP_IDLE;
	return err;
}

/* Whether the packet is the first of a stream. */
static bool begins(const struct session *s, const struct session_in *in)
{
	const struct exchange *x = &s->exchange;
	enum zrtp_state state = zrtp_state(x->zrtp);

	return (state == ZRTP_OPEN || state == ZRTP_CLEAR) &&
		zrtp_begins_another(x->zrtp, in->p, in->len) &&
		(!x->later || zrtp_begins_another(x->later, in->p, in->len));
}

bool session_again_take(struct session *s, const struct session_in *in, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;

	if (!x->again && now_ns >= x->again_ns && begins(s, in)) {
		if (make(s))
			return false;
		x->again_began_ns = now_ns;
		zrtp_start(x->again, now_ns);
	}
	if (x->again && zrtp_take(x->again, in->p, in->len, now_ns) == 0) {
		x->again_until_ns = now_ns + LINGER_NS;
		return true;
	}
	return x->later && zrtp_take(x->later, in->p, in->len, now_ns) == 0;
}

void session_again_tick(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;

	if (x->again && (now_ns >= x->again_until_ns || zrtp_state(x->again) == ZRTP_FAILED))
		end(x);
	if (x->again && zrtp_deadline(x->again) <= now_ns)
		zrtp_tick(x->again, now_ns);
	if (x->later && zrtp_deadline(x->later) <= now_ns)
		zrtp_tick(x->later, now_ns);
}

void session_again_proceed(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	struct srtp_master rx, tx;

	if (!x->again || zrtp_keys(x->again, &rx, &tx))
		return;
	secmem_wipe(&rx, sizeof(rx));
	secmem_wipe(&tx, sizeof(tx));
	zrtp_destroy(x->later);
	x->later = x->again;
	x->later_told = false;
	x->later_counted = ZRTP_IDLE;
	x->again = NULL;
	x->again_ns = now_ns + PAUSE_NS;
}

uint64_t session_again_deadline(const struct session *s)
{
	const struct exchange *x = &s->exchange;
	uint64_t again = x->again ? zrtp_deadline(x->again) : UINT64_MAX;
	uint64_t later = x->later ? zrtp_deadline(x->later) : UINT64_MAX;

	again = x->again && x->again_until_ns < again ? x->again_until_ns : again;
	return again < later ? again : later;
}

enum zrtp_state session_again_state(const struct session *s)
{
	return zrtp_state(s->exchange.later_told ? s->exchange.later : s->exchange.zrtp);
}

bool session_again_event(struct session *s, struct session_event *out)
{
	struct exchange *x = &s->exchange;

	if (!x->later || x->later_told || zrtp_keys(x->later, &out->rx, &out->tx))
		return false;
	x->later_told = true;
	session_zrtp_secrets(s, out);
	out->kind = SESSION_KEYS;
	out->said = session_zrtp_said(s);
	return true;
}
