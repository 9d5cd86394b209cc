/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A keying thread: it owns the sessions of the legs of one or more workers. It takes their packets
 * from the side channels, runs their deadlines, gives answers back, and reports events. Control
 * sends commands by one ring and receives events by another.
 *
 * STUN comes first. DTLS and ZRTP packets, whose handshakes need milliseconds, wait in a queue of
 * their own; after each of them the thread looks for STUN again. The queue has room for a thousand
 * handshakes that begin in the same instant. A packet that finds it full is dropped and counted:
 * DTLS and ZRTP repeat it. */
#ifndef SIDE_THREAD_H
#define SIDE_THREAD_H

#include "packet/side.h"
#include "keying/session.h"

/* DTLS and ZRTP packets that wait; a quarter is for emergency calls, and a quarter for believed
 * sources. Room that was never used takes no memory; all of it takes 3.1 MiB per thread. */
#define SIDE_WAITING       2048u
#define SIDE_WAITING_SHARE 8u /* of these one session's, of believed sources and of others each */

struct side_event {
	uint32_t serial;           /* of the session */
	struct session_event what; /* side_thread_event()'s caller wipes it */
};

/* The sessions, as the thread sees them. Sans I/O. All times are CLOCK_MONOTONIC. After open(),
 * change(), take() and tick() the thread calls next() and event() until they return false. */
struct side_session_ops {
	/* cfg is the session's from then on. NULL: no memory; then cfg was released. */
	void *(*open)(void *arg, void *cfg, uint64_t now_ns);
	void (*change)(void *session, void *cfg, uint64_t now_ns);
	/* Its last packets, close_notify, come by next(). */
	void (*end)(void *session, uint64_t now_ns);
	/* See session_settle(). */
	void (*settle)(void *session, uint32_t association, bool rtcp, uint64_t now_ns);
	void (*destroy)(void *session); /* wipes it */
	void (*cfg_free)(void *cfg);    /* of a command that was not carried out */
	/* port: its index in side_cmd.stream. */
	void (*take)(void *session, uint32_t port, const struct side_packet *p, uint64_t now_ns);
	/* Writes *port, and kind, peer, len and bytes of the packet. */
	bool (*next)(void *session, uint32_t *port, struct side_packet *out);
	bool (*event)(void *session, struct session_event *out);
	uint64_t (*deadline)(const void *session); /* DEADLINE_NEVER: none */
	void (*tick)(void *session, uint64_t now_ns);
};

enum side_cmd_kind { SIDE_OPEN, SIDE_CHANGE, SIDE_SETTLE, SIDE_CLOSE };
struct side_cmd {
	enum side_cmd_kind kind;
	/* Never 0. Its remainder by side_thread_config.max is the session's place, which no other
	 * session may have meanwhile. */
	uint32_t serial;
	uint32_t channel; /* OPEN: index of the worker's channel */
	/* OPEN, CHANGE: stream handles of the ports, in the order of session_cfg.local; of each
	 * pair RTP first. */
	uint32_t stream[SESSION_PORTS];
	uint32_t streams;
	uint32_t association; /* SETTLE */
	bool rtcp;            /* SETTLE */
	void *cfg;            /* OPEN, CHANGE: passes to the session */
};

struct side_thread_config {
	const struct side_session_ops *ops;
	void *arg;                     /* of ops->open */
	struct side_channel **channel; /* they outlive the thread */
	uint32_t channels;
	uint32_t max;      /* sessions */
	int event_fd;      /* eventfd of the control thread; -1: none */
	uint32_t index;    /* for its name */
	uint64_t keep_not; /* capabilities that it drops */
};

struct side_thread_counts {
	uint64_t packets, strays, waiting_full, events;
	uint32_t sessions;
};

struct side_thread;

/* Everything but the thread. 0 or -errno. */
int side_thread_create(struct side_thread **out, const struct side_thread_config *cfg);
int side_thread_start(struct side_thread *t);
/* Joins it if it runs; destroys all sessions and wipes the rings. NULL is fine. */
void side_thread_destroy(struct side_thread *t);
/* Control thread. 0; -EAGAIN: too many commands wait, and cfg stays the caller's. Then
 * event_fd becomes readable when there is room. */
int side_thread_command(struct side_thread *t, const struct side_cmd *cmd);
/* Control thread. The next event; its keys are wiped in the ring. False: none. */
bool side_thread_event(struct side_thread *t, struct side_event *out);
/* Any thread. */
struct side_thread_counts side_thread_counts(const struct side_thread *t);
/* One round without waiting, for a thread that was not started (tests). Returns whether it did
 * anything. */
bool side_thread_round(struct side_thread *t, uint64_t now_ns);

#endif
