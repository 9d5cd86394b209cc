/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls in Redis: written while this node is active, restored after a restart, mirrored while
 * another node is active. One hash per call, "xcipher:call:CALL-ID", has the fields c (whole call)
 * and s (state changed by packets), both encrypted (persist/redis_crypt.h). Every change is also
 * published on "xcipher:DB". Control thread only; never blocks. */
#ifndef PERSIST_REDIS_H
#define PERSIST_REDIS_H

#include "persist/save.h"
#include "persist/redis_link.h"
#include "proto/ngval.h"

struct redis_config {
	struct loop *loop;
	struct calls *calls;
	struct redis_server server;  /* server to read calls from, */
	struct redis_server write;   /* and to write to; unset: the same */
	struct redis_tls_config tls; /* for rediss:// */
	const char *key_file;        /* see redis_crypt_create() */
	uint32_t expires_s;          /* lifetime of entries that are not renewed */
	bool standby;                /* start as standby */
	uint16_t node;               /* distinguishes instances of one machine: the ng port */
	bool (*has_room)(void *arg); /* whether another call may be restored now */
	void *has_room_arg;
};

struct redis;

/* err: one line. 0 or -errno; an unreachable Redis is not an error. */
int redis_create(struct redis **out, const struct redis_config *cfg, char *err, size_t err_len);
/* Runs the loop until all calls are restored, or Redis turns out to be unreachable; calls are then
 * restored when it returns. */
void redis_wait(struct redis *r, uint64_t at_most_ns);
/* Writes pending changes, for half a second at most. Calls stay in Redis. */
void redis_destroy(struct redis *r);

/* Passes changes to the kernel before the command's reply is sent, so that an acknowledged change
 * survives a crash. */
void redis_flush(struct redis *r);

/* Takes over the mirrored calls, or leaves ours to another node. -EALREADY. */
int redis_active(struct redis *r);
int redis_standby(struct redis *r);

struct redis_usage {
	bool standby, up, refusing;
	uint64_t waiting; /* calls and removals not written yet */
	uint64_t written, errors, times_away, restored, skipped, followed, removals_lost;
	uint64_t refused; /* values and messages from Redis that were not authentic, or repeated */
};
void redis_usage(const struct redis *r, struct redis_usage *out);
/* Adds the dictionary "redis". */
void redis_stats(const struct redis *r, struct pool *p, struct ngval *dict);

#endif
