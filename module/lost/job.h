/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A function's way from the SIP worker to a client process and back: a block of shared memory whose
 * address goes through a pipe. */
#ifndef LOST_JOB_H
#define LOST_JOB_H

#include <semaphore.h>

#include <core/parser/msg_parser.h>

#include "ask.h"

#define ROUTE_LEN 64

struct job {
	struct ask *ask;       /* after the job, in the same block */
	struct answer *answer; /* a block of its own; NULL: out of memory */
	int64_t deadline;      /* ms of now_ms() */
	int refs;              /* of a waited-for job: the worker and the client; atomic */
	bool wait;             /* a worker waits for done; else the transaction is suspended */
	bool reference;        /* counted in shared->references */
	sem_t done;
	unsigned tm_index, tm_label;
	char route[ROUTE_LEN];
	void *forks; /* forks_save() */
	int fork_count;
};

int64_t now_ms(void);

/* The answer of the last function in this process, for variables. NULL: not about this message. */
const struct answer *last_answer(const struct sip_msg *msg);

/* In mod_init, after settings are final; at the end. */
int job_init(void);
void job_destroy(void);

/* Runs what the script wants to know: from the cache, suspended, or waiting. Clears the ask.
 * Returns an enum result. */
int job_run(struct sip_msg *msg, struct ask *ask, str route);
/* Without a query. */
int job_result(struct sip_msg *msg, enum result r);

/* Gives the waiting process a copy of the answer, or resumes the transaction, and releases the job.
 * The caller keeps *a. Client process only. */
void job_conclude(struct job *j, const struct answer *a);

/* Asks the cache. Any process. */
bool job_cached(void *arg, const char *service, const struct spot *s, struct answer *a);

/* client.c: the processes that ask servers */
int client_pipes(void); /* before Kamailio forks */
int client_fork(void);  /* in the main process */
/* In a client process: runs the job to its end. False: this is not a client process. */
bool client_wait(struct job *j);

#endif
