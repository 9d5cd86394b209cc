/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker: one thread with its own steering source, arena, engine queue and flows. The control
 * thread speaks to it by one ring and hears from it by another; everything else that is read from
 * outside are counters. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <pthread.h>

#include "batch/engine.h"
#include "worker/overload.h"
#include "worker/coalesce.h"
#include "worker/tap.h"
#include "base/hist.h"
#include "base/ring.h"
#include "batch/run.h"
#include "host/judge.h"
#include "media/media.h"
#include "steer/steer.h"

enum worker_cmd_kind {
	WORKER_MEDIA,       /* media: CTX_SET, STREAM_SET, ...; the deletions are acknowledged */
	WORKER_KEY_SET,     /* id: key slot pair was filled by the control thread */
	WORKER_PORT_ADD,    /* local, fd: the socket is the worker's from here on */
	WORKER_PORT_DEL,    /* local, id: acknowledged with the id */
	WORKER_RELAY,       /* relay: the kernel relays this stream */
	WORKER_UNRELAY,     /* local: the kernel relays it no longer */
	WORKER_STEER_AGAIN, /* the kernel has the steering again */
	WORKER_MARKS,       /* ask: where these contexts' SSRCs stand, into the ring of marks */
};

/* The generation shows whether the indexes of a context were reset after the question. */
#define WORKER_ASK_MAX 32
struct worker_ask {
	uint32_t n;
	uint32_t ctx[WORKER_ASK_MAX];
	uint8_t generation[WORKER_ASK_MAX];
};

struct worker_cmd {
	enum worker_cmd_kind kind;
	bool more; /* the next command belongs to the same group (relay.c's backlog) */
	union {
		struct media_cmd media;
		struct steer_relay relay;
		struct {
			struct local_port local;
			int fd;
			uint32_t id;
		};
		struct worker_ask ask;
	};
};

/* One SSRC of a context; behind a context's last one an entry that ends it, with the next SRTCP
 * index to be sent. A context is told of as a whole, or not at all when the ring has no room: then
 * it is asked again later. */
struct worker_mark {
	uint32_t ctx;
	uint8_t generation;
	bool end;
	uint64_t at_ns; /* CLOCK_REALTIME */
	struct media_mark mark;
};

struct worker_ack {
	enum { ACK_CTX, ACK_KEY, ACK_STREAM, ACK_PORT } what;
	uint32_t id;
};

struct worker_config {
	uint64_t keep_not; /* capabilities that its thread drops */
	uint32_t index;
	const struct steer_ops *steer_ops;
	const struct steer_config *steer;
	const struct media_config *media;
	const struct batch_runner_config *batch;
	uint32_t batch_max;
	uint64_t batch_window_ns;
	uint64_t overload_age_ns; /* see overload.h */
	bool busy_poll;           /* never sleep: for a processor of its own */
	int priority;             /* real-time priority of the thread (SCHED_RR), 0 = ordinary */
	int ack_fd;               /* eventfd of the control thread */
	struct tap *tap;          /* NULL: nothing is recorded; outlives the worker */
	/* to the keying thread; NULL: there is none. Outlives the worker. */
	struct side_channel *side;
	const struct host *host; /* NULL: every source is accepted (tests); outlives the worker */
};

/* Where a packet's time goes: the first per packet, the others per burst. X(id, name in statistics)
 */
#define WORKER_STAGE_LIST(X)                                                           \
	X(QUEUE, "queue")       /* from the kernel's receive stamp until we have it */ \
	X(PREPARE, "prepare")   /* classify, look up, write jobs */                    \
	X(ENGINE, "engine")     /* the dispatch, or the serial engine */               \
	X(COMPLETE, "complete") /* commit, learn, say what leaves */                   \
	X(SEND, "send")         /* until the send calls came back */

enum worker_stage {
#define X(id, name) WORKER_STAGE_##id,
	WORKER_STAGE_LIST(X)
#undef X
		WORKER_STAGES
};

struct worker {
	struct worker_config cfg;
	/* Set up and torn down by the control thread, used by the worker. */
	const struct steer_ops *steer_ops;
	struct steer *steer;
	struct media *media;
	struct host_judge *judge; /* NULL: the host's stack checks sources itself */
	struct batch_runner *runner;
	struct ring cmds, acks, marks; /* control -> worker, worker -> control (both others) */
	int wake_fd, poll_fd;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	/* Bursts: the worker's alone. Those that are with the engine, a ring of as many as the
	 * runner takes at once. */
	struct worker_burst {
		struct packet_in *in;    /* [batch_max] */
		uint32_t n, jobs, first; /* packets, jobs, first arena slot */
		uint64_t engine_ns;      /* since when it is with the engine */
	} burst[ENGINE_DEPTH_MAX];
	uint32_t depth, oldest, flying;
	struct packet_out *out; /* [batch_max] */
	struct coalesce pace;
	struct overload overload;
	/* Written by the worker, read by anybody. */
	struct hist delay; /* ns from the kernel's receive stamp until after the send */
	struct hist batch; /* packets per burst */
	struct hist stage[WORKER_STAGES];
	_Atomic uint64_t bursts, commands, command_errors;
	_Atomic uint64_t pierced;  /* empty packets that were sent, see media_pierce() */
	_Atomic uint64_t bytes_in; /* of datagrams, whatever became of them */
	/* of relayed datagrams; where SRTP is used, of authentic ones */
	_Atomic uint64_t bytes_relayed;
	_Atomic uint64_t rounds; /* of the thread's loop: it moves, so it lives */
};

/* Everything but the thread. err: one line. 0 or -errno. */
int worker_create(struct worker **out, const struct worker_config *cfg, char *err, size_t err_len);
/* -EPERM: the priority is not for us. */
int worker_start(struct worker *w);
/* One round of the loop without the waiting: commands, then one burst, or the end of one that is in
 * flight. For a worker whose thread does not run (xcipher-bench path). Returns the number of
 * packets that came in. */
uint32_t worker_round(struct worker *w);
/* Joins the thread if it runs. All workers stop before the first is destroyed: they may share their
 * packets' memory. */
void worker_stop(struct worker *w);
void worker_destroy(struct worker *w);
/* Control thread: processor time of its thread, 0 when none runs. */
uint64_t worker_cpu_ns(const struct worker *w);
/* Control thread: wake it up after pushing commands. */
void worker_wake(struct worker *w);

#endif
