/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps a copy of what workers were told of streams and contexts, and judges by it (app/offload.h). The kernel's counters of a
 * port begin when the port becomes ours, except where an earlier instance's was taken over: hence the base. */
#include "app/offload.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define ENOUGH_PACKETS 5u               /* of a stream, until it is thought to go on as it began */
#define ASKED_NS       (4 * NS_PER_SEC) /* then a worker that could not has given up */
#define BACK_OFF_NS \
	(1 * NS_PER_SEC) /* doubled each time a stream has to come back on its own account */
#define BACK_OFF_MAX 6u
#define FRESH_NS     (50 * 1000000ull) /* counters are not read again before this */
#define READS_MAX    256u              /* single reads of counters between two ticks */

enum where { OURS, ASKED, KERNEL };

struct off_stream {
	struct media_stream_cfg cfg;
	bool set;
	uint8_t where; /* enum where */
	uint8_t returns;
	bool touched, based; /* the kernel may have counted something; base is known */
	bool late;           /* counters to be read again: it came back since */
	uint32_t from;       /* stream whose RTP goes out by this one, or MEDIA_NONE */
	struct steer_relay what;
	uint64_t asked_ns, not_before_ns, read_ns; /* monotonic */
	uint64_t base_packets, base_bytes;
	struct steer_relayed seen;
};

struct off_ctx {
	bool rx_plain, tx_plain; /* false: SRTP, or not set yet */
	uint32_t rtp; /* the stream that RTP of this context comes in by, or MEDIA_NONE */
};

struct off_site {
	struct off_stream *stream;
	struct off_ctx *ctx;
	uint32_t top; /* streams from here on were never set */
};

struct offload {
	struct offload_config cfg;
	struct off_site *site;
	uint32_t worker; /* of the dump that is being read */
	uint64_t now_ns;
	uint32_t reads;
	uint64_t gone_packets, moves; /* of streams that are released */
};

/* --- Reading what the kernel counted -------------------------------------------------------------------------- */

static void take(struct off_stream *s, const struct steer_relayed *r, uint64_t now_ns)
{
	s->seen = *r;
	s->read_ns = now_ns;
	if (!s->based) {
		s->based = true;
		s->base_packets = r->packets;
		s->base_bytes = r->bytes;
	}
}

static int read_one(struct offload *o, struct off_stream *s, uint64_t now_ns)
{
	struct steer_relayed r;
	int err = o->cfg.ops->relayed(o->cfg.steer, s->cfg.local, &r);

	if (!err)
		take(s, &r, now_ns);
	return err;
}

static uint64_t packets_of(const struct off_stream *s)
{
	return s->based && s->seen.packets > s->base_packets ? s->seen.packets - s->base_packets
							     : 0;
}

static uint64_t bytes_of(const struct off_stream *s)
{
	return s->based && s->seen.bytes > s->base_bytes ? s->seen.bytes - s->base_bytes : 0;
}

static void dumped(void *arg, const struct steer_relayed *r)
{
	struct offload *o = arg;
	struct off_stream *s;

	/* What an earlier instance left has another's number: only those that we asked for count. */
	if (r->id >= o->cfg.max_stream)
		return;
	s = &o->site[o->worker].stream[r->id];
	if (s->where == OURS || !s->set)
		return;
	s->where = KERNEL;
	take(s, r, o->now_ns);
}

/* --- There and back ------------------------------------------------------------------------------------------- */

static void come_back(struct offload *o, struct off_stream *s)
{
	s->where = OURS;
	s->late = true;
	o->moves++;
}

static struct worker_cmd unrelay_cmd(const struct off_stream *s)
{
	struct worker_cmd c = {.kind = WORKER_UNRELAY};

	c.local = s->cfg.local;
	return c;
}

static bool known(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

/* Whether its RTP may stay in the kernel, and how. */
static bool eligible(const struct offload *o, uint32_t worker, uint32_t id, struct steer_relay *out)
{
	const struct off_site *site = &o->site[worker];
	const struct off_stream *s = &site->stream[id], *t;
	struct offload_look here, there;

	if (!s->set || !s->cfg.rtp || s->cfg.gate || s->cfg.tap || s->cfg.media_handover ||
		s->cfg.copy[0] || s->cfg.copy[1] || s->cfg.rtp_to >= o->cfg.max_stream ||
		!site->ctx[s->cfg.ctx].rx_plain)
		return false;
	t = &site->stream[s->cfg.rtp_to];
	if (!t->set || t->cfg.media_handover || !site->ctx[t->cfg.ctx].tx_plain)
		return false;
	o->cfg.look(o->cfg.arg, worker, id, &here);
	if (!here.confirmed || here.packets < ENOUGH_PACKETS || !known(&here.remote))
		return false;
	o->cfg.look(o->cfg.arg, worker, s->cfg.rtp_to, &there);
	if (!(there.confirmed || t->cfg.asymmetric || t->cfg.learning == MEDIA_LEARN_OFF) ||
		!known(&there.remote) || there.remote.family != here.remote.family ||
		o->cfg.steer->local[t->cfg.local.addr].family != here.remote.family)
		return false;
	*out = (struct steer_relay){.source = here.remote,
		.to = there.remote,
		.local = s->cfg.local,
		.from = t->cfg.local,
		.ssrc = here.ssrc,
		.id = id,
		.tos = t->cfg.tos};
	return true;
}

static bool same_relay(const struct steer_relay *a, const struct steer_relay *b)
{
	return endpoint_eq(&a->source, &b->source) && endpoint_eq(&a->to, &b->to) &&
		a->ssrc == b->ssrc && a->tos == b->tos && a->from.port == b->from.port &&
		a->from.addr == b->from.addr;
}

static void judge(struct offload *o, uint32_t worker, uint32_t id, uint64_t now_ns)
{
	struct off_stream *s = &o->site[worker].stream[id];
	struct worker_cmd cmd = {.kind = WORKER_RELAY};
	struct steer_relay want;
	bool may = eligible(o, worker, id, &want);

	if (s->where == ASKED && now_ns >= s->asked_ns + ASKED_NS)
		come_back(o, s);
	if (s->where != OURS) {
		if (may && same_relay(&want, &s->what))
			return;
		cmd = unrelay_cmd(s);
		if (o->cfg.push(o->cfg.arg, worker, &cmd, 1) == 0) {
			come_back(o, s);
			s->not_before_ns = now_ns + (BACK_OFF_NS << s->returns);
			s->returns += s->returns < BACK_OFF_MAX;
		}
		return;
	}
	if (!may || now_ns < s->not_before_ns)
		return;
	if (!s->based)
		(void)read_one(o, s, now_ns);
	cmd.relay = want;
	if (!s->based || o->cfg.push(o->cfg.arg, worker, &cmd, 1))
		return;
	s->what = want;
	s->where = ASKED;
	s->asked_ns = now_ns;
	s->touched = true;
	o->moves++;
}

void offload_tick(struct offload *o, uint64_t now_ns)
{
	if (!o)
		return;
	o->reads = 0;
	o->now_ns = now_ns;
	for (o->worker = 0; o->worker < o->cfg.workers; o->worker++) {
		struct off_site *site = &o->site[o->worker];

		(void)o->cfg.ops->relayed_all(o->cfg.steer, o->worker, dumped, o);
		for (uint32_t i = 0; i < site->top; i++) {
			struct off_stream *s = &site->stream[i];

			if (!s->set || !s->cfg.rtp)
				continue;
			if (s->late && s->where == OURS && read_one(o, s, now_ns) == 0)
				s->late = s->seen.now;
			judge(o, o->worker, i, now_ns);
		}
	}
}

/* --- Commands on their way ------------------------------------------------------------------------------------ */

static void before_stream(
	const struct off_site *site, uint32_t id, struct worker_cmd *out, uint32_t *n, uint32_t max)
{
	const struct off_stream *s = &site->stream[id];

	if (s->where != OURS && *n < max)
		out[(*n)++] = unrelay_cmd(s);
	if (s->from != MEDIA_NONE && site->stream[s->from].where != OURS && *n < max)
		out[(*n)++] = unrelay_cmd(&site->stream[s->from]);
}

/* The RTP stream that a command is about, or MEDIA_NONE. */
static uint32_t stream_of(
	const struct offload *o, const struct off_site *site, const struct media_cmd *cmd)
{
	switch (cmd->type) {
	case MEDIA_STREAM_SET:
	case MEDIA_STREAM_DEL:
	case MEDIA_STREAM_RESUME:
		return cmd->id < o->cfg.max_stream ? cmd->id : MEDIA_NONE;
	case MEDIA_CTX_SET:
	case MEDIA_CTX_DEL:
		return cmd->id < o->cfg.max_ctx ? site->ctx[cmd->id].rtp : MEDIA_NONE;
	default:
		return MEDIA_NONE;
	}
}

uint32_t offload_before(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n,
	struct worker_cmd *out, uint32_t max)
{
	uint32_t made = 0;

	for (uint32_t i = 0; o && i < n; i++) {
		uint32_t id = stream_of(o, &o->site[worker], &cmd[i]);

		if (id != MEDIA_NONE)
			before_stream(&o->site[worker], id, out, &made, max);
	}
	return made;
}

static void returned(struct offload *o, struct off_site *site, uint32_t id)
{
	struct off_stream *s = &site->stream[id];

	if (s->where != OURS)
		come_back(o, s);
	if (s->from != MEDIA_NONE && site->stream[s->from].where != OURS)
		come_back(o, &site->stream[s->from]);
	s->returns = 0;
	s->not_before_ns = 0;
}

static void stream_set(struct offload *o, struct off_site *site, const struct media_cmd *cmd)
{
	struct off_stream *s = &site->stream[cmd->id];
	const struct media_stream_cfg *c = &cmd->stream;

	if (s->set && s->cfg.rtp_to < o->cfg.max_stream &&
		site->stream[s->cfg.rtp_to].from == cmd->id)
		site->stream[s->cfg.rtp_to].from = MEDIA_NONE;
	s->cfg = *c;
	s->set = true;
	if (cmd->id >= site->top)
		site->top = cmd->id + 1;
	if (!c->rtp)
		return;
	if (c->rtp_to < o->cfg.max_stream)
		site->stream[c->rtp_to].from = cmd->id;
	if (c->ctx < o->cfg.max_ctx)
		site->ctx[c->ctx].rtp = cmd->id;
}

void offload_pushed(struct offload *o, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	for (uint32_t i = 0; o && i < n; i++) {
		struct off_site *site = &o->site[worker];
		uint32_t id = stream_of(o, site, &cmd[i]);

		if (id != MEDIA_NONE)
			returned(o, site, id);
		if (cmd[i].type == MEDIA_STREAM_SET && id != MEDIA_NONE)
			stream_set(o, site, &cmd[i]);
		if (cmd[i].type == MEDIA_CTX_SET && cmd[i].id < o->cfg.max_ctx) {
			site->ctx[cmd[i].id].rx_plain =
				cmd[i].ctx.rx.suite == SUITE_PLAIN && !cmd[i].ctx.rx.pass;
			site->ctx[cmd[i].id].tx_plain =
				cmd[i].ctx.tx.suite == SUITE_PLAIN && !cmd[i].ctx.tx.pass;
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
		o->gone_packets += packets_of(s);
	if (s->set && s->cfg.rtp_to < o->cfg.max_stream &&
		site->stream[s->cfg.rtp_to].from == stream)
		site->stream[s->cfg.rtp_to].from = MEDIA_NONE;
	if (s->set && s->cfg.ctx < o->cfg.max_ctx && site->ctx[s->cfg.ctx].rtp == stream)
		site->ctx[s->cfg.ctx].rtp = MEDIA_NONE;
	memset(s, 0, sizeof(*s));
	s->from = MEDIA_NONE;
}

/* --- Counters ------------------------------------------------------------------------------------------------- */

/* As of now, if there are not too many who ask. */
static void freshen(struct offload *o, struct off_stream *s, uint64_t now_ns)
{
	if ((s->where == OURS && !s->late) || now_ns < s->read_ns + FRESH_NS ||
		o->reads >= READS_MAX)
		return;
	o->reads++;
	(void)read_one(o, s, now_ns);
}

void offload_stats(struct offload *o, uint32_t worker, uint32_t stream, uint64_t now_ns,
	struct relay_stats *out)
{
	struct off_stream *s, *f;

	if (!o || stream >= o->cfg.max_stream)
		return;
	s = &o->site[worker].stream[stream];
	if (s->touched) {
		freshen(o, s, now_ns);
		out->packets += packets_of(s);
		out->bytes += bytes_of(s);
		if (s->seen.last_ns > out->last_packet_ns)
			out->last_packet_ns = s->seen.last_ns;
	}
	if (s->from == MEDIA_NONE)
		return;
	f = &o->site[worker].stream[s->from];
	if (!f->touched)
		return;
	freshen(o, f, now_ns);
	out->packets_out += packets_of(f);
	out->bytes_out += bytes_of(f);
}

void offload_usage(const struct offload *o, struct offload_usage *out)
{
	*out = (struct offload_usage){0};
	if (!o)
		return;
	out->packets = o->gone_packets;
	out->moves = o->moves;
	for (uint32_t w = 0; w < o->cfg.workers; w++)
		for (uint32_t i = 0; i < o->site[w].top; i++) {
			const struct off_stream *s = &o->site[w].stream[i];

			out->streams += s->where == KERNEL;
			out->packets += s->touched ? packets_of(s) : 0;
		}
}

/* --- Set-up --------------------------------------------------------------------------------------------------- */

int offload_create(struct offload **out, const struct offload_config *cfg)
{
	struct offload *o;

	if (!cfg->ops->relays || !cfg->ops->relays(cfg->steer))
		return -EOPNOTSUPP;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->cfg = *cfg;
	o->site = calloc(cfg->workers, sizeof(*o->site));
	for (uint32_t w = 0; o->site && w < cfg->workers; w++) {
		struct off_site *site = &o->site[w];

		site->stream = calloc(cfg->max_stream + 1, sizeof(*site->stream));
		site->ctx = calloc(cfg->max_ctx + 1, sizeof(*site->ctx));
		if (!site->stream || !site->ctx)
			goto no_memory;
		for (uint32_t i = 0; i < cfg->max_stream; i++)
			site->stream[i].from = MEDIA_NONE;
		for (uint32_t i = 0; i < cfg->max_ctx; i++)
			site->ctx[i].rtp = MEDIA_NONE;
	}
	if (!o->site)
		goto no_memory;
	*out = o;
	return 0;
no_memory:
	offload_destroy(o);
	return -ENOMEM;
}

void offload_destroy(struct offload *o)
{
	if (!o)
		return;
	for (uint32_t w = 0; o->site && w < o->cfg.workers; w++) {
		free(o->site[w].stream);
		free(o->site[w].ctx);
	}
	free(o->site);
	free(o);
}
