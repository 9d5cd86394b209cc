/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and ends the codec threads: their channels with all workers, the threads, and their
 * connection with calls. */
#include "app/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "batch/engine.h"
#include "batch/g722_device.h"
#include "call/dtmf_trigger.h"

int daemon_audio_channels_create(struct daemon *d)
{
	struct daemon_audio *a = &d->audio;
	uint32_t threads = d->o.codec_threads, n = threads * d->o.workers;

	if (!n)
		return 0;
	a->by_thread = calloc(n, sizeof(struct audio_channel *));
	a->by_worker = calloc(n, sizeof(struct audio_channel *));
	if (!a->by_thread || !a->by_worker)
		return -ENOMEM;
	for (; a->channels < n; a->channels++) {
		uint32_t t = a->channels / d->o.workers, w = a->channels % d->o.workers;
		struct audio_channel *c = aligned_alloc(64, (sizeof(*c) + 63) / 64 * 64);

		if (!c || audio_channel_init(c)) {
			free(c);
			return -ENOMEM;
		}
		a->by_thread[a->channels] = c;
		a->by_worker[w * threads + t] = c;
	}
	return 0;
}

void daemon_audio_channels_destroy(struct daemon *d)
{
	struct daemon_audio *a = &d->audio;

	for (uint32_t i = 0; i < a->channels; i++) {
		audio_channel_fini(a->by_thread[i]);
		free(a->by_thread[i]);
	}
	free(a->by_thread);
	free(a->by_worker);
	*a = (struct daemon_audio){.event_fd = -1};
}

/* The digit itself is not logged: it may be one of a PIN. A session reports its broken codec
 * once. */
static void on_event(void *arg, uint32_t audio, const struct audio_event *e)
{
	struct daemon *d = arg;
	struct call_digit from;

	if (e->kind == AUDIO_EVENT_DIGIT && calls_digit(d->calls, audio, &from)) {
		log_call(LOG_DEBUG, &(struct log_about){.call_id = from.call_id, .side = from.tag},
			"the terminal sent a digit");
		dtmf_digit(d->calls, from.call, from.side, e->digit, clock_real_ns());
	}
	if (e->kind == AUDIO_EVENT_BROKEN && calls_audio_of(d->calls, audio, &from))
		log_call(LOG_WARNING,
			&(struct log_about){.call_id = from.call_id, .side = from.tag},
			"the process of a codec failed too often: this terminal's audio is not transcoded any more (xcipherctl --json codecs shows faults by plug-in)");
}

static void on_ready(void *arg, uint32_t events)
{
	struct daemon *d = arg;
	uint64_t count;

	(void)events;
	(void)!read(d->audio.event_fd, &count, sizeof(count));
	bridge_audio_poll(d->audio.bridge);
}

static void devices_close(struct daemon *d)
{
	for (uint32_t i = 0; d->audio.g722 && i < d->o.codec_threads; i++)
		g722_device_close(d->audio.g722[i].device);
	free(d->audio.g722);
	d->audio.g722 = NULL;
}

/* A device of its own for each codec thread, if it is faster than this processor. Without it all
 * calls are possible, so its errors are only logged. */
static int devices_open(void *arg)
{
	struct daemon *d = arg;
	const struct engine_config cfg = {
		.device = d->o.device[0].name, .timeout_ms = d->o.opencl_timeout};
	struct g722_device_ops *h;
	bool helps = true;

	/* A library that crashed or hung was only called in a child process. */
	if (!d->engines.devices || d->engines.devices != d->o.devices ||
		!g722_device_may_help(&cfg))
		return 0;
	h = d->audio.g722 = calloc(d->o.codec_threads, sizeof(*h));
	for (uint32_t i = 0; h && helps && i < d->o.codec_threads; i++) {
		struct g722_device *device;
		char err[256] = "";

		helps = g722_device_open(&device, &cfg, G722_DEVICE_MOST, err, sizeof(err)) == 0;
		if (helps) {
			g722_device_measure(device, &h[i]);
			log_info(
				"G.722: %s: smallest batch it is used for (measured; 0: never): encode %u, decode %u",
				g722_device_name(device), h[i].least_encode, h[i].least_decode);
			helps = h[i].least_encode || h[i].least_decode;
		} else {
			log_warn(
				"G.722: coded on the processor, because the OpenCL device failed: %s",
				err);
		}
	}
	if (!helps)
		devices_close(d);
	return 0;
}

int daemon_audio_create(struct daemon *d)
{
	struct daemon_audio *a = &d->audio;
	struct bridge_audio_config cfg = {.codecs = d->codecs,
		.channel = a->by_thread,
		.workers = d->workers,
		.threads = d->o.codec_threads,
		.max = d->legs,
		.keep_not = ~0ull,
		.event = on_event,
		.event_arg = d};
	int err;

	if (!cfg.threads)
		return 0;
	/* Threads of its driver keep the capabilities of their creator. */
	(void)caps_run(caps_here(0), devices_open, d);
	cfg.g722 = a->g722;
	a->event_fd = cfg.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = cfg.event_fd < 0 ? -errno : bridge_audio_create(&a->bridge, &cfg);
	return err ? daemon_fail(d, err, "codec-threads") : 0;
}

int daemon_audio_start(struct daemon *d)
{
	struct daemon_audio *a = &d->audio;
	struct loop_io *io;
	int err;

	if (!a->bridge)
		return 0;
	a->border = (struct audio){
		.ops = &bridge_audio_ops, .arg = a->bridge, .max = bridge_audio_max(a->bridge)};
	d->relay_border.audio = &a->border;
	d->operate.audio = a->bridge;
	err = loop_io_add(d->loop, &io, a->event_fd, EPOLLIN, on_ready, d);
	err = err ? err : calls_set_audio(d->calls, a->border.max);
	err = err ? err : bridge_audio_start(a->bridge);
	return err ? daemon_fail(d, err, "codec-threads") : 0;
}

void daemon_audio_stop(struct daemon *d)
{
	struct daemon_audio *a = &d->audio;

	d->operate.audio = NULL;
	bridge_audio_destroy(a->bridge);
	devices_close(d);
	if (a->bridge && a->event_fd >= 0)
		close(a->event_fd);
	a->bridge = NULL;
}
