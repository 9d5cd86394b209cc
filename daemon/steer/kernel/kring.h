/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's end of nf_xcipher's packet ring (kernel-module/uapi/nf_xcipher_ring.h): which
 * packets wait, descriptors of packets to send, and the doorbell. Opens nothing
 * (steer/kernel/kernel_ring.h) and knows no port. Worker thread. The kernel is trusted, but no
 * number of it can lead outside the slots. */
#ifndef STEER_KERNEL_KRING_H
#define STEER_KERNEL_KRING_H

#include "nf_xcipher_ring.h"

#include "packet/arena.h"
#include "packet/packet.h"

/* The result of a descriptor that the kernel did not come to. No errno has this value. */
#define KRING_UNSENT UINT16_MAX

enum kring_rest {
	KRING_ARMED, /* the kernel will make the eventfd readable */
	KRING_READY, /* enough packets wait already */
	KRING_ENDED  /* the ring has ended, and none of its packets wait */
};

struct kring {
	struct nfx_ring_control *control;
	const struct nfx_recv *recv; /* [slots] */
	struct nfx_send *send;       /* [sends] */
	uint32_t slots, sends;
	uint32_t first;    /* arena slot of packet 0 */
	uint32_t to_out;   /* from arena.in to arena.out */
	uint32_t taken;    /* number of the first packet that was not taken */
	uint32_t released; /* number of the first packet whose slot is still used */
	uint32_t told;     /* released at the last bell */
	uint32_t armed_at; /* taken at the last bell that armed */
	uint32_t wake_packets, window_ns;
	bool sleeps; /* the worker sleeps between bursts, so bells arm */
	bool waits;  /* set after kring_init(): bells can wait */
	bool ended;  /* the ring sends nothing any more */
	int error;   /* -errno of the bell that ended it; 0: no bell did */
	/* Rings: 0 or -errno. arg: the ring's number and socket, or a test. */
	int (*ring)(void *arg);
	void *arg;
};

/* Control area and arena as the kernel got them. Everything else starts at 0. */
void kring_init(struct kring *r, void *control, uint32_t slots, uint32_t sends,
	const struct arena *a, uint32_t first);

/* Number of packets that wait. */
uint32_t kring_waiting(const struct kring *r);
/* The state that the kernel module wrote last. */
enum nfx_ring_state kring_state(const struct kring *r);
/* False: packets take another way by now, so those of the ring are the oldest. */
bool kring_lives(const struct kring *r);
/* Takes up to max packets. *number: the first one's. */
uint32_t kring_take(struct kring *r, uint32_t max, uint32_t *number);
/* Fills all but local. The payload stays until the packet is released. */
void kring_packet(const struct kring *r, uint32_t number, struct packet_in *out);
/* Its local address and port. */
void kring_local(const struct kring *r, uint32_t number, struct endpoint *out);

/* Writes the descriptor number i (below sends) of a packet in arena.out. src: with its port. */
void kring_put(
	struct kring *r, uint32_t i, const struct endpoint *src, const struct packet_out *out);
/* Rings for the first n descriptors, and arms if the worker sleeps between bursts. Their results
 * are in send[], also after an error: a ring that ended meanwhile has sent some. 0 or -errno. */
int kring_bell(struct kring *r, uint32_t n);

/* Rings for the first n descriptors, and waits until it is time to take packets: kring_rest()
 * explains when. Returns earlier if descriptors of the worker's epoll are ready (*polled). Does not
 * wait if a packet was not sent. 0 or -errno: as of kring_bell(). */
int kring_wait(
	struct kring *r, uint32_t n, uint32_t wake_packets, uint32_t window_ns, bool *polled);

/* The oldest n packets that were taken are no longer used. Rings if many slots are free that the
 * kernel does not know of. */
void kring_release(struct kring *r, uint32_t n);
/* Before the worker sleeps: asks the kernel to wake it when wake_packets packets wait, or when the
 * first of them has waited for window_ns. */
enum kring_rest kring_rest(struct kring *r, uint32_t wake_packets, uint32_t window_ns);

#endif
