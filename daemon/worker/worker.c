/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker loop: the way of a packet, in one place.
 *
 *   steering in -> media_prepare() -> batch_submit() ... batch_finish() -> media_complete() ->
 *   steering out -> verdicts
 *
 * While a device works on one burst the next may be prepared; they are completed in the order in
 * which they came. Between bursts, and only while none is in flight, it carries out what the
 * control thread asked for. Nothing is allocated and nothing is logged here: what happens is
 * counted. */
#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/lines.h"
#include "batch/engine.h"
#include "packet/arena.h"

#define CMD_RING  4096u
#define CMD_MANY  (CMD_RING / 2) /* the control thread may have more that did not fit */
#define MARK_RING 16384u

/* --- Commands --------------------------------------------------------------------------------- */

static void wake_control(const struct worker *w)
{
	uint64_t one = 1;

	(void)!write(w->cfg.ack_fd, &one, sizeof(one));
}

static void acknowledge(struct worker *w, struct worker_ack ack)
{
	/* Cannot be full: it has room for every handle there is. */
	if (ring_push(&w->acks, &ack, 1) == 0)
		wake_control(w);
}

static void pierce(struct worker *w, uint32_t stream)
{
	struct packet_out out;

	if (!media_pierce(w->media, stream, &out))
		return;
	w->steer_ops->send(w->steer, batch_runner_arena(w->runner), &out, 1);
	if (!out.failed)
		atomic_fetch_add_explicit(&w->pierced, 1, memory_order_relaxed);
}

static int media_cmd(struct worker *w, const struct media_cmd *cmd)
{
	int err = 0;

	switch (cmd->type) {
	case MEDIA_STREAM_SET:
		if (w->steer_ops->unread)
			w->steer_ops->unread(
				w->steer, cmd->stream.local, cmd->stream.raw || cmd->stream.side);
		return media_command(w->media, cmd);
	case MEDIA_CTX_SET:
	case MEDIA_KEY_SET:
	case MEDIA_CTX_RESUME:
	case MEDIA_KEY_RESUME:
	case MEDIA_STREAM_RESUME:
	case MEDIA_STREAM_CUT:
	case MEDIA_STREAM_WATCH:
		return media_command(w->media, cmd);
	case MEDIA_STREAM_PIERCE:
		pierce(w, cmd->id);
		break;
	case MEDIA_CTX_DEL:
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_CTX, cmd->id});
		break;
	case MEDIA_STREAM_DEL:
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_STREAM, cmd->id});
		break;
	case MEDIA_KEY_DEL:
		/* No batch is in flight between bursts: nobody uses the slots any more. */
		batch_runner_key_wipe(w->runner, cmd->id);
		err = media_command(w->media, cmd);
		acknowledge(w, (struct worker_ack){ACK_KEY, cmd->id});
		break;
	}
	return err;
}

static void tell_marks(struct worker *w, const struct worker_ask *ask)
{
	struct media_mark mark[MEDIA_MARKS_MAX];
	struct worker_mark out[MEDIA_MARKS_MAX + 1];
	uint64_t now = clock_real_ns();

	for (uint32_t i = 0; i < ask->n; i++) {
		struct worker_mark one = {
			.ctx = ask->ctx[i], .generation = ask->generation[i], .at_ns = now};
		uint64_t tx_rtcp_next;
		uint32_t n = media_marks(w->media, one.ctx, mark, &tx_rtcp_next);

		for (uint32_t k = 0; k < n; k++) {
			out[k] = one;
			out[k].mark = mark[k];
		}
		out[n] = one;
		out[n].end = true;
		out[n].mark.index = tx_rtcp_next;
		(void)ring_push(&w->marks, out, n + 1);
	}
}

static void commands(struct worker *w)
{
	struct worker_cmd cmd;
	uint32_t any = 0;
	int err;

	while (ring_pop(&w->cmds, &cmd)) {
		err = 0;
		any++;
		switch (cmd.kind) {
		case WORKER_MEDIA:
			err = media_cmd(w, &cmd.media);
			break;
		case WORKER_KEY_SET:
			err = batch_runner_key_changed(w->runner, cmd.id);
			break;
		case WORKER_PORT_ADD:
			err = w->steer_ops->port_add(w->steer, cmd.local, cmd.fd);
			if (err)
				close(cmd.fd);
			break;
		case WORKER_PORT_DEL:
			w->steer_ops->port_del(w->steer, cmd.local);
			acknowledge(w, (struct worker_ack){ACK_PORT, cmd.id});
			break;
		case WORKER_RELAY:
			/* Without room the bridge asks again later. */
			(void)w->steer_ops->relay(w->steer, &cmd.relay);
			break;
		case WORKER_UNRELAY:
			w->steer_ops->unrelay(w->steer, cmd.local);
			break;
		case WORKER_STEER_AGAIN:
			w->steer_ops->again(w->steer);
			break;
		case WORKER_MARKS:
			tell_marks(w, &cmd.ask);
			break;
		}
		atomic_fetch_add_explicit(&w->commands, 1, memory_order_relaxed);
		if (err)
			atomic_fetch_add_explicit(&w->command_errors, 1, memory_order_relaxed);
	}
	if (any)
		explicit_bzero(&cmd, sizeof(cmd));
	if (any >= CMD_MANY)
		wake_control(w);
}

/* --- Packets ---------------------------------------------------------------------------------- */

/* Reads the clock and books the time since the last reading. */
static uint64_t stage(struct worker *w, enum worker_stage which, uint64_t since)
{
	uint64_t now = clock_mono_ns();

	hist_add(&w->stage[which], now - since);
	return now;
}

/* How long the burst waited for us; when that is too long, media drops what is too old. */
static void record_queue(struct worker *w, const struct packet_in *in, uint32_t n)
{
	uint64_t now = clock_real_ns(), oldest = now;
	struct hist_run queue = {.h = &w->stage[WORKER_STAGE_QUEUE]};
	struct overload_shed shed;

	for (uint32_t i = 0; i < n; i++) {
		hist_run_add(&queue, now > in[i].t_ns ? now - in[i].t_ns : 0);
		oldest = in[i].t_ns < oldest ? in[i].t_ns : oldest;
	}
	hist_run_end(&queue);
	shed = overload_step(&w->overload, now, oldest);
	media_shed(w->media, shed.ordinary_before_ns, shed.emergency_before_ns);
}

static void count_bytes(_Atomic uint64_t *counter, uint64_t bytes)
{
	bytes += atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, bytes, memory_order_relaxed);
}

/* Bytes of a complete burst that were relayed. Junk must not count towards --max-bandwidth, or a
 * flood could block new calls. */
static void record_bytes(struct worker *w, const struct packet_in *in, uint32_t n)
{
	uint64_t bytes = 0, relayed = 0;

	for (uint32_t i = 0; i < n; i++) {
		bytes += in[i].len;
		relayed += in[i].verdict == PACKET_SENT ? in[i].len : 0;
	}
	count_bytes(&w->bytes_in, bytes);
	count_bytes(&w->bytes_relayed, relayed);
}

static void record_delay(struct worker *w, const struct packet_in *in, uint32_t n)
{
	uint64_t now = clock_real_ns();
	struct hist_run delay = {.h = &w->delay};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t then = in[w->out[i].in].t_ns;

		if (!w->out[i].failed)
			hist_run_add(&delay, now > then ? now - then : 0);
	}
	hist_run_end(&delay);
}

/* The next packets of the keying thread, at most max of them, into the slots of the next burst,
 * which no burst in flight has. Returns how many it took out of the ring. */
static uint32_t side_some(struct worker *w, struct side_channel *c, uint32_t max)
{
	struct arena *a = batch_runner_arena(w->runner);
	uint32_t first = media_first_slot(w->media), taken = 0, n = 0, sent = 0, stale = 0;
	struct side_packet p;

	while (taken < max && side_next(c, &p)) {
		enum media_side_result r = media_side_out(w->media, a, first + n, &p, &w->out[n]);

		taken++;
		n += r == MEDIA_SIDE_SENDS;
		stale += r == MEDIA_SIDE_STALE;
	}
	if (n)
		w->steer_ops->send(w->steer, a, w->out, n);
	for (uint32_t i = 0; i < n; i++)
		sent += !w->out[i].failed;
	atomic_fetch_add_explicit(&c->sent, sent, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->stale, stale, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->refused, taken - stale - sent, memory_order_relaxed);
	return taken;
}

/* All of them that are there now: the keying thread wakes us for those that it adds. */
static void side_out(struct worker *w)
{
	struct side_channel *c = w->cfg.side;
	uint32_t left = SIDE_ENTRIES, taken = 1;

	if (!c)
		return;
	while (left && taken && side_waits(c)) {
		taken = side_some(w, c, left < w->cfg.batch_max ? left : w->cfg.batch_max);
		left -= taken;
	}
}

static struct batch batch_of(const struct worker *w, const struct worker_burst *b)
{
	const struct arena *a = batch_runner_arena(w->runner);

	return (struct batch){
		.job = a->job + b->first, .status = a->status + b->first, .n = b->jobs};
}

/* A burst from the kernel to the engine. Returns the number of packets that came in. */
static uint32_t burst_begin(struct worker *w)
{
	struct arena *a = batch_runner_arena(w->runner);
	struct worker_burst *b = &w->burst[(w->oldest + w->flying) % w->depth];
	struct batch batch;
	uint64_t at;

	b->first = media_first_slot(w->media);
	b->n = w->steer_ops->recv(w->steer, a, b->first, b->in, media_burst_max(w->media));
	if (b->n == 0)
		return 0;
	record_queue(w, b->in, b->n);
	at = clock_mono_ns();
	b->jobs = media_prepare(w->media, a, b->in, b->n, a->job + b->first);
	if (w->cfg.side)
		side_flush(w->cfg.side);
	b->engine_ns = stage(w, WORKER_STAGE_PREPARE, at);
	batch = batch_of(w, b);
	batch_submit(w->runner, &batch);
	w->flying++;
	return b->n;
}

/* The oldest burst from the engine back to the kernel. */
static void burst_end(struct worker *w)
{
	struct arena *a = batch_runner_arena(w->runner);
	struct worker_burst *b = &w->burst[w->oldest];
	struct batch batch = batch_of(w, b);
	uint32_t outs;
	uint64_t at;

	batch_finish(w->runner);
	at = stage(w, WORKER_STAGE_ENGINE, b->engine_ns);
	outs = media_complete(w->media, a, b->in, b->n, batch.job, batch.status, batch.n, w->out);
	at = stage(w, WORKER_STAGE_COMPLETE, at);
	if (outs) {
		w->steer_ops->send(w->steer, a, w->out, outs);
		media_sent(w->media, b->in, w->out, outs);
		record_delay(w, b->in, outs);
	}
	record_bytes(w, b->in, b->n);
	w->steer_ops->verdict(w->steer, b->in, b->n);
	stage(w, WORKER_STAGE_SEND, at);
	hist_add(&w->batch, b->n);
	atomic_fetch_add_explicit(&w->bursts, 1, memory_order_relaxed);
	w->oldest = (w->oldest + 1) % w->depth;
	w->flying--;
}

/* What is done leaves, in the order in which it came; all of it leaves before there is a command,
 * for what commands change must not change under a burst; and one leaves if there is no room for
 * another. */
static void bursts_end(struct worker *w)
{
	bool all = w->flying && !ring_empty(&w->cmds);

	if (w->flying == w->depth)
		burst_end(w);
	while (w->flying && (all || batch_done(w->runner, 0)))
		burst_end(w);
}

uint32_t worker_round(struct worker *w)
{
	uint32_t n;

	bursts_end(w);
	if (w->flying == 0)
		commands(w);
	side_out(w);
	n = burst_begin(w);
	/* A device that takes one batch at a time is done with it. */
	if (w->flying && (w->depth == 1 || n == 0 || batch_done(w->runner, 0)))
		burst_end(w);
	return n;
}

/* --- When to look again ----------------------------------------------------------------------- */

static void wait_for_packet(struct worker *w)
{
	struct epoll_event ev[2];
	int n = epoll_wait(w->poll_fd, ev, 2, 1000);

	for (int i = 0; i < n; i++) {
		uint64_t count;

		if (ev[i].data.fd == w->wake_fd)
			(void)!read(w->wake_fd, &count, sizeof(count));
	}
}

static void sleep_until(uint64_t mono_ns)
{
	struct timespec ts = {(time_t)(mono_ns / NS_PER_SEC), (long)(mono_ns % NS_PER_SEC)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* Lets a batch gather, at most so long: as long as nothing waits to leave. */
static void gather(struct worker *w, uint64_t until_ns)
{
	while (w->flying && batch_done(w->runner, until_ns)) {
		burst_end(w);
		if (clock_mono_ns() >= until_ns)
			return;
	}
	if (!w->flying)
		sleep_until(until_ns);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	uint64_t looked = clock_mono_ns(), rounds = 0;
	uint32_t n = 0;

	(void)caps_limit(~w->cfg.keep_not);
	/* The default slack of 50 us is as long as what we wait for. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	while (!atomic_load_explicit(&w->stop, memory_order_acquire)) {
		uint64_t wait = n ? coalesce_wait_ns(&w->pace) : 0;

		/* A full burst: more is there for sure. Else, instead of a look that mostly finds
		 * nothing, the wait that comes anyway: it returns at once if something is there. */
		if (n < media_burst_max(w->media) && !w->cfg.busy_poll) {
			if (wait)
				gather(w, looked + wait);
			else if (w->flying == 0)
				wait_for_packet(w);
		}
		looked = clock_mono_ns();
		n = worker_round(w);
		atomic_store_explicit(&w->rounds, ++rounds, memory_order_relaxed);
		coalesce_count(&w->pace, n, clock_mono_ns());
	}
	while (w->flying)
		burst_end(w);
	commands(w);
	return NULL;
}

/* --- Set-up ----------------------------------------------------------------------------------- */

static int poll_create(struct worker *w)
{
	struct epoll_event wake = {.events = EPOLLIN}, packets = {.events = EPOLLIN};

	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->wake_fd < 0 || w->poll_fd < 0)
		return -errno;
	wake.data.fd = w->wake_fd;
	packets.data.fd = w->steer_ops->fd(w->steer);
	if (epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, w->wake_fd, &wake) ||
		epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, packets.data.fd, &packets))
		return -errno;
	return 0;
}

/* Media derived session keys into a pair: between two batches, as always. */
static int key_changed(void *arg, uint32_t slot)
{
	const struct worker *w = arg;

	return batch_runner_key_changed(w->runner, slot);
}

/* Checks a source that is new to media, for a packet that the host's stack has not checked. */
static enum packet_verdict believe(void *arg, const struct packet_in *in, bool expected)
{
	struct worker *w = arg;
	const struct host_claim claim = {.src = in->src,
		.dst = w->cfg.steer->local[in->local.addr],
		.dev = in->dev,
		.expected = expected};

	if (in->dev == PACKET_DEV_NOWHERE)
		return PACKET_DROP_MARTIAN;
	switch (host_believes(w->judge, &claim, clock_mono_ns())) {
	case HOST_BELIEVED:
		return PACKET_JOB;
	case HOST_UNCHECKED:
		return PACKET_DROP_UNCHECKED;
	case HOST_MARTIAN:
		break;
	}
	return PACKET_DROP_MARTIAN;
}

/* Sending by verdict needs accept_local for results that the host forwards. Packets from the
 * network with our addresses as source must still be refused. */
static int judge_create(struct worker *w)
{
	bool strict = w->cfg.steer_ops != &steer_xdp &&
		w->cfg.steer->queue_send == STEER_QUEUE_VERDICT && !w->cfg.steer->queue_mark;

	return w->cfg.host ? host_judge_create(&w->judge, w->cfg.host, strict) : 0;
}

int worker_create(struct worker **out, const struct worker_config *cfg, char *err, size_t err_len)
{
	struct worker *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);
	uint32_t handles = cfg->media->max_ctx + 2 * cfg->media->max_stream + cfg->batch->key_slots;
	struct media_config media = *cfg->media;
	int res;

	if (!w)
		return -ENOMEM;
	media.key_slots = cfg->batch->key_slots;
	media.key_changed = key_changed;
	media.key_changed_arg = w;
	media.tap = cfg->tap ? tap_packet : NULL;
	media.tap_arg = cfg->tap;
	media.side = cfg->side;
	media.believe = cfg->host ? believe : NULL;
	media.believe_arg = w;
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->overload.age_ns = cfg->overload_age_ns;
	w->pace = (struct coalesce){.window_ns = cfg->batch_window_ns, .batch_max = cfg->batch_max};
	w->steer_ops = cfg->steer_ops;
	w->wake_fd = w->poll_fd = -1;
	snprintf(err, err_len, "worker %u: out of memory", cfg->index);
	w->depth = cfg->batch->depth ? cfg->batch->depth : 1;
	media.bursts = w->depth;
	w->out = lines_alloc(cfg->batch_max, sizeof(*w->out));
	res = w->out ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < w->depth && !res; i++) {
		w->burst[i].in = lines_alloc(cfg->batch_max, sizeof(*w->burst[i].in));
		res = w->burst[i].in ? 0 : -ENOMEM;
	}
	res = res ? res : ring_init(&w->cmds, CMD_RING, sizeof(struct worker_cmd));
	res = res ? res : ring_init(&w->acks, handles, sizeof(struct worker_ack));
	res = res ? res : ring_init(&w->marks, MARK_RING, sizeof(struct worker_mark));
	res = res ? res : judge_create(w);
	res = res ? res : media_create(&w->media, &media);
	res = res ? res : batch_runner_create(&w->runner, cfg->batch);
	res = res ? res : cfg->steer_ops->create(&w->steer, cfg->steer, cfg->index, err, err_len);
	if (!res && cfg->steer_ops->memory)
		res = cfg->steer_ops->memory(w->steer, batch_runner_arena(w->runner), err, err_len);
	res = res ? res : poll_create(w);
	if (!res && cfg->side)
		cfg->side->worker_fd = w->wake_fd;
	if (res) {
		worker_destroy(w);
		return res;
	}
	err[0] = 0;
	*out = w;
	return 0;
}

/* The thread begins with its priority, or not at all. */
static int thread_create(struct worker *w)
{
	struct sched_param param = {.sched_priority = w->cfg.priority};
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	if (w->cfg.priority) {
		err = pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		err = err ? err : pthread_attr_setschedpolicy(&attr, SCHED_RR);
		err = err ? err : pthread_attr_setschedparam(&attr, &param);
	}
	err = err ? err : pthread_create(&w->thread, &attr, run, w);
	pthread_attr_destroy(&attr);
	return err;
}

int worker_start(struct worker *w)
{
	sigset_t all, old;
	char name[16];
	int err;

	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = thread_create(w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	w->running = true;
	snprintf(name, sizeof(name), "worker-%u", w->cfg.index);
	pthread_setname_np(w->thread, name);
	return 0;
}

void worker_wake(struct worker *w)
{
	uint64_t one = 1;

	(void)!write(w->wake_fd, &one, sizeof(one));
}

uint64_t worker_cpu_ns(const struct worker *w)
{
	struct timespec ts;
	clockid_t clock;

	if (!w->running || pthread_getcpuclockid(w->thread, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

void worker_stop(struct worker *w)
{
	if (!w->running)
		return;
	atomic_store_explicit(&w->stop, true, memory_order_release);
	worker_wake(w);
	pthread_join(w->thread, NULL);
	w->running = false;
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	worker_stop(w);
	if (w->steer)
		w->steer_ops->destroy(w->steer);
	if (w->runner)
		batch_runner_destroy(w->runner);
	if (w->media)
		media_destroy(w->media);
	host_judge_destroy(w->judge);
	if (w->cmds.mem)
		ring_fini(&w->cmds);
	if (w->acks.mem)
		ring_fini(&w->acks);
	if (w->marks.mem)
		ring_fini(&w->marks);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	if (w->poll_fd >= 0)
		close(w->poll_fd);
	for (uint32_t i = 0; i < ENGINE_DEPTH_MAX; i++)
		free(w->burst[i].in);
	free(w->out);
	free(w);
}
