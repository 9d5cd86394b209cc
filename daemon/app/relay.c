/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles, keys and commands between calls and workers. A handle's life: free list -> taken -> its deletion is pushed to the
 * worker -> acknowledged -> free list. Deletions never fail: what does not fit into a ring waits in a backlog, and while one
 * waits nothing overtakes it. */
#include "app/relay.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/place.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"

struct handles { /* a stack of free numbers */
	uint32_t *free;
	uint32_t n, all;
};

/* What a worker told of a context, and from when on its answers count. */
struct told {
	struct relay_marks *marks; /* NULL: nothing yet; as long as its n asks for */
	uint8_t generation;
};

struct site { /* what the control thread keeps per worker */
	struct worker *w;
	struct handles streams, ctxs, keys; /* keys: pairs, slot = 2 * handle */
	uint32_t (*lent)
		[MEDIA_EPOCHS]; /* by pair: the pairs that a key with a kdr has beside its own */
	struct told *told;      /* by context */
	struct relay_marks arriving;
	struct worker_cmd *backlog;
	size_t backlog_n, backlog_cap;
	uint32_t ports;
	uint64_t cpu_ns; /* of its thread, at the last tick */
};

/* What can run out, and what there would be to do. X(id, text) */
#define SHORTAGES(X)                                                                          \
	X(PORTS, "local ports: widen port-min to port-max, or add an interface")              \
	X(CONTEXTS,                                                                           \
		"contexts, of which there is one for each pair of ports: widen port-min "     \
		"to port-max")                                                                \
	X(KEYS,                                                                               \
		"key slots, of which there are four pairs for each pair of ports: terminals " \
		"use several keys or a key derivation rate; widen port-min to port-max")      \
	X(FILES, "descriptors: raise LimitNOFILE (systemd) or ulimit -Hn")                    \
	X(MEMORY, "memory for sockets: see dmesg")                                            \
	X(RING, "room in a worker's command ring: it does not keep up")

enum shortage {
#define X(id, text) SHORT_##id,
	SHORTAGES(X)
#undef X
		SHORTAGE_COUNT
};

#define SHORTAGE_LOG_NS (10 * NS_PER_SEC)

struct app_relay {
	struct app_relay_config cfg;
	struct log_limit shortage_log[SHORTAGE_COUNT];
	uint64_t shortages[SHORTAGE_COUNT];
	struct site *site;
	struct place *place; /* [workers] */
	uint64_t tick_ns;
	struct offload *offload; /* NULL: everything comes to us */
	uint64_t lost; /* deletions for which there was no memory: their handles stay taken */
};

static int handles_init(struct handles *h, uint32_t first, uint32_t end)
{
	h->free = calloc(end ? end : 1, sizeof(*h->free));
	if (!h->free)
		return -ENOMEM;
	for (uint32_t i = end; i > first; i--)
		h->free[h->n++] = i - 1;
	h->all = h->n;
	return 0;
}

/* Clients go to their next relay on "Ran out of ports", whatever it was (NG.md 1.3): so -ENOSPC for all of them, but the operator is
 * told which. Returns what the call gets. */
static int short_of(struct app_relay *r, enum shortage what, int err)
{
	static const char *const text[] = {
#define X(id, text) text,
		SHORTAGES(X)
#undef X
	};
	uint64_t held;

	r->shortages[what]++;
	if (log_limit_pass(&r->shortage_log[what], clock_mono_ns(), SHORTAGE_LOG_NS, &held))
		log_warn("out of %s (%llu more held back)", text[what], (unsigned long long)held);
	return err;
}

static bool handles_take(struct handles *h, uint32_t *out)
{
	if (h->n == 0)
		return false;
	*out = h->free[--h->n];
	return true;
}

static void handles_put(struct handles *h, uint32_t id)
{
	h->free[h->n++] = id;
}

/* --- Commands ------------------------------------------------------------------------------------------------- */

static bool flush(struct site *s)
{
	size_t done = 0;

	if (s->backlog_n == 0)
		return true;
	while (done < s->backlog_n && ring_push(&s->w->cmds, &s->backlog[done], 1) == 0)
		done++;
	s->backlog_n -= done;
	memmove(s->backlog, s->backlog + done, s->backlog_n * sizeof(*s->backlog));
	return s->backlog_n == 0;
}

/* All or none. */
static int push(struct site *s, const struct worker_cmd *cmd, uint32_t n)
{
	if (!flush(s) || ring_push(&s->w->cmds, cmd, n))
		return -EAGAIN;
	worker_wake(s->w);
	return 0;
}

static void push_deletion(struct app_relay *r, struct site *s, const struct worker_cmd *cmd)
{
	if (push(s, cmd, 1) == 0)
		return;
	if (s->backlog_n == s->backlog_cap) {
		size_t cap = s->backlog_cap ? 2 * s->backlog_cap : 256;
		struct worker_cmd *more = realloc(s->backlog, cap * sizeof(*more));

		if (!more) {
			r->lost++;
			return;
		}
		s->backlog = more;
		s->backlog_cap = cap;
	}
	s->backlog[s->backlog_n++] = *cmd;
}

/* --- relay_ops ------------------------------------------------------------------------------------------------ */

static const struct relay_local *op_locals(void *arg, uint32_t *n)
{
	struct app_relay *r = arg;

	*n = r->cfg.locals;
	return r->cfg.local;
}

static uint32_t op_worker_choose(void *arg)
{
	struct app_relay *r = arg;

	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		r->place[i].ports = r->site[i].ports;
		r->place[i].room = (uint32_t)r->site[i].streams.all / 2;
	}
	return place_call(r->place, r->cfg.workers, r->cfg.spread);
}

static int port_undo(struct app_relay *r, const struct ports_pair *pair, int err)
{
	if (pair->rtp_fd >= 0) {
		close(pair->rtp_fd);
		close(pair->rtcp_fd);
	}
	ports_put(r->cfg.ports, pair->rtp, clock_mono_ns());
	return err;
}

/* The worker gets the sockets, the call the handles, of which there are two. */
static int port_publish(
	struct app_relay *r, uint32_t worker, const struct ports_pair *pair, struct relay_port *out)
{
	struct site *s = &r->site[worker];
	struct worker_cmd cmd[2];
	int err;

	memset(cmd, 0, sizeof(cmd));
	cmd[0].kind = cmd[1].kind = WORKER_PORT_ADD;
	cmd[0].local = pair->rtp;
	cmd[0].fd = pair->rtp_fd;
	cmd[1].local = pair->rtcp;
	cmd[1].fd = pair->rtcp_fd;
	err = push(s, cmd, 2);
	if (err)
		return port_undo(r, pair, short_of(r, SHORT_RING, err));
	out->rtp = pair->rtp;
	out->rtcp = pair->rtcp;
	handles_take(&s->streams, &out->rtp_stream);
	handles_take(&s->streams, &out->rtcp_stream);
	s->ports++;
	return 0;
}

static int op_port_take(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct app_relay *r = arg;
	struct ports_pair pair;
	int err;

	if (r->site[worker].streams.n < 2)
		return short_of(r, SHORT_PORTS, -ENOSPC);
	err = ports_take(r->cfg.ports, local, worker, clock_mono_ns(), &pair);
	if (err == -ENOSPC)
		return short_of(r, SHORT_PORTS, -ENOSPC);
	if (err == -EMFILE)
		return short_of(r, SHORT_FILES, -ENOSPC);
	if (err == -ENOBUFS || err == -ENOMEM)
		return short_of(r, SHORT_MEMORY, -ENOSPC);
	if (err)
		return err;
	return port_publish(r, worker, &pair, out);
}

static int op_port_take_at(
	void *arg, struct relay_port *out, uint32_t *worker, uint8_t local, uint16_t rtp_port)
{
	struct app_relay *r = arg;
	struct local_port at = {.port = rtp_port, .addr = local};
	struct ports_pair pair;
	uint32_t owner;
	int err = ports_take_at(r->cfg.ports, at, &owner, &pair);

	if (err)
		return err;
	if (*worker == UINT32_MAX)
		*worker = owner;
	err = *worker != owner && r->cfg.ports_bound_to_workers ? -EXDEV
		: r->site[*worker].streams.n < 2                ? -ENOSPC
								: 0;
	return err ? port_undo(r, &pair, err) : port_publish(r, *worker, &pair, out);
}

/* A port's number travels in the acknowledgement: which local address and which even port. */
static uint32_t port_id(struct local_port p)
{
	return (uint32_t)p.addr << 16 | p.port;
}

static void op_port_release(void *arg, uint32_t worker, const struct relay_port *port)
{
	struct app_relay *r = arg;
	struct site *s = &r->site[worker];
	const uint32_t stream[] = {port->rtp_stream, port->rtcp_stream};
	const struct local_port local[] = {port->rtp, port->rtcp};

	offload_release(r->offload, worker, port->rtp_stream);
	offload_release(r->offload, worker, port->rtcp_stream);
	for (int i = 0; i < 2; i++) {
		struct worker_cmd del = {.kind = WORKER_MEDIA};

		del.media.type = MEDIA_STREAM_DEL;
		del.media.id = stream[i];
		push_deletion(r, s, &del);
	}
	for (int i = 0; i < 2; i++) {
		struct worker_cmd del = {.kind = WORKER_PORT_DEL};

		del.local = local[i];
		del.id = port_id(local[i]);
		push_deletion(r, s, &del);
	}
}

/* --- Marks ---------------------------------------------------------------------------------------------------- */

static const size_t marks_head = offsetof(struct relay_marks, mark);

/* The part of what is known that begins anew is forgotten, and so is what the worker says of the time before. */
static void told_forget(struct site *s, uint32_t ctx, bool rx, bool tx)
{
	struct told *t = &s->told[ctx];
	struct relay_marks *m = t->marks;
	uint32_t kept = 0;

	t->generation++;
	if (rx && tx) {
		free(m);
		t->marks = NULL;
		return;
	}
	for (uint32_t i = 0; m && i < m->n; i++)
		if (!(m->mark[i].mark.table == MEDIA_TX_RTP ? tx : rx))
			m->mark[kept++] = m->mark[i];
	if (m)
		m->n = kept;
}

static uint32_t per_second(const struct relay_marks *before, const struct relay_marks *now,
	const struct media_mark *mark)
{
	for (uint32_t i = 0; before && i < before->n; i++) {
		const struct relay_mark *b = &before->mark[i];
		uint64_t dt = now->at_ns - before->at_ns, by, per_s;

		if (b->mark.ssrc != mark->ssrc || b->mark.table != mark->table)
			continue;
		if (now->at_ns <= before->at_ns || mark->index < b->mark.index)
			return b->per_s;
		by = mark->index - b->mark.index;
		per_s = by > UINT32_MAX ? UINT32_MAX : by * NS_PER_SEC / dt;
		/* What pauses may go on as before: it falls slowly. */
		per_s = per_s > b->per_s ? per_s : (7 * (uint64_t)b->per_s + per_s) / 8;
		return per_s > UINT32_MAX ? UINT32_MAX : (uint32_t)per_s;
	}
	return 0;
}

static void told_store(struct site *s, uint32_t ctx)
{
	struct told *t = &s->told[ctx];
	struct relay_marks *now = &s->arriving, *m;

	now->at_ns = clock_real_ns();
	for (uint32_t i = 0; i < now->n; i++)
		now->mark[i].per_s = per_second(t->marks, now, &now->mark[i].mark);
	m = realloc(t->marks, marks_head + now->n * sizeof(now->mark[0]));
	if (!m)
		return;
	memcpy(m, now, marks_head + now->n * sizeof(now->mark[0]));
	t->marks = m;
}

/* What a context is made to go on from counts as told, until the worker tells more. */
static void told_seed(struct site *s, const struct media_cmd *cmd)
{
	struct told *t = &s->told[cmd->id];
	uint32_t n = t->marks ? t->marks->n : 0, add = 0;
	struct relay_marks *m =
		realloc(t->marks, marks_head + MEDIA_MARKS_MAX * sizeof(t->marks->mark[0]));

	if (!m)
		return;
	if (!t->marks)
		*m = (struct relay_marks){.at_ns = cmd->now_ns};
	t->marks = m;
	if (cmd->type == MEDIA_CTX_SET)
		m->tx_rtcp_next = cmd->ctx.tx_rtcp_index;
	else
		add = cmd->ctx_resume.n;
	for (uint32_t i = 0; i < add && n < MEDIA_MARKS_MAX; i++)
		m->mark[n++] = (struct relay_mark){.mark = cmd->ctx_resume.mark[i]};
	m->n = n;
}

/* Before any acknowledgement is acted upon: a handle that is given back may be another call's next. */
static void marks_take(struct site *s)
{
	struct worker_mark w;

	while (ring_pop(&s->w->marks, &w)) {
		bool current = w.generation == s->told[w.ctx].generation;

		if (!w.end) {
			if (s->arriving.n < MEDIA_MARKS_MAX)
				s->arriving.mark[s->arriving.n++].mark = w.mark;
			continue;
		}
		s->arriving.tx_rtcp_next = w.mark.index;
		if (current)
			told_store(s, w.ctx);
		s->arriving.n = 0;
	}
}

static void op_marks_ask(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n)
{
	struct app_relay *r = arg;
	struct site *s = &r->site[worker];
	struct worker_cmd cmd = {.kind = WORKER_MARKS};

	_Static_assert(RELAY_ASK_MAX <= WORKER_ASK_MAX, "one command takes them all");
	cmd.ask.n = min_u32(n, RELAY_ASK_MAX);
	for (uint32_t i = 0; i < cmd.ask.n; i++) {
		cmd.ask.ctx[i] = ctx[i];
		cmd.ask.generation[i] = s->told[ctx[i]].generation;
	}
	(void)push(s, &cmd, 1);
}

static const struct relay_marks *op_marks(void *arg, uint32_t worker, uint32_t ctx)
{
	struct app_relay *r = arg;

	marks_take(&r->site[worker]);
	return r->site[worker].told[ctx].marks;
}

/* --- Contexts and keys ---------------------------------------------------------------------------------------- */

static int op_ctx_take(void *arg, uint32_t *ctx, uint32_t worker)
{
	struct app_relay *r = arg;

	return handles_take(&r->site[worker].ctxs, ctx) ? 0 : short_of(r, SHORT_CONTEXTS, -ENOSPC);
}

static void op_ctx_release(void *arg, uint32_t worker, uint32_t ctx)
{
	struct app_relay *r = arg;
	struct worker_cmd del = {.kind = WORKER_MEDIA};

	del.media.type = MEDIA_CTX_DEL;
	del.media.id = ctx;
	told_forget(&r->site[worker], ctx, true, true);
	push_deletion(r, &r->site[worker], &del);
}

static void lent_put(struct site *s, uint32_t *lent)
{
	for (uint32_t i = 0; i < MEDIA_EPOCHS && lent[i]; i++) {
		handles_put(&s->keys, lent[i]);
		lent[i] = 0;
	}
}

/* Pairs for a key's epochs. */
static int lent_take(struct site *s, uint32_t *lent)
{
	for (uint32_t i = 0; i < MEDIA_EPOCHS; i++)
		if (!handles_take(&s->keys, &lent[i])) {
			lent[i] = 0;
			lent_put(s, lent);
			return -ENOSPC;
		}
	return 0;
}

static void key_cfg(struct media_key_cfg *cfg, const struct srtp_master *m, const uint32_t *lent)
{
	*cfg = (struct media_key_cfg){.lifetime = m->lifetime,
		.kdr = m->kdr,
		.no_rtp_auth = m->no_rtp_auth,
		.suite = m->suite};
	for (uint32_t i = 0; i < MEDIA_EPOCHS; i++)
		cfg->pair[i] = 2 * lent[i];
}

static int op_key_take(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m)
{
	struct app_relay *r = arg;
	struct site *s = &r->site[worker];
	struct worker_cmd set[2] = {{.kind = WORKER_KEY_SET}, {.kind = WORKER_MEDIA}};
	struct xc_key *key = batch_runner_arena(s->w->runner)->key;
	uint32_t pair, *lent;
	int err;

	if (m->suite == SUITE_PLAIN) {
		*slot = 0;
		return 0;
	}
	if (!handles_take(&s->keys, &pair))
		return short_of(r, SHORT_KEYS, -ENOSPC);
	lent = s->lent[pair];
	/* The worker does not look at a slot that it was not told of: no lock is needed to fill it. */
	err = srtp_key_fill(&key[2 * pair], m);
	if (!err && m->kdr) {
		err = lent_take(s, lent);
		if (!err)
			srtp_vault_fill(&key[2 * lent[0]], m);
	}
	set[0].id = set[1].media.id = 2 * pair;
	set[1].media.type = MEDIA_KEY_SET;
	key_cfg(&set[1].media.key, m, lent);
	err = err ? err : push(s, set, 2);
	if (err) {
		secmem_wipe(&key[2 * pair], 2 * sizeof(*key));
		secmem_wipe(&key[2 * lent[0]], lent[0] ? sizeof(*key) : 0);
		lent_put(s, lent);
		handles_put(&s->keys, pair);
		return err == -ENOSPC ? short_of(r, SHORT_KEYS, err) : err;
	}
	*slot = 2 * pair;
	return 0;
}

static void op_key_release(void *arg, uint32_t worker, uint32_t slot)
{
	struct app_relay *r = arg;
	struct site *s = &r->site[worker];
	struct worker_cmd del = {.kind = WORKER_MEDIA};
	uint32_t *lent = s->lent[slot / 2];

	if (slot == 0)
		return;
	del.media.type = MEDIA_KEY_DEL;
	del.media.id = slot;
	push_deletion(r, s, &del);
	/* Behind it: then nothing is derived into them any more. */
	for (uint32_t i = 0; i < MEDIA_EPOCHS && lent[i]; i++) {
		del.media.id = 2 * lent[i];
		push_deletion(r, s, &del);
		lent[i] = 0;
	}
}

#define COMMIT_MAX 512

static int op_commit(void *arg, uint32_t worker, const struct media_cmd *cmd, uint32_t n)
{
	struct app_relay *r = arg;
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
	err = push(&r->site[worker], all, before + n);
	if (!err)
		offload_pushed(r->offload, worker, cmd, n);
	for (uint32_t i = 0; i < n && !err; i++) {
		bool set = cmd[i].type == MEDIA_CTX_SET;

		if (set && (cmd[i].ctx.rx_new || cmd[i].ctx.tx_new))
			told_forget(
				&r->site[worker], cmd[i].id, cmd[i].ctx.rx_new, cmd[i].ctx.tx_new);
		if ((set && cmd[i].ctx.tx_rtcp_index) || cmd[i].type == MEDIA_CTX_RESUME)
			told_seed(&r->site[worker], &cmd[i]);
	}
	free(all);
	return err;
}

static uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void op_stats(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out)
{
	struct app_relay *r = arg;
	const struct media *m = r->site[worker].w->media;
	const struct media_stream_counters *c = media_stream_counters(m, stream);

	*out = (struct relay_stats){0};
	if (!c)
		return;
	out->packets = load(&c->packets);
	out->bytes = load(&c->bytes);
	out->errors = load(&c->errors);
	out->packets_out = load(&c->packets_out);
	out->bytes_out = load(&c->bytes_out);
	out->last_packet_ns = load(&c->last_packet_ns);
	for (size_t i = 0; i < MEDIA_VERDICTS; i++)
		out->drops[i] = load(&c->drops[i]);
	out->ssrc = atomic_load_explicit(&c->ssrc, memory_order_relaxed);
	out->roc = (uint32_t)(load(&c->index) >> 16);
	out->confirmed = atomic_load_explicit(&c->confirmed, memory_order_relaxed) != 0;
	media_stream_remote(m, stream, &out->remote);
	media_stream_quality(m, stream, &out->quality);
	offload_stats(r->offload, worker, stream, clock_mono_ns(), out);
}

static uint64_t op_heard(void *arg, uint32_t worker, uint32_t stream)
{
	const struct app_relay *r = arg;
	const struct media_stream_counters *c =
		media_stream_counters(r->site[worker].w->media, stream);
	uint64_t ours = c ? load(&c->last_packet_ns) : 0;
	uint64_t kernels = offload_heard(r->offload, worker, stream);

	return kernels > ours ? kernels : ours;
}

static void op_key_usage(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out)
{
	const struct app_relay *r = arg;

	media_key_usage(r->site[worker].w->media, slot, out);
}

const struct relay_ops app_relay_ops = {
	.locals = op_locals,
	.worker_choose = op_worker_choose,
	.port_take = op_port_take,
	.port_take_at = op_port_take_at,
	.port_release = op_port_release,
	.ctx_take = op_ctx_take,
	.ctx_release = op_ctx_release,
	.key_take = op_key_take,
	.key_release = op_key_release,
	.commit = op_commit,
	.stats = op_stats,
	.heard = op_heard,
	.marks_ask = op_marks_ask,
	.marks = op_marks,
	.key_usage = op_key_usage,
};

/* --- Acknowledgements ------------------------------------------------------------------------------------------ */

static void acknowledged(
	struct app_relay *r, struct site *s, struct worker_ack ack, uint64_t now_ns)
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
		/* The odd port goes last: then both sockets are closed. */
		if (ack.id & 1) {
			struct local_port rtp = {.port = (uint16_t)((ack.id & 0xffff) - 1),
				.addr = (uint8_t)(ack.id >> 16)};

			ports_put(r->cfg.ports, rtp, now_ns);
			s->ports--;
		}
		break;
	}
}

void app_relay_poll(struct app_relay *r, uint64_t now_ns)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		struct site *s = &r->site[i];
		struct worker_ack ack;
		size_t waiting = s->backlog_n;

		while (ring_pop(&s->w->acks, &ack)) {
			marks_take(s);
			acknowledged(r, s, ack, now_ns);
		}
		marks_take(s);
		if (waiting) {
			flush(s);
			worker_wake(s->w);
		}
	}
}

bool app_relay_has_room(const struct app_relay *r)
{
	for (uint32_t i = 0; i < r->cfg.workers; i++)
		if (r->site[i].backlog_n || ring_room(&r->site[i].w->cmds) < 2 * COMMIT_MAX)
			return false;
	return true;
}

/* How busy the workers were since the last tick. */
static void look_at_workers(struct app_relay *r, uint64_t now_ns)
{
	uint64_t took = now_ns - r->tick_ns;

	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		uint64_t cpu_ns = worker_cpu_ns(r->site[i].w);

		r->place[i].busy = took ? (uint32_t)(100 * (cpu_ns - r->site[i].cpu_ns) / took) : 0;
		r->site[i].cpu_ns = cpu_ns;
	}
	r->tick_ns = now_ns;
}

void app_relay_tick(struct app_relay *r, uint64_t now_ns)
{
	look_at_workers(r, now_ns);
	offload_tick(r->offload, now_ns);
}

bool app_relay_event(struct app_relay *r, const struct steer_event *e)
{
	return offload_event(r->offload, e);
}

void app_relay_look_again(struct app_relay *r, uint64_t now_ns)
{
	offload_look_again(r->offload, now_ns);
}

void app_relay_kernel_gone(struct app_relay *r)
{
	offload_gone(r->offload);
}

static void look(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out)
{
	const struct app_relay *r = arg;
	const struct media *m = r->site[worker].w->media;
	const struct media_stream_counters *c = media_stream_counters(m, stream);

	*out = (struct offload_look){0};
	if (!c)
		return;
	out->packets = load(&c->packets);
	out->index = load(&c->index);
	out->ssrc = atomic_load_explicit(&c->ssrc, memory_order_relaxed);
	out->confirmed = atomic_load_explicit(&c->confirmed, memory_order_relaxed) != 0;
	media_stream_remote(m, stream, &out->remote);
}

static int push_to(void *arg, uint32_t worker, const struct worker_cmd *cmd, uint32_t n)
{
	struct app_relay *r = arg;

	return push(&r->site[worker], cmd, n);
}

static int offload_start(struct app_relay *r)
{
	struct offload_config cfg = {
		.ops = r->cfg.steer_ops,
		.steer = r->cfg.steer,
		.workers = r->cfg.workers,
		.max_stream = r->cfg.max_stream,
		.max_ctx = r->cfg.max_ctx,
		.look = look,
		.push = push_to,
		.arg = r,
	};
	int err = cfg.steer ? offload_create(&r->offload, &cfg) : -EOPNOTSUPP;

	return err == -EOPNOTSUPP ? 0 : err;
}

void app_relay_usage(const struct app_relay *r, struct app_relay_usage *out)
{
	*out = (struct app_relay_usage){.ports = 2 * ports_used_count(r->cfg.ports),
		.ports_free = 2 * ports_free_count(r->cfg.ports),
		.without_socket = ports_without_count(r->cfg.ports)};
	offload_usage(r->offload, clock_mono_ns(), &out->offload);
	for (int i = 0; i < SHORTAGE_COUNT; i++)
		out->shortages += r->shortages[i];
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		const struct site *s = &r->site[i];

		out->streams += s->streams.all - s->streams.n;
		out->contexts += s->ctxs.all - s->ctxs.n;
		out->key_slots += 2 * (s->keys.all - s->keys.n);
		out->backlog += s->backlog_n;
	}
}

/* --- Set-up --------------------------------------------------------------------------------------------------- */

int app_relay_create(struct app_relay **out, const struct app_relay_config *cfg)
{
	struct app_relay *r = calloc(1, sizeof(*r));
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
		struct site *s = &r->site[i];

		s->w = cfg->worker[i];
		err = handles_init(&s->streams, 0, cfg->max_stream);
		err = err ? err : handles_init(&s->ctxs, 0, cfg->max_ctx);
		err = err ? err
			  : handles_init(&s->keys, 1, cfg->key_slots / 2); /* pair 0 is "plain" */
		s->lent = calloc(cfg->key_slots / 2 + 1, sizeof(*s->lent));
		s->told = calloc(cfg->max_ctx + 1, sizeof(*s->told));
		err = err ? err : s->lent && s->told ? 0 : -ENOMEM;
	}
	err = err ? err : offload_start(r);
	if (err) {
		app_relay_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void app_relay_destroy(struct app_relay *r)
{
	if (!r)
		return;
	if (r->lost)
		log_warn("relay: %llu handles were lost for want of memory",
			(unsigned long long)r->lost);
	for (uint32_t i = 0; i < r->cfg.workers; i++) {
		free(r->site[i].streams.free);
		free(r->site[i].ctxs.free);
		free(r->site[i].keys.free);
		free(r->site[i].lent);
		for (uint32_t k = 0; r->site[i].told && k < r->cfg.max_ctx; k++)
			free(r->site[i].told[k].marks);
		free(r->site[i].told);
		free(r->site[i].backlog);
	}
	offload_destroy(r->offload);
	free(r->place);
	free(r->site);
	free(r);
}
