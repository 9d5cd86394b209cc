/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applies a negotiated copy of a call to the packet side: takes missing resources, publishes all
 * changes together, and releases unused resources. Until the commit succeeds, the workers know the
 * original call only. */
#include "call/apply.h"

#include <errno.h>

#include "call/gate.h"
#include "call/law.h"
#include "call/leg_audio.h"
#include "call/leg_locals.h"
#include "call/leg_session.h"
#include "call/model.h"
#include "call/past_keys.h"
#include "keying/keying.h"
#include "proto/raw.h"

static const struct leg *leg_at(const struct call *c, uint32_t side, uint32_t media)
{
	return c && side < c->sides ? side_leg_get(c->side[side], media) : NULL;
}

/* --- Release ---------------------------------------------------------------------------------- */

static bool has_slot(const struct leg *leg, uint32_t slot)
{
	uint32_t held[LEG_SLOTS_MAX], n = leg ? leg_slots(leg, held) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (held[i] == slot)
			return true;
	return false;
}

/* Releases resources that leg holds and other (the same leg in another version of the call) does
 * not. */
static void release(
	const struct relay *r, uint32_t worker, const struct leg *leg, const struct leg *other)
{
	uint32_t held[LEG_SLOTS_MAX], n = leg_slots(leg, held);
	const struct relay_port *port;

	for (uint32_t i = 0; i < n; i++)
		if (!has_slot(other, held[i]))
			r->ops->key_release(r->arg, worker, held[i]);
	for (uint32_t i = 0; (port = leg_port_at(leg, i)); i++)
		if (!other || !leg_has_stream(other, port->rtp_stream))
			r->ops->port_release(r->arg, worker, port);
	if (leg->has_ctx && !(other && other->has_ctx))
		r->ops->ctx_release(r->arg, worker, leg->ctx);
	if (leg->has_session && !(other && other->has_session))
		r->sessions->ops->release(r->sessions->arg, leg->session);
	if (leg->audio.has && !(other && other->audio.has))
		r->audio->ops->release(r->audio->arg, leg->audio.handle);
}

static void release_all_but(const struct relay *r, const struct call *c, const struct call *other)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++)
			if (c->side[s]->leg[i])
				release(r, c->worker, c->side[s]->leg[i], leg_at(other, s, i));
}

void apply_undo(const struct relay *relay, const struct call *prev, struct call *next)
{
	release_all_but(relay, next, prev);
}

void apply_release_all(const struct relay *relay, struct call *c)
{
	release_all_but(relay, c, NULL);
}

/* --- Take ------------------------------------------------------------------------------------- */

static int take_key(const struct relay *r, uint32_t worker, uint32_t *slot,
	const struct srtp_params *p, uint32_t i)
{
	int err;

	if (*slot != SLOT_UNSET)
		return 0;
	err = r->ops->key_take(
		r->arg, slot, worker, &p->key[i], p->rtcp.suite != SUITE_PLAIN ? &p->rtcp : NULL);
	if (err)
		*slot = SLOT_UNSET;
	return err;
}

static int take_preauth(
	const struct relay *r, uint32_t worker, uint32_t *slot, const struct srtp_params *p)
{
	int err;

	if (*slot != SLOT_UNSET)
		return 0;
	err = r->ops->preauth_take(r->arg, slot, worker, &p->key[0], p->preauth);
	if (err)
		*slot = SLOT_UNSET;
	return err;
}

static int take(const struct relay *r, uint32_t worker, struct leg *l, uint8_t local)
{
	int err;

	if (!l->has_port) {
		err = r->ops->port_take(r->arg, &l->port, worker, local);
		if (err)
			return err;
		l->has_port = true;
		memset(l->before, 0, sizeof(l->before));
	}
	leg_locals_take(r, worker, l);
	if (!l->has_ctx) {
		err = r->ops->ctx_take(r->arg, &l->ctx, worker);
		if (err)
			return err;
		l->has_ctx = true;
	}
	if (l->has_session && !leg_needs_session(l))
		l->has_session = false; /* the present call still has it, until the commit */
	err = leg_session_take(r, l);
	if (err)
		return err;
	for (uint32_t i = 0; i < srtp_params_places(&l->rx); i++) {
		err = take_key(r, worker, &l->rx_slot[i], &l->rx, i);
		if (err)
			return err;
	}
	err = take_key(r, worker, &l->tx_slot, &l->tx, 0);
	if (!err)
		past_keys_ours(l, &l->tx.key[0], l->tx_slot);
	err = err ? err : take_preauth(r, worker, &l->rx_preauth_slot, &l->rx);
	err = err ? err : take_preauth(r, worker, &l->tx_preauth_slot, &l->tx);
	return err;
}

/* Drops resources of a closed leg from next; prev holds them until the commit. Our keys are
 * forgotten, so they are never used again. The terminal may return with its own. */
static void drop(struct leg *l, bool for_good)
{
	if (for_good)
		explicit_bzero(l->rx_past, sizeof(l->rx_past));
	else
		past_keys_push_all(l);
	l->has_port = l->has_ctx = l->has_session = l->committed = l->active = false;
	l->audio.has = false;
	l->audio.ssrc = 0;
	l->via = 0;
	memset(&l->locals, 0, sizeof(l->locals));
	explicit_bzero(&l->ice, sizeof(l->ice));
	l->rtp_proto = SDP_PROTO_OTHER;
	memset(l->rx_slot, 0, sizeof(l->rx_slot));
	l->tx_slot = l->rx_preauth_slot = l->tx_preauth_slot = 0;
	explicit_bzero(&l->rx, sizeof(l->rx));
	explicit_bzero(&l->tx, sizeof(l->tx));
	keying_end(&l->keying);
	keying_forget_ours(&l->keying);
}

int apply_take(const struct relay *relay, const struct call *prev, struct call *next)
{
	int err = 0;

	for (uint32_t s = 0; s < next->sides; s++) {
		relay->ops->emergency(relay->arg, next->side[s]->emergency);
		for (uint32_t i = 0; i < next->side[s]->legs; i++) {
			struct leg *l = next->side[s]->leg[i];

			if (l && !l->used)
				drop(l, next->side[s]->gone);
			else if (l && !err)
				err = take(relay, next->worker, l, next->side[s]->local);
		}
	}
	if (!err)
		err = leg_audio_take(relay, next);
	if (err)
		apply_undo(relay, prev, next);
	return err;
}

/* --- Publish ---------------------------------------------------------------------------------- */

static struct media_crypto crypto_of(
	const struct srtp_params *p, const uint32_t *slot, uint32_t preauth_slot)
{
	struct media_crypto c = {
		.suite = srtp_params_suite(p), .pass = p->pass, .awaited = p->awaited};

	_Static_assert(SRTP_PARAMS_KEYS <= MEDIA_KEYS, "every key has a place");
	if (!p->keys)
		return c;
	c.keys = p->keys;
	c.mki_len = p->key[0].mki_len;
	for (uint32_t i = 0; i < c.keys; i++) {
		c.key[i].slot = slot[i];
		memcpy(c.key[i].mki, p->key[i].mki, srtp_mki_kept(c.mki_len));
	}
	c.clear_rtp = p->unencrypted_srtp;
	c.clear_rtcp = p->unencrypted_srtcp;
	c.no_rtp_auth = p->key[0].no_rtp_auth;
	c.preauth = p->preauth;
	c.preauth_slot = preauth_slot;
	return c;
}

/* Sets the next destination of copies: a source's first listener, a listener's next one. */
static void copy_to(
	const struct call *c, const struct side *s, const struct leg *l, uint32_t copy[2])
{
	uint32_t side = call_side_index(c, s), media = 0;

	while (media < s->legs && s->leg[media] != l)
		media++;
	for (int rtcp = 0; rtcp < 2; rtcp++)
		copy[rtcp] = s->listener
			? listener_stream(c, l->hears_side, l->hears_media, l, rtcp)
			: listener_stream(c, side, media, NULL, rtcp);
}

/* The stream that sends RTCP back to a source, or none. */
static uint32_t rtcp_back_to(const struct leg *source)
{
	if (!source || !source->active || !source->has_port)
		return MEDIA_NONE;
	return source->mux ? source->port.rtp_stream : source->port.rtcp_stream;
}

/* Echo: neither side receives the other's RTCP. */
static void echo_to(const struct call *c, const struct side *s, const struct leg *l,
	struct media_stream_cfg *cfg)
{
	bool other = s->peer != SIDE_NONE && c->side[s->peer]->echo;

	if (!s->echo && !other)
		return;
	/* A terminal could not decrypt an echo under its own key. */
	cfg->rtp_to = s->echo && l->active && !l->rx.pass ? l->port.rtp_stream : MEDIA_NONE;
	cfg->rtcp_to = MEDIA_NONE;
}

uint8_t leg_raw(const struct leg *l)
{
	return l->proto == SDP_UDPTL       ? RAW_UDPTL
		: l->proto == SDP_UDP_BFCP ? RAW_BFCP
		: l->proto == SDP_UDP_TLS_UDPTL || l->proto == SDP_UDP_TLS_BFCP ||
			l->proto == SDP_UDP_DTLS_SCTP
		? RAW_DTLS
		: sdp_proto_is_raw(l->proto) ? RAW_ANY
					     : RAW_NONE;
}

/* Datagrams have one port and one direction, and are neither recorded nor copied. */
static void raw_cfgs(const struct side *s, const struct leg *l, const struct leg *peer,
	struct media_stream_cfg *rtp, struct media_stream_cfg *rtcp)
{
	rtp->raw = leg_raw(l);
	rtp->rtp = rtp->rtcp = rtcp->rtcp = false;
	if (!peer || leg_raw(peer) != rtp->raw || s->echo)
		rtp->rtp_to = MEDIA_NONE;
	rtp->rtcp_to = rtcp->rtp_to = rtcp->rtcp_to = MEDIA_NONE;
	rtp->tap = rtcp->tap = 0;
	rtp->convert = 0;
	memset(rtp->copy, 0, sizeof(rtp->copy));
	memset(rtcp->copy, 0, sizeof(rtcp->copy));
	rtcp->remote = (struct endpoint){0};
}

/* Between offer and answer, if the offer is plain: packets from the answerer's side are RTP. */
static bool is_early(
	const struct call *c, const struct side *s, const struct leg *l, const struct leg *offerer)
{
	return offerer && offerer->early && !offerer->active && offerer->has_port && l->used &&
		!l->active && !s->parked && !s->connected && !s->listener &&
		c->side[s->peer]->offer_open && c->learning != MEDIA_LEARN_OFF &&
		!sdp_proto_is_secure(l->asked.proto) && !keying_asks(&l->keying) &&
		!l->asked.either;
}

/* --- BUNDLE (RFC 9143) --- */

static const struct leg *owner_of(const struct side *s, const struct leg *l)
{
	const struct leg *o = l->via ? side_leg_get(s, l->via - 1) : NULL;

	return o && o->has_port ? o : NULL;
}

/* Handle + 1 of the first m-line on the owner's transport, or of the next one after this; 0: none.
 */
static uint32_t next_of(const struct side *s, const struct leg *owner, const struct leg *after)
{
	bool past = !after;

	for (uint32_t i = 0; i < s->legs; i++) {
		const struct leg *l = s->leg[i];

		if (past && l && l->active && l->has_port && owner_of(s, l) == owner)
			return l->port.rtp_stream + 1;
		past |= l == after;
	}
	return 0;
}

static bool is_shared(const struct call *c, const struct leg *l)
{
	for (uint32_t k = 0; l && k < c->sides; k++)
		for (uint32_t i = 0; i < c->side[k]->legs; i++)
			if (c->side[k]->leg[i] == l)
				return owner_of(c->side[k], l) || next_of(c->side[k], l, NULL);
	return false;
}

/* Whether it is sent SSRCs that no terminal drew: those of an audio session, and after a restart
 * all (media/rename.h). Their MIDs are ours to write (RFC 9143 9.2). */
static bool gets_our_ssrcs(const struct call *c, const struct leg *l)
{
	return l && l->mid_ext && (l->audio.has || (c->rename && l->tx.keys));
}

static void share(const struct call *c, const struct side *s, const struct leg *l,
	const struct leg *peer, struct media_stream_cfg *cfg)
{
	const struct leg *owner = owner_of(s, l);

	if (owner) {
		cfg->ctx = owner->ctx;
		cfg->via = owner->port.rtp_stream + 1;
	} else if (l->via) { /* its transport is gone; the next answer names another one */
		cfg->rtp_to = cfg->rtcp_to = MEDIA_NONE;
	}
	cfg->bundle = next_of(s, owner ? owner : l, owner ? l : NULL);
	cfg->mids = is_shared(c, peer) || is_shared(c, l) || gets_our_ssrcs(c, peer) ||
		gets_our_ssrcs(c, l);
	cfg->mid_ext = l->mid_ext;
	memcpy(cfg->mid, l->mid, sizeof(cfg->mid));
	memcpy(cfg->types, l->types, sizeof(cfg->types));
	memcpy(cfg->ssrc, l->ssrc, sizeof(cfg->ssrc));
}

/* With ICE no media pass before a pair is selected. */
static void close_cfg(struct media_stream_cfg *cfg)
{
	cfg->rtp_to = cfg->rtcp_to = MEDIA_NONE;
	cfg->tap = 0;
	memset(cfg->copy, 0, sizeof(cfg->copy));
}

static void stream_cfgs(const struct call *c, const struct side *s, const struct leg *l,
	const struct leg *peer, struct media_stream_cfg *rtp, struct media_stream_cfg *rtcp)
{
	bool joined = l->active && peer && peer->active && peer->has_port && !s->parked &&
		leg_raw(l) == leg_raw(peer);
	bool early = is_early(c, s, l, peer);
	bool ice = l->ice.on;
	struct media_stream_cfg common = {.ctx = l->ctx,
		.side = leg_side_kinds(l),
		.rtp_to = joined || early ? peer->port.rtp_stream : MEDIA_NONE,
		.rtcp_to = MEDIA_NONE,
		.relearn = l->relearn,
		/* With ICE, only ICE determines the terminal's address. */
		.learning = ice ? MEDIA_LEARN_OFF : c->learning,
		.strict_source = ice || c->strict_source,
		.media_handover = s->media_handover,
		.asymmetric = s->asymmetric,
		.wait = s->nat_wait,
		.listener = s->listener,
		.tos = c->tos,
		.emergency = s->emergency,
		.side_serial = l->side_serial,
		.audio = l->audio.has ? l->audio.serial : 0};

	/* Before the answer there are no keys, so packets of strangers would be copied. */
	if (l->active || early)
		copy_to(c, s, l, common.copy);
	if (s->listener && s->rtcp_back && l->active && l->hears)
		common.rtcp_to = rtcp_back_to(leg_at(c, l->hears_side, l->hears_media));
	if (joined)
		common.rtcp_to = peer->mux ? peer->port.rtp_stream : peer->port.rtcp_stream;
	echo_to(c, s, l, &common);
	share(c, s, l, peer, &common);
	common.no_feedback = joined && leg_has_feedback(l) && !leg_has_feedback(peer);
	*rtp = *rtcp = common;
	rtp->local = l->port.rtp;
	rtp->rtp = true;
	rtp->rtcp = l->mux;
	rtp->early = early;
	rtp->remote = l->remote;
	rtp->gate = gate_of_side(c, s) |
		(s->listener ? gate_of_flow(c, l->hears_side, call_side_index(c, s))
			     : gate_of_flow(c, call_side_index(c, s), s->peer));
	/* Under a terminal's own key, silence cannot be encrypted. */
	rtp->quiet = l->rx.pass ? 0 : l->quiet & MEDIA_QUIET_ALL;
	rtp->tap = rtcp->tap = (l->active || early) && c->tap && !c->tap_paused &&
			(c->tap_all || s->tap) && !s->no_tap
		? c->tap
		: 0;
	memcpy(rtp->events, l->events, sizeof(rtp->events));
	if ((joined || early) && rtp->rtp_to == peer->port.rtp_stream)
		rtp->convert = l->audio.has ? 0 : law_convert(l, peer);
	rtcp->local = l->port.rtcp;
	rtcp->rtcp = true;
	rtcp->remote = l->rtcp_remote;
	rtcp->bundle = 0; /* with rtcp-mux this port receives nothing */
	rtcp->mids = false;
	if (leg_raw(l) != RAW_NONE)
		raw_cfgs(s, l, peer, rtp, rtcp);
	if (ice && !l->remote.family)
		close_cfg(rtp);
	if (ice && !l->rtcp_remote.family)
		close_cfg(rtcp);
}

static struct media_cmd *command(struct apply_cmds *out, enum media_cmd_type type, uint32_t id)
{
	struct media_cmd *c = &out->cmd[out->n++];

	memset(c, 0, sizeof(*c));
	c->type = type;
	c->id = id;
	c->now_ns = out->now_ns;
	return c;
}

/* Whether any side is sent SRTP. */
static bool sends_srtp(const struct call *c)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && l->used && l->tx.keys)
				return true;
		}
	return false;
}

/* Commands for a leg: its context, and two streams for each of its local addresses. */
#define LEG_COMMANDS (1 + 2 * LEG_LOCALS)

/* Writes the commands for all of a leg's contexts and streams. */
static void commands(struct apply_cmds *out, const struct call *c, const struct side *s,
	uint32_t media, bool srtp)
{
	struct leg *l = s->leg[media];
	const struct leg *peer = leg_peer(c, s, media);
	struct media_ctx_cfg ctx = {.rx = crypto_of(&l->rx, l->rx_slot, l->rx_preauth_slot),
		.tx = crypto_of(&l->tx, &l->tx_slot, l->tx_preauth_slot),
		.rx_new = l->rx_new || !l->committed,
		.tx_new = l->tx_new || !l->committed,
		.tx_rtcp_index = l->tx_rtcp_from,
		.rtcp_from_ns = c->created_ns,
		.short_tags = c->short_tags};
	struct media_stream_cfg rtp, rtcp;

	/* Only one context has the keys, so that no index is sent twice under them. */
	if (l->via) {
		memset(&ctx.rx, 0, sizeof(ctx.rx));
		ctx.rx.awaited = true;
		ctx.tx = ctx.rx;
	}
	/* Plain RTP between plain sides keeps its SSRCs, so it may stay in the kernel. */
	ctx.own_ssrc = l->tx.keys ? l->audio.ssrc : 0;
	ctx.ceiling = l->audio.ceiling;
	ctx.rename = srtp || l->tx.keys ? c->rename : 0;
	stream_cfgs(c, s, l, peer, &rtp, &rtcp);
	command(out, MEDIA_CTX_SET, l->ctx)->ctx = ctx;
	command(out, MEDIA_STREAM_SET, l->port.rtp_stream)->stream = rtp;
	command(out, MEDIA_STREAM_SET, l->port.rtcp_stream)->stream = rtcp;
	for (uint32_t i = 0; i < l->locals.n; i++) {
		const struct relay_port *p = &l->locals.port[i];

		if (i != l->locals.at[0])
			command(out, MEDIA_STREAM_SET, p->rtp_stream)->stream =
				leg_locals_idle(&rtp, l->port.rtp_stream, p->rtp);
		if (i != l->locals.at[1])
			command(out, MEDIA_STREAM_SET, p->rtcp_stream)->stream =
				leg_locals_idle(&rtcp, l->port.rtcp_stream, p->rtcp);
	}
	l->committed = true;
}

static int set_sessions(const struct relay *relay, struct call *next)
{
	int err = 0;

	for (uint32_t s = 0; s < next->sides; s++)
		for (uint32_t i = 0; i < next->side[s]->legs && !err; i++) {
			struct leg *l = next->side[s]->leg[i];

			if (l && l->has_session)
				err = leg_session_set(relay, next, l);
			if (l && l->audio.has && !err)
				err = leg_audio_set(relay, next, next->side[s], i);
		}
	return err;
}

static void end_session(const struct relay *relay, const struct leg *l, bool send)
{
	const struct sessions *s = relay->sessions;
	const struct audio *a = relay->audio;

	if (l->has_session)
		(send ? s->ops->send : s->ops->undo)(s->arg, l->session);
	if (l->audio.has)
		(send ? a->ops->send : a->ops->undo)(a->arg, l->audio.handle);
}

/* Sessions change only after the worker's commands were accepted. */
static void end_sessions(const struct relay *relay, const struct call *next, bool send)
{
	for (uint32_t s = 0; s < next->sides; s++)
		for (uint32_t i = 0; i < next->side[s]->legs; i++)
			if (next->side[s]->leg[i])
				end_session(relay, next->side[s]->leg[i], send);
}

int apply_commit(const struct relay *relay, struct pool *p, const struct call *prev,
	struct call *next, const struct apply_cmds *more)
{
	struct apply_cmds all = {.now_ns = more->now_ns};
	bool srtp = sends_srtp(next);
	uint32_t legs = 0;
	int err = set_sessions(relay, next);

	for (uint32_t s = 0; s < next->sides; s++)
		legs += next->side[s]->legs;
	all.cmd = pool_alloc(p, (LEG_COMMANDS * (size_t)legs + more->n + 1) * sizeof(*all.cmd));
	if (!all.cmd && !err)
		err = -ENOMEM;
	for (uint32_t s = 0; s < next->sides && !err; s++)
		for (uint32_t i = 0; i < next->side[s]->legs; i++)
			if (next->side[s]->leg[i] && next->side[s]->leg[i]->has_port)
				commands(&all, next, next->side[s], i, srtp);
	for (uint32_t i = 0; i < more->n && !err; i++)
		all.cmd[all.n++] = more->cmd[i];
	if (!err && all.n)
		err = relay->ops->commit(relay->arg, next->worker, all.cmd, all.n);
	end_sessions(relay, next, !err);
	if (err)
		apply_undo(relay, prev, next);
	else if (prev)
		release_all_but(relay, prev, next);
	return err;
}
