/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the bridge; only they and a test include it. bridge.c sends commands and
 * receives acknowledgements. bridge_ports.c, bridge_keys.c, bridge_marks.c and bridge_stats.c are
 * the operations for calls (call/relay.h describes them). bridge_shortage.c reports what ran out.
 * Control thread only. */
#ifndef BRIDGE_BRIDGE_INT_H
#define BRIDGE_BRIDGE_INT_H

#include "bridge/bridge.h"
#include "bridge/bridge_sent.h"
#include "bridge/handles.h"
#include "base/log.h"

/* The reports of a worker on a context, and the time from which they count. */
struct marks_known {
	struct relay_marks *marks; /* NULL: nothing yet; as long as its n asks for */
	uint8_t generation;
};

struct bridge_site { /* what the control thread keeps per worker */
	struct worker *w;
	struct handles streams, ctxs, keys; /* keys: pairs, slot = 2 * handle */
	uint32_t (*lent)[MEDIA_EPOCHS];     /* by pair: the additional pairs of a key with a kdr */
	struct marks_known *told;           /* by context */
	struct bridge_sent sent;
	struct relay_marks arriving;
	uint32_t touched[MEDIA_HANDLES]; /* handles below have memory: media_handles_touch() */
	bool unseen;                /* commands were sent, and the worker was not woken since */
	struct worker_cmd *backlog; /* [backlog_cap]: n commands from first on wait for the ring */
	size_t backlog_first, backlog_n, backlog_cap;
	uint32_t ports;
	uint64_t cpu_ns; /* CPU time of its thread at the last tick */
};

/* Resources that can run out, and the remedy. X(id, text) */
#define SHORTAGES(X)                                                                     \
	X(PORTS, "local ports: widen port-min to port-max, or add an interface")         \
	X(CONTEXTS,                                                                      \
		"contexts (one for each pair of ports): widen port-min "                 \
		"to port-max")                                                           \
	X(KEYS,                                                                          \
		"key slots (four pairs for each pair of ports): terminals "              \
		"use several keys or a key derivation rate; widen port-min to port-max") \
	X(FILES, "descriptors: raise LimitNOFILE (systemd) or ulimit -Hn")               \
	X(MEMORY, "memory for sockets: see dmesg")                                       \
	X(RING,                                                                          \
		"room for commands to an overloaded worker: check whether "              \
		"something else takes its processor (steal time, a debugger, a full device)")

enum shortage {
#define X(id, text) SHORT_##id,
	SHORTAGES(X)
#undef X
		SHORTAGE_COUNT
};

struct bridge {
	struct bridge_config cfg;
	struct log_limit shortage_log[SHORTAGE_COUNT], behind_log, foreign_log;
	uint64_t foreign; /* ports_foreign_count() at the last look */
	uint64_t shortages[SHORTAGE_COUNT];
	struct bridge_site *site;
	struct balance *place; /* [workers] */
	bool emergency;        /* the current call may take ports and keys of the reserve */
	uint64_t tick_ns;
	struct offload *offload; /* NULL: the kernel relays nothing */
	uint64_t lost;           /* failed deletions (out of memory): their handles stay taken */
};

/* --- bridge.c -------------------------------------------------------------------------------- */

/* Sends optional commands: all of them to the ring now, or none. The worker sees them when it is
 * awake, or after bridge_wake(). 0 or -EAGAIN. */
int bridge_push(struct bridge_site *s, const struct worker_cmd *cmd, uint32_t n);
/* Sends commands of a call: the worker receives all of them at once, now or when its ring has room,
 * in order. 0; -EAGAIN if too many are queued already, -ENOMEM. */
int bridge_queue(struct bridge *r, struct bridge_site *s, const struct worker_cmd *cmd, uint32_t n);
/* Cannot fail: queues the command if the ring is full. */
void bridge_push_deletion(struct bridge *r, struct bridge_site *s, const struct worker_cmd *cmd);

/* For a new handle: gets memory for it and some more. */
void bridge_touch(struct bridge_site *s, enum media_handle h, uint32_t id);

/* --- bridge_shortage.c ------------------------------------------------------------------------ */

/* Counts and logs it. Returns err, for the call. */
int bridge_shortage(struct bridge *r, enum shortage what, int err);

/* --- bridge_ports.c --------------------------------------------------------------------------- */

int bridge_op_port_take(void *arg, struct relay_port *out, uint32_t worker, uint8_t local);
int bridge_op_port_take_more(void *arg, struct relay_port *out, uint32_t worker, uint8_t local);
int bridge_op_port_take_at(
	void *arg, struct relay_port *out, uint32_t *worker, uint8_t local, uint16_t rtp_port);
void bridge_op_port_release(void *arg, uint32_t worker, const struct relay_port *port);
/* The worker has closed a socket. id: as in WORKER_PORT_DEL. */
void bridge_port_closed(struct bridge *r, struct bridge_site *s, uint32_t id, uint64_t now_ns);

/* --- bridge_keys.c ---------------------------------------------------------------------------- */

int bridge_op_ctx_take(void *arg, uint32_t *ctx, uint32_t worker);
void bridge_op_ctx_release(void *arg, uint32_t worker, uint32_t ctx);
int bridge_op_key_take(void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m,
	const struct srtp_master *rtcp);
int bridge_op_preauth_take(
	void *arg, uint32_t *slot, uint32_t worker, const struct srtp_master *m, uint8_t scheme);
void bridge_op_key_release(void *arg, uint32_t worker, uint32_t slot);

/* --- bridge_marks.c --------------------------------------------------------------------------- */

void bridge_op_marks_ask(void *arg, uint32_t worker, const uint32_t *ctx, uint32_t n);
const struct relay_marks *bridge_op_marks(void *arg, uint32_t worker, uint32_t ctx);
/* Forgets the known indexes that start again, and ignores earlier reports of the worker. */
void bridge_marks_forget(struct bridge_site *s, uint32_t ctx, bool rx, bool tx);
/* The start indexes of a context count as reported, until the worker reports newer ones. */
void bridge_marks_seed(struct bridge_site *s, const struct media_cmd *cmd);
/* Measures how fast the index advances. before: the last report on the same SSRC, or NULL. */
void bridge_marks_rate(struct relay_mark *now, const struct relay_mark *before, uint64_t now_ns);
/* Before any acknowledgement is acted upon: a handle that is given back may be another call's next.
 */
void bridge_marks_take(struct bridge_site *s);

/* --- bridge_stats.c --------------------------------------------------------------------------- */

void bridge_op_stats(void *arg, uint32_t worker, uint32_t stream, struct relay_stats *out);
uint64_t bridge_op_heard(void *arg, uint32_t worker, uint32_t stream);
struct media_handover bridge_op_handover(void *arg, uint32_t worker, uint32_t stream);
uint64_t bridge_op_arrived(void *arg, uint32_t worker, uint32_t stream, bool *kernel);
void bridge_op_key_usage(void *arg, uint32_t worker, uint32_t slot, struct media_key_usage *out);
/* For offload: the present state of a stream. */
void bridge_look(void *arg, uint32_t worker, uint32_t stream, struct offload_look *out);

#endif
