/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls in Redis: written while we are active, read back after a restart, followed while another
 * node is active. A hash per call, "xcipher:call:CALL-ID", with the fields c (all of it) and s
 * (what packets change), both sealed (persist/redis_crypt.h); every change is also published on
 * "xcipher:DB". Control thread only; never blocks. */
#ifndef PERSIST_REDIS_H
#define PERSIST_REDIS_H

#include "persist/save.h"
#include "persist/redis_link.h"
#include "proto/ngval.h"

struct redis_config {
	struct loop *loop;
	struct calls *calls;
	struct redis_server server;  /* where calls are read from, */
	struct redis_server write;   /* and written to; unset: the same */
	struct redis_tls_config tls; /* for rediss:// */
	const char *key_file;        /* see redis_crypt_create() */
	uint32_t expires_s;          /* of what is no longer renewed */
	bool standby;                /* follow from the start */
	uint16_t node;               /* tells instances of one machine apart: the ng port */
	bool (*has_room)(void *arg); /* may another call be brought back now? */
	void *has_room_arg;
};

struct redis;

/* err: one line. 0 or -errno; that Redis is away is no error. */
int redis_create(struct redis **out, const struct redis_config *cfg, char *err, size_t err_len);
/* Serves the loop until all calls are back, or it is clear that Redis is away: then they come back
 * when it does. */
void redis_wait(struct redis *r, uint64_t at_most_ns);
/* Writes what is still to be written, for half a second at most. Calls stay in Redis. */
void redis_destroy(struct redis *r);

/* Passes changes to the kernel before the command's reply is sent, so that an acknowledged change
 * survives a crash. */
void redis_flush(struct redis *r);

/* Take over the calls that were followed, or leave ours to another node. -EALREADY. */
int redis_active(struct redis *r);
int redis_standby(struct redis *r);

struct redis_usage {
	bool standby, up, refusing;
	uint64_t waiting; /* calls, and removals of calls, that are not written yet */
	uint64_t written, errors, times_away, restored, skipped, followed, removals_lost;
	uint64_t refused; /* values and messages from Redis that were not authentic, or repeated */
};
void redis_usage(const struct redis *r, struct redis_usage *out);
/* Adds the dictionary "redis". */
void redis_stats(const struct redis *r, struct pool *p, struct ngval *dict);

#endif
