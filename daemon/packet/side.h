/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The side channel: packets that are not media, from a worker to its keying thread and back. One
 * channel belongs to one worker and one keying thread. Both rings are bounded. Packets that find no
 * room are dropped and counted. */
#ifndef PACKET_SIDE_H
#define PACKET_SIDE_H

#include <stddef.h>

#include "base/ring.h"
#include "packet/packet.h"

/* X(id, name in statistics) */
#define SIDE_KINDS(X) X(STUN, "stun") X(DTLS, "dtls") X(ZRTP, "zrtp")
enum side_kind {
#define X(id, name) SIDE_##id,
	SIDE_KINDS(X)
#undef X
		SIDE_KINDS_N
};
const char *side_kind_name(enum side_kind k);

#define SIDE_BIT(kind)  ((uint8_t)(1u << (kind))) /* media_stream_cfg.side */
#define SIDE_ALL        ((uint8_t)((1u << SIDE_KINDS_N) - 1))
#define SIDE_PACKET_MAX 1500u
#define SIDE_ENTRIES    256u /* of each ring */
#define SIDE_RESERVE    64u  /* the last ones of a ring are for emergency calls */
#define SIDE_BELIEVED \
	64u /* the ones before those are for believed sources: strangers may send floods */
/* Packets of one stream that may wait in the ring: from a believed source, and from others. The
 * two shares are separate, so that strangers do not use up the terminal's share. */
#define SIDE_SHARE_BELIEVED 32u
#define SIDE_SHARE_STRANGER 16u

struct side_packet {
	uint8_t kind; /* enum side_kind */
	/* Received: from the signalled address or the confirmed source. Sent: the answer to an
	 * authentic ICE check of the peer, or the packet that gives it the keys of ZRTP, which this
	 * relay has not reported yet. */
	bool believed;
	bool emergency; /* received: of an emergency call */
	/* Sent: it goes where the terminal's media go, if their source is that of authentic
	 * packets, else to peer. */
	bool follows;
	uint16_t len;
	struct local_port local; /* received: where it arrived. Sent: ignored */
	uint32_t stream;
	uint32_t serial; /* media_stream_cfg.side_serial; another one: the packet is dropped */
	struct endpoint peer;
	uint64_t t_ns; /* received: CLOCK_REALTIME */
	uint8_t bytes[SIDE_PACKET_MAX];
};

/* Copies the head and the bytes in use. len is at most SIDE_PACKET_MAX. */
static inline void side_packet_copy(struct side_packet *to, const struct side_packet *from)
{
	memcpy(to, from, offsetof(struct side_packet, bytes) + from->len);
}

/* A stream's share of the ring. Written by the worker only. All zeroes at first. Needs no clock and
 * no answer of the other thread: the counts end when the ring's reader has passed the last of these
 * packets. */
struct side_share {
	uint32_t until; /* position in the ring after its last packet */
	uint8_t n[2];   /* [believed] */
};

struct side_channel {
	struct ring in;  /* worker -> keying thread */
	struct ring out; /* keying thread -> worker */
	/* eventfds, owned by the creator; -1 = nobody is woken (tests) */
	int thread_fd, worker_fd;
	_Atomic uint8_t *worker_awake; /* 1: the worker looks here soon; NULL: wake it always */
	_Atomic bool asleep;           /* the keying thread waits for thread_fd, or is about to */
	/* Written by the worker, read by any thread. */
	_Atomic uint64_t sent;    /* packets of the keying thread that were sent */
	_Atomic uint64_t stale;   /* packets not sent: the stream is gone, or belongs to another
				 * call */
	_Atomic uint64_t refused; /* packets not sent: no such destination, or the kernel refused */
	/* Written by the keying thread, read by any thread. */
	_Atomic uint64_t back_full; /* packets dropped because the ring to the worker was full */
	/* Worker only: packets since the last side_flush(). */
	uint32_t pushed;
	/* Keying thread only: likewise. */
	uint32_t given;
};

/* 0 or -ENOMEM. */
int side_init(struct side_channel *c);
/* Wipes both rings. Neither thread may use the channel any more. */
void side_fini(struct side_channel *c);

/* Worker. Passes packet p to the keying thread, with its bytes at "from". 0; -ENOSPC: the ring is
 * full or the stream used up its share; -EMSGSIZE. */
int side_take(struct side_channel *c, struct side_share *share, const struct side_packet *head,
	const uint8_t *bytes, uint32_t len);
/* Worker, after a burst: wakes the keying thread if it sleeps and packets wait. */
void side_flush(struct side_channel *c);
/* Worker. The next packet to send. False: none. */
bool side_next(struct side_channel *c, struct side_packet *out);
/* Worker. Whether a packet is to be sent. */
static inline bool side_waits(const struct side_channel *c)
{
	return !ring_empty(&c->out);
}

/* Keying thread. The next packet received. False: none. */
bool side_read(struct side_channel *c, struct side_packet *out);
/* Keying thread. Before it sleeps. False: packets wait, so it must not sleep. */
bool side_sleep(struct side_channel *c);
/* Keying thread. Queues a packet to send with the worker's next burst. 0, -ENOSPC or -EMSGSIZE. */
int side_give(struct side_channel *c, const struct side_packet *p);
/* Keying thread, after any number of side_give(): wakes the worker if it sleeps. */
void side_give_end(struct side_channel *c);

#endif
