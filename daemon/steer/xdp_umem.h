/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One worker's AF_XDP sockets, all on one memory, which is the worker's arena; and the slots that go around between the kernel
 * and the worker. A slot means both arena.in's and arena.out's: a packet that came in by it leaves by it. */
#ifndef STEER_XDP_UMEM_H
#define STEER_XDP_UMEM_H

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#include "steer/bpf/xdp_abi.h"
#include "steer/xdp_hub.h"

#define UMEM_RING 2048u /* entries of each ring of a socket */
/* Where the kernel's chunk starts in a slot: it puts 256 bytes of its own before a frame, and so the payload of an untagged IPv4
 * datagram (42 bytes of headers) begins at a cache line. */
#define UMEM_CHUNK_OFF 22u
#define UMEM_CHUNK_LEN (ARENA_SLOT_LEN - 64)
_Static_assert(
	UMEM_CHUNK_OFF + XDP_PACKET_HEADROOM + XDP_ABI_FRAME_MAX + XC_SLACK <= ARENA_SLOT_LEN,
	"a frame ends before its slot does, by XC_SLACK");

enum slot_state { SLOT_FREE, SLOT_FILL, SLOT_USER, SLOT_LENT, SLOT_TX };
/* With those that the kernel has, in one byte: by which interface. */
#define SLOT_AT(state, dev) ((uint8_t)((dev) << 4 | (state)))
_Static_assert(HUB_DEVS_MAX <= 16, "four bits");

struct umem_sock {
	struct xsk_socket *xsk;
	struct xsk_ring_cons rx, comp;
	struct xsk_ring_prod tx, fill;
	int fd;
	uint32_t dev, queue; /* number in the hub */
	uint32_t filled;     /* slots in its fill ring, or on their way from there to its rx ring */
	uint32_t sending;    /* slots from its tx ring to its completion ring */
	uint32_t unsent;     /* put since the last kick */
	bool can_send, zerocopy;
	uint64_t drops, bad; /* kernel's counters when last read */
};

/* The worker's sockets of one interface. Their UMEM is theirs alone, though on the same memory as all the others', so that they can go
 * and others come in their place. */
struct umem_dev {
	struct umem_dev *next; /* for whoever has it, if it is not in use */
	struct xsk_umem *umem;
	uint32_t dev; /* number in the hub */
	uint32_t life;
	int ifindex, xsks; /* the hub's, when they were opened */
	bool zerocopy;
	uint32_t socks;
	struct umem_sock sock[];
};

struct umem {
	struct steer_counters *counters;
	const struct arena *a;
	uint64_t out; /* offset of arena.out in the UMEM */
	struct umem_dev *dev[HUB_DEVS_MAX];
	struct umem_sock **sock; /* of all of them */
	uint32_t socks;
	uint32_t first; /* slots before it are not ours */
	uint32_t *free; /* stack */
	uint32_t frees;
	uint8_t *state; /* [slots]: enum slot_state */
	bool zerocopy;  /* one is: slots that lie badly are not used */
};

/* Slots a worker's arena needs so that its sockets' rings can be full. */
uint32_t umem_slots(const struct steer_hub *h, uint32_t burst);
/* Any thread: opens the sockets of this worker's queues of an interface. *out is NULL when it has none. 0 or -errno with a line in err. */
int umem_dev_open(struct umem_dev **out, const struct steer_hub *h, uint32_t dev, uint32_t worker,
	const struct arena *a, bool may_zerocopy, char *err, size_t err_len);
/* NULL is fine. */
void umem_dev_close(struct umem_dev *d);
/* Opens those of all interfaces and puts them into the programs' maps. The slots from first on are the UMEM's. */
int umem_create(struct umem **out, const struct steer_hub *h, uint32_t worker,
	const struct arena *a, uint32_t first, struct steer_counters *counters, char *err,
	size_t err_len);
void umem_destroy(struct umem *u);
/* From now on these are the interface's sockets. Returns those that were, whose interface is gone: what the kernel had by them is free. */
struct umem_dev *umem_replace(struct umem *u, struct umem_dev *fresh);

/* A slot to use, or UINT32_MAX. umem_put(): the worker is done with it. */
uint32_t umem_take(struct umem *u);
void umem_put(struct umem *u, uint32_t slot);
/* Takes back what was sent, and gives the kernel slots to receive into. */
void umem_turn(struct umem *u);
/* Up to max frames that came by this socket, as offsets and lengths in arena.in, slot by slot. */
struct umem_frame {
	uint32_t slot, off, len;
};
uint32_t umem_recv(struct umem *u, struct umem_sock *k, struct umem_frame *f, uint32_t max);
/* The frame of len bytes at off in arena.out leaves by this socket; false when its ring is full. */
bool umem_send(struct umem *u, struct umem_sock *k, uint32_t slot, uint32_t off, uint32_t len);
/* Tells the kernel about what was put into the tx rings. */
void umem_kick(struct umem *u);
/* Reads the kernel's counters of lost packets. */
void umem_count(struct umem *u);

#endif
