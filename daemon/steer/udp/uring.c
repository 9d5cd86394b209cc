/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ordinary UDP sockets of one worker by io_uring. Each socket has a permanent receive
 * (multishot). It takes an arena slot from a common ring (provided buffers) for every datagram. A
 * burst is sent by one system call, from any sockets. The kernel works only during our calls
 * (DEFER_TASKRUN): it never interrupts the worker, and writes to slots only while the worker is
 * inside a call. A receive ends when slots run out or after an error. It is then re-armed in the
 * order in which receives ended, so that a flooded port does not starve others. Meanwhile packets
 * wait in the socket's own buffer. */
#include "steer/udp/uring.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "packet/arena.h"
#include "steer/sockets.h"

#define SQ_ENTRIES 512u
#define CQ_ENTRIES 4096u
#define SLOTS_MIN  512u
#define GROUP      0
#define NONE       UINT32_MAX
#define TOS_UNSET  (-1)
#define TRIES      8
#define LOOKS      256u

/* The kernel writes ancillary data before the payload; it fits into the headroom. */
#define NAME_LEN    32u
#define CONTROL_LEN (CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(uint32_t)))
#define BEFORE      (sizeof(struct io_uring_recvmsg_out) + NAME_LEN + CONTROL_LEN)
_Static_assert(BEFORE <= ARENA_HEADROOM && BEFORE % 8 == 0, "head room");
_Static_assert(NAME_LEN >= sizeof(struct sockaddr_in6), "room for an address");

/* user_data: kind, generation, index. */
#define KIND_RECV         1ull
#define KIND_SEND         2ull
#define TAG(kind, gen, i) ((kind) << 56 | (uint64_t)(uint16_t)(gen) << 32 | (i))

struct usock {
	int fd; /* -1: none */
	int tos;
	uint16_t gen;   /* generation of the port: older completions belong to a closed socket */
	bool waits;     /* queued to be armed */
	uint32_t drops; /* SO_RXQ_OVFL's last word */
	uint32_t next;  /* in that chain */
};

struct uring {
	struct steer_counters *counters;
	struct io_uring ring;
	int event; /* readable when work is pending */
	bool enabled, ring_there;
	uint8_t locals;
	uint8_t family[STEER_MAX_LOCAL];
	uint16_t min;
	uint16_t burst_gen;
	uint32_t range, burst;
	struct usock *sock; /* [locals * range] */
	uint32_t arm_head, arm_tail;
	uint8_t *in;                   /* the arena's */
	struct io_uring_buf_ring *br;  /* [slots] */
	uint32_t first, slots;         /* our slots: [first, first + slots) */
	uint32_t helds;                /* slots in bursts without verdict */
	struct msghdr shape;           /* of every receive */
	struct sockaddr_storage *name; /* [SQ_ENTRIES] */
};

static uint32_t sock_id(const struct uring *u, struct local_port l)
{
	if (l.addr >= u->locals || l.port < u->min || l.port - u->min >= (int)u->range)
		return NONE;
	return l.addr * u->range + (l.port - u->min);
}

/* --- Set-up ----------------------------------------------------------------------------------- */

/* Created disabled: the thread that enables the ring becomes its owner. */
static int ring_open(struct io_uring *ring)
{
	struct io_uring_params p = {.cq_entries = CQ_ENTRIES,
		.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
			IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL};

	return io_uring_queue_init_params(SQ_ENTRIES, ring, &p);
}

static size_t buf_ring_len(uint32_t slots)
{
	return (slots * sizeof(struct io_uring_buf) + 4095) & ~(size_t)4095;
}

static int buf_ring_open(struct io_uring *ring, struct io_uring_buf_ring **out, uint32_t slots)
{
	struct io_uring_buf_reg reg = {.ring_entries = slots, .bgid = GROUP};
	struct io_uring_buf_ring *br = aligned_alloc(4096, buf_ring_len(slots));
	int err;

	if (!br)
		return -ENOMEM;
	memset(br, 0, buf_ring_len(slots));
	reg.ring_addr = (uint64_t)(uintptr_t)br;
	err = io_uring_register_buf_ring(ring, &reg, 0);
	if (err) {
		free(br);
		return err;
	}
	io_uring_buf_ring_init(br);
	*out = br;
	return 0;
}

int uring_probe(void)
{
	struct io_uring_buf_ring *br;
	struct io_uring ring;
	int err = ring_open(&ring);

	if (err)
		return err;
	err = buf_ring_open(&ring, &br, 8);
	io_uring_queue_exit(&ring);
	if (!err)
		free(br);
	return err;
}

uint32_t uring_slots(const struct steer_config *cfg)
{
	uint32_t n = SLOTS_MIN;

	/* Slots for bursts without verdict, and as many to receive into. */
	while (n < steer_first_slots(cfg) + cfg->burst_max && n < 32768)
		n *= 2;
	return steer_first_slots(cfg) + n;
}

int uring_create(struct uring **out, const struct steer_config *cfg, uint32_t worker,
	struct steer_counters *counters)
{
	struct uring *u = lines_alloc(1, sizeof(*u));
	uint16_t min, max;
	int err = -ENOMEM;

	if (!u)
		return -ENOMEM;
	steer_worker_ports(cfg, worker, &min, &max);
	u->counters = counters;
	u->min = min;
	u->locals = (uint8_t)cfg->locals;
	for (uint32_t i = 0; i < cfg->locals; i++)
		u->family[i] = cfg->local[i].family;
	u->burst = cfg->burst_max ? cfg->burst_max : 1;
	u->first = steer_first_slots(cfg);
	u->slots = uring_slots(cfg) - u->first;
	u->shape = (struct msghdr){.msg_namelen = NAME_LEN, .msg_controllen = CONTROL_LEN};
	u->arm_head = u->arm_tail = NONE;
	u->event = -1;
	u->sock =
		calloc((size_t)u->locals * (max >= min ? max - min + 1u : 0) + 1, sizeof(*u->sock));
	u->name = lines_alloc(SQ_ENTRIES, sizeof(*u->name));
	if (!u->sock || !u->name)
		goto fail;
	u->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = u->event < 0 ? -errno : ring_open(&u->ring);
	if (err)
		goto fail;
	u->ring_there = true;
	err = io_uring_register_eventfd(&u->ring, u->event);
	if (err)
		goto fail;
	u->range = max >= min ? (uint32_t)(max - min) + 1 : 0;
	for (uint32_t i = 0; i < u->locals * u->range; i++)
		u->sock[i] = (struct usock){.fd = -1, .tos = TOS_UNSET};
	*out = u;
	return 0;
fail:
	uring_destroy(u);
	return err;
}

/* Ends the receives selected by reg, and waits until they release their sockets: otherwise the port
 * would stay bound. */
static void cancel(struct uring *u, struct io_uring_sync_cancel_reg *reg)
{
	reg->fd = -1;
	reg->timeout.tv_sec = reg->timeout.tv_nsec = -1;
	(void)io_uring_register_sync_cancel(&u->ring, reg);
	/* Cancelled receives complete here. */
	for (uint32_t i = 0; i < LOOKS; i++) {
		if (io_uring_get_events(&u->ring) < 0 ||
			!(__atomic_load_n(u->ring.sq.kflags, __ATOMIC_ACQUIRE) & IORING_SQ_TASKRUN))
			break;
	}
}

void uring_destroy(struct uring *u)
{
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL};

	if (!u)
		return;
	if (u->ring_there) {
		/* Fails if the worker was another thread: it has ended, and the kernel has
		 * cancelled its receives. */
		if (u->enabled)
			cancel(u, &all);
		io_uring_queue_exit(&u->ring);
	}
	for (uint32_t i = 0; i < u->locals * u->range; i++)
		if (u->sock[i].fd >= 0)
			close(u->sock[i].fd);
	if (u->event >= 0)
		close(u->event);
	free(u->br);
	free(u->sock);
	free(u->name);
	free(u);
}

static void slot_give(struct uring *u, uint32_t slot, uint32_t nth)
{
	io_uring_buf_ring_add(u->br,
		u->in + (size_t)slot * ARENA_SLOT_LEN + ARENA_HEADROOM - BEFORE,
		BEFORE + ARENA_MAX_PACKET, (uint16_t)(slot - u->first),
		io_uring_buf_ring_mask(u->slots), (int)nth);
}

int uring_memory(struct uring *u, const struct arena *a)
{
	int err;

	if (a->slots < u->first + u->slots)
		return -EINVAL;
	err = buf_ring_open(&u->ring, &u->br, u->slots);
	if (err)
		return err;
	u->in = a->in;
	for (uint32_t i = 0; i < u->slots; i++)
		slot_give(u, u->first + i, i);
	io_uring_buf_ring_advance(u->br, (int)u->slots);
	return 0;
}

int uring_fd(const struct uring *u)
{
	return u->event;
}

/* --- Submission ------------------------------------------------------------------------------- */

/* Withdraws entries that the kernel did not take: they must not be sent later with other bytes in
 * the slots. */
static void withdraw(struct uring *u)
{
	struct io_uring_sq *q = &u->ring.sq;

	for (uint32_t i = *q->khead; i != q->sqe_tail; i++) {
		struct io_uring_sqe *e = &q->sqes[i & q->ring_mask];

		if (e->user_data >> 56 != KIND_SEND)
			continue;
		e->opcode = IORING_OP_NOP;
		e->flags = IOSQE_CQE_SKIP_SUCCESS;
		e->addr = e->addr2 = 0;
		e->len = e->msg_flags = 0;
	}
}

/* 0, or -errno after withdrawing the rest. */
static int submit(struct uring *u)
{
	int res = 0;

	for (int tries = 0; io_uring_sq_ready(&u->ring) && tries < TRIES; tries++) {
		res = io_uring_submit(&u->ring);
		if (res == -EBUSY || res == -EAGAIN)
			(void)io_uring_get_events(&u->ring);
	}
	return io_uring_sq_ready(&u->ring) ? (res < 0 ? res : -EAGAIN) : 0;
}

static struct io_uring_sqe *get_sqe(struct uring *u)
{
	struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);

	if (!e && submit(u) == 0)
		e = io_uring_get_sqe(&u->ring);
	return e;
}

/* liburing 2.3 declares io_uring_enable_rings(), but does not implement it. */
static void enable(struct uring *u)
{
	if (!u->enabled)
		u->enabled = syscall(__NR_io_uring_register, u->ring.ring_fd,
				     IORING_REGISTER_ENABLE_RINGS, NULL, 0) == 0;
}

static bool arm(struct uring *u, uint32_t id)
{
	struct io_uring_sqe *e = get_sqe(u);

	if (!e)
		return false;
	/* MSG_TRUNC: reports the datagram's length even if the slot was shorter. */
	io_uring_prep_recvmsg_multishot(e, u->sock[id].fd, &u->shape, MSG_TRUNC);
	e->flags |= IOSQE_BUFFER_SELECT;
	e->buf_group = GROUP;
	e->user_data = TAG(KIND_RECV, u->sock[id].gen, id);
	return true;
}

static void arm_later(struct uring *u, uint32_t id)
{
	if (u->sock[id].waits)
		return;
	u->sock[id].waits = true;
	u->sock[id].next = NONE;
	if (u->arm_head == NONE)
		u->arm_head = id;
	else
		u->sock[u->arm_tail].next = id;
	u->arm_tail = id;
}

static void arm_waiting(struct uring *u)
{
	while (u->arm_head != NONE) {
		uint32_t id = u->arm_head;

		if (u->sock[id].fd >= 0 && !arm(u, id))
			return;
		u->arm_head = u->sock[id].next;
		u->sock[id].waits = false;
	}
}

int uring_add(struct uring *u, struct local_port local, int fd)
{
	uint32_t id = sock_id(u, local);
	int on = 1;

	if (id == NONE)
		return -ERANGE;
	if (u->sock[id].fd >= 0)
		return -EEXIST;
	enable(u);
	(void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
	u->sock[id].fd = fd;
	u->sock[id].tos = TOS_UNSET;
	u->sock[id].drops = 0;
	u->sock[id].gen++;
	arm_later(u, id);
	arm_waiting(u);
	(void)submit(u);
	return 0;
}

void uring_del(struct uring *u, struct local_port local)
{
	uint32_t id = sock_id(u, local);
	struct io_uring_sync_cancel_reg one = {0};

	if (id == NONE || u->sock[id].fd < 0)
		return;
	sockets_lost(u->sock[id].fd, &u->sock[id].drops, u->counters);
	(void)submit(u);
	one.addr = TAG(KIND_RECV, u->sock[id].gen, id);
	cancel(u, &one);
	close(u->sock[id].fd);
	u->sock[id].fd = -1;
	u->sock[id].gen++;
}

/* --- Receive ---------------------------------------------------------------------------------- */

void uring_done(struct uring *u, const struct packet_in *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		slot_give(u, in[i].slot, i);
	io_uring_buf_ring_advance(u->br, (int)n);
	u->helds -= n;
	if (u->arm_head == NONE)
		return;
	arm_waiting(u);
	(void)submit(u);
}

static uint64_t read_control(struct uring *u, struct usock *k, const uint8_t *p, uint32_t len)
{
	struct msghdr h = {.msg_control = (void *)(uintptr_t)p, .msg_controllen = len};

	return sockets_beside(&h, &k->drops, u->counters);
}

static void take(struct uring *u, uint32_t id, uint32_t slot, struct packet_in *d)
{
	uint32_t off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM;
	const uint8_t *p = u->in + off - BEFORE;
	struct io_uring_recvmsg_out o;
	struct sockaddr_storage name = {0};

	memcpy(&o, p, sizeof(o));
	memcpy(&name, p + sizeof(o), NAME_LEN);
	*d = (struct packet_in){
		.local = {.port = (uint16_t)(u->min + id % u->range),
			.addr = (uint8_t)(id / u->range)},
		.in_off = off,
		.len = o.payloadlen,
		.slot = slot,
		.t_ns = read_control(u, &u->sock[id], p + sizeof(o) + NAME_LEN,
			min_u32(o.controllen, CONTROL_LEN)),
	};
	(void)endpoint_from_sockaddr(&d->src, &name);
}

/* True if it is a packet. */
static bool completed(struct uring *u, const struct io_uring_cqe *c, struct packet_in *d)
{
	uint32_t id = (uint32_t)c->user_data;
	bool ours = c->user_data >> 56 == KIND_RECV &&
		u->sock[id].gen == (uint16_t)(c->user_data >> 32) && u->sock[id].fd >= 0;
	bool packet = false;

	if (c->user_data >> 56 == KIND_SEND) {
		/* Its burst is over. */
		if (c->res < 0 && (uint16_t)(c->user_data >> 32) != u->burst_gen)
			steer_count(&u->counters->send_errors, 1);
		return false;
	}
	if (c->flags & IORING_CQE_F_BUFFER) {
		uint32_t slot = u->first + (c->flags >> IORING_CQE_BUFFER_SHIFT);

		packet = ours && c->res >= (int)BEFORE;
		if (packet) {
			take(u, id, slot, d);
			u->helds++;
		} else {
			slot_give(u, slot, 0);
			io_uring_buf_ring_advance(u->br, 1);
		}
	}
	if (ours && !(c->flags & IORING_CQE_F_MORE))
		arm_later(u, id);
	return packet;
}

static bool work_waits(const struct uring *u)
{
	unsigned flags = __atomic_load_n(u->ring.sq.kflags, __ATOMIC_ACQUIRE);

	return io_uring_cq_ready(&u->ring) || (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

/* Does all pending kernel work. False: there was none. */
static bool work(struct uring *u)
{
	/* uring_done() returns slots of bursts. */
	if (u->arm_head != NONE && u->helds < u->slots / 2)
		arm_waiting(u);
	if (!io_uring_sq_ready(&u->ring) && !work_waits(u))
		return false;
	(void)io_uring_submit_and_get_events(&u->ring);
	steer_count(&u->counters->recv_calls, 1);
	return true;
}

/* Reaps completed packets, at most max. */
static uint32_t reap(struct uring *u, struct packet_in *in, uint32_t max)
{
	struct io_uring_cqe *cqe;
	uint32_t seen = 0, n = 0;
	unsigned head;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		if (n == max)
			break;
		seen++;
		n += completed(u, cqe, &in[n]);
	}
	io_uring_cq_advance(&u->ring, seen);
	return n;
}

uint32_t uring_recv(struct uring *u, const struct arena *a, struct packet_in *in, uint32_t max)
{
	uint64_t count;
	uint32_t n = 0;

	(void)a;
	enable(u);
	max = min_u32(max, u->burst);
	/* Packets that arrive during this loop need no signal; those left afterwards do. */
	(void)!read(u->event, &count, sizeof(count));
	io_uring_cq_eventfd_toggle(&u->ring, false);
	for (uint32_t looks = 0; n < max && looks < LOOKS; looks++) {
		if (!io_uring_cq_ready(&u->ring) && !work(u))
			break;
		n += reap(u, in + n, max - n);
	}
	io_uring_cq_eventfd_toggle(&u->ring, true);
	atomic_thread_fence(memory_order_seq_cst);
	if (work_waits(u)) {
		count = 1;
		(void)!write(u->event, &count, sizeof(count));
	}
	steer_count(&u->counters->recv_packets, n);
	return n;
}

/* --- Send ------------------------------------------------------------------------------------- */

static void set_tos(struct uring *u, uint32_t id, int tos)
{
	bool v6 = u->family[id / u->range] == AF_INET6;

	if (u->sock[id].tos == tos)
		return;
	/* Prepared entries keep the old value. */
	(void)submit(u);
	(void)setsockopt(u->sock[id].fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS,
		&tos, sizeof(tos));
	u->sock[id].tos = tos;
}

/* Sends again, separately: an ICMP error belongs to an earlier packet. */
static void send_again(struct uring *u, const struct arena *a, struct packet_out *o)
{
	uint32_t id = sock_id(u, o->local);
	struct sockaddr_storage name;
	socklen_t len = endpoint_to_sockaddr(&o->dst, &name);

	o->failed = id == NONE || u->sock[id].fd < 0 ||
		sendto(u->sock[id].fd, a->out + o->out_off, o->len, MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&name, len) < 0;
	steer_count(&u->counters->send_calls, 1);
}

/* Handles failures only: completions since `from`. */
static void failures(
	struct uring *u, const struct arena *a, struct packet_out *out, uint32_t n, unsigned from)
{
	const struct io_uring_cq *q = &u->ring.cq;
	unsigned tail = io_uring_smp_load_acquire(q->ktail);

	for (; from != tail; from++) {
		const struct io_uring_cqe *c = &q->cqes[from & q->ring_mask];
		uint32_t i = (uint32_t)c->user_data;

		if (c->user_data >> 56 != KIND_SEND || c->res >= 0 ||
			(uint16_t)(c->user_data >> 32) != u->burst_gen || i >= n)
			continue;
		out[i].failed = 1;
		if (c->res == -ECONNREFUSED || c->res == -EINTR)
			send_again(u, a, &out[i]);
	}
}

static void send_some(struct uring *u, const struct arena *a, struct packet_out *out, uint32_t n)
{
	unsigned from = *u->ring.cq.ktail;
	uint32_t sent = 0;

	u->burst_gen++;
	for (uint32_t i = 0; i < n; i++) {
		struct packet_out *o = &out[i];
		uint32_t id = sock_id(u, o->local);
		struct io_uring_sqe *e;

		o->failed = id == NONE || u->sock[id].fd < 0;
		if (o->failed)
			continue;
		set_tos(u, id, o->tos);
		e = get_sqe(u);
		if (!e) {
			o->failed = 1;
			continue;
		}
		io_uring_prep_send(e, u->sock[id].fd, a->out + o->out_off, o->len,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		e->addr2 = (uint64_t)(uintptr_t)&u->name[i];
		e->addr_len = (uint16_t)endpoint_to_sockaddr(&o->dst, &u->name[i]);
		e->flags |= IOSQE_CQE_SKIP_SUCCESS;
		e->user_data = TAG(KIND_SEND, u->burst_gen, i);
	}
	if (submit(u)) {
		const struct io_uring_sq *q = &u->ring.sq;

		for (uint32_t i = *q->khead; i != q->sqe_tail; i++)
			if (q->sqes[i & q->ring_mask].user_data >> 56 == KIND_SEND)
				out[(uint32_t)q->sqes[i & q->ring_mask].user_data].failed = 1;
		withdraw(u);
	}
	steer_count(&u->counters->send_calls, 1);
	failures(u, a, out, n, from);
	for (uint32_t i = 0; i < n; i++)
		sent += !out[i].failed;
	steer_count(&u->counters->send_packets, sent);
	steer_count(&u->counters->send_errors, n - sent);
}

void uring_send(struct uring *u, const struct arena *a, struct packet_out *out, uint32_t n)
{
	for (uint32_t base = 0; base < n; base += SQ_ENTRIES)
		send_some(u, a, out + base, min_u32(n - base, SQ_ENTRIES));
}
