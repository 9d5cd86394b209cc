/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions as calls see them (call/session.h), above the keying threads: handles, their serials,
 * our certificate. Control thread only. */
#ifndef BRIDGE_SESSIONS_H
#define BRIDGE_SESSIONS_H

#include "call/session.h"
#include "side/session.h"
#include "side/thread.h"
#include "srtp/suite.h"

#define SESSIONS_THREADS_MAX 16u
#define SESSIONS_WORKERS_MAX 64u

struct bridge_sessions_config {
	struct side_channel **channel; /* one per worker, in their order; outlive the sessions */
	uint32_t workers;
	uint32_t threads;  /* worker w uses the thread w % threads */
	uint32_t max;      /* sessions */
	uint64_t keep_not; /* capabilities that the threads drop */
	int event_fd;      /* eventfd; readable: call bridge_sessions_poll() */
	/* SRTP profiles of DTLS, the first is preferred; SUITE_PLAIN ends the list. */
	uint8_t profile[SUITE_COUNT];
	bool sha1;                     /* accept SHA-1 in a=fingerprint */
	bool zrtp_disclose;            /* as zrtp_config.disclose */
	struct zrtp_store *zrtp_store; /* must outlive the sessions; NULL: no retained secrets */
	/* The operator's certificate; takes a reference. NULL: creates one, and renews it by
	 * age. */
	struct dtls_cert *cert;
	/* Reports a session's event. 0, or -EAGAIN: repeat it later, and keep other events
	 * waiting. */
	int (*event)(void *arg, uint32_t session, const struct session_event *e);
	void *event_arg;
};

struct bridge_sessions;

/* The threads do not run yet. 0 or -errno. */
int bridge_sessions_create(struct bridge_sessions **out, const struct bridge_sessions_config *cfg);
int bridge_sessions_start(struct bridge_sessions *s);
/* Ends the threads and wipes all sessions. NULL is fine. */
void bridge_sessions_destroy(struct bridge_sessions *s);
extern const struct session_ops bridge_session_ops; /* arg: struct bridge_sessions */

/* Reports events, and sends queued commands. Called on the eventfd, which is also readable when a
 * thread has room for commands, and each second. */
void bridge_sessions_poll(struct bridge_sessions *s);
/* Uses this certificate for new associations. Others keep theirs, even if their offer is not
 * answered yet. Takes a reference. */
void bridge_sessions_use_cert(struct bridge_sessions *s, struct dtls_cert *cert);
/* Each second: replaces an old certificate for new associations. */
void bridge_sessions_tick(struct bridge_sessions *s, uint64_t now_s);

struct bridge_sessions_usage {
	uint32_t sessions;                 /* taken */
	uint32_t waiting;                  /* commands queued, as rings had no room */
	struct side_thread_counts threads; /* of all */
	const struct session_counts *total[SESSIONS_THREADS_MAX]; /* of each */
	uint32_t totals;
};
void bridge_sessions_usage(const struct bridge_sessions *s, struct bridge_sessions_usage *out);

#endif
