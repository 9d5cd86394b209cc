/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the workers' and the kernel's counters of streams and keys. Stops no worker. */
#include "bridge/bridge_int.h"

#include "base/clock.h"

static uint64_t load(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

void bridge_op_stats(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out)
{
	struct bridge *r = arg;
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
	for (size_t i = 0; i < PACKET_VERDICTS; i++)
		out->drops[i] = load(&c->drops[i]);
	for (size_t i = 0; i < MEDIA_OTHERS_N; i++)
		out->others[i] = load(&c->others[i]);
	out->ssrc = atomic_load_explicit(&c->ssrc, memory_order_relaxed);
	out->roc = (uint32_t)(load(&c->index) >> 16);
	out->confirmed = atomic_load_explicit(&c->confirmed, memory_order_relaxed) != 0;
	out->handovers = media_stream_handover(m, stream).count;
	media_stream_remote(m, stream, &out->remote);
	media_stream_quality(m, stream, &out->quality);
	offload_stats(r->offload, worker, stream, clock_mono_ns(), out);
}

uint64_t bridge_op_heard(void *arg, uint32_t worker, uint32_t stream)
{
	const struct bridge *r = arg;
	const struct media_stream_counters *c =
		media_stream_counters(r->site[worker].w->media, stream);
	uint64_t ours = c ? load(&c->last_packet_ns) : 0;
	uint64_t kernels = offload_heard(r->offload, worker, stream);

	return kernels > ours ? kernels : ours;
}

struct media_handover bridge_op_handover(void *arg, uint32_t worker, uint32_t stream)
{
	const struct bridge *r = arg;

	return media_stream_handover(r->site[worker].w->media, stream);
}

uint64_t bridge_op_arrived(void *arg, uint32_t worker, uint32_t stream, bool *kernel)
{
	const struct bridge *r = arg;
	const struct media_stream_counters *c =
		media_stream_counters(r->site[worker].w->media, stream);
	uint64_t kernels = offload_arrived(r->offload, worker, stream, kernel);

	for (size_t i = 0; c && i < MEDIA_OTHERS_N; i++)
		kernels += load(&c->others[i]);
	return (c ? load(&c->packets) + load(&c->drops[PACKET_DROP_AGAIN]) : 0) + kernels;
}

void bridge_op_key_usage(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out)
{
	const struct bridge *r = arg;

	media_key_usage(r->site[worker].w->media, slot, out);
}

void bridge_look(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out)
{
	const struct bridge *r = arg;
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
