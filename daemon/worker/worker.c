/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker loop: the path of a packet, in one place.
 *
 * steering in -> media_prepare() -> batch_submit() ... batch_finish() -> media_complete()
 * -> steering out -> verdicts
 *
 * While a device works on one burst, the next may be prepared. Bursts complete in order of arrival.
 * Commands of the control thread run between bursts, while none is in flight. Few of them run in
 * one round, and few packets of the keying thread are sent, because media wait meanwhile. The loop
 * allocates and logs nothing; it only counts. */
#include "worker/worker_int.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/secmem.h"
#include "media/ahead.h"
#include "packet/arena.h"

#define COMMANDS_TURN 32u     /* commands in one round, and the rest of their group */
#define SIDE_TURN     16u     /* packets of the keying thread in one round */
#define NAP_MOST_NS   500000u /* longer naps end when a command comes */

/* --- Packets ---------------------------------------------------------------------------------- */

/* Adds the time since the last reading to this stage. */
static uint64_t stage_at(struct worker *w, enum worker_stage which, uint64_t since, uint64_t now)
{
	hist_add(&w->stage[which], now > since ? now - since : 0);
	w->clock_ns = now;
	return now;
}

/* The same, after reading the clock. */
static uint64_t stage(struct worker *w, enum worker_stage which, uint64_t since)
{
	return stage_at(w, which, since, clock_mono_ns());
}

/* Records how long the burst was queued. If too long, media drops packets that are too old. */
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
static void record_bytes(struct worker *w, const struct worker_burst *b)
{
	uint64_t bytes = 0, relayed = 0;
	bool urgent = false;

	for (uint32_t i = 0; i < b->n; i++) {
		bytes += b->in[i].len;
		relayed += b->in[i].verdict == PACKET_SENT ? b->in[i].len : 0;
		urgent |= b->in[i].verdict == PACKET_SENT || b->in[i].verdict == PACKET_PASS ||
			b->in[i].verdict == PACKET_SIDE;
	}
	if (b->source != OF_AUDIO) { /* those were not received */
		count_bytes(&w->bytes_in, bytes);
		if (urgent)
			coalesce_urgent(&w->coalesce, w->clock_ns);
	}
	count_bytes(&w->bytes_relayed, relayed);
}

/* now: when they had been sent. */
static void record_delay(struct worker *w, const struct packet_in *in, uint32_t n, uint64_t now)
{
	struct hist_run delay = {.h = &w->delay};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t then = in[w->out[i].in].t_ns;

		if (!w->out[i].failed)
			hist_run_add(&delay, now > then ? now - then : 0);
	}
	hist_run_end(&delay);
}

/* Writes up to max packets of the keying thread to the slots of the next burst, which no burst in
 * flight uses. Returns the number taken from the ring. */
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

static struct batch batch_of(const struct worker *w, const struct worker_burst *b)
{
	const struct arena *a = batch_runner_arena(w->runner);

	return (struct batch){.job = a->job + b->first,
		.status = a->status + b->first,
		.n = b->jobs,
		.blocks = media_has_tags(w->media)};
}

/* Packets that waited for keys, and those of audio sessions, go first, because they are older than
 * those from steering. Each kind is a burst of its own. */
static void burst_receive(struct worker *w, struct worker_burst *b)
{
	struct arena *a = batch_runner_arena(w->runner);
	uint32_t max = media_burst_max(w->media);

	b->first = media_first_slot(w->media);
	b->source = OF_AHEAD;
	b->n = media_ahead_waits(w->media)
		? media_ahead_take(w->media, a, b->first, b->in, max, clock_real_ns())
		: 0;
	if (!b->n && w->cfg.audio_threads && !w->audio_last) {
		b->source = OF_AUDIO;
		b->n = media_audio_take(w->media, a, b->first, b->in, w->cfg.batch_max);
	}
	w->audio_last = b->n && b->source == OF_AUDIO;
	if (b->n)
		return;
	b->source = OF_STEERING;
	b->n = w->steer_ops->recv(w->steer, a, b->first, b->in, max);
	if (b->n)
		record_queue(w, b->in, b->n);
}

/* Receives a burst and gives it to the engine. Returns the number of packets received. */
static uint32_t burst_begin(struct worker *w)
{
	struct arena *a = batch_runner_arena(w->runner);
	struct worker_burst *b = &w->burst[(w->oldest + w->flying) % w->depth];
	struct batch batch;
	uint64_t at;

	burst_receive(w, b);
	if (b->n == 0)
		return 0;
	at = w->looked_ns = clock_mono_ns();
	b->jobs = b->source == OF_AUDIO
		? media_audio_prepare(w->media, a, b->in, b->n, a->job + b->first)
		: media_prepare(w->media, a, b->in, b->n, a->job + b->first);
	b->engine_ns = stage(w, WORKER_STAGE_PREPARE, at);
	batch = batch_of(w, b);
	batch_submit(w->runner, &batch);
	w->flying++;
	return b->n;
}

/* A steering may send a result in place of the packet that it received, which it finds by out.in,
 * the number in the burst. Packets of other sources get numbers beyond any burst. */
static void steer_out(struct worker *w, const struct worker_burst *b, uint32_t outs)
{
	uint32_t none = b->source == OF_STEERING ? 0 : w->cfg.batch_max;

	for (uint32_t i = 0; none && i < outs; i++)
		w->out[i].in += none;
	w->steer_ops->send(w->steer, batch_runner_arena(w->runner), w->out, outs);
	for (uint32_t i = 0; none && i < outs; i++)
		w->out[i].in -= none;
}

/* The oldest burst was sent, at this time by CLOCK_REALTIME. */
static void burst_sent(struct worker *w, uint32_t outs, uint64_t real_ns)
{
	struct worker_burst *b = &w->burst[w->oldest];

	if (outs) {
		media_sent(w->media, b->in, w->out, outs);
		record_delay(w, b->in, outs, real_ns);
	}
	record_bytes(w, b);
	if (b->source == OF_STEERING)
		w->steer_ops->verdict(w->steer, b->in, b->n);
	hist_add(&w->batch, b->n);
	atomic_fetch_add_explicit(&w->bursts, 1, memory_order_relaxed);
	w->oldest = (w->oldest + 1) % w->depth;
	w->flying--;
}

static void burst_send(struct worker *w, uint32_t outs, uint64_t complete_ns)
{
	const struct worker_burst *b = &w->burst[w->oldest];

	if (outs)
		steer_out(w, b, outs);
	burst_sent(w, outs, outs ? clock_real_ns() : 0);
	stage(w, WORKER_STAGE_SEND, complete_ns);
}

/* Completes the oldest burst, and sends its packets, or holds them. */
static void burst_end(struct worker *w)
{
	struct arena *a = batch_runner_arena(w->runner);
	struct worker_burst *b = &w->burst[w->oldest];
	struct batch batch = batch_of(w, b);
	uint32_t outs;
	uint64_t at;

	batch_finish(w->runner);
	at = stage(w, WORKER_STAGE_ENGINE, b->engine_ns);
	outs = media_complete(w->media, a, b->in, &batch, w->out);
	at = stage(w, WORKER_STAGE_COMPLETE, at);
	if (w->cfg.audio_threads)
		media_audio_flush(w->media);
	if (w->may_hold && b->source == OF_STEERING) {
		w->held = true;
		w->held_outs = outs;
	} else {
		burst_send(w, outs, at);
	}
}

/* Sends what is held. Nothing else may be sent before, and no burst may begin. */
static void held_send(struct worker *w)
{
	if (!w->held)
		return;
	w->held = false;
	burst_send(w, w->held_outs, w->clock_ns);
}

/* The same, and waits for the next burst. False: nothing was done. */
static bool held_send_and_wait(struct worker *w, uint64_t wait_ns)
{
	struct steer_wait how = {.wait_ns = wait_ns};
	uint32_t outs = w->held ? w->held_outs : 0;

	if (!w->steer_ops->send_and_wait(
		    w->steer, batch_runner_arena(w->runner), w->out, outs, &how))
		return false;
	w->polled = how.polled;
	if (!w->held)
		return true;
	w->held = false;
	(void)stage_at(w, WORKER_STAGE_SEND, w->clock_ns, how.sent_ns);
	burst_sent(w, outs, how.sent_real_ns);
	return true;
}

/* The keying thread wakes the worker for packets that come later. */
static void side_out(struct worker *w)
{
	struct side_channel *c = w->cfg.side;

	if (!c || !side_waits(c))
		return;
	held_send(w);
	w->left |= side_some(w, c, min_u32(SIDE_TURN, w->cfg.batch_max)) && side_waits(c);
}

/* Completes bursts in order of arrival: those that are finished; all of them if commands wait,
 * because a command must find no burst in flight; and at least one if all places are taken. */
static void bursts_end(struct worker *w)
{
	bool all = w->flying && !ring_empty(&w->cmds);

	if (w->flying == w->depth)
		burst_end(w);
	while (w->flying && (all || batch_done(w->runner, 0)))
		burst_end(w);
}

/* Passes new and changed guards to steering. They are rare: ATTACK_TELL in media/attack.h. */
static void guards_out(struct worker *w)
{
	uint64_t mono = clock_mono_ns(), ahead = clock_real_ns() - mono;
	struct guard_window *g = &w->guard.guard.window;

	while (media_guard_next(w->media, &w->guard)) {
		g->at_ns = g->at_ns > ahead ? g->at_ns - ahead : 0;
		g->epoch_ns -= ahead; /* may wrap: only differences count */
		if (w->steer_ops->guard)
			w->steer_ops->guard(
				w->steer, w->guard.local, w->guard.on ? &w->guard.guard : NULL);
		secmem_wipe(&w->guard, sizeof(w->guard));
	}
}

static void commands_turn(struct worker *w)
{
	w->left = false;
	if (w->flying)
		return;
	worker_commands(w, COMMANDS_TURN);
	w->left = !ring_empty(&w->cmds);
}

uint32_t worker_round(struct worker *w)
{
	uint32_t n;

	if (!w->napped) {
		bursts_end(w);
		commands_turn(w);
	}
	w->napped = false;
	/* Bursts in flight may take all slots. */
	if (w->depth > 1)
		side_out(w);
	n = burst_begin(w);
	/* A device that takes one batch at a time has finished it. */
	if (w->flying && (w->depth == 1 || n == 0 || batch_done(w->runner, 0)))
		burst_end(w);
	if (w->cfg.side)
		side_flush(w->cfg.side);
	if (w->depth == 1)
		side_out(w);
	if (media_guards_wait(w->media))
		guards_out(w);
	return n;
}

/* --- Wait for the next burst ------------------------------------------------------------------ */

/* Whether nothing waits. From now on other threads wake the worker. */
static bool may_sleep(struct worker *w)
{
	(void)atomic_exchange(&w->awake, 0);
	return ring_empty(&w->cmds) && !(w->cfg.side && side_waits(w->cfg.side));
}

/* Returns the number of ready descriptors. */
static int wait_for_packet(struct worker *w, int timeout_ms)
{
	struct epoll_event ev[4];
	int n = timeout_ms == 0 || may_sleep(w) ? epoll_wait(w->poll_fd, ev, 4, timeout_ms) : 0;

	atomic_store(&w->awake, 1);
	for (int i = 0; i < n; i++) {
		uint64_t count;

		if (ev[i].data.fd == w->wake_fd || ev[i].data.fd == w->audio_fd ||
			ev[i].data.fd == w->tick_fd)
			(void)!read(ev[i].data.fd, &count, sizeof(count));
	}
	return n;
}

static bool stops(const struct worker *w)
{
	return atomic_load_explicit(&w->stop, memory_order_acquire);
}

/* Commands and packets of the keying thread that wait, for as long as there is time. */
static void work_until(struct worker *w, uint64_t until_ns)
{
	do {
		commands_turn(w);
		side_out(w);
	} while (w->left && !stops(w) && clock_mono_ns() < until_ns);
}

/* A long nap, from which others wake the worker. */
static void doze(struct worker *w, uint64_t until_ns)
{
	struct pollfd wake = {.fd = w->wake_fd, .events = POLLIN};
	uint64_t now = clock_mono_ns(), count;

	for (; now < until_ns && !stops(w); now = clock_mono_ns()) {
		uint64_t left = may_sleep(w) ? until_ns - now : 0;
		struct timespec ts = {(time_t)(left / NS_PER_SEC), (long)(left % NS_PER_SEC)};

		if (ppoll(&wake, 1, &ts, NULL) > 0)
			(void)!read(w->wake_fd, &count, sizeof(count));
		work_until(w, until_ns);
	}
	atomic_store(&w->awake, 1);
}

/* Sleeps until then, while packets gather in steering. Before, it executes commands and sends
 * packets of the keying thread, so that they take no time from the next burst. Later ones wait for
 * the end of that burst, unless the nap is long. Packets of codec threads are a burst of
 * their own: they do not wake it. Not while a burst is in flight. */
static void nap(struct worker *w, uint64_t until_ns)
{
	struct timespec until = {(time_t)(until_ns / NS_PER_SEC), (long)(until_ns % NS_PER_SEC)};
	uint64_t now;

	work_until(w, until_ns);
	now = clock_mono_ns();
	if (now >= until_ns || stops(w))
		return;
	if (until_ns - now > NAP_MOST_NS)
		doze(w, until_ns);
	else
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	w->napped = true;
}

/* Waits for a batch to fill, at most this long, while nothing waits to be sent. */
static void gather(struct worker *w, uint64_t until_ns)
{
	while (w->flying && batch_done(w->runner, until_ns)) {
		burst_end(w);
		if (clock_mono_ns() >= until_ns)
			return;
	}
	if (!w->flying)
		nap(w, until_ns);
}

/* Sends the held burst, and waits in the same system call, if steering can. If the epoll had
 * events, it is polled first. */
static bool rest_held(struct worker *w, uint64_t wait_ns)
{
	bool done;

	if (!w->may_hold || (w->flying && !w->held))
		return false;
	if (w->polled && wait_for_packet(w, 0) > 0)
		return true;
	w->polled = false;
	done = may_sleep(w) && held_send_and_wait(w, wait_ns);
	atomic_store(&w->awake, 1);
	return done;
}

/* The same without a burst that is held: steering waits itself, or says who is to wait. While
 * packets gather it does not wait. */
static enum steer_gather rest_by_steering(struct worker *w, uint64_t wait_ns)
{
	enum steer_gather how = STEER_GATHER_NOW;

	if (w->flying || !w->steer_ops->gather)
		return STEER_GATHER_NOT;
	if (wait_ns || may_sleep(w))
		how = w->steer_ops->gather(w->steer, wait_ns);
	atomic_store(&w->awake, 1);
	return how;
}

/* Waits for the next burst. */
static void rest(struct worker *w, uint64_t wait_ns)
{
	enum steer_gather by_kernel;

	if (rest_held(w, wait_ns))
		return;
	held_send(w);
	by_kernel = rest_by_steering(w, wait_ns);
	if (by_kernel == STEER_GATHER_NOW)
		return;
	if (wait_ns && by_kernel == STEER_GATHER_NOT)
		gather(w, w->looked_ns + wait_ns);
	else if (w->flying == 0)
		(void)wait_for_packet(w, -1);
}

void *worker_loop(void *arg)
{
	struct worker *w = arg;
	uint64_t rounds = 0;
	uint32_t n = 0;

	(void)caps_limit(~w->cfg.keep_not);
	/* The default slack of 50 us is as long as our waits. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	atomic_store(&w->awake, 1);
	w->may_hold = w->steer_ops->send_and_wait && w->depth == 1 && !w->cfg.busy_poll;
	w->polled = true;
	while (!stops(w)) {
		uint64_t wait = n ? coalesce_wait_ns(&w->coalesce) : 0;

		/* After a full burst, receive at once: more packets wait. Otherwise wait, which
		 * returns at once if there are packets: an extra receive would usually find
		 * none. */
		if (n < media_burst_max(w->media) && !w->cfg.busy_poll && !w->left &&
			!media_audio_waits(w->media))
			rest(w, wait);
		held_send(w);
		n = worker_round(w);
		atomic_store_explicit(&w->rounds, ++rounds, memory_order_relaxed);
		/* Packets of codec threads come together anyway. */
		coalesce_count(
			&w->coalesce, w->audio_last ? 0 : n, n ? w->clock_ns : clock_mono_ns());
	}
	w->may_hold = false;
	held_send(w);
	while (w->flying)
		burst_end(w);
	worker_commands(w, UINT32_MAX);
	atomic_store(&w->awake, 0);
	return NULL;
}
