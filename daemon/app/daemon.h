/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the daemon, as main.c starts and stops them. daemon_packets.c creates the packet
 * side: steering, workers, ports, relay. daemon_control.c creates the rest: calls, ng and its
 * transports, Redis, Homer. Functions return 0, or -errno with one line in err. After a failure,
 * stop() in main.c undoes what was created. Control thread only. */
#ifndef APP_DAEMON_H
#define APP_DAEMON_H

#include "app/background.h"
#include "batch/engines.h"
#include "observe/cdr.h"
#include "app/engines.h"
#include "observe/homer.h"
#include "bridge/interfaces.h"
#include "bridge/kernel_watch.h"
#include "observe/limits.h"
#include "app/notify.h"
#include "app/operate.h"
#include "app/options.h"
#include "record/record.h"
#include "bridge/bridge.h"
#include "bridge/rules_keep.h"
#include "bridge/audio.h"
#include "bridge/sessions.h"
#include "observe/stats.h"
#include "worker/worker.h"
#include "base/clock.h"
#include "base/loop.h"
#include "call/call.h"
#include "persist/redis.h"
#include "control/server.h"
#include "control/tcp.h"
#include "control/teardown.h"
#include "host/host.h"
#include "keying/mikey_host.h"

#define DAEMON_ERR_LEN 512

struct daemon {
	struct options o;
	struct engines engines;
	struct steer_config steer;
	bool rules;
	struct worker *worker[64];
	struct tap *tap[64]; /* one per worker, if anything may be recorded */
	uint32_t taps;
	struct record *record;
	struct audio_files *files; /* NULL: no files are played */
	struct cdr *cdr;           /* NULL: no records of ended calls */
	struct ended *ended;
	struct {
		uint64_t second;
		uint32_t lines, held;
	} troubles; /* logged */
	struct recorder recorder;
	uint32_t workers;
	struct ports *ports;
	struct bridge *relay;
	struct kernel_watch *kernel;   /* NULL: it steers nothing */
	struct rules_keep *rules_keep; /* NULL: there are no rules */
	struct reach reach;
	struct relay relay_border;
	struct side_channel *channel[64]; /* one per worker, with keying threads */
	uint32_t channels;
	uint32_t legs;                    /* number of legs for which all workers have contexts */
	struct bridge_sessions *sessions; /* NULL: no keying threads */
	struct sessions sessions_border;
	struct daemon_audio {
		/* of each worker and codec thread, sorted both ways */
		struct audio_channel **by_thread, **by_worker;
		uint32_t channels;
		struct bridge_audio *bridge; /* NULL: no codec threads */
		struct audio border;
		struct g722_device_ops *g722; /* [codec threads]; NULL: no device helps them */
		int event_fd;
	} audio;
	struct mikey_host mikey; /* config NULL: MIKEY is off */
	struct daemon_zrtp {
		struct zrtp_store *store; /* NULL: no cache of retained secrets */
		struct redis_crypt *crypt;
		uint64_t saved;  /* version of the store that the file has */
		uint32_t wait_s; /* until the next attempt to save */
		bool failed;     /* the last attempt to save failed, which was logged */
	} zrtp;
	struct codec_registry *codecs;
	struct calls *calls;
	struct redis *redis; /* NULL: calls are not saved */
	struct handler *handler;
	struct ng_dispatch *dispatch;
	struct ng_server *ng;
	struct loop_timer *ng_waiting;   /* executes waiting ng requests; NULL: none waits */
	struct ng_tcp *ng_tcp, *ng_unix; /* NULL: not used */
	struct handler_web web;
	struct homer *homer;
	struct teardown *teardown;
	struct stats_input stats;
	struct limits limits;
	struct operate operate;
	struct loop *loop;
	struct host *host;
	struct interfaces interfaces;
	struct loop_timer *reach_again; /* NULL: no destinations need another check */
	bool stopping;
	int ack_fd, signal_fd, sessions_fd;
	struct notify notify;
	struct alive alive;
	struct clock_pair clock;
	uint64_t second_ns;       /* CLOCK_MONOTONIC of the last run of on_second() */
	char err[DAEMON_ERR_LEN]; /* one line, for the caller of the start */
};

/* Reports a failure, unless d->err already has a message. Returns err. */
int daemon_fail(struct daemon *d, int err, const char *what);
/* Leaves the loop. */
void daemon_end(void *daemon);

/* --- daemon_packets.c ------------------------------------------------------------------------- */

/* After the engines, which determine the bursts in flight; before the workers. Falls back to
 * another steering if this one is unavailable. */
int daemon_steering_open(struct daemon *d);
int daemon_workers_create(struct daemon *d);
int daemon_workers_start(struct daemon *d);
/* Maximum ports of a worker, over all local addresses. */
uint32_t daemon_ports_per_worker(const struct daemon *d);
/* The system calls used for sockets: "io_uring" or "plain". */
const char *daemon_socket_calls(const struct daemon *d);

/* Sets up d->reach (call/reach.h). Before the workers start, as they read it too. */
void daemon_reach_init(struct daemon *d);

/* --- daemon_mikey.c --------------------------------------------------------------------------- */

/* Reads the file of identities; *out is NULL without one. 0, or -errno with one line in err. */
int daemon_mikey_load(const struct daemon *d, struct mikey_config **out, char *err, size_t err_len);
/* Before the calls are created. */
int daemon_mikey_start(struct daemon *d);
/* Replaces the present configuration by config; NULL: no change. */
void daemon_mikey_take(struct daemon *d, struct mikey_config *config);
/* Each second. */
void daemon_mikey_tick(struct daemon *d);
/* After the calls ended. */
void daemon_mikey_stop(struct daemon *d);

/* --- daemon_zrtp.c ---------------------------------------------------------------------------- */

/* Reads the file of --zrtp-cache. Call it before the keying threads are created. */
int daemon_zrtp_create(struct daemon *d);
/* Call it each second: saves the store if it changed. */
void daemon_zrtp_tick(struct daemon *d);
/* Call it after the keying threads ended: saves the last changes. */
void daemon_zrtp_stop(struct daemon *d);

/* --- daemon_keying.c -------------------------------------------------------------------------- */

/* The certificate of --dtls-cert. *out stays NULL without this option. 0, or -errno with one line
 * in err. */
int daemon_cert_load(const struct daemon *d, struct dtls_cert **out, char *err, size_t err_len);
/* The side channel of the next worker, if there are keying threads. */
int daemon_channel_create(struct daemon *d);
/* After the workers were created. */
int daemon_keying_create(struct daemon *d);
/* After the calls were created, and before the first is restored. */
int daemon_keying_start(struct daemon *d);
/* Each second. */
void daemon_keying_tick(struct daemon *d);
/* After the calls ended and the workers stopped, before these are destroyed. */
void daemon_keying_stop(struct daemon *d);
/* After the workers were destroyed. */
void daemon_channels_destroy(struct daemon *d);

/* --- daemon_audio.c --------------------------------------------------------------------------- */

/* The channels of all codec threads, before the workers are created. */
int daemon_audio_channels_create(struct daemon *d);
/* After the workers were created. */
int daemon_audio_create(struct daemon *d);
/* After the calls were created, and before the first is restored. */
int daemon_audio_start(struct daemon *d);
/* After the calls ended and the workers stopped, before these are destroyed. */
void daemon_audio_stop(struct daemon *d);
/* After the workers were destroyed. */
void daemon_audio_channels_destroy(struct daemon *d);

/* --- daemon_control.c ------------------------------------------------------------------------- */

/* Creates the calls, restores stored ones, and opens ng over UDP. Requests are not answered until
 * the loop watches the socket. */
int daemon_control_start(struct daemon *d);
/* Starts the other transports of ng, and the services that get reports about calls. All of them
 * register themselves with the loop. */
int daemon_transports_start(struct daemon *d);

#endif
