/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether packets of a stream may stay in the kernel, and their destinations. Pure, except
 * for reading the streams' present state. */
#include "bridge/offload_int.h"

#define ENOUGH_PACKETS 5u /* packets of a stream before it may move */

uint32_t offload_target(const struct media_stream_cfg *c)
{
	return c->rtp ? c->rtp_to : c->rtcp_to;
}

static enum off_kind kind_of(const struct media_crypto *c)
{
	return c->pass ? PASSED : c->suite == SUITE_PLAIN && !c->awaited ? PLAIN : CIPHERED;
}

enum off_kind offload_rx(const struct off_site *site, uint32_t ctx)
{
	const struct media_ctx_cfg *c = &site->sent->ctx[ctx];
	enum off_kind kind = site->sent->has_ctx[ctx] ? kind_of(&c->rx) : CIPHERED;

	/* The kernel cannot rename SSRCs. */
	return c->rename && kind == PLAIN ? CIPHERED : kind;
}

/* The kind of packets that the context sends. */
static enum off_kind offload_tx(const struct off_site *site, uint32_t ctx)
{
	return site->sent->has_ctx[ctx] ? kind_of(&site->sent->ctx[ctx].tx) : CIPHERED;
}

/* Whether the kernel may drop other sources: not while the signalled address could still take
 * over. */
static bool is_strict(const struct media_stream_cfg *c, const struct endpoint *source)
{
	return c->strict_source && endpoint_eq(&c->remote, source);
}

static bool known(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

/* Readable RTCP stays with the daemon, which makes statistics of it. RTCP on its own port is
 * forwarded only to such a port. Fields that keep a stream out of the kernel have a column in
 * media/fields.h. */
static bool may_relay(
	const struct offload *o, const struct off_site *site, const struct off_stream *s)
{
	uint8_t kind = offload_rx(site, s->cfg->ctx), roles = media_stream_kernel(s->cfg);
	const struct off_stream *t;

	/* The worker has to stop clear media when ZRTP has keys. */
	if (kind == PLAIN && s->cfg->side & SIDE_BIT(SIDE_ZRTP))
		return false;
	if (!s->set || roles & KERNEL_NOT_FROM || kind == CIPHERED ||
		(kind == PLAIN && !s->cfg->rtp) || (kind == PASSED && !o->cfg.steer->relays_srtp))
		return false;
	/* Subscribers get passed-through media decrypted, which the kernel cannot do. */
	if (roles & KERNEL_COPIES && (kind == PASSED || !o->cfg.steer->relays_copies))
		return false;
	if (offload_target(s->cfg) >= o->cfg.max_stream)
		return s->cfg->copy[0] != 0;
	t = &site->stream[offload_target(s->cfg)];
	/* An echo test is not worth moving: it ends with the next offer. */
	return t != s && t->set && !(media_stream_kernel(t->cfg) & KERNEL_NOT_TO) &&
		offload_tx(site, t->cfg->ctx) == kind && t->cfg->rtp == s->cfg->rtp;
}

static bool dest_add(const struct offload *o, const struct off_stream *t,
	const struct endpoint *remote, uint8_t family, struct offload_dests *to)
{
	if (to->n > STEER_COPIES || !known(remote) || remote->family != family ||
		o->cfg.steer->local[t->cfg->local.addr].family != family)
		return false;
	to->d[to->n++] = (struct steer_copy){*remote, t->cfg->local, t->cfg->tos};
	return true;
}

/* A subscriber only receives, so its address need not be confirmed. All subscribers must be
 * eligible, because the kernel would never add one that is left out now. */
static bool listeners_add(const struct offload *o, uint32_t worker, const struct off_stream *s,
	uint8_t family, struct offload_dests *to)
{
	const struct off_site *site = &o->site[worker];
	struct offload_look there;

	for (uint32_t next = s->cfg->copy[0]; next;) {
		uint32_t id = next - 1;
		const struct off_stream *l = &site->stream[id < o->cfg.max_stream ? id : 0];

		if (id >= o->cfg.max_stream || !l->set || !l->cfg->listener ||
			media_stream_kernel(l->cfg) & KERNEL_NOT_HEARER ||
			offload_tx(site, l->cfg->ctx) != PLAIN)
			return false;
		o->cfg.look(o->cfg.arg, worker, id, &there);
		if (!dest_add(o, l, &there.remote, family, to))
			return false;
		to->hearer[to->hearers++] = id;
		next = l->cfg->copy[0];
	}
	return true;
}

static bool peer_add(const struct offload *o, uint32_t worker, const struct off_stream *s,
	uint8_t family, struct offload_dests *to)
{
	const struct off_stream *t;
	struct offload_look there;

	if (offload_target(s->cfg) >= o->cfg.max_stream)
		return true; /* published: for listeners only */
	t = &o->site[worker].stream[offload_target(s->cfg)];
	o->cfg.look(o->cfg.arg, worker, offload_target(s->cfg), &there);
	return (there.confirmed || t->cfg->asymmetric || t->cfg->learning == MEDIA_LEARN_OFF) &&
		dest_add(o, t, &there.remote, family, to);
}

bool offload_eligible(const struct offload *o, uint32_t worker, uint32_t id,
	struct steer_relay *out, struct offload_look *look, struct offload_dests *to)
{
	const struct off_site *site = &o->site[worker];
	const struct off_stream *s = &site->stream[id];
	struct offload_look here;

	to->n = to->hearers = 0;
	if (!may_relay(o, site, s))
		return false;
	o->cfg.look(o->cfg.arg, worker, id, &here);
	*look = here;
	if (!here.confirmed || here.packets < (s->cfg->rtp ? ENOUGH_PACKETS : 1) ||
		!known(&here.remote))
		return false;
	if (!peer_add(o, worker, s, here.remote.family, to) ||
		!listeners_add(o, worker, s, here.remote.family, to) || !to->n)
		return false;
	*out = (struct steer_relay){.source = here.remote,
		.to = to->d[0].to,
		.local = s->cfg->local,
		.from = to->d[0].from,
		.ssrc = s->cfg->rtp ? here.ssrc : 0,
		.id = id,
		.tos = to->d[0].tos,
		.copies = (uint8_t)(to->n - 1),
		.strict = is_strict(s->cfg, &here.remote),
		.rtcp = offload_rx(site, s->cfg->ctx) == PASSED &&
			(!s->cfg->rtp || (s->cfg->rtcp && s->cfg->rtcp_to == s->cfg->rtp_to))};
	memcpy(out->copy, &to->d[1], out->copies * sizeof(out->copy[0]));
	return true;
}

bool offload_same(const struct steer_relay *a, const struct steer_relay *b)
{
	for (uint32_t i = 0; i < a->copies && i < b->copies; i++)
		if (!endpoint_eq(&a->copy[i].to, &b->copy[i].to) ||
			a->copy[i].from.port != b->copy[i].from.port ||
			a->copy[i].from.addr != b->copy[i].from.addr ||
			a->copy[i].tos != b->copy[i].tos)
			return false;
	return endpoint_eq(&a->source, &b->source) && endpoint_eq(&a->to, &b->to) &&
		a->ssrc == b->ssrc && a->tos == b->tos && a->rtcp == b->rtcp &&
		a->strict == b->strict && a->copies == b->copies && a->from.port == b->from.port &&
		a->from.addr == b->from.addr;
}
