/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moves streams to the kernel and back (bridge/offload.h): each second, after an event of the
 * kernel, and when the module is unloaded or loaded again. */
#include "bridge/offload_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define ASKED_NS \
	(4 * NS_PER_SEC)              /* after this time, a worker that could not move the stream
				       * has given up */
#define BACK_OFF_NS  (1 * NS_PER_SEC) /* doubled each time the kernel returns a stream */
#define BACK_OFF_MAX 6u
/* If the kernel reports silent streams, its counters are read only this often: for statistics, and
 * in case an event was lost. A sequence number must not advance by 2^15 meanwhile, so this is
 * enough for 8,000 packets a second. */
#define DUMP_NS      (4 * NS_PER_SEC)
#define TELL_PACKETS 128u /* packets after which a worker gets an update of the index */

/* --- To the kernel and back ------------------------------------------------------------------- */

void offload_stream_clear(struct off_site *site, uint32_t id)
{
	site->stream[id] = (struct off_stream){
		.cfg = &site->sent->stream[id], .from = MEDIA_NONE, .to = MEDIA_NONE};
}

void offload_come_back(struct offload *o, struct off_stream *s)
{
	s->where = OURS;
	s->late = true;
	o->moves++;
}

static struct worker_cmd unrelay_cmd(const struct off_stream *s)
{
	struct worker_cmd c = {.kind = WORKER_UNRELAY};

	c.local = s->cfg->local;
	return c;
}

static struct worker_cmd resume_cmd(const struct off_stream *s)
{
	struct worker_cmd c = {.kind = WORKER_MEDIA};

	c.media.type = MEDIA_CTX_RESUME;
	c.media.id = s->cfg->ctx;
	c.media.ctx_resume.n = 1;
	c.media.ctx_resume.mark[0] =
		(struct media_mark){.ssrc = s->what.ssrc, .table = MEDIA_RX_RTP, .index = s->index};
	return c;
}

uint32_t offload_way_back(struct offload *o, struct off_stream *s, struct worker_cmd out[2])
{
	out[0] = unrelay_cmd(s);
	if (!s->follows || s->where != KERNEL)
		return 1;
	(void)offload_read(o, s, o->now_ns);
	out[0].more = true;
	out[1] = resume_cmd(s);
	s->told = s->index;
	return 2;
}

static void judge(struct offload *o, uint32_t worker, uint32_t id, uint64_t now_ns)
{
	struct off_stream *s = &o->site[worker].stream[id];
	struct worker_cmd cmd = {.kind = WORKER_RELAY}, back[2];
	struct steer_relay want;
	struct offload_look here;
	struct offload_dests to;
	bool may = offload_eligible(o, worker, id, &want, &here, &to);

	if (s->where == ASKED && now_ns >= s->asked_ns + ASKED_NS)
		offload_come_back(o, s);
	if (s->where != OURS) {
		if (may && offload_same(&want, &s->what))
			return;
		if (o->cfg.push(o->cfg.arg, worker, back, offload_way_back(o, s, back)) == 0) {
			offload_come_back(o, s);
			s->not_before_ns = now_ns + (BACK_OFF_NS << s->returns);
			s->returns += s->returns < BACK_OFF_MAX;
		}
		return;
	}
	if (!may || now_ns < s->not_before_ns)
		return;
	if (!s->based)
		(void)offload_read(o, s, now_ns);
	cmd.relay = want;
	if (!s->based || o->cfg.push(o->cfg.arg, worker, &cmd, 1))
		return;
	s->follows = s->cfg->rtp && offload_rx(&o->site[worker], s->cfg->ctx) == PASSED;
	if (here.index > s->index || want.ssrc != s->what.ssrc)
		s->index = s->told = here.index;
	offload_hearers_note(&o->site[worker], id, &to);
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
		offload_dump(o, now_ns);
	o->asking = false;
	for (o->worker = 0; o->worker < o->cfg.workers; o->worker++) {
		struct off_site *site = &o->site[o->worker];

		for (uint32_t i = 0; i < site->top; i++) {
			struct off_stream *s = &site->stream[i];

			if (!s->set)
				continue;
			tell_index(o, s);
			if (s->late && s->where == OURS && offload_read(o, s, now_ns) == 0)
				s->late = s->seen.now;
			judge(o, o->worker, i, now_ns);
			o->asking |= s->where == ASKED;
		}
	}
}

/* --- Events of the kernel --------------------------------------------------------------------- */

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
		s->seen.last_ns = clock_real_ns() - OFFLOAD_SILENCE_NS;
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
				offload_come_back(o, s);
			s->late = false;
		}
}

/* Its target is readable once the worker has restored it. */
void offload_back(struct offload *o)
{
	if (!o)
		return;
	for (uint32_t w = 0; w < o->cfg.workers; w++)
		for (uint32_t i = 0; i < o->site[w].top; i++)
			offload_count_anew(&o->site[w].stream[i]);
	o->gone = false;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

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
		site->sent = cfg->sent(cfg->arg, w);
		for (uint32_t i = 0; i < cfg->max_stream; i++)
			offload_stream_clear(site, i);
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
