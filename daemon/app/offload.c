/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps a copy of what workers were told of streams and contexts, and judges by it (app/offload.h). The kernel's counters of a
 * port begin when the port becomes ours, except where an earlier instance's was taken over: hence the base. */
#include "app/offload.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "srtp/replay.h"

#define ENOUGH_PACKETS 5u               /* of a stream, until it is thought to go on as it began */
#define ASKED_NS       (4 * NS_PER_SEC) /* then a worker that could not has given up */
#define BACK_OFF_NS \
	(1 * NS_PER_SEC) /* doubled each time a stream has to come back on its own account */
#define BACK_OFF_MAX 6u
#define FRESH_NS     (50 * 1000000ull) /* counters are not read again before this */
#define READS_MAX    256u              /* single reads of counters between two ticks */
/* Where the kernel tells of silence its counters are read only so often: for numbers, and lest an event was lost. Sequence numbers are not to
 * go round by half meanwhile: good for 8,000 packets a second. */
#define DUMP_NS      (4 * NS_PER_SEC)
#define SILENCE_NS   (STEER_SILENCE_MS * 1000000ull)
#define TELL_PACKETS 128u /* a worker learns where an index stands each time that it went so far */

enum where { OURS, ASKED, KERNEL };

struct off_stream {
	struct media_stream_cfg cfg;
	bool set;
	uint8_t where; /* enum where */
	uint8_t returns;
	bool touched, based; /* the kernel may have counted something; base is known */
	bool late;           /* counters to be read again: it came back since */
	uint32_t from;       /* stream whose RTP goes out by this one, or MEDIA_NONE */
	/* Listeners that are among its destinations; of a listener's from counts what came since then, and before. */
	uint32_t hearer[STEER_COPIES + 1], hearers;
	uint64_t out_since, out_since_bytes, out_before, out_before_bytes;
	struct steer_relay what;
	uint64_t asked_ns, not_before_ns, read_ns; /* monotonic */
	uint64_t base_packets, base_bytes, base_strangers;
	bool silent;  /* as it told */
	bool stirred; /* it told of something: look again */
	struct steer_relayed seen;
	/* Passed through: the kernel sees the sequence numbers, and nobody else does. */
	bool follows;
	uint64_t index, told; /* where it stands; what the worker was told of it */
};

enum off_kind { CIPHERED, PLAIN, PASSED }; /* CIPHERED: or not set yet */

struct off_ctx {
	uint8_t rx, tx;     /* enum off_kind */
	uint32_t stream[2]; /* those that RTP and RTCP of this context come in by, or MEDIA_NONE */
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
	bool told;    /* the kernel tells of silence and other sources by itself */
	bool gone;    /* there is no such kernel any more */
	bool asking;  /* workers were asked to have it relay, and it is not known whether it does */
	bool stirred; /* some stream is */
	uint64_t dumped_ns, real_ns;  /* when counters were read last, and CLOCK_REALTIME then */
	uint64_t gone_packets, moves; /* of streams that are released */
};

/* --- Reading what the kernel counted -------------------------------------------------------------------------- */

static void take(struct off_stream *s, const struct steer_relayed *r, uint64_t now_ns)
{
	uint64_t index;

	if (s->follows && r->has_seq) {
		index = srtp_index_estimate(s->index, r->seq);
		s->index = index > s->index && index <= SRTP_INDEX_MAX ? index : s->index;
	}
	s->seen = *r;
	s->read_ns = now_ns;
	if (!s->based) {
		s->based = true;
		s->base_packets = r->packets;
		s->base_bytes = r->bytes;
		s->base_strangers = r->strangers;
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
	s->silent = r->last_ns + SILENCE_NS < o->real_ns;
	take(s, r, o->now_ns);
}

static void dump_all(struct offload *o, uint64_t now_ns)
{
	o->now_ns = o->dumped_ns = now_ns;
	o->real_ns = clock_real_ns();
	for (o->worker = 0; o->worker < o->cfg.workers; o->worker++)
		(void)o->cfg.ops->relayed_all(o->cfg.steer, o->worker, dumped, o);
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

static struct worker_cmd resume_cmd(const struct off_stream *s)
{
	struct worker_cmd c = {.kind = WORKER_MEDIA};

	c.media.type = MEDIA_CTX_RESUME;
	c.media.id = s->cfg.ctx;
	c.media.ctx_resume.n = 1;
	c.media.ctx_resume.mark[0] =
		(struct media_mark){.ssrc = s->what.ssrc, .table = MEDIA_RX_RTP, .index = s->index};
	return c;
}

/* Commands that bring it back, two at most: their number. */
static uint32_t way_back(struct offload *o, struct off_stream *s, struct worker_cmd out[2])
{
	out[0] = unrelay_cmd(s);
	if (!s->follows || s->where != KERNEL)
		return 1;
	(void)read_one(o, s, o->now_ns);
	out[1] = resume_cmd(s);
	s->told = s->index;
	return 2;
}

/* Where what comes in by it goes. */
static uint32_t target_of(const struct media_stream_cfg *c)
{
	return c->rtp ? c->rtp_to : c->rtcp_to;
}

/* Another source may take over at any time: who is told of it can look away meanwhile. */
static bool may_move(const struct offload *o, const struct off_stream *s)
{
	return s->cfg.media_handover && !o->told;
}

static bool known(const struct endpoint *e)
{
	return e->family && e->port && !endpoint_is_unspecified(e);
}

/* RTCP that can be read is the daemon's: statistics are made of it. With a port of its own it goes to such a one. */
static bool may_relay(
	const struct offload *o, const struct off_site *site, const struct off_stream *s)
{
	uint8_t kind = site->ctx[s->cfg.ctx].rx;
	const struct off_stream *t;

	if (!s->set || s->cfg.gate || s->cfg.tap || may_move(o, s) || kind == CIPHERED ||
		(kind == PLAIN && !s->cfg.rtp) || (kind == PASSED && !o->cfg.steer->relays_srtp))
		return false;
	/* What is passed through is deciphered for them. */
	if ((s->cfg.copy[0] || s->cfg.copy[1]) && (kind == PASSED || !o->cfg.steer->relays_copies))
		return false;
	if (target_of(&s->cfg) >= o->cfg.max_stream)
		return s->cfg.copy[0] != 0;
	t = &site->stream[target_of(&s->cfg)];
	return t->set && !may_move(o, t) && site->ctx[t->cfg.ctx].tx == kind &&
		t->cfg.rtp == s->cfg.rtp;
}

struct dests {
	struct steer_copy d[STEER_COPIES + 1];
	uint32_t hearer[STEER_COPIES + 1];
	uint32_t n, hearers;
};

static bool dest_add(const struct offload *o, const struct off_stream *t,
	const struct endpoint *remote, uint8_t family, struct dests *to)
{
	if (to->n > STEER_COPIES || !known(remote) || remote->family != family ||
		o->cfg.steer->local[t->cfg.local.addr].family != family)
		return false;
	to->d[to->n++] = (struct steer_copy){*remote, t->cfg.local, t->cfg.tos};
	return true;
}

/* Who listens only receives: its address need not be confirmed. One that does not get copies now would be forgotten by the kernel, so it is
 * all or none. */
static bool listeners_add(const struct offload *o, uint32_t worker, const struct off_stream *s,
	uint8_t family, struct dests *to)
{
	const struct off_site *site = &o->site[worker];
	struct offload_look there;

	for (uint32_t next = s->cfg.copy[0]; next;) {
		uint32_t id = next - 1;
		const struct off_stream *l = &site->stream[id < o->cfg.max_stream ? id : 0];

		if (id >= o->cfg.max_stream || !l->set || !l->cfg.listener || l->cfg.wait ||
			l->cfg.gate || site->ctx[l->cfg.ctx].tx != PLAIN)
			return false;
		o->cfg.look(o->cfg.arg, worker, id, &there);
		if (!dest_add(o, l, &there.remote, family, to))
			return false;
		to->hearer[to->hearers++] = id;
		next = l->cfg.copy[0];
	}
	return true;
}

static bool peer_add(const struct offload *o, uint32_t worker, const struct off_stream *s,
	uint8_t family, struct dests *to)
{
	const struct off_stream *t;
	struct offload_look there;

	if (target_of(&s->cfg) >= o->cfg.max_stream)
		return true; /* published: for listeners only */
	t = &o->site[worker].stream[target_of(&s->cfg)];
	o->cfg.look(o->cfg.arg, worker, target_of(&s->cfg), &there);
	return (there.confirmed || t->cfg.asymmetric || t->cfg.learning == MEDIA_LEARN_OFF) &&
		dest_add(o, t, &there.remote, family, to);
}

/* Whether what comes in by it may stay in the kernel, and how. */
static bool eligible(const struct offload *o, uint32_t worker, uint32_t id, struct steer_relay *out,
	struct offload_look *look, struct dests *to)
{
	const struct off_site *site = &o->site[worker];
	const struct off_stream *s = &site->stream[id];
	struct offload_look here;

	to->n = to->hearers = 0;
	if (!may_relay(o, site, s))
		return false;
	o->cfg.look(o->cfg.arg, worker, id, &here);
	*look = here;
	if (!here.confirmed || here.packets < (s->cfg.rtp ? ENOUGH_PACKETS : 1) ||
		!known(&here.remote))
		return false;
	if (!peer_add(o, worker, s, here.remote.family, to) ||
		!listeners_add(o, worker, s, here.remote.family, to) || !to->n)
		return false;
	*out = (struct steer_relay){.source = here.remote,
		.to = to->d[0].to,
		.local = s->cfg.local,
		.from = to->d[0].from,
		.ssrc = s->cfg.rtp ? here.ssrc : 0,
		.id = id,
		.tos = to->d[0].tos,
		.copies = (uint8_t)(to->n - 1),
		.strict = s->cfg.strict_source && !s->cfg.media_handover && !s->cfg.asymmetric,
		.rtcp = site->ctx[s->cfg.ctx].rx == PASSED &&
			(!s->cfg.rtp || (s->cfg.rtcp && s->cfg.rtcp_to == s->cfg.rtp_to))};
	memcpy(out->copy, &to->d[1], out->copies * sizeof(out->copy[0]));
	return true;
}

static bool same_relay(const struct steer_relay *a, const struct steer_relay *b)
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

/* A listener's part of what another stream's counters say. */
static void unhear(struct off_site *site, uint32_t id)
{
	struct off_stream *l = &site->stream[id], *f;

	if (l->from == MEDIA_NONE)
		return;
	f = &site->stream[l->from];
	l->out_before += packets_of(f) - l->out_since;
	l->out_before_bytes += bytes_of(f) - l->out_since_bytes;
	l->out_since = l->out_since_bytes = 0;
	l->from = MEDIA_NONE;
}

static void hearers_forget(struct off_site *site, struct off_stream *s)
{
	for (uint32_t i = 0; i < s->hearers; i++)
		if (s->hearer[i] != MEDIA_NONE)
			unhear(site, s->hearer[i]);
	s->hearers = 0;
}

static void hearers_note(struct off_site *site, uint32_t id, const struct dests *to)
{
	struct off_stream *s = &site->stream[id];

	hearers_forget(site, s);
	for (uint32_t i = 0; i < to->hearers; i++) {
		struct off_stream *l = &site->stream[to->hearer[i]];

		s->hearer[s->hearers++] = to->hearer[i];
		l->from = id;
		l->out_since = packets_of(s);
		l->out_since_bytes = bytes_of(s);
	}
}

static void judge(struct offload *o, uint32_t worker, uint32_t id, uint64_t now_ns)
{
	struct off_stream *s = &o->site[worker].stream[id];
	struct worker_cmd cmd = {.kind = WORKER_RELAY}, back[2];
	struct steer_relay want;
	struct offload_look here;
	struct dests to;
	bool may = eligible(o, worker, id, &want, &here, &to);

	if (s->where == ASKED && now_ns >= s->asked_ns + ASKED_NS)
		come_back(o, s);
	if (s->where != OURS) {
		if (may && same_relay(&want, &s->what))
			return;
		if (o->cfg.push(o->cfg.arg, worker, back, way_back(o, s, back)) == 0) {
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
	s->follows = s->cfg.rtp && o->site[worker].ctx[s->cfg.ctx].rx == PASSED;
	if (here.index > s->index || want.ssrc != s->what.ssrc)
		s->index = s->told = here.index;
	hearers_note(&o->site[worker], id, &to);
	s->what = want;
	s->where = ASKED;
	s->asked_ns = now_ns;
	s->touched = true;
	o->moves++;
}

static void tell_index(struct offload *o, struct off_stream *s)
{
	struct worker_cmd cmd;

	if (!s->follows || s->where != KERNEL || s->index < s->told + TELL_PACKETS)
		return;
	cmd = resume_cmd(s);
	if (o->cfg.push(o->cfg.arg, o->worker, &cmd, 1) == 0)
		s->told = s->index;
}

void offload_tick(struct offload *o, uint64_t now_ns)
{
	if (!o)
		return;
	o->reads = 0;
	o->now_ns = now_ns;
	if (o->gone)
		return;
	if (!o->told || o->asking || now_ns >= o->dumped_ns + DUMP_NS)
		dump_all(o, now_ns);
	o->asking = false;
	for (o->worker = 0; o->worker < o->cfg.workers; o->worker++) {
		struct off_site *site = &o->site[o->worker];

		for (uint32_t i = 0; i < site->top; i++) {
			struct off_stream *s = &site->stream[i];

			if (!s->set)
				continue;
			tell_index(o, s);
			if (s->late && s->where == OURS && read_one(o, s, now_ns) == 0)
				s->late = s->seen.now;
			judge(o, o->worker, i, now_ns);
			o->asking |= s->where == ASKED;
		}
	}
}

/* --- What the kernel tells by itself -------------------------------------------------------------------------- */

bool offload_event(struct offload *o, const struct steer_event *e)
{
	struct off_stream *s;

	if (!o || e->worker >= o->cfg.workers || e->id >= o->cfg.max_stream)
		return false;
	s = &o->site[e->worker].stream[e->id];
	if (!s->set || s->where != KERNEL)
		return false;
	if (e->kind == STEER_EVENT_SILENCE) {
		s->silent = true;
		s->seen.last_ns = clock_real_ns() - SILENCE_NS;
		return false;
	}
	s->stirred = o->stirred = true;
	return true;
}

void offload_look_again(struct offload *o, uint64_t now_ns)
{
	if (!o || !o->stirred || o->gone)
		return;
	o->stirred = false;
	o->now_ns = now_ns;
	for (uint32_t w = 0; w < o->cfg.workers; w++)
		for (uint32_t i = 0; i < o->site[w].top; i++) {
			struct off_stream *s = &o->site[w].stream[i];

			if (!s->stirred)
				continue;
			s->stirred = false;
			judge(o, w, i, now_ns);
			if (s->from != MEDIA_NONE)
				judge(o, w, s->from, now_ns);
		}
}

void offload_gone(struct offload *o)
{
	if (!o)
		return;
	o->gone = true;
	for (uint32_t w = 0; w < o->cfg.workers; w++)
		for (uint32_t i = 0; i < o->site[w].top; i++) {
			struct off_stream *s = &o->site[w].stream[i];
			struct worker_cmd cmd = resume_cmd(s);

			if (s->where == KERNEL && s->follows)
				(void)o->cfg.push(o->cfg.arg, w, &cmd, 1);
			if (s->where != OURS)
				come_back(o, s);
			s->late = false;
		}
}

/* --- Commands on their way ------------------------------------------------------------------------------------ */

struct before {
	struct worker_cmd *out;
	uint32_t n, max;
};

static void before_stream(struct offload *o, struct off_stream *s, struct before *b)
{
	if (s->where != OURS && b->n + 1 + s->follows <= b->max)
		b->n += way_back(o, s, &b->out[b->n]);
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
		come_back(o, s);
	if (s->from != MEDIA_NONE && site->stream[s->from].where != OURS)
		come_back(o, &site->stream[s->from]);
	s->returns = 0;
	s->not_before_ns = 0;
}

/* RTP goes before RTCP, where both leave by one port. */
static void link_streams(struct offload *o, struct off_site *site, uint32_t id, bool on)
{
	const struct media_stream_cfg *c = &site->stream[id].cfg;
	uint32_t to = target_of(c), *from;

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
	return c->pass ? PASSED : c->suite == SUITE_PLAIN ? PLAIN : CIPHERED;
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
		if (cmd[i].type == MEDIA_STREAM_SET && id[0] != MEDIA_NONE)
			stream_set(o, site, &cmd[i]);
		if (cmd[i].type == MEDIA_CTX_SET && cmd[i].id < o->cfg.max_ctx) {
			if (cmd[i].ctx.rx_new)
				forget_index(site, cmd[i].id);
			site->ctx[cmd[i].id].rx = kind_of(&cmd[i].ctx.rx);
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
		o->gone_packets += packets_of(s);
	hearers_forget(site, s);
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

/* --- Counters ------------------------------------------------------------------------------------------------- */

/* As of now, if there are not too many who ask. */
static void freshen(struct offload *o, struct off_stream *s, uint64_t now_ns)
{
	if (o->gone || (s->where == OURS && !s->late) || now_ns < s->read_ns + FRESH_NS ||
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
		if (s->what.strict && s->seen.strangers > s->base_strangers) {
			out->drops[MEDIA_DROP_SOURCE] += s->seen.strangers - s->base_strangers;
			out->errors += s->seen.strangers - s->base_strangers;
		}
		if (s->follows && s->index >> 16 > out->roc)
			out->roc = (uint32_t)(s->index >> 16);
	}
	out->packets_out += s->out_before;
	out->bytes_out += s->out_before_bytes;
	if (s->from == MEDIA_NONE)
		return;
	f = &o->site[worker].stream[s->from];
	if (!f->touched)
		return;
	freshen(o, f, now_ns);
	out->packets_out += packets_of(f) - s->out_since;
	out->bytes_out += bytes_of(f) - s->out_since_bytes;
}

uint64_t offload_heard(const struct offload *o, uint32_t worker, uint32_t stream)
{
	const struct off_stream *s;

	if (!o || stream >= o->cfg.max_stream)
		return 0;
	s = &o->site[worker].stream[stream];
	if (s->where == KERNEL && o->told && !s->silent)
		return clock_real_ns();
	return s->touched ? s->seen.last_ns : 0;
}

void offload_usage(struct offload *o, uint64_t now_ns, struct offload_usage *out)
{
	*out = (struct offload_usage){0};
	if (!o)
		return;
	if (o->told && !o->gone && now_ns >= o->dumped_ns + NS_PER_SEC)
		dump_all(o, now_ns);
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
	o->told = cfg->ops->events_fd && cfg->ops->events_fd(cfg->steer) >= 0;
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
			site->ctx[i].stream[0] = site->ctx[i].stream[1] = MEDIA_NONE;
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
