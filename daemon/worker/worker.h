/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker: one thread with its own steering source, arena, engine queue and flows. The control
 * thread sends commands by one ring, and receives acknowledgements and marks by two others.
 * Everything else readable from outside is a counter. */
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
	WORKER_KEY_SET,     /* id: the control thread has filled this key slot pair */
	WORKER_PORT_ADD,    /* local, fd: the worker owns the socket from here on */
	WORKER_PORT_DEL,    /* local, id: close the port; acknowledged with the id */
	WORKER_RELAY,       /* relay: move this stream to the kernel */
	WORKER_UNRELAY,     /* local: take the stream back from the kernel */
	WORKER_STEER_AGAIN, /* the kernel's steering is available again */
	WORKER_MARKS,       /* ask: report the indexes of these contexts' SSRCs to the ring of
			     * marks */
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
	bool more; /* the next command belongs to the same group: no packet comes between them */
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

/* One SSRC of a context. After a context's last SSRC follows an end entry with the next SRTCP
 * index. A context is reported as a whole, or not at all if the ring is full: then it is asked for
 * again later. */
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
	bool busy_poll;           /* never sleep: needs a processor of its own */
	int priority;             /* real-time priority of the thread (SCHED_RR), 0 = ordinary */
	int ack_fd;               /* eventfd of the control thread */
	struct tap *tap;          /* NULL: nothing is recorded; outlives the worker */
	/* to the keying thread; NULL: there is none. Outlives the worker. */
	struct side_channel *side;
	/* channels to the codec threads, one each; they outlive the worker */
	struct audio_channel *const *audio;
	uint32_t audio_threads;  /* 0: there are none */
	const struct host *host; /* NULL: every source is accepted (tests); outlives the worker */
};

/* Where a packet's time is spent: the first stage per packet, the others per burst. X(id, name in
 * statistics) */
#define WORKER_STAGE_LIST(X)                                                                  \
	X(QUEUE, "queue")       /* from the kernel's receive timestamp until received here */ \
	X(PREPARE, "prepare")   /* classify, look up, write jobs */                           \
	X(ENGINE, "engine")     /* the dispatch, or the serial engine */                      \
	X(COMPLETE, "complete") /* commit, learn, choose what to send */                      \
	X(SEND, "send")         /* until the send calls return */

enum worker_stage {
#define X(id, name) WORKER_STAGE_##id,
	WORKER_STAGE_LIST(X)
#undef X
		WORKER_STAGES
};

struct worker {
	struct worker_config cfg;
	/* Created and destroyed by the control thread, used by the worker. */
	const struct steer_ops *steer_ops;
	struct steer *steer;
	struct media *media;
	struct host_judge *judge; /* NULL: the host's stack checks sources itself */
	struct batch_runner *runner;
	struct ring cmds, acks, marks; /* control -> worker, worker -> control (both others) */
	/* eventfds by which others wake it: for commands and side packets, and for packets of codec
	 * threads */
	int wake_fd, audio_fd;
	_Atomic uint8_t awake; /* 1: it looks for commands and side packets soon, without wake_fd */
	int poll_fd, tick_fd;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	/* Bursts with the engine, a ring as long as the runner's depth. Private to the worker. */
	struct worker_burst {
		struct packet_in *in;    /* [batch_max] */
		uint32_t n, jobs, first; /* packets, jobs, first arena slot */
		uint64_t engine_ns;      /* when it was given to the engine */
		/* Source of its packets: steering gets verdicts only for its own. */
		enum worker_source { OF_STEERING, OF_AHEAD, OF_AUDIO } source;
	} burst[ENGINE_DEPTH_MAX];
	uint32_t depth, oldest, flying;
	bool acked;        /* since the control thread was woken */
	uint32_t executed; /* commands since then, or since none was left */
	bool left;         /* commands, or packets of the keying thread, wait for the next round */
	bool napped; /* since the last round. New commands wait until the burst has been sent */
	/* The oldest burst is complete, but its packets are not sent: out[0 .. held_outs). They
	 * leave with the system call that waits for the next burst. */
	bool held;
	bool may_hold; /* worker_loop() runs, so somebody sends them */
	bool polled;   /* poll_fd may have ready descriptors, so the worker waits there */
	uint32_t held_outs;
	bool audio_last;        /* the last burst came from audio sessions: steering is next */
	struct packet_out *out; /* [batch_max] */
	struct coalesce coalesce;
	struct overload overload;
	struct media_guard guard; /* scratch */
	uint64_t looked_ns;       /* when the last burst was received */
	uint64_t clock_ns;        /* the last reading of a stage's clock */
	/* Written by the worker, read by any thread. */
	struct hist delay; /* ns from the kernel's receive stamp until after the send */
	struct hist batch; /* packets per burst */
	struct hist stage[WORKER_STAGES];
	_Atomic uint64_t bursts, commands, command_errors;
	_Atomic uint64_t pierced;  /* empty packets sent, see media_pierce() */
	_Atomic uint64_t bytes_in; /* of all received datagrams */
	/* of relayed datagrams; where SRTP is used, of authentic ones */
	_Atomic uint64_t bytes_relayed;
	_Atomic uint64_t rounds; /* iterations of the loop: shows that the thread is alive */
};

/* Does everything but start the thread. err: one line. 0 or -errno. */
int worker_create(struct worker **out, const struct worker_config *cfg, char *err, size_t err_len);
/* -EPERM: no permission for the priority. */
int worker_start(struct worker *w);
/* One iteration of the loop without waiting: commands, then one burst or the end of one in flight.
 * For a worker without a running thread (xcipher-bench path). Returns the number of packets
 * received. */
uint32_t worker_round(struct worker *w);
/* Joins the thread if it runs. Stop all workers before destroying the first: they may share packet
 * memory. */
void worker_stop(struct worker *w);
void worker_destroy(struct worker *w);
/* Control thread: CPU time of the worker's thread, 0 if none runs. */
uint64_t worker_cpu_ns(const struct worker *w);
/* Control thread: wake it up after pushing commands, unless it is awake. */
void worker_wake(struct worker *w);

#endif
