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
#define CODEC_FAULTS(X)                                                  \
	X(crashed, "processes of streams that ended by themselves")      \
	X(hung, "processes that did not answer in time and were killed") \
	X(overwrote, "processes that wrote outside of a buffer")         \
	X(lied, "results that the interface does not allow")             \
	X(restarted, "streams that got a new process")                   \
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
	uint32_t answer_ms;  /* for one call */
	uint32_t per_stream; /* restarts of a stream */
	uint32_t per_minute; /* restarts of all streams of the plug-in */
};
/* Reasonable values; program and plugin are the caller's. */
void codec_home_defaults(struct codec_home_cfg *cfg);

/* At most so many restarts a minute. Pure. */
struct codec_budget {
	uint32_t per_minute, left;
	uint64_t since_ns;
};
bool codec_budget_take(struct codec_budget *b, uint64_t now_ns);

struct codec_home {
	struct codec_home_cfg cfg;
	struct codec_hello hello; /* checked: texts are terminated and printable */
	struct codec_faults faults;
	pthread_mutex_t lock; /* of the rest */
	struct codec_budget budget;
	pid_t pid;
	int sock;
};

/* Returns 0, or -errno and a reason in why (CODEC_WHY_MAX bytes). Waits load_ms at most. The
 * strings of cfg must outlive the home. */
int codec_home_create(struct codec_home **out, const struct codec_home_cfg *cfg, char *why);
/* Ends the program and all its streams. */
void codec_home_destroy(struct codec_home *h);

/* A new process for a stream: its memory, its socket and a descriptor of the process, all of which
 * the caller closes. 0 or -errno; -EPIPE: the program has ended. */
struct codec_process {
	struct codec_shared *shared;
	int sock, process;
};
int codec_home_start(struct codec_home *h, struct codec_process *out);
/* Kills it. */
void codec_process_end(struct codec_process *p);

#endif
