/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands between calls and workers, and handles that come back. A handle's life: free list ->
 * taken -> its deletion is pushed to the worker -> acknowledged -> free list. What does not fit
 * into a worker's ring waits in a backlog, and nothing overtakes it. The backlog is bounded, but
 * takes every deletion. */
#include "bridge/bridge_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/balance.h"
#include "base/clock.h"

/* --- Commands --------------------------------------------------------------------------------- */

/* Limit of queued commands per worker: those of about 680 calls. Deletions are always queued. */
#define BACKLOG_MAX   16384u
#define BEHIND_LOG_NS (10 * NS_PER_SEC)

/* The number of commands in the first group. */
static uint32_t group_len(const struct bridge_site *s)
{
	const struct worker_cmd *first = s->backlog + s->backlog_first;
	uint32_t n = 1;

	while (first[n - 1].more)
		n++;
	return n;
}

/* Moves whole groups only: the worker must not see part of a change. */
static bool flush(struct bridge_site *s)
{
	while (s->backlog_n) {
		struct worker_cmd *first = s->backlog + s->backlog_first;
		uint32_t n = group_len(s);

		if (ring_push(&s->w->cmds, first, n))
			return false;
		s->unseen = true;
		s->backlog_first += n;
		s->backlog_n -= n;
	}
	s->backlog_first = 0;
	return true;
}

static void wake(struct bridge_site *s)
{
	if (s->unseen)
		worker_wake(s->w);
	s->unseen = false;
}

int bridge_push(struct bridge_site *s, const struct worker_cmd *cmd, uint32_t n)
{
	if (!flush(s) || ring_push(&s->w->cmds, cmd, n)) {
		wake(s); /* the sender may have many more, and the ring is full */
		return -EAGAIN;
	}
	s->unseen = true;
	return 0;
}

void bridge_wake(struct bridge *r)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++)
		wake(&r->site[i]);
}

/* Room for n more commands at the end. */
static int backlog_room(struct bridge_site *s, uint32_t n)
{
	size_t need = s->backlog_n + n, cap = s->backlog_cap ? s->backlog_cap : 256;
	struct worker_cmd *more;

	if (s->backlog_first + need <= s->backlog_cap)
		return 0;
	if (s->backlog_first)
		memmove(s->backlog, s->backlog + s->backlog_first,
			s->backlog_n * sizeof(*s->backlog));
	s->backlog_first = 0;
	while (cap < 2 * need)
		cap *= 2;
	if (cap <= s->backlog_cap)
		return 0;
	more = realloc(s->backlog, cap * sizeof(*more));
	if (!more)
		return need <= s->backlog_cap ? 0 : -ENOMEM;
	s->backlog = more;
	s->backlog_cap = cap;
	return 0;
}

static int backlog_put(struct bridge_site *s, const struct worker_cmd *cmd, uint32_t n)
{
	struct worker_cmd *to;
	int err = backlog_room(s, n);

	if (err)
		return err;
	to = s->backlog + s->backlog_first + s->backlog_n;
	memcpy(to, cmd, n * sizeof(*cmd));
	for (uint32_t i = 0; i < n; i++)
		to[i].more = i + 1 < n;
	s->backlog_n += n;
	return 0;
}

static void warn_behind(struct bridge *r, const struct bridge_site *s)
{
	uint64_t held;

	if (log_limit_pass(&r->behind_log, clock_mono_ns(), BEHIND_LOG_NS, &held))
		log_warn(
			"worker %u is overloaded: its commands wait in a queue, and new calls use other workers%s",
			(unsigned)(s - r->site), log_held((char[LOG_HELD]){0}, held));
}

int bridge_queue(struct bridge *r, struct bridge_site *s, const struct worker_cmd *cmd, uint32_t n)
{
	int err;

	if (bridge_push(s, cmd, n) == 0)
		return 0;
	err = s->backlog_n + n > BACKLOG_MAX ? -EAGAIN : backlog_put(s, cmd, n);
	if (err == -EAGAIN)
		return bridge_shortage(r, SHORT_RING, err);
	if (!err)
		warn_behind(r, s);
	return err;
}

void bridge_push_deletion(struct bridge *r, struct bridge_site *s, const struct worker_cmd *cmd)
{
	if (bridge_push(s, cmd, 1) && backlog_put(s, cmd, 1))
		r->lost++;
}

#define TOUCH_MORE 64u /* handles */

void bridge_touch(struct bridge_site *s, enum media_handle h, uint32_t id)
{
	if (id < s->touched[h])
		return;
	media_handles_touch(s->w->media, h, s->touched[h], id + TOUCH_MORE);
	s->touched[h] = id + TOUCH_MORE;
}

/* --- relay_ops -------------------------------------------------------------------------------- */

static const struct relay_local *op_locals(void *arg, uint32_t *n)
{
	struct bridge *r = arg;

	*n = r->cfg.locals;
	return r->cfg.local;
}

/* Its backlog exceeds what recent new calls explain. */
static bool is_behind(const struct bridge_site *s)
{
	return s->backlog_n || ring_room(&s->w->cmds) < (s->w->cmds.mask + 1) / 4 * 3;
}

static uint32_t op_worker_choose(void *arg)
{
	struct bridge *r = arg;

	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		r->place[i].ports = r->site[i].ports;
		r->place[i].room = (uint32_t)r->site[i].streams.all / 2;
		r->place[i].behind = is_behind(&r->site[i]);
	}
	return balance_call(r->place, r->cfg.workers, r->cfg.spread);
}

#define COMMIT_MAX 512

/* Sends commands to a worker, all of them or none. */
static int send_all(struct bridge *r, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	struct bridge_site *s = &r->site[worker];
	uint32_t room = n * OFFLOAD_BEFORE, before;
	struct worker_cmd *all;
	int err;

	if (n > COMMIT_MAX)
		return -E2BIG;
	all = calloc(room + n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	before = offload_before(r->offload, worker, cmd, n, all, room);
	for (uint32_t i = 0; i < n; i++) {
		all[before + i].kind = WORKER_MEDIA;
		all[before + i].media = cmd[i];
	}
	for (uint32_t i = 0; i < before + n; i++)
		all[i].more = i + 1 < before + n;
	err = bridge_queue(r, s, all, before + n);
	for (uint32_t i = 0; i < n && !err; i++) {
		bool set = cmd[i].type == MEDIA_CTX_SET;

		bridge_sent_note(&s->sent, &cmd[i]);
		if (set && (cmd[i].ctx.rx_new || cmd[i].ctx.tx_new))
			bridge_marks_forget(s, cmd[i].id, cmd[i].ctx.rx_new, cmd[i].ctx.tx_new);
		if ((set && cmd[i].ctx.tx_rtcp_index) || cmd[i].type == MEDIA_CTX_RESUME)
			bridge_marks_seed(s, &cmd[i]);
	}
	if (!err)
		offload_pushed(r->offload, worker, cmd, n);
	free(all);
	return err;
}

static int op_commit(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	struct bridge *r = arg;
	struct media_cmd *differs = malloc((n + 1) * sizeof(*differs));
	uint32_t kept = 0;
	int err;

	if (!differs)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (!bridge_sent_same(&r->site[worker].sent, &cmd[i]))
			differs[kept++] = cmd[i];
	err = kept ? send_all(r, worker, differs, kept) : 0;
	wake(&r->site[worker]);
	free(differs);
	return err;
}

static void op_emergency(void *arg, bool on)
{
	struct bridge *r = arg;

	r->emergency = on;
}

static void op_stream_cut(void *arg, uint32_t worker, uint32_t stream)
{
	const struct media_cmd cut = {.type = MEDIA_STREAM_CUT, .id = stream};
	struct bridge *r = arg;
	struct worker_cmd all[OFFLOAD_BEFORE + 1] = {0};
	uint32_t n = offload_before(r->offload, worker, &cut, 1, all, OFFLOAD_BEFORE);

	all[n].kind = WORKER_MEDIA;
	all[n++].media = cut;
	for (uint32_t i = 0; i < n; i++)
		bridge_push_deletion(r, &r->site[worker], &all[i]);
	bridge_sent_note(&r->site[worker].sent, &cut);
	offload_pushed(r->offload, worker, &cut, 1);
}

static int op_stream_restart(void *arg, uint32_t worker, uint32_t stream, uint64_t now_ns)
{
	struct bridge *r = arg;
	struct media_cmd set = {.type = MEDIA_STREAM_SET,
		.id = stream,
		.now_ns = now_ns,
		.stream = r->site[worker].sent.stream[stream]};

	op_stream_cut(arg, worker, stream);
	return send_all(r, worker, &set, 1);
}

const struct relay_ops bridge_ops = {
	.locals = op_locals,
	.worker_choose = op_worker_choose,
	.emergency = op_emergency,
	.port_take = bridge_op_port_take,
	.port_take_more = bridge_op_port_take_more,
	.port_take_at = bridge_op_port_take_at,
	.port_release = bridge_op_port_release,
	.ctx_take = bridge_op_ctx_take,
	.ctx_release = bridge_op_ctx_release,
	.key_take = bridge_op_key_take,
	.preauth_take = bridge_op_preauth_take,
	.key_release = bridge_op_key_release,
	.commit = op_commit,
	.stream_cut = op_stream_cut,
	.stream_restart = op_stream_restart,
	.stats = bridge_op_stats,
	.heard = bridge_op_heard,
	.handover = bridge_op_handover,
	.arrived = bridge_op_arrived,
	.marks_ask = bridge_op_marks_ask,
	.marks = bridge_op_marks,
	.key_usage = bridge_op_key_usage,
};

/* --- Acknowledgements ------------------------------------------------------------------------- */

static void acknowledged(
	struct bridge *r, struct bridge_site *s, struct worker_ack ack, uint64_t now_ns)
{
	switch (ack.what) {
	case ACK_CTX:
		handles_put(&s->ctxs, ack.id);
		break;
	case ACK_KEY:
		handles_put(&s->keys, ack.id / 2);
		break;
	case ACK_STREAM:
		handles_put(&s->streams, ack.id);
		break;
	case ACK_PORT:
		bridge_port_closed(r, s, ack.id, now_ns);
		break;
	}
}

void bridge_poll(struct bridge *r, uint64_t now_ns)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		struct bridge_site *s = &r->site[i];
		struct worker_ack ack;

		while (ring_pop(&s->w->acks, &ack)) {
			bridge_marks_take(s);
			acknowledged(r, s, ack, now_ns);
		}
		bridge_marks_take(s);
		flush(s);
	}
}

bool bridge_has_room(const struct bridge *r)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++)
		if (r->site[i].backlog_n || ring_room(&r->site[i].w->cmds) < 2 * COMMIT_MAX)
			return false;
	return true;
}

/* How busy the workers were since the last tick. */
static void look_at_workers(struct bridge *r, uint64_t now_ns)
{
	uint64_t took = now_ns - r->tick_ns;

	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		uint64_t cpu_ns = worker_cpu_ns(r->site[i].w);

		r->place[i].busy = took ? (uint32_t)(100 * (cpu_ns - r->site[i].cpu_ns) / took) : 0;
		r->site[i].cpu_ns = cpu_ns;
	}
	r->tick_ns = now_ns;
}

void bridge_tick(struct bridge *r, uint64_t now_ns)
{
	look_at_workers(r, now_ns);
	offload_tick(r->offload, now_ns);
}

bool bridge_event(struct bridge *r, const struct steer_event *e)
{
	return offload_event(r->offload, e);
}

void bridge_look_again(struct bridge *r, uint64_t now_ns)
{
	offload_look_again(r->offload, now_ns);
}

void bridge_kernel_gone(struct bridge *r)
{
	offload_gone(r->offload);
}

void bridge_steer_again(struct bridge *r)
{
	const struct worker_cmd cmd = {.kind = WORKER_STEER_AGAIN};

	/* Must not be lost: queue it like a deletion. */
	for (uint32_t i = 0; i < r->cfg.workers; i++)
		bridge_push_deletion(r, &r->site[i], &cmd);
}

void bridge_kernel_back(struct bridge *r)
{
	bridge_steer_again(r);
	offload_back(r->offload);
}

static int push_to(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n)
{
	struct bridge *r = arg;

	return bridge_push(&r->site[worker], cmd, n);
}

static const struct bridge_sent *sent_to(void *arg, uint32_t worker)
{
	const struct bridge *r = arg;

	return &r->site[worker].sent;
}

static int offload_start(struct bridge *r)
{
	struct offload_config cfg = {
		.ops = r->cfg.steer_ops,
		.steer = r->cfg.steer,
		.workers = r->cfg.workers,
		.max_stream = r->cfg.max_stream,
		.max_ctx = r->cfg.max_ctx,
		.sent = sent_to,
		.look = bridge_look,
		.push = push_to,
		.arg = r,
	};
	int err = cfg.steer ? offload_create(&r->offload, &cfg) : -EOPNOTSUPP;

	return err == -EOPNOTSUPP ? 0 : err;
}

void bridge_usage(const struct bridge *r, struct bridge_usage *out)
{
	*out = (struct bridge_usage){.ports = 2 * ports_used_count(r->cfg.ports),
		.ports_free = 2 * ports_free_count(r->cfg.ports)};
	offload_usage(r->offload, clock_mono_ns(), &out->offload);
	for (int i = 0; i < SHORTAGE_COUNT; i++)
		out->shortages += r->shortages[i];
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		const struct bridge_site *s = &r->site[i];

		out->streams += handles_used(&s->streams);
		out->contexts += handles_used(&s->ctxs);
		out->key_slots += 2 * handles_used(&s->keys);
		out->backlog += s->backlog_n;
	}
}

/* --- Set-up ----------------------------------------------------------------------------------- */

int bridge_create(struct bridge **out, const struct bridge_config *cfg)
{
	struct bridge *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->site = calloc(cfg->workers, sizeof(*r->site));
	r->place = calloc(cfg->workers, sizeof(*r->place));
	if (!r->site || !r->place) {
		free(r->site);
		free(r->place);
		free(r);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < cfg->workers && !err; i++) {
		struct bridge_site *s = &r->site[i];

		s->w = cfg->worker[i];
		err = handles_init(&s->streams, 0, cfg->max_stream);
		err = err ? err : handles_init(&s->ctxs, 0, cfg->max_ctx);
		err = err ? err
			  : handles_init(&s->keys, 1, cfg->key_slots / 2); /* pair 0 is "plain" */
		s->lent = calloc(cfg->key_slots / 2 + 1, sizeof(*s->lent));
		s->told = calloc(cfg->max_ctx + 1, sizeof(*s->told));
		err = err ? err : s->lent && s->told ? 0 : -ENOMEM;
		err = err ? err : bridge_sent_init(&s->sent, cfg->max_stream, cfg->max_ctx);
	}
	err = err ? err : offload_start(r);
	if (err) {
		bridge_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void bridge_destroy(struct bridge *r)
{
	if (!r)
		return;
	if (r->lost)
		log_warn("relay: %llu handles were lost: out of memory",
			(unsigned long long)r->lost);
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		handles_fini(&r->site[i].streams);
		handles_fini(&r->site[i].ctxs);
		handles_fini(&r->site[i].keys);
		free(r->site[i].lent);
		for (uint32_t k = 0; r->site[i].told && k < r->cfg.max_ctx; k++)
			free(r->site[i].told[k].marks);
		free(r->site[i].told);
		free(r->site[i].backlog);
		bridge_sent_fini(&r->site[i].sent);
	}
	offload_destroy(r->offload);
	free(r->place);
	free(r->site);
	free(r);
}
