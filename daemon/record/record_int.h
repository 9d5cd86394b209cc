/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the recorder. record.c is the control thread's side: names of files,
 * commands, start and stop. record_thread.c is the recording thread: files and packets. */
#ifndef RECORD_RECORD_INT_H
#define RECORD_RECORD_INT_H

#include <pthread.h>

#include "batch/engine.h"
#include "packet/arena.h"
#include "record/record.h"
#include "record/record_audio.h"
#include "base/log.h"

enum { ACTIVE_MAX = 4096, CMD_RING = 4 * ACTIVE_MAX };
enum { PART_LEN = 16 };
enum { CACHE = 64, KEY_SLOTS = 2 * (CACHE + 1) }; /* pair 0 is plain */

enum cmd_kind { CMD_START, CMD_MEDIA, CMD_NOTE, CMD_STOP };

struct cmd {
	enum cmd_kind kind;
	uint32_t tap;
	bool discard;
	char *text;                 /* heap: START: the path; NOTE: the line */
	char *about;                /* START: lines */
	struct record_media *media; /* MEDIA: heap */
	uint32_t parts;
};

struct active {
	struct active *next;
	uint32_t tap;
	struct record_file *file;
	struct record_audio *audio; /* NULL: no audio files */
	char *path;
	uint32_t parts;            /* number of earlier files, of an earlier daemon */
	struct record_counts told; /* the part already included in the sums */
	uint64_t told_skipped;
};

struct record {
	struct record_config cfg;
	/* The control thread's. */
	uint32_t last_tap, started;
	uint64_t stopped_total;
	struct ring cmds;
	/* The recording thread's. */
	pthread_t thread;
	bool running;
	_Atomic bool end;
	int wake_fd;
	struct arena arena;
	struct record_audio_env audio;
	int64_t real_ahead_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, as of this round */
	struct engine_queue *queue;
	struct active *active[ACTIVE_MAX]; /* hash by tap */
	struct cmd taken[CMD_RING];        /* commands in order; starts are already executed */
	uint32_t taken_n;
	uint32_t *seen_lost, *late_lost; /* per tap: of workers; late: as of the last flush */
	uint64_t flushed_ns, kept_ns;
	bool behind; /* a ring was half full since the last look */
	struct log_limit log_disk, log_slow, log_skipped;
	_Atomic uint64_t n_active, recordings, packets, bytes, lost, errors, removed, repaired,
		skipped;
};

static inline void record_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* The suffix of the file name after parts earlier files. */
void record_number_part(char out[PART_LEN], uint32_t parts);

/* The recording thread; arg: a struct record. */
void *record_thread(void *arg);

#endif
