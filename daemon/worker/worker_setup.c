/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates, starts, stops and destroys workers. */
#include "worker/worker_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/thread.h"
#include "batch/engine.h"

/* Steering has work to do about once a second, also without packets. A standing timer costs nothing
 * per sleep, unlike a timeout. It goes on when it is read. */
static int tick_create(struct worker *w)
{
	const struct itimerspec second = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct epoll_event tick = {.events = EPOLLIN};

	w->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	tick.data.fd = w->tick_fd;
	if (w->tick_fd < 0 || timerfd_settime(w->tick_fd, 0, &second, NULL) ||
		epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, w->tick_fd, &tick))
		return -errno;
	return 0;
}

static int poll_create(struct worker *w)
{
	struct epoll_event wake = {.events = EPOLLIN}, audio = wake, packets = wake;
	int res;

	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->audio_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->wake_fd < 0 || w->audio_fd < 0 || w->poll_fd < 0)
		return -errno;
	wake.data.fd = w->wake_fd;
	audio.data.fd = w->audio_fd;
	packets.data.fd = w->steer_ops->fd(w->steer);
	if (epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, w->wake_fd, &wake) ||
		epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, w->audio_fd, &audio) ||
		epoll_ctl(w->poll_fd, EPOLL_CTL_ADD, packets.data.fd, &packets))
		return -errno;
	res = tick_create(w);
	if (res)
		return res;
	return w->steer_ops->wakes ? w->steer_ops->wakes(w->steer, w->poll_fd) : 0;
}

/* Called when media derived session keys into a pair. No batch runs now. */
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

static void encrypt(void *arg, struct xc_job *j, uint32_t *status, uint32_t n)
{
	struct worker *w = arg;

	batch_run_late(w->runner, j, status, n);
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
	media.encrypt = encrypt;
	media.encrypt_arg = w;
	media.side = cfg->side;
	media.audio = cfg->audio;
	media.audio_threads = cfg->audio_threads;
	media.believe = cfg->host ? believe : NULL;
	media.believe_arg = w;
	memset(w, 0, sizeof(*w));
	w->cfg = *cfg;
	w->overload.age_ns = cfg->overload_age_ns;
	w->coalesce =
		(struct coalesce){.window_ns = cfg->batch_window_ns, .batch_max = cfg->batch_max};
	w->steer_ops = cfg->steer_ops;
	w->wake_fd = w->audio_fd = w->poll_fd = w->tick_fd = -1;
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
	if (!res && cfg->side) {
		cfg->side->worker_fd = w->wake_fd;
		cfg->side->worker_awake = &w->awake;
	}
	for (uint32_t i = 0; !res && i < cfg->audio_threads; i++)
		cfg->audio[i]->worker_fd = w->audio_fd;
	if (res) {
		worker_destroy(w);
		return res;
	}
	err[0] = 0;
	*out = w;
	return 0;
}

/* Fails unless the thread gets its priority. */
int worker_start(struct worker *w)
{
	struct sched_param param = {.sched_priority = w->cfg.priority};
	pthread_attr_t attr;
	char name[16];
	int err = -pthread_attr_init(&attr);

	if (err)
		return err;
	if (w->cfg.priority) {
		err = -pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		err = err ? err : -pthread_attr_setschedpolicy(&attr, SCHED_RR);
		err = err ? err : -pthread_attr_setschedparam(&attr, &param);
	}
	snprintf(name, sizeof(name), "worker-%u", w->cfg.index);
	err = err ? err : thread_start(&w->thread, &attr, name, worker_loop, w);
	pthread_attr_destroy(&attr);
	w->running = err == 0;
	return err;
}

static void wake(struct worker *w)
{
	uint64_t one = 1;

	(void)!write(w->wake_fd, &one, sizeof(one));
}

/* Writes to w->awake here and in may_sleep() have one order: either this one reads 0, or the worker
 * sees the commands. */
void worker_wake(struct worker *w)
{
	if (!atomic_fetch_or(&w->awake, 0))
		wake(w);
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
	wake(w);
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
	if (w->audio_fd >= 0)
		close(w->audio_fd);
	if (w->tick_fd >= 0)
		close(w->tick_fd);
	if (w->poll_fd >= 0)
		close(w->poll_fd);
	for (uint32_t i = 0; i < ENGINE_DEPTH_MAX; i++)
		free(w->burst[i].in);
	free(w->out);
	free(w);
}
