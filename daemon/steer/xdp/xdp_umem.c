/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AF_XDP sockets on the arena. Every slot is in one place at a time (enum slot_state): free, in the
 * kernel for receiving, at the worker, lent to another worker, or in the kernel for sending. It is
 * reused only after its return. The UMEM has unaligned chunks: one begins in every slot, and sent
 * frames may begin anywhere. In zero-copy mode each chunk must be physically contiguous. So slots
 * across a huge page border stay unused, and an arena without huge pages uses copy mode. */
#include "steer/xdp/xdp_umem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/log.h"
#include "packet/arena.h"
#include "steer/sockets.h"

#define PAGE      4096u
#define HUGE_PAGE (2u << 20)
/* Packets sent by one kick in copy mode (TX_BATCH_SIZE in the kernel's xsk.c), unless a newer
 * kernel lets us set more. */
#define KICK_MIN 32u
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#define SEND_BUFFER (8 << 20)

/* --- Slots ------------------------------------------------------------------------------------ */

uint32_t umem_slots(const struct steer_hub *h, uint32_t burst)
{
	uint32_t most = 0;

	for (uint32_t w = 0; w < h->workers; w++) {
		uint32_t n = 0;

		for (uint32_t d = 0; d < h->devs; d++)
			for (uint32_t q = 0; q < h->dev[d].queues; q++)
				n += hub_owner(h, q) == w;
		most = n > most ? n : most;
	}
	/* Slots for: bursts of the ordinary sockets; full receive rings; as many again for one
	 * socket, being processed and sent. */
	return burst + (most + 1) * UMEM_RING + burst;
}

uint32_t umem_take(struct umem *u)
{
	uint32_t slot = u->frees ? u->free[--u->frees] : UINT32_MAX;

	if (slot != UINT32_MAX)
		u->state[slot] = SLOT_USER;
	return slot;
}

void umem_put(struct umem *u, uint32_t slot)
{
	assert(u->state[slot] != SLOT_FREE);
	u->state[slot] = SLOT_FREE;
	u->free[u->frees++] = slot;
}

/* Whether [p, p + len) is on huge pages, so that only their borders matter. Reads page frame
 * numbers, which needs privileges. */
static bool on_huge_pages(const uint8_t *p, size_t len)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uintptr_t at = (uintptr_t)p / PAGE, end = ((uintptr_t)p + len + PAGE - 1) / PAGE;
	uint64_t last = 0, entry;
	bool good = fd >= 0;

	for (; good && at < end; at++) {
		good = pread(fd, &entry, sizeof(entry), (off_t)(at * sizeof(entry))) ==
			(ssize_t)sizeof(entry);
		entry &= (1ull << 55) - 1;
		good = good && entry &&
			(at % (HUGE_PAGE / PAGE) == 0 || !last || entry == last + 1);
		last = entry;
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static bool crosses(const uint8_t *p, size_t len)
{
	return (uintptr_t)p / HUGE_PAGE != ((uintptr_t)p + len - 1) / HUGE_PAGE;
}

static void slots_free(struct umem *u)
{
	memset(u->state, SLOT_USER, u->a->slots);
	/* Last one first: it is a stack. */
	for (uint32_t slot = u->a->slots; slot > u->first; slot--) {
		size_t at = (size_t)(slot - 1) * ARENA_SLOT_LEN;

		if (!u->zerocopy ||
			(!crosses(u->a->in + at, ARENA_SLOT_LEN) &&
				!crosses(u->a->out + at, ARENA_SLOT_LEN)))
			umem_put(u, slot - 1);
	}
}

/* --- Set-up ----------------------------------------------------------------------------------- */

static size_t umem_len(const struct arena *a)
{
	size_t len = (size_t)(a->out - a->in) + (size_t)a->slots * ARENA_SLOT_LEN;

	return (len + PAGE - 1) / PAGE * PAGE;
}

static void options(struct umem_sock *k)
{
	int len = SEND_BUFFER, budget = UMEM_RING;

	/* Copied packets count against the send buffer until the card has sent them. Failures of
	 * all these are ignored. */
	if (setsockopt(k->fd, SOL_SOCKET, SO_SNDBUFFORCE, &len, sizeof(len)))
		(void)setsockopt(k->fd, SOL_SOCKET, SO_SNDBUF, &len, sizeof(len));
	(void)setsockopt(k->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
}

static bool is_zerocopy(const struct umem_sock *k)
{
	struct xdp_options o = {0};
	socklen_t len = sizeof(o);

	return getsockopt(k->fd, SOL_XDP, XDP_OPTIONS, &o, &len) == 0 &&
		(o.flags & XDP_OPTIONS_ZEROCOPY);
}

static int sock_open(
	struct umem_dev *d, const struct hub_dev *hd, struct umem_sock *k, uint16_t mode)
{
	struct xsk_socket_config cfg = {.rx_size = UMEM_RING,
		.tx_size = UMEM_RING,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_USE_NEED_WAKEUP | mode};
	int res = xsk_socket__create_shared(
		&k->xsk, hd->name, k->queue, d->umem, &k->rx, &k->tx, &k->fill, &k->comp, &cfg);

	if (res) {
		k->xsk = NULL;
		return res;
	}
	k->fd = xsk_socket__fd(k->xsk);
	k->can_send = k->queue < hd->tx_queues;
	k->zerocopy = is_zerocopy(k);
	options(k);
	return 0;
}

static void socks_close(struct umem_dev *d)
{
	for (uint32_t i = d->socks; i > 0; i--) {
		struct umem_sock *k = &d->sock[i - 1];

		if (k->xsk)
			xsk_socket__delete(k->xsk);
		k->xsk = NULL;
	}
	if (d->umem)
		(void)xsk_umem__delete(d->umem);
	d->umem = NULL;
}

/* Opens all sockets of the interface in this mode (XDP_COPY, XDP_ZEROCOPY, 0 = any), or none.
 * *failed: the queue. */
static int socks_open(struct umem_dev *d, const struct hub_dev *hd, const struct arena *a,
	uint16_t mode, uint32_t *failed)
{
	struct xsk_umem_config cfg = {.fill_size = UMEM_RING,
		.comp_size = UMEM_RING,
		.frame_size = UMEM_CHUNK_LEN,
		.flags = XDP_UMEM_UNALIGNED_CHUNK_FLAG};
	int res = xsk_umem__create(
		&d->umem, a->in, umem_len(a), &d->sock[0].fill, &d->sock[0].comp, &cfg);

	if (res)
		d->umem = NULL;
	*failed = d->sock[0].queue;
	for (uint32_t i = 0; i < d->socks && !res; i++) {
		res = sock_open(d, hd, &d->sock[i], mode);
		*failed = d->sock[i].queue;
	}
	d->zerocopy = !res && d->sock[0].zerocopy;
	if (!res && d->zerocopy && mode != XDP_ZEROCOPY && !on_huge_pages(a->in, umem_len(a))) {
		log_warn("xdp: packet memory is not on huge pages, so no zero-copy mode "
			 "(/sys/kernel/mm/transparent_hugepage/enabled: madvise)");
		res = -ENOMEM;
	}
	if (res)
		socks_close(d);
	return res;
}

static const char *reason(const struct steer_hub *h, int res)
{
	if (res == -EBUSY)
		return " (another program has it, perhaps another xcipherd)";
	if (res == -EAFNOSUPPORT)
		return " (the kernel has no AF_XDP)";
	if (res == -EPERM || res == -ENOBUFS)
		return " (CAP_NET_RAW and CAP_IPC_LOCK are needed)";
	return h->mode == STEER_XDP_ZEROCOPY ? " (try --xdp-mode=auto)" : "";
}

static struct umem_dev *dev_alloc(const struct steer_hub *h, uint32_t dev, uint32_t worker)
{
	const struct hub_dev *hd = &h->dev[dev];
	size_t len = sizeof(struct umem_dev) + hd->queues * sizeof(struct umem_sock);
	struct umem_dev *d = lines_alloc(1, len);

	if (!d)
		return NULL;
	d->dev = dev;
	d->life = atomic_load_explicit(&hd->life, memory_order_relaxed);
	d->ifindex = hd->ifindex;
	d->xsks = hd->xsks;
	for (uint32_t q = 0; q < hd->queues; q++)
		if (hub_owner(h, q) == worker)
			d->sock[d->socks++] = (struct umem_sock){.fd = -1, .dev = dev, .queue = q};
	return d;
}

int umem_dev_open(
	struct umem_dev **out, const struct umem_place *p, uint32_t dev, char *err, size_t err_len)
{
	const struct steer_hub *h = p->h;
	const struct hub_dev *hd = &h->dev[dev];
	struct umem_dev *d = dev_alloc(h, dev, p->worker);
	uint32_t failed = 0;
	int res = d ? -EOPNOTSUPP : -ENOMEM;

	*out = NULL;
	if (d && d->socks == 0) {
		umem_dev_close(d);
		return 0;
	}
	if (d && h->mode == STEER_XDP_ZEROCOPY)
		res = socks_open(d, hd, p->a, XDP_ZEROCOPY, &failed);
	else if (d && h->mode == STEER_XDP_AUTO && p->may_zerocopy)
		res = socks_open(d, hd, p->a, 0, &failed);
	if (d && res && h->mode != STEER_XDP_ZEROCOPY)
		res = socks_open(d, hd, p->a, XDP_COPY, &failed);
	if (res) {
		snprintf(err, err_len,
			"xdp steering: AF_XDP socket on %s, queue %u: %s%s; use --steering=nfqueue or udp",
			hd->name, failed, strerror(-res), reason(h, res));
		umem_dev_close(d);
		return res;
	}
	for (uint32_t i = 0; i < d->socks; i++)
		log_info("xdp: %s, queue %u: worker %u, %s", hd->name, d->sock[i].queue, p->worker,
			d->zerocopy ? "zero-copy" : "the kernel copies");
	*out = d;
	return 0;
}

void umem_dev_close(struct umem_dev *d)
{
	if (d)
		socks_close(d);
	free(d);
}

/* Directs packets to the sockets, if a program is attached. */
static int dev_begin(struct umem_dev *d)
{
	int res = 0;

	for (uint32_t i = 0; i < d->socks && !res; i++)
		res = xsk_socket__update_xskmap(d->sock[i].xsk, d->xsks);
	return res;
}

static void collect(struct umem *u)
{
	u->socks = 0;
	for (uint32_t d = 0; d < HUB_DEVS_MAX; d++)
		for (uint32_t i = 0; u->dev[d] && i < u->dev[d]->socks; i++)
			u->sock[u->socks++] = &u->dev[d]->sock[i];
}

static int socks_create(struct umem *u, const struct umem_place *p, char *err, size_t err_len)
{
	for (uint32_t i = 0; i < p->h->devs; i++) {
		int res = umem_dev_open(&u->dev[i], p, i, err, err_len);

		if (res)
			return res;
		u->zerocopy = u->zerocopy || (u->dev[i] && u->dev[i]->zerocopy);
	}
	collect(u);
	return 0;
}

static int socks_begin(struct umem *u, char *err, size_t err_len)
{
	int res = 0;

	for (uint32_t i = 0; i < HUB_DEVS_MAX && !res; i++)
		res = u->dev[i] ? dev_begin(u->dev[i]) : 0;
	if (res)
		snprintf(err, err_len, "xdp steering: map of sockets: %s", strerror(-res));
	return res;
}

int umem_create(struct umem **out, const struct umem_place *p, uint32_t first,
	struct steer_counters *counters, char *err, size_t err_len)
{
	const struct arena *a = p->a;
	struct umem *u = lines_alloc(1, sizeof(*u));
	int res = -ENOMEM;

	if (!u)
		goto fail;
	u->a = a;
	u->out = (uint64_t)(a->out - a->in);
	u->first = min_u32(first, a->slots);
	u->counters = counters;
	u->sock = calloc((size_t)HUB_DEVS_MAX * XDP_ABI_QUEUES, sizeof(struct umem_sock *));
	u->free = lines_alloc(a->slots, sizeof(*u->free));
	u->state = lines_alloc(a->slots, sizeof(*u->state));
	if (!u->sock || !u->free || !u->state)
		goto fail;
	res = socks_create(u, p, err, err_len);
	if (!res) {
		slots_free(u);
		umem_turn(u);
		res = socks_begin(u, err, err_len);
	}
	if (res) {
		umem_destroy(u);
		return res;
	}
	*out = u;
	return 0;
fail:
	snprintf(err, err_len, "xdp steering, worker %u: out of memory", p->worker);
	umem_destroy(u);
	return res;
}

void umem_destroy(struct umem *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; i < HUB_DEVS_MAX; i++)
		umem_dev_close(u->dev[i]);
	free(u->sock);
	free(u->free);
	free(u->state);
	free(u);
}

/* --- Receive ---------------------------------------------------------------------------------- */

static void completions(struct umem *u, struct umem_sock *k)
{
	uint32_t at, n;

	if (k->sending == 0)
		return;
	n = xsk_ring_cons__peek(&k->comp, k->sending, &at);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t addr = *xsk_ring_cons__comp_addr(&k->comp, at + i);

		umem_put(u, (uint32_t)((xsk_umem__extract_addr(addr) - u->out) / ARENA_SLOT_LEN));
	}
	xsk_ring_cons__release(&k->comp, n);
	k->sending -= n;
}

static void fill(struct umem *u, struct umem_sock *k)
{
	uint32_t want = min_u32(UMEM_RING - k->filled, u->frees), at;

	if (want == 0 || xsk_ring_prod__reserve(&k->fill, want, &at) != want)
		return;
	for (uint32_t i = 0; i < want; i++) {
		uint32_t slot = u->free[--u->frees];

		u->state[slot] = SLOT_AT(SLOT_FILL, k->dev);
		*xsk_ring_prod__fill_addr(&k->fill, at + i) =
			(uint64_t)slot * ARENA_SLOT_LEN + UMEM_CHUNK_OFF;
	}
	xsk_ring_prod__submit(&k->fill, want);
	k->filled += want;
	if (xsk_ring_prod__needs_wakeup(&k->fill))
		(void)recvfrom(k->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

void umem_turn(struct umem *u)
{
	for (uint32_t i = 0; i < u->socks; i++)
		completions(u, u->sock[i]);
	for (uint32_t i = 0; i < u->socks; i++)
		fill(u, u->sock[i]);
}

/* The kernel unbinds sockets, and waits until the interface has released them, before it announces
 * the removal. */
struct umem_dev *umem_replace(struct umem *u, struct umem_dev *fresh)
{
	struct umem_dev *old = u->dev[fresh->dev];
	uint8_t fill_ring = SLOT_AT(SLOT_FILL, fresh->dev), tx_ring = SLOT_AT(SLOT_TX, fresh->dev);
	int res;

	for (uint32_t slot = u->first; slot < u->a->slots; slot++)
		if (u->state[slot] == fill_ring || u->state[slot] == tx_ring)
			umem_put(u, slot);
	u->dev[fresh->dev] = fresh;
	collect(u);
	umem_turn(u);
	/* Slots first: a socket without slots would lose packets. */
	res = dev_begin(fresh);
	if (res)
		log_err("xdp: map of sockets: %s: falling back to ordinary sockets",
			strerror(-res));
	return old;
}

uint32_t umem_recv(struct umem *u, struct umem_sock *k, struct umem_frame *f, uint32_t max)
{
	uint32_t at, n = xsk_ring_cons__peek(&k->rx, max, &at);

	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&k->rx, at + i);

		f[i].slot = (uint32_t)(xsk_umem__extract_addr(d->addr) / ARENA_SLOT_LEN);
		f[i].off = (uint32_t)xsk_umem__add_offset_to_addr(d->addr);
		f[i].len = d->len;
		u->state[f[i].slot] = SLOT_USER;
	}
	if (n) {
		xsk_ring_cons__release(&k->rx, n);
		k->filled -= n;
	}
	return n;
}

/* --- Send ------------------------------------------------------------------------------------- */

bool umem_send(struct umem *u, struct umem_sock *k, uint32_t slot, uint32_t off, uint32_t len)
{
	uint32_t at;

	/* The completion ring must have room for all slots that the kernel has. */
	if (k->sending == UMEM_RING || xsk_ring_prod__reserve(&k->tx, 1, &at) != 1)
		return false;
	*xsk_ring_prod__tx_desc(&k->tx, at) = (struct xdp_desc){.addr = u->out + off, .len = len};
	u->state[slot] = SLOT_AT(SLOT_TX, k->dev);
	k->sending++;
	k->unsent++;
	return true;
}

static uint32_t kernel_took(const struct umem_sock *k)
{
	return __atomic_load_n(k->tx.consumer, __ATOMIC_ACQUIRE);
}

/* In copy mode, a kick sends some of the ring; in zero-copy mode the driver shows whether it needs
 * one. The rest (interface down, device queue full) goes with the next kick. Polling the descriptor
 * is a kick, too. */
static void kick(struct umem *u, struct umem_sock *k)
{
	uint32_t tries = k->unsent / KICK_MIN + 2;

	xsk_ring_prod__submit(&k->tx, k->unsent);
	k->unsent = 0;
	while (tries-- && xsk_ring_prod__needs_wakeup(&k->tx)) {
		uint32_t before = kernel_took(k);
		ssize_t res = sendto(k->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);

		steer_count(&u->counters->send_calls, 1);
		if (k->zerocopy || kernel_took(k) == k->tx.cached_prod ||
			(res < 0 && kernel_took(k) == before))
			break;
	}
}

void umem_kick(struct umem *u)
{
	for (uint32_t i = 0; i < u->socks; i++)
		if (u->sock[i]->unsent)
			kick(u, u->sock[i]);
}

void umem_count(struct umem *u)
{
	for (uint32_t i = 0; i < u->socks; i++) {
		struct umem_sock *k = u->sock[i];
		struct xdp_statistics s = {0};
		socklen_t len = sizeof(s);

		if (getsockopt(k->fd, SOL_XDP, XDP_STATISTICS, &s, &len))
			continue;
		steer_count(&u->counters->overruns, s.rx_dropped + s.rx_ring_full - k->drops);
		steer_count(&u->counters->send_errors, s.tx_invalid_descs - k->bad);
		k->drops = s.rx_dropped + s.rx_ring_full;
		k->bad = s.tx_invalid_descs;
	}
}
