/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows the commands to a worker: takes streams back from the kernel before a command changes
 * them, and notes which streams lead to which. */
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

/* The streams that a command affects, or MEDIA_NONE. */
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

static void unlink_stream(struct off_site *site, uint32_t id)
{
	struct off_stream *s = &site->stream[id];

	if (s->to != MEDIA_NONE && site->stream[s->to].from == id)
		site->stream[s->to].from = MEDIA_NONE;
	s->to = MEDIA_NONE;
}

/* RTP has precedence over RTCP if both leave by one port. */
static void link_stream(const struct offload *o, struct off_site *site, uint32_t id)
{
	struct off_stream *s = &site->stream[id];
	uint32_t to = offload_target(s->cfg), *from;

	if (to >= o->cfg.max_stream)
		return;
	s->to = to;
	from = &site->stream[to].from;
	if (s->cfg->rtp || *from == MEDIA_NONE || !site->stream[*from].cfg->rtp)
		*from = id;
}

static void stream_set(const struct offload *o, struct off_site *site, uint32_t id)
{
	struct off_stream *s = &site->stream[id];

	unlink_stream(site, id);
	s->set = true;
	if (id >= site->top)
		site->top = id + 1;
	link_stream(o, site, id);
	if (s->cfg->ctx < o->cfg.max_ctx)
		site->ctx[s->cfg->ctx].stream[!s->cfg->rtp] = id;
}

/* A new key has new indexes. */
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
			stream_set(o, site, id[0]);
		if (cmd[i].type == MEDIA_CTX_SET && cmd[i].id < o->cfg.max_ctx && cmd[i].ctx.rx_new)
			forget_index(site, cmd[i].id);
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
	for (uint32_t i = 0; s->cfg->listener && s->from != MEDIA_NONE && i <= STEER_COPIES; i++)
		if (site->stream[s->from].hearer[i] == stream)
			site->stream[s->from].hearer[i] = MEDIA_NONE;
	unlink_stream(site, stream);
	for (int k = 0; k < 2; k++)
		if (s->set && s->cfg->ctx < o->cfg.max_ctx &&
			site->ctx[s->cfg->ctx].stream[k] == stream)
			site->ctx[s->cfg->ctx].stream[k] = MEDIA_NONE;
	offload_stream_clear(site, stream);
}
