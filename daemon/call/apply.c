/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what was negotiated to ports, contexts, keys and commands: take everything, publish it at once, then give back what
 * is not needed any more; if a step fails give back what was taken, and the old call never noticed. A key is released only
 * after the command that replaces it is published. */
#include "call/model.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"

#define CMDS_PER_MEDIA 6 /* two contexts, four streams */

static const struct held none;

static void release_media(
	const struct relay *r, uint32_t worker, const struct held *a, const struct held *b)
{
	for (int s = 0; s < 2; s++)
		if (a->has_port[s] && !b->has_port[s])
			r->ops->port_release(r->arg, worker, &a->port[s]);
	for (int s = 0; s < 2; s++)
		if (a->has_ctx[s] && !b->has_ctx[s])
			r->ops->ctx_release(r->arg, worker, a->ctx[s]);
	for (int s = 0; s < 2; s++) {
		if (a->rx_key[s] && a->rx_key[s] != b->rx_key[s])
			r->ops->key_release(r->arg, worker, a->rx_key[s]);
		if (a->tx_key[s] && a->tx_key[s] != b->tx_key[s])
			r->ops->key_release(r->arg, worker, a->tx_key[s]);
	}
}

void apply_release(const struct relay *r, uint32_t worker, const struct held *a, uint32_t n,
	const struct held *b, uint32_t n_b)
{
	for (uint32_t i = 0; i < n; i++)
		release_media(r, worker, &a[i], i < n_b ? &b[i] : &none);
}

static const struct nego_media *media_of(const struct nego *n, uint32_t i)
{
	return i < n->count ? &n->media[i] : NULL;
}

static bool same_key(const struct nego_media *old, const struct nego_media *next, int s, bool rx)
{
	const struct nego_end *n = &next->end[s];
	const struct nego_end *o = old ? &old->end[s] : NULL;

	if (!o)
		return (rx ? n->rx : n->tx).master.suite == SUITE_PLAIN;
	return rx ? nego_same_key(&o->rx.master, &n->rx.master)
		  : nego_same_key(&o->tx.master, &n->tx.master);
}

static int take_key(const struct relay *r, uint32_t worker, uint32_t *slot,
	const struct srtp_master *m, bool same)
{
	uint32_t got = 0;
	int err;

	if (m->suite == SUITE_PLAIN) {
		*slot = 0;
		return 0;
	}
	if (same && *slot)
		return 0;
	err = r->ops->key_take(r->arg, &got, worker, m);
	if (!err)
		*slot = got;
	return err;
}

static int take_side(const struct relay *r, uint32_t worker, struct held *h, int s,
	const struct nego_media *old, const struct nego *next, const struct nego_media *m)
{
	int err;

	if (!h->has_port[s]) {
		err = r->ops->port_take(r->arg, &h->port[s], worker, next->side[s].local);
		if (err)
			return err;
		h->has_port[s] = true;
	}
	if (!h->has_ctx[s]) {
		err = r->ops->ctx_take(r->arg, &h->ctx[s], worker);
		if (err)
			return err;
		h->has_ctx[s] = true;
	}
	err = take_key(r, worker, &h->rx_key[s], &m->end[s].rx.master, same_key(old, m, s, true));
	if (err)
		return err;
	return take_key(r, worker, &h->tx_key[s], &m->end[s].tx.master, same_key(old, m, s, false));
}

int apply_take(const struct relay *r, uint32_t worker, const struct nego *old,
	const struct held *held, const struct nego *next, struct held **out)
{
	struct held *now = calloc(next->count ? next->count : 1, sizeof(*now));
	int err = 0;

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < old->count; i++)
		now[i] = held[i];
	for (uint32_t i = 0; i < next->count && !err; i++) {
		if (!next->media[i].wanted) {
			now[i] = none;
			continue;
		}
		for (int s = 0; s < 2 && !err; s++)
			err = take_side(
				r, worker, &now[i], s, media_of(old, i), next, &next->media[i]);
	}
	if (err) {
		apply_release(r, worker, now, next->count, held, old->count);
		free(now);
		return err;
	}
	*out = now;
	return 0;
}

/* --- Commands -------------------------------------------------------------------------------------------------- */

static void set_crypto(struct media_crypto *c, uint32_t key, const struct sdes *s)
{
	c->key = key;
	c->suite = s->master.suite;
	c->mki_len = s->master.mki_len;
	memcpy(c->mki, s->master.mki, sizeof(c->mki));
	c->clear_rtp = s->unencrypted_srtp;
	c->clear_rtcp = s->unencrypted_srtcp;
	c->no_rtp_auth = s->unauthenticated_srtp;
}

static void ctx_cmd(struct media_cmd *cmd, const struct held *h, int s,
	const struct nego_media *old, const struct nego_media *m)
{
	cmd->type = MEDIA_CTX_SET;
	cmd->id = h->ctx[s];
	set_crypto(&cmd->ctx.rx, h->rx_key[s], &m->end[s].rx);
	set_crypto(&cmd->ctx.tx, h->tx_key[s], &m->end[s].tx);
	cmd->ctx.rx_new = !same_key(old, m, s, true);
	cmd->ctx.tx_new = !same_key(old, m, s, false);
}

static void stream_cmd(struct media_cmd *cmd, const struct held *h, int s, bool rtcp,
	const struct nego *next, const struct nego_media *old, const struct nego_media *m)
{
	const struct nego_end *e = &m->end[s], *other = &m->end[!s];
	const struct nego_side *side = &next->side[s];
	struct media_stream_cfg *c = &cmd->stream;

	cmd->type = MEDIA_STREAM_SET;
	cmd->id = rtcp ? h->port[s].rtcp_stream : h->port[s].rtp_stream;
	c->local = rtcp ? h->port[s].rtcp : h->port[s].rtp;
	c->rtp = !rtcp;
	c->rtcp = rtcp || e->mux;
	c->ctx = h->ctx[s];
	c->rtp_to = c->rtcp_to = MEDIA_NONE;
	if (m->linked) {
		if (!rtcp)
			c->rtp_to = h->port[!s].rtp_stream;
		c->rtcp_to = other->mux ? h->port[!s].rtp_stream : h->port[!s].rtcp_stream;
	}
	c->remote = rtcp ? (e->mux ? (struct endpoint){0} : e->rtcp) : e->rtp;
	c->relearn = !old || !old->wanted || !endpoint_eq(&old->end[s].rtp, &e->rtp) ||
		!endpoint_eq(&old->end[s].rtcp, &e->rtcp) || old->end[s].mux != e->mux ||
		old->linked != m->linked;
	c->learning = side->learning;
	c->strict_source = side->strict_source;
	c->media_handover = side->media_handover;
	c->asymmetric = side->asymmetric;
	c->tos = next->tos;
}

int apply_commit(const struct relay *r, uint32_t worker, const struct nego *old,
	const struct held *held, const struct nego *next, const struct held *now, uint64_t now_ns)
{
	struct media_cmd *cmd = calloc((size_t)next->count * CMDS_PER_MEDIA + 1, sizeof(*cmd));
	uint32_t n = 0;
	int err = 0;

	if (!cmd)
		return -ENOMEM;
	for (uint32_t i = 0; i < next->count; i++) {
		const struct nego_media *m = &next->media[i], *was = media_of(old, i);

		if (!m->wanted)
			continue;
		if (was && !was->wanted)
			was = NULL;
		for (int s = 0; s < 2; s++)
			ctx_cmd(&cmd[n++], &now[i], s, was, m);
		for (int s = 0; s < 2; s++)
			for (int rtcp = 0; rtcp < 2; rtcp++)
				stream_cmd(&cmd[n++], &now[i], s, rtcp, next, was, m);
	}
	for (uint32_t i = 0; i < n; i++)
		cmd[i].now_ns = now_ns;
	if (n)
		err = r->ops->commit(r->arg, worker, cmd, n);
	free(cmd);
	if (!err)
		apply_release(r, worker, held, old->count, now, next->count);
	return err;
}
