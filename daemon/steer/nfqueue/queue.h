/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One NFQUEUE: receives netlink messages and sends verdicts in bursts. */
#ifndef STEER_NFQUEUE_QUEUE_H
#define STEER_NFQUEUE_QUEUE_H

#include <sys/uio.h>

#include "base/bytes.h"

#define QUEUE_RECV_MAX 64u /* packets per recvmmsg; measurements showed no gain from more */

struct queue_packet {
	uint32_t id;
	const uint8_t *ip;
	uint32_t have, whole; /* bytes captured, bytes in total */
	uint64_t t_ns;        /* CLOCK_REALTIME; 0 = unknown */
	uint32_t dev;         /* receiving interface; 0 = unknown */
	bool routed;          /* the host has checked its source (a hook after routing) */
	bool gso;             /* several datagrams in one (GRO) */
	bool verify;          /* the checksum was not verified yet */
};

/* Binds netlink socket and queue. copy: bytes to capture of each packet. closed: yes = if the queue
 * is full, packets are dropped and the socket counts them; no = they bypass the queue. Returns the
 * descriptor, or -errno. */
int queue_open(uint16_t num, uint32_t copy, bool closed);
/* Parses one netlink message. 0, or -EBADMSG if it is not a packet. */
int queue_parse(struct queue_packet *out, const void *msg, size_t len);

/* Collects verdict messages, to send them at once. */
struct queue_verdicts {
	uint16_t num;
	uint32_t n, max;
	uint8_t *buf; /* max * QUEUE_VERDICT_LEN */
};
#define QUEUE_VERDICT_LEN 32u

/* Builds the message that accepts packet id with new contents: an IP packet of ip_len bytes, with
 * room for QUEUE_REPLACE_LEN bytes before it. Fills in the last of these bytes, as many as needed:
 * QUEUE_MARK_LEN fewer if mark is 0, else the packet gets that mark. Returns the length of the
 * whole message. If another message follows, pad it to a multiple of 4. The caller sends such
 * messages before any verdict that drops up to a later id. */
#define QUEUE_MARK_LEN    8u
#define QUEUE_REPLACE_LEN (36u + QUEUE_MARK_LEN)
uint32_t queue_replace(uint8_t *ip, uint32_t ip_len, uint16_t num, uint32_t id, uint32_t mark);

void queue_accept(struct queue_verdicts *v, uint32_t id);
/* Gives a verdict on all undecided packets up to this id. */
void queue_drop_up_to(struct queue_verdicts *v, uint32_t id);
/* Sends messages of queue_replace(), several per system call where the kernel allows it. Returns
 * the number of system calls. A message that the kernel refused gets an iov_len of 0. */
uint32_t queue_send(int fd, struct iovec *message, uint32_t n);
/* Sends the verdicts and empties the collection. 0 or -errno. */
int queue_flush(struct queue_verdicts *v, int fd);

#endif
