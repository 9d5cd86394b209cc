/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One NFQUEUE: netlink messages in bursts, verdicts in bursts. */
#ifndef STEER_QUEUE_H
#define STEER_QUEUE_H

#include <sys/uio.h>

#include "base/bytes.h"

#define QUEUE_RECV_MAX \
	64u /* packets of one recvmmsg: FACTS of the measurements, more gains nothing */

struct queue_packet {
	uint32_t id;
	const uint8_t *ip;
	uint32_t have, whole; /* bytes captured, bytes there are */
	uint64_t t_ns;        /* CLOCK_REALTIME; 0 = not told */
	uint32_t dev;         /* receiving interface; 0 = not known */
	bool routed;          /* the host has checked its source (a hook after routing) */
	bool gso;             /* several datagrams in one */
	bool verify;          /* nobody has looked at the checksum yet */
};

/* Binds netlink socket and queue. copy: bytes of each packet that are wanted. closed: what finds it full is dropped, and the socket
 * counts it, else it goes on as if there were no queue. Returns the descriptor, or -errno. */
int queue_open(uint16_t num, uint32_t copy, bool closed);
/* One netlink message. 0, or -EBADMSG when it is no packet. */
int queue_parse(struct queue_packet *out, const void *msg, size_t len);

/* Verdict messages are gathered here and sent at once. */
struct queue_verdicts {
	uint16_t num;
	uint32_t n, max;
	uint8_t *buf; /* max * QUEUE_VERDICT_LEN */
};
#define QUEUE_VERDICT_LEN 32u

/* The message that accepts packet id with other contents: an IP packet of ip_len bytes, in front of which there is room
 * for QUEUE_REPLACE_LEN bytes. The last of them are filled in, as many as are needed: QUEUE_MARK_LEN fewer when mark is 0, else the
 * packet gets that mark. Returns the message's whole length, behind which it must be padded to a multiple of 4 when another
 * message follows. Such messages are sent by the caller, before whatever drops up to a later id. */
#define QUEUE_MARK_LEN    8u
#define QUEUE_REPLACE_LEN (36u + QUEUE_MARK_LEN)
uint32_t queue_replace(uint8_t *ip, uint32_t ip_len, uint16_t num, uint32_t id, uint32_t mark);

void queue_accept(struct queue_verdicts *v, uint32_t id);
/* All that is still undecided up to this id. */
void queue_drop_up_to(struct queue_verdicts *v, uint32_t id);
/* Messages of queue_replace(), together where the kernel takes them together. Returns the number of system calls; what was not
 * taken has an iov_len of 0 then. */
uint32_t queue_send(int fd, struct iovec *message, uint32_t n);
/* 0 or -errno; empty afterwards. */
int queue_flush(struct queue_verdicts *v, int fd);

#endif
