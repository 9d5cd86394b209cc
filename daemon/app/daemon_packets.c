/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates the packet side from the options: steering, workers with their tables, ports, and the
 * relay that connects them with calls. */
#include "app/daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "app/preflight.h"
#include "app/privileges.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"

#define PORT_HOLD_NS (5 * NS_PER_SEC) /* late packets of the last call must not reach the next */

uint32_t daemon_ports_per_worker(const struct daemon *d)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < d->o.workers; i++) {
		uint16_t min, max;

		steer_worker_ports(&d->steer, i, &min, &max);
		if (max >= min && (uint32_t)(max - min + 1) > most)
			most = (uint32_t)(max - min + 1);
	}
	return most * d->steer.locals;
}

static void steer_configure(struct daemon *d)
{
	const struct options *o = &d->o;

	d->steer = (struct steer_config){
		.locals = o->locals,
		.port_min = o->port_min,
		.port_max = o->port_max,
		.workers = o->workers,
		.queue_num = o->nfqueue_num,
		.burst_max = o->batch_max,
		.bursts = d->engines.depth,
		.queue_send = o->queue_send,
		.queue_closed = !o->queue_fail_open,
		.queue_only = !o->kernel_relay,
		.ring = o->kernel_ring,
		.port_rate = o->kernel_port_rate,
		.source_rate = o->source_rate,
		.udp_io = o->udp_io,
		.xdp_interfaces = o->xdp_interfaces,
		.xdp_mode = o->xdp_mode,
		.workers_auto = o->workers_auto,
		.host = d->host,
	};
	for (uint32_t i = 0; i < o->locals; i++)
		d->steer.local[i] = o->local[i].addr;
}

static int steer_open(struct daemon *d)
{
	const struct steer_ops *ops = d->o.steering;
	int err = ops->open ? ops->open(&d->steer, d->err, sizeof(d->err)) : 0;

	if (err && ops->instead) {
		log_warn("%s. Falling back to --steering=%s", d->err, ops->instead->name);
		d->err[0] = 0;
		d->o.steering = ops->instead;
		return steer_open(d);
	}
	d->o.workers = (uint16_t)d->steer.workers;
	return err ? daemon_fail(d, err, ops->name) : 0;
}

int daemon_steering_open(struct daemon *d)
{
	steer_configure(d);
	return steer_open(d);
}

/* Only udp steering has a choice. */
const char *daemon_socket_calls(const struct daemon *d)
{
	bool uring = d->o.steering == &steer_udp && d->steer.udp_io == STEER_UDP_URING;

	return uring ? "io_uring" : "plain";
}

static int tap_create(struct daemon *d)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t || tap_init(t)) {
		free(t);
		return -ENOMEM;
	}
	d->tap[d->taps++] = t;
	return 0;
}

static bool host_has(void *arg, const struct endpoint *e)
{
	return host_owns(arg, e);
}

static bool host_has_broadcast(void *arg, const struct endpoint *e)
{
	return host_broadcasts(arg, e);
}

/* d->ports is created after d->reach, but before any packet or offer needs this function. */
static bool port_is_taken(void *arg, struct local_port port)
{
	const struct daemon *d = arg;

	return ports_given(d->ports, port);
}

void daemon_reach_init(struct daemon *d)
{
	d->reach = (struct reach){.allow = d->o.media_allow,
		.deny = d->o.media_deny,
		.local = d->o.local,
		.locals = d->o.locals,
		.port_min = d->o.port_min,
		.port_max = d->o.port_max,
		.own = host_has,
		.broadcast = host_has_broadcast,
		.arg = d->host,
		.taken = port_is_taken,
		.taken_arg = d};
}

static bool may_learn(void *arg, const struct endpoint *signalled, const struct endpoint *src)
{
	return reach_may_learn(arg, signalled, src);
}

static bool may_check(void *arg, const struct endpoint *to)
{
	return reach_may_check(arg, to);
}

/* An ordinary call has one audio stream with a pair of ports for each of its two sides. */
static void log_capacity(const struct daemon *d)
{
	uint32_t pairs = ports_free_count(d->ports), files = ports_descriptors_count(d->ports);

	log_info(
		"room for %u calls with one audio stream each: %u port pairs, descriptors for %u pairs, 2 pairs per call",
		(pairs < files ? pairs : files) / 2, pairs, files);
}

static void wake_workers(void *arg)
{
	struct daemon *d = arg;

	bridge_wake(d->relay);
}

int daemon_workers_create(struct daemon *d)
{
	const struct options *o = &d->o;
	uint32_t streams = daemon_ports_per_worker(d), contexts = streams / 2;
	/* Two directions, one more pair for keys being replaced, and one for rare needs: several
	 * keys by MKI, or a key derivation rate with MEDIA_EPOCHS more. Pair 0 is "plain". */
	uint32_t key_slots = 2 * (4 * contexts + 128);
	struct batch_runner_config batch = {
		.device = d->engines.device,
		.devices = d->engines.devices,
		.serial = d->engines.serial,
		.slots = steer_first_slots(&d->steer),
		.key_slots = key_slots,
		.batch_max = o->batch_max,
		.depth = d->engines.depth,
	};
	struct media_config media = {
		.max_ctx = contexts,
		.max_stream = streams,
		.port_min = o->port_min,
		.port_max = o->port_max,
		.local_addrs = (uint8_t)o->locals,
		.burst_max = o->batch_max,
		.rate = o->media_rate,
		.replay_window = o->replay_window,
		.lifetime_enforce = o->enforce_lifetime,
		.may_learn = may_learn,
		.may_check = may_check,
		.may_learn_arg = &d->reach,
	};
	struct bridge_config relay = {
		.worker = d->worker,
		.workers = o->workers,
		.local = o->local,
		.locals = o->locals,
		.max_stream = streams,
		.max_ctx = contexts,
		.key_slots = key_slots,
		.emergency_percent = o->emergency_ports,
		.steer_ops = o->steering,
		.steer = &d->steer,
		.spread = o->busy_poll || o->batch_window == 0,
		.ports_bound_to_workers = o->steering != &steer_udp,
	};
	int err;

	err = secmem_random(media.again_key, sizeof(media.again_key));
	if (err)
		return daemon_fail(d, err, "random numbers");
	preflight_locked((size_t)o->workers * key_slots * sizeof(struct xc_key));
	err = daemon_audio_channels_create(d);
	if (err)
		return daemon_fail(d, err, "codec-threads");
	if (o->steering->slots)
		batch.slots = o->steering->slots(&d->steer);
	for (; d->workers < o->workers; d->workers++) {
		struct worker_config cfg = {
			.index = d->workers,
			.steer_ops = o->steering,
			.steer = &d->steer,
			.media = &media,
			.batch = &batch,
			.batch_max = o->batch_max,
			.batch_window_ns = (uint64_t)o->batch_window * 1000,
			.overload_age_ns = (uint64_t)o->overload_age * 1000000,
			.busy_poll = o->busy_poll,
			.priority = o->worker_priority,
			.ack_fd = d->ack_fd,
			.keep_not = ~privileges_of(o->steering),
			.audio = d->audio.by_worker
				? d->audio.by_worker + d->workers * o->codec_threads
				: NULL,
			.audio_threads = o->codec_threads,
			.host = d->host,
		};

		if (o->recording_dir[0]) {
			err = tap_create(d);
			if (err)
				return daemon_fail(d, err, "recording");
			cfg.tap = d->tap[d->workers];
		}

		err = daemon_channel_create(d);
		if (err)
			return daemon_fail(d, err, "keying-threads");
		cfg.side = d->channels ? d->channel[d->channels - 1] : NULL;
		err = worker_create(&d->worker[d->workers], &cfg, d->err, sizeof(d->err));
		if (err)
			return daemon_fail(d, err, "worker");
	}
	err = ports_create(&d->ports, &d->steer, o->tos, PORT_HOLD_NS);
	if (err)
		return daemon_fail(d, err, "ports");
	ports_reserve(d->ports, o->emergency_ports);
	log_capacity(d);
	relay.ports = d->ports;
	d->legs = d->workers * contexts;
	err = bridge_create(&d->relay, &relay);
	loop_before_wait(d->loop, wake_workers, d);
	err = err ? daemon_fail(d, err, "relay") : daemon_keying_create(d);
	return err ? err : daemon_audio_create(d);
}

int daemon_workers_start(struct daemon *d)
{
	/* Rules of a killed instance would send packets to a queue without reader. */
	d->o.steering->teardown(&d->steer);
	int err = d->o.steering->setup(&d->steer, d->err, sizeof(d->err));

	if (err)
		return daemon_fail(d, err, d->o.steering->name);
	d->rules = true;
	for (uint32_t i = 0; i < d->workers; i++) {
		err = worker_start(d->worker[i]);
		if (err)
			return daemon_fail(d, err,
				err == -EPERM && d->o.worker_priority
					? "worker-priority (CAP_SYS_NICE or a limit RTPRIO is needed)"
					: "worker thread");
	}
	return 0;
}
