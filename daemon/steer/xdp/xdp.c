/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by AF_XDP. Packets are received into the worker's arena and sent from it (xdp_umem.c).
 * Routes come from the kernel's tables (xdp_route.c). The XDP program only redirects plain
 * datagrams to our ports (bpf/xdp_prog.c).
 * The kernel can only redirect a packet to a socket of its receive queue. So queue q of every
 * interface belongs to worker q mod n, which passes packets for other workers' ports to them
 * (xdp_hand.c): one copy, counted, bounded. Network cards that spread flows by port ("ethtool -N")
 * avoid the copies.
 * A worker without a queue of the interface sends by a raw socket, as do packets with an unknown or
 * unsupported route. Packets at the ordinary sockets (fragments, a removed program) are served as
 * in "udp". */
#include "steer/steer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/secmem.h"
#include <linux/types.h>

#include "packet/arena.h"
#include "steer/xdp/bpf/xdp_abi.h"
#include "steer/dgram.h"
#include "steer/raw.h"
#include "steer/sockets.h"
#include "steer/xdp/xdp_back.h"
#include "steer/xdp/xdp_guards.h"
#include "steer/xdp/xdp_route.h"

#define BY_QUEUE 1u /* token of a packet in a UMEM slot */
/* Bursts from the queues between two looks at sockets, kernel announcements and counters. */
#define OTHERS_EVERY 8u
#define NEWS_EVERY   1000000ull
/* How long a port's socket may still receive packets after the queues took over, and the limit
 * while packets keep arriving. */
#define TAKE_OVER_NS     20000000ull
#define TAKE_OVER_MAX_NS (10 * TAKE_OVER_NS)
#define COUNT_EVERY      (100 * 1000000ull)
#define ETHER_MIN        60u /* shorter frames are padded (IEEE 802.3: 64 with the checksum) */
/* offset in the slot of a packet copied from another worker */
#define COPIED_OFF 320u

struct steer {
	struct steer_counters counters;
	struct steer_config cfg;
	uint32_t worker;
	uint16_t port_min, port_max; /* ours */
	struct sockets *sockets;
	struct raw *raw;
	struct routes *routes;
	struct umem *umem;
	uint16_t ip_id;
	uint64_t real_ns, mono_ns; /* the burst's */
	uint64_t counted_ns, news_ns;
	uint64_t taken_over_ns; /* when a port was added last; 0: all sockets are silent since */
	bool full;              /* some tx ring is full */
	uint32_t bursts;
	uint32_t next; /* first socket to serve next time */
	uint32_t burst;
	struct umem_frame *frame; /* [burst], like the arrays below */
	struct packet_out *slow;  /* packets for the raw socket */
	uint32_t *slow_of, *left; /* index of the packet_out; packets that the raw socket did not
				   * send */
	struct umem_sock *way[HUB_DEVS_MAX]; /* by interface: the socket to send on */
	/* The worker's epoll and our sockets, to wait for; NULL: the sockets are in that epoll. */
	struct pollfd *poll;
};

/* --- Set-up ----------------------------------------------------------------------------------- */

static int open_hub(struct steer_config *cfg, char *err, size_t err_len)
{
	return hub_open(&cfg->hub, cfg, err, err_len);
}

static void close_hub(struct steer_config *cfg)
{
	hub_close(cfg->hub);
	cfg->hub = NULL;
}

static int setup(const struct steer_config *cfg, char *err, size_t err_len)
{
	int res = hub_attach(cfg->hub, err, err_len);

	if (!res && back_start(cfg->hub->back))
		log_warn(
			"xdp: cannot start a thread: an interface that is removed and returns will not be used again");
	return res;
}

/* Removes what a killed instance left. */
static void teardown(const struct steer_config *cfg)
{
	if (!cfg->hub)
		return;
	back_stop(cfg->hub->back);
	hub_detach(cfg->hub);
}

static uint32_t slots(const struct steer_config *cfg)
{
	return umem_slots(cfg->hub, steer_first_slots(cfg));
}

static void destroy(struct steer *s)
{
	if (!s)
		return;
	umem_destroy(s->umem);
	routes_destroy(s->routes);
	raw_destroy(s->raw);
	sockets_destroy(s->sockets);
	free(s->frame);
	free(s->slow);
	free(s->slow_of);
	free(s->left);
	free(s->poll);
	free(s);
}

/* The sockets' epoll has all descriptors that wake the worker. */
static int watch(struct steer *s, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = SOCKETS_FOREIGN};

	return epoll_ctl(sockets_epoll(s->sockets), EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void unwatch(struct steer *s, int fd)
{
	(void)epoll_ctl(sockets_epoll(s->sockets), EPOLL_CTL_DEL, fd, NULL);
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = lines_alloc(1, sizeof(*s));
	int res = -ENOMEM;

	if (!s)
		goto fail;
	s->cfg = *cfg;
	s->worker = worker;
	s->burst = cfg->burst_max ? cfg->burst_max : 1;
	steer_worker_ports(cfg, worker, &s->port_min, &s->port_max);
	s->frame = lines_alloc(s->burst, sizeof(*s->frame));
	s->slow = lines_alloc(s->burst, sizeof(*s->slow));
	s->slow_of = lines_alloc(s->burst, sizeof(*s->slow_of));
	s->left = lines_alloc(s->burst, sizeof(*s->left));
	if (!s->frame || !s->slow || !s->slow_of || !s->left)
		goto fail;
	res = secmem_random(&s->ip_id, sizeof(s->ip_id));
	res = res ? res : sockets_create(&s->sockets, cfg, worker, &s->counters);
	res = res ? res : raw_create(&s->raw, cfg, &s->counters);
	res = res ? res : routes_create(&s->routes, cfg);
	res = res ? res : watch(s, routes_fd(s->routes));
	res = res ? res : watch(s, hand_fd(cfg->hub->hand, worker));
	if (res)
		goto fail;
	*out = s;
	return 0;
fail:
	snprintf(err, err_len, "xdp steering, worker %u: %s", worker, strerror(-res));
	destroy(s);
	return res;
}

/* Chooses a socket of this worker to send on, for each interface. */
static void choose_ways(struct steer *s)
{
	memset(s->way, 0, sizeof(s->way));
	for (uint32_t i = 0; i < s->umem->socks; i++) {
		struct umem_sock *k = s->umem->sock[i];

		if (k->can_send && !s->way[k->dev])
			s->way[k->dev] = k;
	}
}

static int memory(struct steer *s, const struct arena *a, char *err, size_t err_len)
{
	const struct umem_place place = {
		.h = s->cfg.hub, .worker = s->worker, .a = a, .may_zerocopy = true};
	int res = umem_create(
		&s->umem, &place, steer_first_slots(&s->cfg), &s->counters, err, err_len);

	if (res)
		return res;
	choose_ways(s);
	for (uint32_t i = 0; i < s->umem->socks && !res; i++)
		res = watch(s, s->umem->sock[i]->fd);
	if (!res && s->umem->socks)
		res = hand_producer(s->cfg.hub->hand, s->worker, a);
	if (res)
		snprintf(err, err_len, "xdp steering, worker %u: %s", s->worker, strerror(-res));
	else if (s->umem->socks)
		back_worker(s->cfg.hub->back, s->worker, a, s->umem->zerocopy);
	return res;
}

static int fd(const struct steer *s)
{
	return sockets_epoll(s->sockets);
}

/* --- Wait ------------------------------------------------------------------------------------- */

static void poll_list(struct steer *s)
{
	for (uint32_t i = 0; i < s->umem->socks; i++)
		s->poll[1 + i] = (struct pollfd){.fd = s->umem->sock[i]->fd, .events = POLLIN};
}

/* An epoll is called back for each packet that a socket receives and for each that it has sent,
 * also while the worker runs or packets gather. So the sockets are watched while it waits only. */
static int wakes(struct steer *s, int epoll)
{
	if (!s->umem)
		return 0;
	s->poll = calloc(1 + (size_t)HUB_DEVS_MAX * XDP_ABI_QUEUES, sizeof(*s->poll));
	if (!s->poll)
		return -ENOMEM;
	s->poll[0] = (struct pollfd){.fd = epoll, .events = POLLIN};
	poll_list(s);
	for (uint32_t i = 0; i < s->umem->socks; i++)
		unwatch(s, s->umem->sock[i]->fd);
	return 0;
}

static enum steer_gather wait_for_packet(struct steer *s, uint64_t wait_ns)
{
	if (wait_ns || !s->poll)
		return STEER_GATHER_NOT;
	s->poll[0].revents = 0;
	(void)poll(s->poll, 1 + s->umem->socks, -1);
	return s->poll[0].revents ? STEER_GATHER_NOT : STEER_GATHER_NOW;
}

/* --- Ports ------------------------------------------------------------------------------------ */

static int port_add(struct steer *s, struct local_port local, int sock)
{
	int res = sockets_add(s->sockets, local, sock);

	/* If the map refuses, the socket serves the port. */
	if (!res) {
		(void)hub_port(s->cfg.hub, local, true);
		s->taken_over_ns = clock_mono_ns();
	}
	return res;
}

static void guard(struct steer *s, struct local_port local, const struct guard *g)
{
	local.addr = s->cfg.hub->first[local.addr];
	(void)xdp_guards_put(s->cfg.hub->guards, s->worker, local, g);
}

static void port_del(struct steer *s, struct local_port local)
{
	guard(s, local, NULL);
	if (sockets_has(s->sockets, local))
		(void)hub_port(s->cfg.hub, local, false);
	sockets_del(s->sockets, local);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return &s->counters;
}

/* --- Receive ---------------------------------------------------------------------------------- */

static bool find_local(const struct steer *s, const struct endpoint *dst, struct local_port *out)
{
	for (uint32_t i = 0; i < s->cfg.locals; i++) {
		if (!endpoint_addr_eq(&s->cfg.local[i], dst))
			continue;
		*out = (struct local_port){.port = dst->port, .addr = (uint8_t)i};
		return true;
	}
	return false;
}

/* Among equal local addresses, returns the one that has the port. */
static void which_of_the_same(const struct steer *s, struct local_port *local)
{
	struct local_port other = *local;

	for (uint32_t i = local->addr; i < s->cfg.locals; i++) {
		other.addr = (uint8_t)i;
		if (s->cfg.hub->first[i] == local->addr && sockets_has(s->sockets, other)) {
			*local = other;
			return;
		}
	}
}

static bool checksums_ok(const struct dgram *d, const uint8_t *ip)
{
	if (d->src.family == AF_INET && !dgram_v4_header_ok(ip))
		return false;
	return dgram_checksum_ok(d, ip) || dgram_checksum_partial(d, ip);
}

/* When the program received the packet; now, if it did not record it. */
static uint64_t stamp_of(const struct steer *s, const uint8_t *frame)
{
	struct xdp_stamp stamp;
	uint64_t age;

	memcpy(&stamp, frame - sizeof(stamp), sizeof(stamp));
	age = s->mono_ns - stamp.mono_ns;
	return stamp.magic == XDP_STAMP_MAGIC && age < 10 * NS_PER_SEC ? s->real_ns - age
								       : s->real_ns;
}

/* The program checked the same headers, but another program may have replaced it. */
static bool take(struct steer *s, const struct arena *a, int ifindex, const struct umem_frame *f,
	struct packet_in *in)
{
	const uint8_t *frame = a->in + f->off, *ip;
	struct dgram d;
	uint32_t len;

	ip = dgram_in_frame(frame, f->len, &len);
	if (!ip || dgram_parse(&d, ip, len, len) || !find_local(s, &d.dst, &in->local))
		return false;
	if (!checksums_ok(&d, ip)) {
		steer_count(&s->counters.checksum_errors, 1);
		return false;
	}
	in->src = d.src;
	in->len = d.len;
	in->in_off = (uint32_t)(ip - a->in) + d.off;
	in->slot = f->slot;
	in->token = BY_QUEUE;
	in->t_ns = stamp_of(s, frame);
	in->dev = routes_in(s->routes, ifindex, frame, in->local.addr);
	if (!in->dev)
		in->dev = PACKET_DEV_NOWHERE;
	return true;
}

/* The owner of the port. Unused ports: this worker, whose media drops and counts them. */
static uint32_t worker_of(const struct steer *s, uint16_t port)
{
	uint16_t min, max;

	if (port >= s->port_min && port <= s->port_max)
		return s->worker;
	for (uint32_t w = 0; w < s->cfg.workers; w++) {
		steer_worker_ports(&s->cfg, w, &min, &max);
		if (port >= min && port <= max)
			return w;
	}
	return s->worker;
}

static uint32_t sock_recv(struct steer *s, const struct arena *a, struct umem_sock *k,
	struct packet_in *in, uint32_t max)
{
	uint32_t got = umem_recv(s->umem, k, s->frame, max), n = 0;

	for (uint32_t i = 0; i < got; i++) {
		struct packet_in d = {0};
		uint32_t owner;

		if (!take(s, a, s->umem->dev[k->dev]->ifindex, &s->frame[i], &d)) {
			umem_put(s->umem, s->frame[i].slot);
			continue;
		}
		owner = worker_of(s, d.local.port);
		if (owner == s->worker) {
			in[n++] = d;
			continue;
		}
		s->umem->state[d.slot] = SLOT_LENT;
		if (!hand_push(s->cfg.hub->hand, s->worker, owner, &d)) {
			umem_put(s->umem, d.slot);
			steer_count(&s->counters.overruns, 1);
		}
	}
	return n;
}

/* Receives packets from the other workers' queues. */
static uint32_t handed_recv(
	struct steer *s, const struct arena *a, struct packet_in *in, uint32_t max)
{
	struct hand *h = s->cfg.hub->hand;
	const uint8_t *payload;
	uint32_t n = 0, from;
	struct packet_in d;

	while (n < max && hand_pop(h, s->worker, &d, &payload, &from)) {
		uint32_t theirs = d.slot;

		d.slot = umem_take(s->umem);
		if (d.slot != UINT32_MAX) {
			d.in_off = d.slot * ARENA_SLOT_LEN + COPIED_OFF;
			memcpy(a->in + d.in_off, payload, min_u32(d.len, ARENA_MAX_PACKET));
			in[n++] = d;
		} else {
			steer_count(&s->counters.overruns, 1);
		}
		hand_return(h, s->worker, from, theirs);
	}
	if (n)
		steer_count(&s->counters.handed, n);
	return n;
}

static uint32_t queues_recv(
	struct steer *s, const struct arena *a, struct packet_in *in, uint32_t max)
{
	struct umem *u = s->umem;
	uint32_t n = 0, slot;

	while (hand_returned(s->cfg.hub->hand, s->worker, &slot))
		umem_put(u, slot);
	umem_turn(u);
	s->mono_ns = clock_mono_ns();
	s->real_ns = clock_real_ns();
	n = handed_recv(s, a, in, max);
	for (uint32_t i = 0; i < u->socks && n < max; i++)
		n += sock_recv(s, a, u->sock[(s->next + i) % u->socks], in + n, max - n);
	/* Start with another socket next time, so that none is starved. */
	if (u->socks)
		s->next = (s->next + 1) % u->socks;
	for (uint32_t i = 0; s->cfg.hub->doubled && i < n; i++)
		which_of_the_same(s, &in[i].local);
	steer_count(&s->counters.recv_packets, n);
	return n;
}

/* An interface is back: replaces its dead sockets. Ports that used the ordinary sockets use the new
 * ones from now on. */
static void take_back(struct steer *s)
{
	struct umem_dev *fresh, *dead;

	while ((fresh = back_take(s->cfg.hub->back, s->worker))) {
		dead = umem_replace(s->umem, fresh);
		for (uint32_t i = 0; i < fresh->socks && !s->poll; i++)
			(void)watch(s, fresh->sock[i].fd);
		for (uint32_t i = 0; dead && i < dead->socks && !s->poll; i++)
			unwatch(s, dead->sock[i].fd);
		if (s->poll)
			poll_list(s);
		if (dead)
			back_give(s->cfg.hub->back, s->worker, dead);
		choose_ways(s);
		s->taken_over_ns = clock_mono_ns();
	}
}

/* The first worker counts for all. */
static void count_dropped(struct steer *s)
{
	atomic_store_explicit(&s->counters.source_limit,
		xdp_guards_count(s->cfg.hub->guards, &s->counters), memory_order_relaxed);
}

/* Reads kernel announcements and counters, before anything is sent: the wake-up may be for a packet
 * and for its new route. */
static void look_around(struct steer *s, bool silent)
{
	if (silent || s->mono_ns - s->news_ns > NEWS_EVERY) {
		routes_news(s->routes, s->mono_ns);
		s->news_ns = s->mono_ns;
	}
	if (silent)
		hand_clear(s->cfg.hub->hand, s->worker);
	take_back(s);
	if (s->mono_ns - s->counted_ns > COUNT_EVERY) {
		umem_count(s->umem);
		if (s->worker == 0)
			count_dropped(s);
		s->counted_ns = s->mono_ns;
	}
}

/* Packets that reached a port's socket before the queues took over are older, so they go first.
 * After a restart this is all media received meanwhile, and the queues wait. Later packets of the
 * sockets get half of a burst at most. */
static uint32_t before_take_over(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	uint64_t since;
	uint32_t n;

	if (!s->taken_over_ns)
		return 0;
	n = sockets_recv(s->sockets, a, first_slot, in, sockets_before(s->sockets) ? max : max / 2);
	since = clock_mono_ns() - s->taken_over_ns;
	if (since > (n ? TAKE_OVER_MAX_NS : TAKE_OVER_NS) && !sockets_before(s->sockets))
		s->taken_over_ns = 0;
	return n;
}

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	uint32_t n, older;

	max = min_u32(max, s->burst);
	older = before_take_over(s, a, first_slot, in, max);
	if (sockets_before(s->sockets))
		return older;
	n = older + queues_recv(s, a, in + older, max - older);
	look_around(s, n == 0);
	if (older)
		return n;
	/* Every OTHERS_EVERY bursts, with a limited share, and when the queues are silent. */
	if (++s->bursts % OTHERS_EVERY == 0 && n < max)
		n += sockets_recv(s->sockets, a, first_slot, in + n, min_u32(max - n, max / 4 + 1));
	else if (n == 0)
		n = sockets_recv(s->sockets, a, first_slot, in, max);
	return n;
}

/* Slots of unsent packets are free again. */
static void verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (in[i].token == BY_QUEUE) {
			if (s->umem->state[in[i].slot] == SLOT_USER)
				umem_put(s->umem, in[i].slot);
		} else if (in[i].verdict != PACKET_PASS) {
			steer_count(&s->counters.fallback, 1);
		}
	}
}

/* --- Send ------------------------------------------------------------------------------------- */

static struct umem_sock *way_out(const struct steer *s, int ifindex)
{
	const struct steer_hub *h = s->cfg.hub;

	for (uint32_t i = 0; i < h->devs; i++) {
		const struct umem_dev *d = s->umem->dev[i];

		if (d && d->ifindex == ifindex &&
			d->life == atomic_load_explicit(&h->dev[i].life, memory_order_relaxed))
			return s->way[i];
	}
	return NULL;
}

/* Puts the packet into a tx ring. False: it must be sent by the kernel. */
static bool send_frame(struct steer *s, const struct arena *a, const struct packet_out *o)
{
	uint32_t slot = o->out_off / ARENA_SLOT_LEN, off, len;
	const struct route_hop *hop;
	struct endpoint src;
	struct umem_sock *k;
	int hdr;

	if (slot < s->umem->first || o->local.addr >= s->cfg.locals ||
		s->umem->state[slot] != SLOT_USER)
		return false;
	hop = routes_find(s->routes, o->local.addr, &o->dst, s->mono_ns);
	k = hop ? way_out(s, hop->ifindex) : NULL;
	if (!k || o->len + DGRAM_HDR_MAX > hop->mtu)
		return false;
	src = s->cfg.local[o->local.addr];
	src.port = o->local.port;
	hdr = dgram_write(&src, &o->dst, o->tos, a->out + o->out_off, o->len);
	if (hdr < 0)
		return false;
	off = o->out_off - (uint32_t)hdr;
	if (o->dst.family == AF_INET)
		dgram_v4_finish(a->out + off, s->ip_id++);
	off -= hop->l2_len;
	memcpy(a->out + off, hop->l2, hop->l2_len);
	put_be16(a->out + off + hop->l2_len - 2, o->dst.family == AF_INET ? 0x0800 : 0x86dd);
	len = hop->l2_len + (uint32_t)hdr + o->len;
	if (len < ETHER_MIN) {
		memset(a->out + off + len, 0, ETHER_MIN - len);
		len = ETHER_MIN;
	}
	if (umem_send(s->umem, k, slot, off, len))
		return true;
	s->full = true;
	return false;
}

/* Sends s->slow[0 .. n) by the kernel's own route. */
static void send_slow(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	uint32_t over = raw_send(s->raw, a, s->slow, NULL, n, s->left);

	if (over)
		sockets_send(s->sockets, a, s->slow, s->left, over);
	for (uint32_t i = 0; i < n; i++)
		out[s->slow_of[i]].failed = s->slow[i].failed;
}

static void transmit(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	for (uint32_t base = 0; base < n; base += s->burst) {
		uint32_t part = min_u32(n - base, s->burst), slow = 0;

		s->full = false;
		for (uint32_t i = base; i < base + part; i++) {
			out[i].failed = 0;
			if (send_frame(s, a, &out[i]))
				continue;
			s->slow[slow] = out[i];
			s->slow_of[slow++] = i;
		}
		steer_count(&s->counters.send_packets, part - slow);
		/* A next hop's packet for the kernel goes first, so that no other overtakes it.
		 * Packets that did not fit into a ring go after those that did. */
		if (s->full)
			umem_kick(s->umem);
		if (slow)
			send_slow(s, a, out, slow);
		umem_kick(s->umem);
	}
}

const struct steer_ops steer_xdp = {
	.name = "xdp",
	.open = open_hub,
	.close = close_hub,
	.slots = slots,
	.memory = memory,
	.setup = setup,
	.teardown = teardown,
	.create = create,
	.destroy = destroy,
	.fd = fd,
	.wakes = wakes,
	.gather = wait_for_packet,
	.port_add = port_add,
	.port_del = port_del,
	.recv = receive,
	.send = transmit,
	.verdict = verdict,
	.counters = counters,
	.guard = guard,
};
