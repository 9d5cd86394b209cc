/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exchange of ZRTP of a session (RFC 6189). It uses the port of RTP only. Our Hello goes where
 * signalling or ICE says. Who may take part: the signalled address, the source of authentic media,
 * the source of a valid ICE pair, and, before there are keys, whoever sends the Hello that SDP
 * announced. With keys our packets follow the terminal's media. */
#include "side/session_int.h"

#include <stdio.h>

#include "base/secmem.h"
#include "keying/zrtp_self.h"

/* Least time between two changes of the source. */
#define TURN_NS 1000000000ull
/* Interval at which an exchange checks whether the terminal's first exchange has ended. */
#define WAIT_NS 20000000ull

void session_zrtp_drop(struct session *s)
{
	session_party_leave(s);
	session_again_drop(s);
	zrtp_destroy(s->exchange.zrtp);
	s->exchange = (struct exchange){0};
}

/* An exchange whose ZID differs from the cache's began without this cache. */
static bool has_cache(const struct session *s)
{
	return s->env->store &&
		memcmp(zrtp_store_zid(s->env->store), s->cfg.zrtp.zid, ZRTP_ZID) == 0;
}

static int make(struct session *s)
{
	const struct session_zrtp *cfg = &s->cfg.zrtp;
	const struct zrtp_self self = {
		.seed = cfg->seed, .zid = cfg->zid, .preshared = cfg->preshared};
	struct zrtp_prefs prefs;
	struct zrtp_config c;
	int err;

	zrtp_self_config(&c, &prefs, &self);
	c.counts = &s->env->zrtp_counts;
	c.cache = has_cache(s);
	c.enrol = cfg->enrol;
	c.may_clear = cfg->goclear;
	c.disclose = s->env->zrtp_disclose;
	c.bound = cfg->bound;
	memcpy(c.bound_hash, cfg->hash, sizeof(c.bound_hash));
	err = zrtp_create(&s->exchange.zrtp, &c);
	secmem_wipe(&c, sizeof(c));
	if (!err)
		session_party_join(s);
	return err;
}

/* The exchange of an earlier process, for further streams of the terminal. Calls that an
 * earlier version saved have no secret, so they continue without it. */
static int restore(struct session *s, const struct session_zrtp_past *past)
{
	struct exchange *x = &s->exchange;
	int err;

	if (!past->secret.known)
		return 0;
	err = make(s);
	if (!err && zrtp_restore(x->zrtp, &past->secret))
		session_zrtp_drop(s); /* a damaged record: the call has its keys all the same */
	if (!x->zrtp)
		return err;
	x->first = past->said;
	x->counted = ZRTP_OPEN;
	err = err ? err : session_again_restore(s, &past->later);
	x->told = (uint8_t)session_again_state(s); /* the call knows it */
	return err;
}

int session_zrtp_set(
	struct session *s, const struct session_kept *before, const struct session_zrtp_past *past)
{
	const struct session_zrtp *now = &s->cfg.zrtp;

	if (!now->on || !before->zrtp.on || now->exchange != before->zrtp.exchange)
		session_zrtp_drop(s);
	/* The terminal moved, and says where to. */
	if (s->cfg.remote[0].family && !endpoint_eq(&s->cfg.remote[0], &before->remote[0]))
		s->exchange.proven = (struct endpoint){0};
	if (now->on && now->established)
		s->zrtp_over = now->exchange;
	if (!now->on || s->exchange.zrtp)
		return 0;
	return s->zrtp_over && s->zrtp_over == now->exchange ? restore(s, past) : make(s);
}

static void aim(struct session *s)
{
	struct exchange *x = &s->exchange;

	if (s->ice) {
		x->dst = session_ice_selected(s, 0, &x->at);
		return;
	}
	x->at = 0;
	x->dst = x->proven.family ? x->proven : s->cfg.remote[0];
}

struct session_said session_zrtp_said(const struct session *s)
{
	const struct zrtp *z = s->exchange.zrtp;
	const uint8_t *hash = zrtp_sas_hash(z), *zid = zrtp_peer_zid(z);
	struct session_said out = {.verified = zrtp_sas_verified(z),
		.mismatched = zrtp_mismatched(z),
		.enrolled = zrtp_enrolled(z),
		.discloses = zrtp_peer_discloses(z)};

	if (zrtp_is_multi(z) || zrtp_is_restored(z))
		return s->exchange.first;
	snprintf(out.sas, sizeof(out.sas), "%s", zrtp_sas(z));
	if (zid && has_cache(s))
		memcpy(out.zid, zid, sizeof(out.zid));
	if (hash) {
		out.proof.known = true;
		out.proof.kind = (uint8_t)zrtp_sas_kind(z);
		memcpy(out.proof.hash, hash, sizeof(out.proof.hash));
	}
	return out;
}

/* One exchange of a terminal agrees on a secret. The others wait for it and use it (4.4.3). */
static void start(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	const struct session *first = session_party_first(s);

	if (first && zrtp_state(first->exchange.zrtp) != ZRTP_OPEN) {
		x->wait_ns = now_ns + WAIT_NS;
		return;
	}
	x->wait_ns = 0;
	if (first && zrtp_multi(x->zrtp, first->exchange.zrtp) == 0)
		x->first = session_zrtp_said(first);
	zrtp_start(x->zrtp, now_ns);
}

/* --- Retained secrets ------------------------------------------------------------------------- */

static void ask_cache(struct session *s, uint64_t now_ns)
{
	struct zrtp *z = s->exchange.zrtp;
	struct zrtp_secrets secrets = {0};
	bool has = zrtp_store_get(s->env->store, zrtp_peer_zid(z), now_ns, &secrets);

	zrtp_secrets(z, has ? &secrets : NULL, now_ns);
	secmem_wipe(&secrets, sizeof(secrets));
}

static void keep_secrets(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	struct zrtp_kept kept = {.mismatched = zrtp_mismatched(x->zrtp)};

	if (x->kept || !has_cache(s) || zrtp_new_secrets(x->zrtp, &kept.secrets, &kept.seconds))
		return;
	x->kept = true;
	memcpy(kept.sas_hash, zrtp_sas_hash(x->zrtp), sizeof(kept.sas_hash));
	zrtp_store_put(s->env->store, zrtp_peer_zid(x->zrtp), now_ns, &kept);
	secmem_wipe(&kept, sizeof(kept));
}

/* Sends the far terminal's SAS, each SAS once, and only to an enrolled terminal. */
static void relay_sas(struct session *s, uint64_t now_ns)
{
	const struct session_sas *far = &s->cfg.zrtp.far;
	const struct zrtp_far_sas what = {.hash = far->hash,
		.kind = (enum zrtp_sas)far->kind,
		.discloses = far->discloses,
		.verified = far->verified};
	struct exchange *x = &s->exchange;

	if (!far->known || zrtp_is_multi(x->zrtp) ||
		memcmp(x->relayed, far->hash, sizeof(x->relayed)) == 0 ||
		zrtp_relay_sas(x->zrtp, &what, now_ns))
		return;
	memcpy(x->relayed, far->hash, sizeof(x->relayed));
}

/* Starts the exchange if its conditions are met. */
void session_zrtp_proceed(struct session *s, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;

	if (!x->zrtp)
		return;
	aim(s);
	if (x->dst.family && x->dst.port && zrtp_state(x->zrtp) == ZRTP_IDLE)
		start(s, now_ns);
	if (zrtp_state(x->zrtp) == ZRTP_WANTS_SECRETS)
		ask_cache(s, now_ns);
	session_again_proceed(s, now_ns);
	if (zrtp_state(x->zrtp) == ZRTP_OPEN) {
		keep_secrets(s, now_ns);
		relay_sas(s, now_ns);
	}
}

/* --- Packets ---------------------------------------------------------------------------------- */

static bool is_known(const struct session *s, const struct session_in *in)
{
	return in->believed || endpoint_eq(in->src, &s->cfg.remote[0]);
}

static bool is_named(const struct session *s, const struct session_in *in)
{
	return is_known(s, in) ||
		(s->cfg.zrtp.bound && zrtp_self_is_hello(in->p, in->len, s->cfg.zrtp.hash));
}

/* Both ends have had keys. From then on an announced Hello shows nothing: it may be repeated. */
static bool has_had_keys(const struct exchange *x)
{
	enum zrtp_state state = zrtp_state(x->zrtp);

	return state == ZRTP_OPEN || state == ZRTP_CLEAR;
}

/* Whether a source may take part. A stranger costs at most one hash of a short packet. */
static bool is_proven(struct session *s, const struct session_in *in, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;
	bool late = has_had_keys(x);

	if (s->ice)
		return ice_is_valid_source(s->ice, session_port(in->at, false), in->src);
	if (endpoint_eq(in->src, &x->proven))
		return true;
	if (late ? !is_known(s, in) : !is_named(s, in))
		return false;
	/* With keys the terminal may move. Whoever forges the signalled address cannot keep its
	 * packets out. */
	if (x->proven.family && now_ns < x->turn_ns)
		return late;
	x->proven = *in->src;
	x->turn_ns = now_ns + TURN_NS;
	return true;
}

void session_zrtp_take(struct session *s, const struct session_in *in, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;

	if (in->rtcp || !x->zrtp || !is_proven(s, in, now_ns))
		return;
	if (!x->began_ns)
		x->began_ns = now_ns;
	if (!session_again_take(s, in, now_ns))
		(void)zrtp_take(x->zrtp, in->p, in->len, now_ns);
}

void session_zrtp_settle(struct session *s, uint32_t exchange, uint64_t now_ns)
{
	struct exchange *x = &s->exchange;

	if (!x->zrtp || !x->keys_told || s->cfg.zrtp.exchange != exchange)
		return;
	zrtp_settle(x->zrtp);
	session_zrtp_proceed(s, now_ns);
}

void session_zrtp_tick(struct session *s, uint64_t now_ns)
{
	if (s->exchange.zrtp && zrtp_deadline(s->exchange.zrtp) <= now_ns)
		zrtp_tick(s->exchange.zrtp, now_ns);
	session_again_tick(s, now_ns);
}

uint64_t session_zrtp_deadline(const struct session *s)
{
	const struct exchange *x = &s->exchange;
	uint64_t at = x->zrtp ? zrtp_deadline(x->zrtp) : UINT64_MAX;
	uint64_t again = session_again_deadline(s);

	at = again < at ? again : at;
	return x->wait_ns && x->wait_ns < at ? x->wait_ns : at;
}

bool session_zrtp_next(struct session *s, struct session_out *out)
{
	struct exchange *x = &s->exchange;
	struct zrtp *const of[] = {x->zrtp, x->again, x->later};
	const bool told[] = {x->keys_told, true, x->later_told};
	int n = 0;

	/* Without a destination packets wait; retransmission brings them again. */
	if (!x->dst.family || !x->dst.port)
		return false;
	for (uint32_t i = 0; i < ARRAY_LEN(of) && n == 0; i++) {
		n = of[i] ? zrtp_next(of[i], out->packet, sizeof(out->packet)) : 0;
		out->proved = n > 0 && !told[i] && zrtp_gives_keys(out->packet, (size_t)n);
	}
	if (n <= 0)
		return false;
	out->rtcp = false;
	out->at = x->at;
	out->zrtp = true;
	out->follows = !s->ice && has_had_keys(x);
	out->dst = x->dst;
	out->len = (uint16_t)n;
	return true;
}

/* --- Events ----------------------------------------------------------------------------------- */

void session_zrtp_secrets(const struct session *s, struct session_event *out)
{
	const struct exchange *x = &s->exchange;

	(void)zrtp_secret(x->zrtp, &out->secret);
	if (x->later)
		(void)zrtp_secret(x->later, &out->later);
}

static bool keys_event(struct session *s, struct session_event *out)
{
	struct exchange *x = &s->exchange;

	if (x->keys_told || zrtp_keys(x->zrtp, &out->rx, &out->tx))
		return false;
	x->keys_told = true;
	session_zrtp_secrets(s, out);
	out->kind = SESSION_KEYS;
	out->said = session_zrtp_said(s);
	return true;
}

bool session_zrtp_event(struct session *s, struct session_event *out)
{
	struct exchange *x = &s->exchange;
	enum zrtp_state state;

	*out = (struct session_event){.zrtp = true, .association = s->cfg.zrtp.exchange};
	if (x->zrtp && (keys_event(s, out) || session_again_event(s, out)))
		return true;
	state = x->zrtp ? session_again_state(s) : ZRTP_IDLE;
	if (state == x->told)
		return false;
	x->told = (uint8_t)state;
	if (state == ZRTP_NO_PEER)
		session_count_absent(s);
	out->kind = state == ZRTP_NO_PEER ? SESSION_ABSENT
		: state == ZRTP_CLEAR     ? SESSION_CLEAR
		: state == ZRTP_FAILED    ? SESSION_FAILED
					  : SESSION_NONE;
	if (state == ZRTP_CLEAR)
		session_zrtp_secrets(s, out);
	if (state == ZRTP_FAILED)
		out->why = zrtp_failure_text(zrtp_failure(x->zrtp));
	return out->kind != SESSION_NONE;
}
