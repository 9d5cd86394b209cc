/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers and descriptors of nf_xcipher's packet ring (steer/kernel/kring.h). Packet numbers count
 * modulo 2^32. One bell per burst sends the results, frees the slots of earlier bursts, and arms
 * the kernel's alarm for the next burst, so that the worker sleeps without another call. */
#include "steer/kernel/kring.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/endpoint.h"

void kring_init(struct kring *r, void *control, uint32_t slots, uint32_t sends,
	const struct arena *a, uint32_t first)
{
	uint8_t *at = control;

	*r = (struct kring){
		.control = control,
		.recv = (const void *)(at + nfx_ring_recv_off()),
		.send = (void *)(at + nfx_ring_send_off(slots)),
		.slots = slots,
		.sends = sends,
		.first = first,
		.to_out = (uint32_t)(a->out - a->in),
		.wake_packets = 1,
	};
}

/* --- Receive ---------------------------------------------------------------------------------- */

static uint32_t load(const uint32_t *at, memory_order order)
{
	return atomic_load_explicit((const _Atomic uint32_t *)at, order);
}

uint32_t kring_waiting(const struct kring *r)
{
	uint32_t n = load(&r->control->published, memory_order_acquire) - r->taken;

	return n <= r->slots ? n : 0;
}

uint32_t kring_take(struct kring *r, uint32_t max, uint32_t *number)
{
	uint32_t n = kring_waiting(r);

	n = n < max ? n : max;
	*number = r->taken;
	r->taken += n;
	return n;
}

enum nfx_ring_state kring_state(const struct kring *r)
{
	return load(&r->control->state, memory_order_acquire);
}

bool kring_lives(const struct kring *r)
{
	return !r->ended && kring_state(r) == NFX_RING_OPEN;
}

static uint32_t slot_of(const struct kring *r, uint32_t number)
{
	return number & (r->slots - 1);
}

void kring_packet(const struct kring *r, uint32_t number, struct packet_in *out)
{
	const struct nfx_recv *d = &r->recv[slot_of(r, number)];
	uint32_t slot = r->first + slot_of(r, number), len = load(&d->len, memory_order_relaxed);

	memcpy(out->src.addr, d->from, sizeof(out->src.addr));
	out->src.port = ntohs(d->from_port);
	out->src.family = d->family;
	out->src.pad = 0;
	out->slot = slot;
	out->in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	/* The kernel writes no longer packets, so longer ones must not be read. */
	out->len = len <= ARENA_MAX_PACKET ? len : 0;
	out->token = 0;
	out->t_ns = d->t_ns;
	out->dev = d->ifindex;
	out->verdict = 0;
}

void kring_local(const struct kring *r, uint32_t number, struct endpoint *out)
{
	const struct nfx_recv *d = &r->recv[slot_of(r, number)];

	memcpy(out->addr, d->addr, sizeof(out->addr));
	out->port = ntohs(d->port);
	out->family = d->family;
	out->pad = 0;
}

/* --- Send ------------------------------------------------------------------------------------- */

void kring_put(
	struct kring *r, uint32_t i, const struct endpoint *src, const struct packet_out *out)
{
	struct nfx_send *d = &r->send[i];

	d->off = r->to_out + out->out_off;
	d->len = out->len;
	d->family = src->family;
	d->tos = out->tos;
	d->port = htons(src->port);
	d->to_port = htons(out->dst.port);
	d->result = KRING_UNSENT;
	memcpy(d->addr, src->addr, sizeof(d->addr));
	memcpy(d->to, out->dst.addr, sizeof(d->to));
}

/* flags: enum nfx_bell_flag. */
static int bell(struct kring *r, uint32_t n, uint32_t flags)
{
	int err;

	if (r->ended)
		return -ENOENT;
	r->control->bell = (struct nfx_bell){
		.flags = flags,
		.sends = n,
		.released = r->released,
		.taken = r->taken,
		.wake_packets = r->wake_packets,
		.window_ns = r->window_ns,
	};
	err = r->ring(r->arg);
	if (err) {
		r->ended = true;
		r->error = err;
		return err;
	}
	r->told = r->released;
	if (flags & NFX_BELL_ARM)
		r->armed_at = r->taken;
	return 0;
}

int kring_bell(struct kring *r, uint32_t n)
{
	return bell(r, n, r->sleeps ? NFX_BELL_ARM : 0);
}

int kring_wait(struct kring *r, uint32_t n, uint32_t wake_packets, uint32_t window_ns, bool *polled)
{
	int err;

	r->sleeps = false; /* other bells need not arm */
	r->wake_packets = wake_packets;
	r->window_ns = window_ns;
	err = bell(r, n, NFX_BELL_ARM | NFX_BELL_WAIT);
	*polled = !err && load(&r->control->woken, memory_order_relaxed) & NFX_WOKEN_POLL;
	return err;
}

/* --- Between bursts --------------------------------------------------------------------------- */

void kring_release(struct kring *r, uint32_t n)
{
	r->released += n;
	if (r->released - r->told > r->slots / 4)
		(void)bell(r, 0, 0);
}

static bool armed(const struct kring *r)
{
	return load(&r->control->armed, memory_order_acquire) && r->armed_at == r->taken;
}

enum kring_rest kring_rest(struct kring *r, uint32_t wake_packets, uint32_t window_ns)
{
	r->sleeps = true;
	r->wake_packets = wake_packets;
	r->window_ns = window_ns;
	r->ended = !kring_lives(r);
	if (kring_waiting(r) >= wake_packets)
		return KRING_READY;
	if (!r->ended && (armed(r) || (bell(r, 0, NFX_BELL_ARM) == 0 && armed(r))))
		return KRING_ARMED;
	return r->ended && !kring_waiting(r) ? KRING_ENDED : KRING_READY;
}
