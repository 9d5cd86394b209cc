/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel steering: packets. They come and go by the module's packet ring. Those that wait in the
 * queue or in sockets, from before the ring was opened or while the module was not loaded, are
 * older and go first. A burst comes from one of them. While there is a ring, it sends the results
 * of all bursts. */
#include "steer/kernel/kernel_int.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "steer/nfqueue/nfqueue.h"
#include "steer/sockets.h"

/* Bursts of the ring between two looks at queue and sockets, for a worker that never sleeps. */
#define QUEUE_EVERY 32u
#define STATS_EVERY 64u /* bursts between two looks at the ring's counters */
/* The loopback interface, with this index in every namespace. Packets of the host itself need no
 * source check. */
#define LOOPBACK 1u
#define OF_QUEUE 0u /* in steer.burst[] */

static struct kring *ring_of(const struct steer *s)
{
	return s->ring && s->ring->open ? &s->ring->ring : NULL;
}

static uint32_t oldest_burst(const struct steer *s)
{
	return s->waiting ? s->burst[s->oldest] : OF_QUEUE;
}

/* --- Receive ---------------------------------------------------------------------------------- */

/* Among equal local addresses, the one that has the port; else port 0, which no stream has. */
static struct local_port find_local(const struct steer *s, const struct endpoint *e)
{
	struct local_port first = {0};

	for (uint32_t i = s->cfg.locals; i-- > 0;) {
		if (!endpoint_addr_eq(&s->cfg.local[i], e))
			continue;
		first = (struct local_port){.port = e->port, .addr = (uint8_t)i};
		if (kernel_has(s, first))
			break;
	}
	return first;
}

static uint32_t ring_recv(struct steer *s, struct kring *r, struct packet_in *in, uint32_t max)
{
	uint32_t number, n = kring_take(r, max, &number);
	struct endpoint local;

	for (uint32_t i = 0; i < n; i++) {
		kring_packet(r, number + i, &in[i]);
		kring_local(r, number + i, &local);
		in[i].local = find_local(s, &local);
		if (in[i].dev == LOOPBACK)
			in[i].dev = 0;
	}
	if (n) {
		steer_count(&s->counters->recv_packets, n);
		steer_count(&s->counters->ring, n);
	}
	return n;
}

/* Adds what the kernel counted since the last time. */
static void ring_stats(struct steer *s, const struct kring *r)
{
	const __u64 *now = r->control->stats;
	uint64_t full = now[NFX_R_FULL] + now[NFX_R_FULL_EMERGENCY], is_long = now[NFX_R_TOO_LONG];

	steer_count(&s->counters->overruns, full - s->ring_full);
	steer_count(&s->counters->ring_long, is_long - s->ring_long);
	s->ring_full = full;
	s->ring_long = is_long;
}

/* A doorbell of a closed ring fails with ENOENT, perhaps before its state says so. */
static const char *end_text(const struct kring *r)
{
	return r->error && r->error != -ENOENT ? strerror(-r->error) : "it was closed";
}

/* If the module is unloaded, another log line reports it. */
static void ring_end(struct steer *s, const struct kring *r)
{
	bool goes = kring_state(r) == NFX_RING_GONE;
	int res = kring_close(s->ring, s->knl);

	ring_stats(s, r);
	/* While it is open, packets may come into it. */
	if (res)
		return;
	s->older = false;
	if (!goes)
		log_warn(
			"kernel steering, worker %u: the packet ring ended (%s), so packets use netlink queue %u, at higher cost, until xcipherd is restarted or nf_xcipher is loaded again",
			s->worker, end_text(r), s->cfg.queue_num + s->worker);
}

void kernel_ring_opened(struct steer *s)
{
	s->ring_full = s->ring_long = 0;
	s->older = true;
}

/* Sets drained. *of: the burst's origin, as in steer.burst[]. */
static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max, uint32_t *of)
{
	struct kring *r = ring_of(s);
	uint32_t n = 0;

	*of = OF_QUEUE;
	if (r && (s->older || (++s->since_queue % QUEUE_EVERY == 0 && kring_lives(r)))) {
		n = steer_nfqueue.recv(s->queue, a, first_slot, in, max);
		s->drained = false;
		if (n)
			return n;
		s->older = false;
	}
	n = r ? ring_recv(s, r, in, max) : 0;
	*of = n;
	if (n == 0)
		n = steer_nfqueue.recv(s->queue, a, first_slot, in, max);
	s->drained = n < max;
	if (r && r->ended && !kring_waiting(r))
		ring_end(s, r);
	return n;
}

uint32_t kernel_recv(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	uint32_t n, of;

	if (s->waiting == s->bursts)
		return 0;
	kernel_chores(s);
	if (s->pendings)
		kernel_pending_look(s);
	n = receive(s, a, first_slot, in, min_u32(max, s->sends), &of);
	if (n) {
		s->burst[(s->oldest + s->waiting++) % s->bursts] = of;
		s->ring_bursts += of != OF_QUEUE;
	} else if (s->pendings && !s->waiting) {
		/* No media, so verdict() will not be called. */
		kernel_pending_relay(s);
	}
	return n;
}

void kernel_verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	uint32_t of = oldest_burst(s);
	struct kring *r = ring_of(s);

	if (of == OF_QUEUE)
		steer_nfqueue.verdict(s->queue, in, n);
	else if (r)
		kring_release(r, of);
	s->ring_bursts -= of != OF_QUEUE;
	s->oldest = (s->oldest + 1) % s->bursts;
	s->waiting--;
	if (r && s->since_queue % STATS_EVERY == 0)
		ring_stats(s, r);
	if (s->pendings && s->drained && !s->waiting)
		kernel_pending_relay(s);
}

/* The number of packets that ends the wait before the window does. */
static uint32_t many(const struct steer *s, uint64_t wait_ns)
{
	return wait_ns && s->sends > 1 ? s->sends / 2 : 1;
}

static uint32_t window(uint64_t wait_ns)
{
	return (uint32_t)(wait_ns < NFX_RING_MAX_WINDOW_NS ? wait_ns : NFX_RING_MAX_WINDOW_NS);
}

enum steer_gather kernel_gather(struct steer *s, uint64_t wait_ns)
{
	struct kring *r = ring_of(s);

	if (!r)
		return STEER_GATHER_NOT;
	/* A ring without doorbell, which is about to end, wakes nobody. */
	if (s->older || r->ended)
		return STEER_GATHER_NOW;
	switch (kring_rest(r, many(s, wait_ns), window(wait_ns))) {
	case KRING_ARMED:
		return STEER_GATHER_WAIT;
	case KRING_READY:
		return STEER_GATHER_NOW;
	case KRING_ENDED:
		break;
	}
	return STEER_GATHER_NOT;
}

/* --- Send ------------------------------------------------------------------------------------- */

/* Sends s->rest[0 .. n) by raw sockets. Not as verdicts: the packets that they are results of are
 * not in the queue. */
static void send_rest(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		s->rest_out[i] = out[s->rest[i]];
		s->rest_out[i].in = UINT32_MAX;
	}
	steer_nfqueue.send(s->queue, a, s->rest_out, n);
	for (uint32_t i = 0; i < n; i++)
		out[s->rest[i]].failed = s->rest_out[i].failed;
}

/* Whether a socket may succeed where the ring did not: the module refused the port as a target, or
 * the ring ended before. */
static bool worth_another_try(uint16_t result)
{
	return result == EINVAL || result == EACCES || result == KRING_UNSENT;
}

/* The kernel has got n descriptors, of the packets in s->sent[]. Adds those that it did not send
 * to s->rest[]; returns the new number there. */
static uint32_t results(
	struct steer *s, const struct kring *r, struct packet_out *out, uint32_t n, uint32_t rest)
{
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint16_t result = r->send[i].result;

		out[s->sent[i]].failed = result != 0;
		good += result == 0;
		if (worth_another_try(result))
			s->rest[rest++] = s->sent[i];
		else if (result)
			steer_count(&s->counters->send_errors, 1);
	}
	steer_count(&s->counters->send_calls, 1);
	steer_count(&s->counters->send_packets, good);
	return rest;
}

/* Writes descriptors of at most s->sends packets. Returns their number. *rest: packets in
 * s->rest[], which the ring cannot send. */
static uint32_t put(
	struct steer *s, struct kring *r, const struct packet_out *out, uint32_t n, uint32_t *rest)
{
	uint32_t puts = 0;

	*rest = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct packet_out *o = &out[i];
		struct endpoint src;

		/* The ring sends no empty packets. */
		if (o->len == 0 || o->local.addr >= s->cfg.locals ||
			s->cfg.local[o->local.addr].family != o->dst.family) {
			s->rest[(*rest)++] = i;
			continue;
		}
		src = kernel_endpoint(s, o->local);
		kring_put(r, puts, &src, o);
		s->sent[puts++] = i;
	}
	return puts;
}

/* At most s->sends packets. */
static void ring_send(
	struct steer *s, struct kring *r, const struct arena *a, struct packet_out *out, uint32_t n)
{
	uint32_t rest, puts = put(s, r, out, n, &rest);

	if (puts) {
		(void)kring_bell(r, puts);
		rest = results(s, r, out, puts, rest);
	}
	if (rest)
		send_rest(s, a, out, rest);
}

bool kernel_send_and_wait(struct steer *s, const struct arena *a, struct packet_out *out,
	uint32_t n, struct steer_wait *w)
{
	struct kring *r = ring_of(s);
	uint32_t rest, puts;

	/* Older packets of queue and sockets are received first. A stream that the kernel shall
	 * relay waits for the verdicts of this burst. */
	if (!r || !r->waits || !kring_lives(r) || s->older || s->pendings || n > s->sends)
		return false;
	puts = put(s, r, out, n, &rest);
	if (rest) /* must not wait for the next packet */
		return false;
	if (kring_wait(r, puts, many(s, w->wait_ns), window(w->wait_ns), &w->polled) == 0) {
		w->sent_real_ns = r->control->sent_real_ns;
		w->sent_ns = r->control->sent_ns;
	} else {
		w->sent_real_ns = clock_real_ns();
		w->sent_ns = clock_mono_ns();
	}
	if (puts)
		rest = results(s, r, out, puts, 0);
	if (rest)
		send_rest(s, a, out, rest);
	return true;
}

void kernel_send(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	struct kring *r = ring_of(s);

	if (!r && oldest_burst(s) == OF_QUEUE) {
		steer_nfqueue.send(s->queue, a, out, n);
		return;
	}
	for (uint32_t base = 0; base < n; base += s->sends) {
		uint32_t part = min_u32(n - base, s->sends);

		if (r && !r->ended) {
			ring_send(s, r, a, out + base, part);
			continue;
		}
		for (uint32_t i = 0; i < part; i++)
			s->rest[i] = i;
		send_rest(s, a, out + base, part);
	}
}
