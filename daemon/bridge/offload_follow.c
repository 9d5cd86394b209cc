/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows the commands to a worker: takes streams back from the kernel before a command changes
 * them, and keeps a copy of the configuration. */
#include "bridge/offload_int.h"
#include "base/clock.h"

struct before {
	struct worker_cmd *out;
	uint32_t n, max;
};

static void before_stream(struct offload *o, struct off_stream *s, struct before *b)
{
	if (s->where != OURS && b->n + 1 + s->follows <= b->max)
		b->n += offload_way_back(o, s, &b->out[b->n]);
}

/* Streams that a command is about, or MEDIA_NONE. */
static void streams_of(const struct offload *o, const struct off_site *site,
	const struct media_cmd *cmd, uint32_t out[2])
{
	out[0] = out[1] = MEDIA_NONE;
	switch (cmd->type) {
	case MEDIA_STREAM_SET:
	case MEDIA_STREAM_DEL:
	case MEDIA_STREAM_RESUME:
	case MEDIA_STREAM_CUT:
	case MEDIA_STREAM_WATCH:
		if (cmd->id < o->cfg.max_stream)
			out[0] = cmd->id;
		break;
	case MEDIA_CTX_SET:
	case MEDIA_CTX_DEL:
		if (cmd->id < o->cfg.max_ctx)
			memcpy(out, site->ctx[cmd->id].stream, sizeof(site->ctx[0].stream));
		break;
	default:
		break;
	}
}

uint32_t offload_before(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n,
	struct worker_cmd *out, uint32_t max)
{
	struct before b = {out, 0, max};
	uint32_t id[2];

	for (uint32_t i = 0; o && i < n; i++) {
		struct off_stream *all = o->site[worker].stream;

		streams_of(o, &o->site[worker], &cmd[i], id);
		for (int k = 0; k < 2; k++) {
			if (id[k] == MEDIA_NONE)
				continue;
			before_stream(o, &all[id[k]], &b);
			if (all[id[k]].from != MEDIA_NONE)
				before_stream(o, &all[all[id[k]].from], &b);
		}
	}
	return b.n;
}

static void returned(struct offload *o, struct off_site *site, uint32_t id)
{
	struct off_stream *s = &site->stream[id];

	if (s->where != OURS)
		offload_come_back(o, s);
	if (s->from != MEDIA_NONE && site->stream[s->from].where != OURS)
		offload_come_back(o, &site->stream[s->from]);
	s->returns = 0;
	s->not_before_ns = 0;
}

/* RTP goes before RTCP, where both leave by one port. */
static void link_streams(struct offload *o, struct off_site *site, uint32_t id, bool on)
{
	const struct media_stream_cfg *c = &site->stream[id].cfg;
	uint32_t to = offload_target(c), *from;

	if (to >= o->cfg.max_stream)
		return;
	from = &site->stream[to].from;
	if (!on && *from == id)
		*from = MEDIA_NONE;
	else if (on && (c->rtp || *from == MEDIA_NONE || !site->stream[*from].cfg.rtp))
		*from = id;
}

static void stream_set(struct offload *o, struct off_site *site, const struct media_cmd *cmd)
{
	struct off_stream *s = &site->stream[cmd->id];
	const struct media_stream_cfg *c = &cmd->stream;

	if (s->set)
		link_streams(o, site, cmd->id, false);
	s->cfg = *c;
	s->set = true;
	if (cmd->id >= site->top)
		site->top = cmd->id + 1;
	link_streams(o, site, cmd->id, true);
	if (c->ctx < o->cfg.max_ctx)
		site->ctx[c->ctx].stream[!c->rtp] = cmd->id;
}

static uint8_t kind_of(const struct media_crypto *c)
{
	return c->pass ? PASSED : c->suite == SUITE_PLAIN && !c->awaited ? PLAIN : CIPHERED;
}

/* Another key, another index. */
static void forget_index(struct off_site *site, uint32_t ctx)
{
	uint32_t id = site->ctx[ctx].stream[0];

	if (id == MEDIA_NONE)
		return;
	site->stream[id].follows = false;
	site->stream[id].index = site->stream[id].told = 0;
}

void offload_pushed(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	for (uint32_t i = 0; o && i < n; i++) {
		struct off_site *site = &o->site[worker];
		uint32_t id[2];

		streams_of(o, site, &cmd[i], id);
		for (int k = 0; k < 2; k++)
			if (id[k] != MEDIA_NONE)
				returned(o, site, id[k]);
		/* A watch must see all packets. */
		if (cmd[i].type == MEDIA_STREAM_WATCH && id[0] != MEDIA_NONE)
			site->stream[id[0]].not_before_ns = o->now_ns + OFFLOAD_WATCH_NS;
		if (cmd[i].type == MEDIA_STREAM_SET && id[0] != MEDIA_NONE)
			stream_set(o, site, &cmd[i]);
		if (cmd[i].type == MEDIA_CTX_SET && cmd[i].id < o->cfg.max_ctx) {
			if (cmd[i].ctx.rx_new)
				forget_index(site, cmd[i].id);
			site->ctx[cmd[i].id].rx = kind_of(&cmd[i].ctx.rx);
			/* The kernel cannot rename SSRCs. */
			if (cmd[i].ctx.rename && site->ctx[cmd[i].id].rx == PLAIN)
				site->ctx[cmd[i].id].rx = CIPHERED;
			site->ctx[cmd[i].id].tx = kind_of(&cmd[i].ctx.tx);
		}
	}
}

void offload_release(struct offload *o, uint32_t worker, uint32_t stream)
{
	struct off_site *site;
	struct off_stream *s;

	if (!o || stream >= o->cfg.max_stream)
		return;
	site = &o->site[worker];
	s = &site->stream[stream];
	if (s->touched)
		o->gone_packets += offload_packets(s);
	offload_hearers_forget(site, s);
	for (uint32_t i = 0; s->cfg.listener && s->from != MEDIA_NONE && i <= STEER_COPIES; i++)
		if (site->stream[s->from].hearer[i] == stream)
			site->stream[s->from].hearer[i] = MEDIA_NONE;
	if (s->set)
		link_streams(o, site, stream, false);
	for (int k = 0; k < 2; k++)
		if (s->set && s->cfg.ctx < o->cfg.max_ctx &&
			site->ctx[s->cfg.ctx].stream[k] == stream)
			site->ctx[s->cfg.ctx].stream[k] = MEDIA_NONE;
	memset(s, 0, sizeof(*s));
	s->from = MEDIA_NONE;
}
