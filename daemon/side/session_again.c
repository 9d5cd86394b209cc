/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream that the terminal begins in mid-call, as for another SSRC, with an exchange of its own
 * (RFC 6189 4.4.3). Only Multistream mode is used: it needs the secret of the leg's exchange, so
 * nobody else can replace the keys of a call whose SAS was compared. The keys in use stay until the
 * exchange has some. A terminal without that secret sends a new offer. */
#include "side/session_int.h"

#include "base/secmem.h"
#include "keying/zrtp_self.h"

/* Least time between the beginnings of two exchanges, because anybody can send a Hello. PAUSE_NS
 * applies before the second, and LIFE_NS before a further one, which ends the older of the two. */
#define PAUSE_NS 1000000000ull
#define LIFE_NS  (5 * PAUSE_NS)

void session_again_drop(struct session *s)
{
	struct exchange *x = &s->exchange;

	zrtp_destroy(x->again);
	zrtp_destroy(x->before);
	x->again = x->before = NULL;
	x->again_told = x->again_counted = false;
}

static int make(struct session *s)
{
	struct exchange *x = &s->exchange;
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
	c.only_multi = true;
	err = zrtp_create(&x->again, &c);
	if (!err)
		err = zrtp_multi(x->again, x->zrtp);
	secmem_wipe(seed, sizeof(seed));
	secmem_wipe(&c, sizeof(c));
	if (err)
		session_again_drop(s);
	return err;
}

/* Makes room for another exchange. One with keys is complete, and goes. One without keys stays as
 * "before": its Hello or that of the next one may be forged. */
static void retire(struct session *s)
{
	struct exchange *x = &s->exchange;

	if (x->again && !x->again_told) {
		zrtp_destroy(x->before);
		x->before = x->again;
		zrtp_silence(x->before); /* a terminal that begins now belongs to the next one */
		x->again = NULL;
		x->again_counted = false;
	} else {
		session_again_drop(s);
	}
}

/* Whether the packet is the first of a stream. */
static bool begins(const struct session *s, const struct session_in *in)
{
	const struct exchange *x = &s->exchange;
	enum zrtp_state state = zrtp_state(x->zrtp);

	return (state == ZRTP_OPEN || state == ZRTP_CLEAR) &&
		zrtp_begins_another(x->zrtp, in->p, in->len) &&
		(!x->again || zrtp_begins_another(x->again, in->p, in->len)) &&
		(!x->before || zrtp_begins_another(x->before, in->p, in->len));
}

bool session_again_take(struct session *s, const struct session_in *in, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	bool taken = false;

	if (now_ns >= x->again_ns && begins(s, in)) {
		retire(s);
		x->again_ns = now_ns + (x->before ? LIFE_NS : PAUSE_NS);
		if (make(s))
			return false;
		x->again_began_ns = now_ns;
		zrtp_start(x->again, now_ns);
	}
	/* The hash chain shows whose exchange a packet belongs to. */
	if (x->before)
		taken = zrtp_take(x->before, in->p, in->len, now_ns) == 0;
	if (x->again && zrtp_take(x->again, in->p, in->len, now_ns) == 0)
		taken = true;
	return taken;
}

static void tick_before(struct exchange *x, uint64_t now_ns)
{
	enum zrtp_state state;

	if (!x->before)
		return;
	if (zrtp_deadline(x->before) <= now_ns)
		zrtp_tick(x->before, now_ns);
	state = zrtp_state(x->before);
	if (state != ZRTP_NO_PEER && state != ZRTP_FAILED)
		return;
	zrtp_destroy(x->before);
	x->before = NULL;
}

/* The one before, if any, takes its place. */
static void retire_again(struct exchange *x)
{
	zrtp_destroy(x->again);
	x->again = x->before;
	x->before = NULL;
	x->again_counted = false;
}

/* Forgets one that failed: the keys in use stay. */
void session_again_tick(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	enum zrtp_state state = x->again ? zrtp_state(x->again) : ZRTP_IDLE;

	tick_before(x, now_ns);
	if (state == ZRTP_NO_PEER || (state == ZRTP_FAILED && x->again_counted))
		retire_again(x);
	else if (x->again && zrtp_deadline(x->again) <= now_ns)
		zrtp_tick(x->again, now_ns);
}

static const struct zrtp *current(const struct session *s)
{
	return s->exchange.again_told ? s->exchange.again : s->exchange.zrtp;
}

enum zrtp_state session_again_state(struct session *s)
{
	struct exchange *x = &s->exchange;
	enum zrtp_state state = zrtp_state(current(s));

	x->again_after_clear = x->again_after_clear && zrtp_state(x->zrtp) == ZRTP_CLEAR;
	return state == ZRTP_CLEAR && !x->again_told && x->again_after_clear ? ZRTP_OPEN : state;
}

bool session_again_event(struct session *s, struct session_event *out)
{
	struct exchange *x = &s->exchange;

	if (x->before && zrtp_keys(x->before, &out->rx, &out->tx) == 0)
		retire_again(x);
	if (!x->again || x->again_told || zrtp_keys(x->again, &out->rx, &out->tx))
		return false;
	x->again_told = true;
	zrtp_destroy(x->before);
	x->before = NULL;
	x->again_after_clear = zrtp_state(x->zrtp) == ZRTP_CLEAR;
	(void)zrtp_secret(x->zrtp, &out->secret);
	out->kind = SESSION_KEYS;
	out->said = session_zrtp_said(s);
	return true;
}
