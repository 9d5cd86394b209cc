/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICE and DTLS of a leg. ICE says where a component's packets go to, and which sources may begin a
 * handshake; without ICE signalling does, and a source that returned a cookie. DTLS delivers keys.
 * RFC 8445, RFC 5764, RFC 8842. */
#include "side/session_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

/* Without ICE anybody who returns a cookie may begin the handshake. One that failed, or that lasts
 * this long, gives way to another source. The signalled address needs not wait. */
#define GIVES_WAY_NS 2000000000ull
#define RETRIES      3u /* of an association that failed by what anybody may have sent */
/* Least time between two such changes, by [signalled]: a handshake costs a millisecond. */
static const uint64_t turn_ns[2] = {1000000000ull, 250000000ull};

/* --- Life ------------------------------------------------------------------------------------- */

int session_create(struct session **out, struct session_env *env)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->env = env;
	*out = s;
	return 0;
}

static void drop_association(struct session *s)
{
	for (uint32_t k = 0; k < COMPONENTS; k++) {
		struct component *c = &s->part[k];

		dtls_destroy(c->dtls);
		c->dtls = NULL;
		c->keys_told = c->end_told = c->counted = false;
		c->retries = c->failure = 0;
		c->began_ns = 0;
		c->proven = (struct endpoint){0};
	}
}

void session_destroy(struct session *s)
{
	if (!s)
		return;
	session_ice_drop(s);
	session_ice_forget(s);
	session_zrtp_drop(s);
	drop_association(s);
	dtls_cert_put(s->cert);
	free(s->cfg.dtls.prints);
	if (s->env->verify.of == s)
		s->env->verify.of = NULL;
	secmem_wipe(s, sizeof(*s));
	free(s);
}

/* --- DTLS ------------------------------------------------------------------------------------- */

/* RTCP must have the suite of RTP, because a leg has one. Bit of it; 0: not known yet. */
static uint32_t suite_of_rtp(const struct session *s)
{
	struct srtp_master rx, tx;
	uint32_t suite = s->rtp_suite;

	if (!suite && s->part[0].dtls && dtls_keys(s->part[0].dtls, &rx, &tx) == 0) {
		suite = rx.suite;
		secmem_wipe(&rx, sizeof(rx));
		secmem_wipe(&tx, sizeof(tx));
	}
	return suite ? 1u << suite : 0;
}

static int make_association(struct session *s, uint32_t k)
{
	uint32_t suites = k ? suite_of_rtp(s) : s->cfg.dtls.suites;
	struct dtls_config c = {.cert = s->cert,
		.role = s->cfg.dtls.role == DTLS_ROLE_CLIENT ? DTLS_ROLE_CLIENT : DTLS_ROLE_SERVER,
		.allow_sha1 = s->env->sha1,
		.counts = &s->env->counts};

	for (uint32_t i = 0; i < s->env->profiles; i++)
		if (!suites || suites >> s->env->profile[i] & 1)
			c.profile[c.profiles++] = s->env->profile[i];
	return dtls_create(&s->part[k].dtls, &c);
}

/* A fresh association in place of one without keys. */
static bool renew(struct session *s, uint32_t k, uint64_t now_ns)
{
	struct component *c = &s->part[k];

	dtls_destroy(c->dtls);
	c->dtls = NULL;
	c->began_ns = 0;
	c->counted = false;
	if (make_association(s, k)) {
		s->broken = true;
		return false;
	}
	if (s->cfg.dtls.prints)
		(void)dtls_expect(c->dtls, s->cfg.dtls.prints, now_ns);
	return true;
}

/* Whether a handshake may still have to compare the terminal's certificate. */
static bool needs_prints(const struct session *s)
{
	bool needs = false;

	for (uint32_t k = 0; k < session_components(s); k++) {
		const struct component *c = &s->part[k];
		enum dtls_state state = c->dtls ? dtls_state(c->dtls) : DTLS_IDLE;

		needs |= c->dtls ? state != DTLS_OPEN && state != DTLS_CLOSED : k && !c->end_told;
	}
	return needs && s->cfg.dtls.on;
}

static void drop_prints(struct session *s)
{
	free(s->cfg.dtls.prints);
	s->cfg.dtls.prints = NULL;
}

static int keep_prints(struct session *s, const struct dtls_fingerprints *said)
{
	if (!said->count) {
		drop_prints(s);
		return 0;
	}
	if (!s->cfg.dtls.prints)
		s->cfg.dtls.prints = malloc(sizeof(*s->cfg.dtls.prints));
	if (!s->cfg.dtls.prints)
		return -ENOMEM;
	*s->cfg.dtls.prints = *said;
	return 0;
}

static int set_dtls(struct session *s, const struct session_dtls *now,
	const struct session_kept *before, uint64_t now_ns)
{
	bool was_client = before->dtls.role == DTLS_ROLE_CLIENT;
	int err = keep_prints(s, &now->prints);

	if (!now->on || !before->dtls.on || now->association != before->dtls.association ||
		was_client != session_is_client(s))
		drop_association(s);
	if (now->on && now->established) {
		s->over = now->association;
		s->rtp_suite = s->rtp_suite ? s->rtp_suite : now->rtp_suite;
	} else if (s->over != now->association) {
		s->rtp_suite = SUITE_PLAIN;
	}
	if (err || !now->on || (session_is_over(s) && !s->rtp_suite))
		return err;
	for (uint32_t k = session_is_over(s); k < COMPONENTS && !err; k++) {
		struct component *c = &s->part[k];

		if (k >= session_components(s)) {
			dtls_destroy(c->dtls);
			c->dtls = NULL;
			continue;
		}
		if (!c->dtls && (!k || suite_of_rtp(s)))
			err = make_association(s, k);
		if (c->dtls && now->prints.count)
			(void)dtls_expect(c->dtls, &now->prints, now_ns);
	}
	return err;
}

/* RTCP's association begins when RTP's has agreed on a suite. */
static void begin_rtcp(struct session *s, uint64_t now_ns)
{
	struct component *c = &s->part[1];

	if (session_components(s) == 1 || c->dtls || c->end_told || !s->part[0].dtls ||
		!suite_of_rtp(s))
		return;
	if (make_association(s, 1))
		s->broken = true;
	else if (s->cfg.dtls.prints)
		(void)dtls_expect(c->dtls, s->cfg.dtls.prints, now_ns);
}

/* Destination of the component's DTLS. */
static void aim(struct session *s, uint32_t k)
{
	struct component *c = &s->part[k];

	if (s->ice) {
		c->dst = session_ice_selected(s, k, &c->at);
		return;
	}
	c->at = 0;
	c->dst = c->proven.family ? c->proven : s->cfg.remote[k];
}

/* Until Finished all messages may be forged, so they may not end the handshake for good: a fresh
 * association waits for the terminal's ClientHello, or sends ours. The alert of the failed one is
 * dropped, because it would end the terminal's. Without ICE takes_place() does this for a server,
 * from any source. */
static void retry(struct session *s, uint32_t k, uint64_t now_ns)
{
	struct component *c = &s->part[k];
	enum dtls_failure why = c->dtls ? dtls_failure(c->dtls) : DTLS_FAIL_NONE;

	if ((why != DTLS_FAIL_PROTOCOL && why != DTLS_FAIL_NO_PROFILE &&
		    why != DTLS_FAIL_NO_CIPHER && why != DTLS_FAIL_NO_CERTIFICATE) ||
		c->retries == RETRIES || !(s->ice || session_is_client(s)))
		return;
	session_count(s, now_ns);
	if (c->retries++ == 0)
		c->failure = (uint8_t)why;
	renew(s, k, now_ns);
}

/* Starts each part whose conditions are met. */
static void proceed(struct session *s, uint64_t now_ns)
{
	begin_rtcp(s, now_ns);
	for (uint32_t k = 0; k < session_components(s); k++) {
		struct component *c = &s->part[k];

		retry(s, k, now_ns);
		aim(s, k);
		if (c->dtls && session_is_client(s) && c->dst.family && c->dst.port &&
			dtls_state(c->dtls) == DTLS_IDLE && dtls_start(c->dtls, now_ns) == -ENOMEM)
			s->broken = true;
	}
	if (s->cfg.dtls.prints && !needs_prints(s))
		drop_prints(s);
	session_zrtp_proceed(s, now_ns);
	session_count(s, now_ns);
}

/* --- Changes ---------------------------------------------------------------------------------- */

static void keep(struct session_kept *k, const struct session_cfg *cfg)
{
	k->mux = cfg->mux;
	memcpy(k->remote, cfg->remote, sizeof(k->remote));
	k->ice.generation = cfg->ice.generation;
	k->ice.peer = cfg->ice.peer;
	k->dtls.on = cfg->dtls.on;
	k->dtls.role = cfg->dtls.role;
	k->dtls.association = cfg->dtls.association;
	k->dtls.suites = cfg->dtls.suites;
	k->zrtp = cfg->zrtp;
}

int session_set(struct session *s, const struct session_order *order, uint64_t now_ns)
{
	const struct session_cfg *cfg = &order->cfg;
	struct session_kept before = s->cfg;
	bool had_two = session_components(s) == COMPONENTS;
	int err, ice_err, zrtp_err, kept;

	/* SDP has named the certificate of this association already. */
	if (!s->cert || before.dtls.association != cfg->dtls.association) {
		dtls_cert_put(s->cert);
		s->cert = dtls_cert_get(order->cert);
	}
	keep(&s->cfg, cfg);
	kept = session_ice_keep(s, &cfg->ice);
	ice_err = session_ice_set(s, order, &before, had_two, now_ns);
	err = set_dtls(s, &cfg->dtls, &before, now_ns);
	zrtp_err = session_zrtp_set(s, &before, &cfg->zrtp_past);
	err = err ? err : zrtp_err;
	secmem_wipe(&before, sizeof(before));
	s->broken |= err || ice_err;
	proceed(s, now_ns);
	return ice_err ? ice_err : err ? err : kept;
}

void session_close(struct session *s, uint64_t now_ns)
{
	for (uint32_t k = 0; k < COMPONENTS; k++)
		if (s->part[k].dtls)
			dtls_close(s->part[k].dtls, now_ns);
}

void session_settle(struct session *s, uint32_t association, bool rtcp, uint64_t now_ns)
{
	struct component *c = &s->part[rtcp];

	if (c->dtls && s->cfg.dtls.association == association && c->keys_told)
		dtls_settle(c->dtls, now_ns);
	if (!rtcp)
		session_zrtp_settle(s, association, now_ns);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Whether a source that returned a cookie begins a handshake, in place of another source's if need
 * be. A failed handshake decides nothing: anybody can fail. One that waits for SDP's fingerprint
 * may be the terminal's. */
static bool takes_place(struct session *s, uint32_t k, const struct endpoint *src, uint64_t now_ns)
{
	struct component *c = &s->part[k];
	const struct endpoint *named = &s->cfg.remote[k];
	bool is_named = endpoint_eq(src, named), holds_named = endpoint_eq(&c->proven, named);
	enum dtls_state state = dtls_state(c->dtls);
	bool gives_way = state == DTLS_FAILED ||
		(state == DTLS_HANDSHAKE && !holds_named &&
			(is_named || now_ns - c->proven_ns >= GIVES_WAY_NS));

	if (c->proven.family && state != DTLS_IDLE) {
		if (!gives_way || now_ns < c->turn_ns[is_named])
			return false;
		c->turn_ns[is_named] = now_ns + turn_ns[is_named];
		if (!renew(s, k, now_ns))
			return false;
	}
	c->proven = *src;
	c->proven_ns = now_ns;
	return true;
}

/* Whether a source may take part in the handshake. A cookie proves one without ICE; it costs no
 * memory. */
static bool is_proven(struct session *s, const struct session_in *in, uint32_t k, uint64_t now_ns)
{
	struct component *c = &s->part[k];
	struct dtls_gate_reply reply;

	if (s->ice)
		return ice_is_valid_source(s->ice, session_port(in->at, k), in->src);
	if (endpoint_eq(in->src, &c->proven) && dtls_state(c->dtls) != DTLS_FAILED)
		return true;
	if (session_is_client(s))
		return endpoint_eq(in->src, &c->dst);
	switch (dtls_gate_take(s->env->gate, in->src, in->p, in->len, now_ns, &reply)) {
	case DTLS_GATE_PASS:
		return takes_place(s, k, in->src, now_ns);
	case DTLS_GATE_REPLY:
		s->env->verify = (struct session_verify){
			.of = s, .rtcp = k, .dst = *in->src, .len = (uint8_t)reply.len};
		memcpy(s->env->verify.packet, reply.p, reply.len);
		return false;
	case DTLS_GATE_DROP:
		s->env->counts.drop[reply.why]++;
	}
	return false;
}

void session_take(struct session *s, const struct session_in *in, uint64_t now_ns)
{
	uint32_t k = in->rtcp;

	if (k >= session_components(s) || in->at >= SESSION_LOCALS || (in->at && !s->ice))
		return;
	if (in->zrtp)
		session_zrtp_take(s, in, now_ns);
	else if (!in->dtls && s->ice)
		ice_take(s->ice, session_port(in->at, k), in->src, in->p, in->len, now_ns);
	else if (in->dtls && s->part[k].dtls && is_proven(s, in, k, now_ns))
		(void)dtls_take(s->part[k].dtls, in->p, in->len, now_ns);
	proceed(s, now_ns);
}

void session_tick(struct session *s, uint64_t now_ns)
{
	if (s->ice && ice_deadline(s->ice) <= now_ns)
		ice_tick(s->ice, now_ns);
	for (uint32_t k = 0; k < COMPONENTS; k++)
		if (s->part[k].dtls && dtls_deadline(s->part[k].dtls) <= now_ns)
			dtls_tick(s->part[k].dtls, now_ns);
	session_zrtp_tick(s, now_ns);
	proceed(s, now_ns);
}

uint64_t session_deadline(const struct session *s)
{
	uint64_t at = s->ice ? ice_deadline(s->ice) : UINT64_MAX;

	for (uint32_t k = 0; k < COMPONENTS; k++)
		if (s->part[k].dtls && dtls_deadline(s->part[k].dtls) < at)
			at = dtls_deadline(s->part[k].dtls);
	return session_zrtp_deadline(s) < at ? session_zrtp_deadline(s) : at;
}

static bool next_ice(struct session *s, struct session_out *out)
{
	struct ice_out ice;

	if (!s->ice || !ice_next(s->ice, &ice))
		return false;
	out->proved = ice.proved;
	out->rtcp = ice.local % 2;
	out->at = ice.local / 2;
	out->dst = ice.dst;
	out->len = ice.len;
	memcpy(out->packet, ice.packet, ice.len);
	return true;
}

static bool next_verify(struct session *s, struct session_out *out)
{
	struct session_verify *v = &s->env->verify;

	if (v->of != s)
		return false;
	v->of = NULL;
	out->rtcp = v->rtcp;
	out->dst = v->dst;
	out->len = v->len;
	memcpy(out->packet, v->packet, v->len);
	return true;
}

bool session_next(struct session *s, struct session_out *out)
{
	out->zrtp = out->proved = out->follows = false;
	out->at = 0;
	if (next_ice(s, out) || session_zrtp_next(s, out))
		return true;
	if (next_verify(s, out))
		return true;
	for (uint32_t k = 0; k < session_components(s); k++) {
		struct component *c = &s->part[k];
		int n = 0;

		/* Without a destination packets wait; retransmission brings them again. */
		if (c->dtls && c->dst.family && c->dst.port)
			n = dtls_next(c->dtls, out->packet, sizeof(out->packet));
		if (n <= 0)
			continue;
		out->rtcp = k;
		out->at = c->at;
		out->dst = c->dst;
		out->len = (uint16_t)n;
		return true;
	}
	return false;
}
