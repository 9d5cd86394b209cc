/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The AF_XDP sockets of one worker, all on the worker's arena, and the slots that circulate between
 * kernel and worker. A slot covers the same place in arena.in and arena.out: a packet leaves by the
 * slot it came in. */
#ifndef STEER_XDP_XDP_UMEM_H
#define STEER_XDP_XDP_UMEM_H

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#include "packet/arena.h"
#include "steer/xdp/bpf/xdp_abi.h"
#include "steer/xdp/xdp_hub.h"

#define UMEM_RING 2048u /* entries of each ring of a socket */
/* Offset of the kernel's chunk in a slot. The kernel uses 256 bytes before a frame. With this
 * offset, the payload of an untagged IPv4 datagram (42 bytes of headers) begins at a cache line. */
#define UMEM_CHUNK_OFF 22u
#define UMEM_CHUNK_LEN (ARENA_SLOT_LEN - 64)
_Static_assert(
	UMEM_CHUNK_OFF + XDP_PACKET_HEADROOM + XDP_ABI_FRAME_MAX + XC_SLACK <= ARENA_SLOT_LEN,
	"a frame ends before its slot does, by XC_SLACK");

enum slot_state { SLOT_FREE, SLOT_FILL, SLOT_USER, SLOT_LENT, SLOT_TX };
/* Values from here on: the kernel has the slot; which interface, in one byte. */
#define SLOT_AT(state, dev) ((uint8_t)((dev) << 4 | (state)))
_Static_assert(HUB_DEVS_MAX <= 16, "four bits");

struct umem_sock {
	struct xsk_socket *xsk;
	struct xsk_ring_cons rx, comp;
	struct xsk_ring_prod tx, fill;
	int fd;
	uint32_t dev, queue; /* number in the hub */
	uint32_t filled;     /* slots in its fill ring, or between its fill ring and its rx ring */
	uint32_t sending;    /* slots between its tx ring and its completion ring */
	uint32_t unsent;     /* frames since the last wake-up of the kernel */
	bool can_send, zerocopy;
	uint64_t drops, bad; /* kernel's counters when last read */
};

/* The worker's sockets of one interface. They have their own UMEM on the shared memory, so that
 * they can be replaced. */
struct umem_dev {
	struct umem_dev *next; /* for the owner of devices that are not in use */
	struct xsk_umem *umem;
	uint32_t dev; /* number in the hub */
	uint32_t life;
	int ifindex, xsks; /* as in the hub when they were opened */
	bool zerocopy;
	uint32_t socks;
	struct umem_sock sock[];
};

struct umem {
	struct steer_counters *counters;
	const struct arena *a;
	uint64_t out; /* offset of arena.out in the UMEM */
	struct umem_dev *dev[HUB_DEVS_MAX];
	struct umem_sock **sock; /* total of all sockets */
	uint32_t socks;
	uint32_t first; /* earlier slots are not ours */
	uint32_t *free; /* stack */
	uint32_t frees;
	uint8_t *state; /* [slots]: enum slot_state */
	bool zerocopy;  /* any socket is in zero-copy mode: unsuitable slots stay unused */
};

/* Number of slots in a worker's arena that can fill all rings of its sockets. */
uint32_t umem_slots(const struct steer_hub *h, uint32_t burst);
/* Any thread: opens the sockets of this worker's queues of an interface. *out is NULL if it has
 * none. 0 or -errno with a line in err. */
struct umem_place {
	const struct steer_hub *h;
	uint32_t worker;
	const struct arena *a;
	bool may_zerocopy;
};
int umem_dev_open(
	struct umem_dev **out, const struct umem_place *p, uint32_t dev, char *err, size_t err_len);
/* NULL is fine. */
void umem_dev_close(struct umem_dev *d);
/* Opens the sockets of all interfaces and puts them into the programs' maps. Slots from first on
 * belong to the UMEM. */
int umem_create(struct umem **out, const struct umem_place *p, uint32_t first,
	struct steer_counters *counters, char *err, size_t err_len);
void umem_destroy(struct umem *u);
/* Installs the sockets of an interface. Returns the replaced ones, whose interface has disappeared:
 * their slots are free again. */
struct umem_dev *umem_replace(struct umem *u, struct umem_dev *fresh);

/* Takes a free slot, or returns UINT32_MAX. umem_put(): returns it. */
uint32_t umem_take(struct umem *u);
void umem_put(struct umem *u, uint32_t slot);
/* Collects sent slots, and gives the kernel slots for receiving. */
void umem_turn(struct umem *u);
/* Receives up to max frames from this socket, as offsets and lengths in arena.in, slot by slot. */
struct umem_frame {
	uint32_t slot, off, len;
};
uint32_t umem_recv(struct umem *u, struct umem_sock *k, struct umem_frame *f, uint32_t max);
/* Sends the frame of len bytes at off in arena.out by this socket. False if its ring is full. */
bool umem_send(struct umem *u, struct umem_sock *k, uint32_t slot, uint32_t off, uint32_t len);
/* Wakes the kernel if tx rings have new frames. */
void umem_kick(struct umem *u);
/* Reads the kernel's counters of lost packets. */
void umem_count(struct umem *u);

#endif
