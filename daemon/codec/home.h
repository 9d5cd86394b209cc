/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's end of a program that runs one plug-in (helper_main.c): starts it, learns its codecs,
 * and has it start a process per stream. Threads: any. */
#ifndef CODEC_HOME_H
#define CODEC_HOME_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "codec/shared.h"

/* Faults of the streams of a plug-in, and their consequences. */
#define CODEC_FAULTS(X)                                                     \
	X(crashed, "processes of streams that ended by themselves")         \
	X(hung, "processes that did not answer in time and were killed")    \
	X(silent, "times that the program did not start a process in time") \
	X(overwrote, "processes that wrote outside of a buffer")            \
	X(lied, "results that the interface does not allow")                \
	X(restarted, "streams that got a new process")                      \
	X(given_up, "streams that had too many faults")

struct codec_faults {
#define CODEC_FAULT_FIELD(name, text) _Atomic uint64_t name;
	CODEC_FAULTS(CODEC_FAULT_FIELD)
#undef CODEC_FAULT_FIELD
};

struct codec_home_cfg {
	const char *program; /* xcipher-codec-worker */
	const char *plugin;  /* its file */
	uint32_t load_ms;    /* to load and test it */
	uint32_t start_ms;   /* to start a process */
	uint32_t answer_ms;  /* for one call */
	uint32_t hangs;      /* calls a minute that may take as long; see codec_home_patience() */
	uint32_t per_stream; /* restarts of a stream */
	uint32_t per_minute; /* restarts of all streams of the plug-in */
};
/* Reasonable values; program and plugin are the caller's. */
void codec_home_defaults(struct codec_home_cfg *cfg);

/* At most so many restarts, or waits for a call that hangs, a minute. Pure. */
struct codec_budget {
	uint32_t per_minute, left;
	uint64_t since_ns;
};
bool codec_budget_take(struct codec_budget *b, uint64_t now_ns);

struct codec_home {
	struct codec_home_cfg cfg;
	struct codec_hello hello; /* checked: texts are terminated and printable */
	struct codec_faults faults;
	_Atomic uint64_t hasty_until_ns; /* CLOCK_MONOTONIC */
	pthread_mutex_t lock;            /* of the rest */
	struct codec_budget budget, hangs;
	uint32_t owed; /* answers of the program that did not come in time */
	pid_t pid;
	int sock;
};

/* Starts the program, which loads and tests the plug-in. Several may run in parallel. Returns 0, or
 * -errno and a reason in why (CODEC_WHY_MAX bytes). The program's name must outlive the home. */
int codec_home_begin(struct codec_home **out, const struct codec_home_cfg *cfg, char *why);
/* Waits for its report, load_ms at most. After an error the home is destroyed. */
int codec_home_await(struct codec_home *h, char *why);
/* codec_home_begin(), then codec_home_await(). */
int codec_home_create(struct codec_home **out, const struct codec_home_cfg *cfg, char *why);
/* Ends the program and all its streams. */
void codec_home_destroy(struct codec_home *h);

/* A new process for a stream: its memory, its socket and a descriptor of the process, all of which
 * the caller closes. 0 or -errno; -EPIPE: the program has ended, or does not answer. It is waited
 * for once, start_ms, and not again before it has answered. */
struct codec_process {
	struct codec_shared *shared;
	int sock, process;
	pid_t pid;
};
int codec_home_start(struct codec_home *h, struct codec_process *out);
/* Call it every few ms while a process owes an answer. True: it will not answer, because it has
 * computed for longer than any call may, or it sleeps, as in a lock. A process that merely gets no
 * processor does neither. look: zeroed when the call begins. */
struct codec_look {
	bool begun, asleep;
	uint64_t first_ns, last_ns; /* processor time of the process */
};
bool codec_process_hangs(const struct codec_process *p, struct codec_look *look);
/* Kills it. */
void codec_process_end(struct codec_process *p);

/* How long to wait for a call, in ms. A codec thread has many streams, and all of them wait. So
 * after too many calls of a minute that hung, it is a tenth of answer_ms for the next minute. */
uint32_t codec_home_patience(const struct codec_home *h, uint64_t now_ns);
/* Counts a call that hung. */
void codec_home_hung(struct codec_home *h, uint64_t now_ns);

#endif
