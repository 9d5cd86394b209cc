/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering: how packets are received and sent. One interface, several implementations:
 * "udp": ordinary sockets, no privileges.
 * "nfqueue": netfilter delivers packets in bursts, results leave through a raw socket. Other
 * packets pass on to the ordinary sockets, which are served as in "udp", so that nothing is lost if
 * a rule is missing.
 * "kernel": our kernel module instead of rules, and a ring of packets in the arena instead of the
 * queue; "nfqueue" if it is not loaded.
 * "xdp": AF_XDP, where card or driver access the arena directly. Other packets use the ordinary
 * sockets. */
#ifndef STEER_STEER_H
#define STEER_STEER_H

#include "packet/arena.h"
#include "packet/guard.h"
#include "packet/packet.h"
#include "steer/counters.h"

#define STEER_MAX_LOCAL 16 /* local addresses */

enum steer_xdp_mode {
	STEER_XDP_AUTO,     /* the first supported one of this list */
	STEER_XDP_ZEROCOPY, /* zero copy: the card itself uses our memory */
	STEER_XDP_COPY,     /* program in the driver; the kernel copies packets */
	STEER_XDP_SKB,      /* program after the driver (generic mode): any interface */
};

/* nfqueue: how results of IPv4 packets leave. */
enum steer_queue_send {
	STEER_QUEUE_AUTO,    /* by verdict if the host is set up for it */
	STEER_QUEUE_RAW,     /* packets are dropped, and results leave by a raw socket */
	STEER_QUEUE_VERDICT, /* results replace packets, and the kernel forwards them */
};

/* udp: how sockets are served. */
enum steer_udp_io {
	STEER_UDP_AUTO,  /* io_uring if the kernel allows it */
	STEER_UDP_URING, /* only so */
	STEER_UDP_PLAIN, /* epoll, recvmmsg and sendmmsg */
};

struct host;
struct early;
struct steer_hub;
struct knl;

struct steer_config {
	struct endpoint local[STEER_MAX_LOCAL]; /* addresses to receive on; ports are 0 */
	uint32_t locals;
	uint16_t port_min, port_max; /* all workers' ports */
	uint32_t workers;
	bool workers_auto;                /* open() may reduce workers, if more would not help */
	uint16_t queue_num;               /* nfqueue: first queue, one per worker */
	enum steer_queue_send queue_send; /* nfqueue; no longer AUTO after open() */
	bool queue_closed;                /* nfqueue: packets that find the queue full are
					   * dropped */
	bool queue_only;                  /* kernel: the module relays nothing by itself */
	bool ring;                        /* kernel: packets use a ring, if the module can */
	/* kernel: mark of results sent by verdict, for the module to send; 0 = the host forwards */
	uint32_t queue_mark;
	enum steer_udp_io udp_io; /* udp; AUTO is PLAIN unless open() decided */
	uint32_t burst_max;
	uint32_t bursts; /* bursts received but without verdict; 0 = 1 */
	/* xdp: interface names, separated by ','; "" or NULL: those with the local addresses */
	const char *xdp_interfaces;
	enum steer_xdp_mode xdp_mode;
	uint32_t port_rate;   /* kernel: packets per second of one port; 0: no limit */
	uint32_t source_rate; /* all but udp: packets per second of one source address; 0: no
			       * limit */
	struct knl *knl;    /* kernel: for requests by the control thread; from open() to close() */
	struct knl *events; /* kernel: receives events; from open() to close(); NULL: none */
	uint32_t knl_features; /* kernel: set by open(): features of daemon and module */
	bool relays;           /* kernel: set by open(): the kernel may relay media */
	bool relays_copies;    /* kernel: set by open(): also to several destinations */
	/* kernel: set by open(): also passed-through SRTP, as indexes can be followed */
	bool relays_srtp;
	struct steer_hub *hub;   /* shared by all workers; from open() to close() */
	struct early *early;     /* nfqueue: the same; NULL: only media know guards */
	const struct host *host; /* NULL: unknown (tests) */
};

/* The ports of worker w: one contiguous, even-aligned part of the range, so that one netfilter rule
 * per worker suffices: [*min, *max]. Pure. */
void steer_worker_ports(
	const struct steer_config *cfg, uint32_t worker, uint16_t *min, uint16_t *max);

/* Slots that the worker assigns to bursts itself (recv()'s first_slot, copies). */
static inline uint32_t steer_first_slots(const struct steer_config *cfg)
{
	return cfg->burst_max * (cfg->bursts ? cfg->bursts : 1);
}

struct steer; /* one worker's steering source */

/* A stream for the kernel to relay: RTP of one SSRC from one source to one port, and RTCP on
 * request. It is forwarded unchanged to the destination. */
#define STEER_COPIES 7
struct steer_relay {
	struct endpoint source, to;
	struct local_port local, from; /* port that receives it, and port that sends it */
	uint32_t ssrc;
	uint32_t id; /* whose it is */
	uint8_t tos;
	bool rtcp;
	bool strict;    /* drop packets of other sources */
	uint8_t copies; /* number of further destinations, if the steering supports several */
	struct steer_copy {
		struct endpoint to;
		struct local_port from;
		uint8_t tos;
	} copy[STEER_COPIES];
};

struct steer_relayed { /* the kernel's own counters for a port, since we opened it */
	uint64_t packets, bytes;
	/* CLOCK_REALTIME of the port's last packet, whether relayed or not; 0: none */
	uint64_t last_ns;
	uint32_t id;
	uint64_t strangers; /* packets of other sources, dropped or reported */
	bool has_seq;       /* seq is valid: of the last RTP relayed since relaying began */
	uint16_t seq;
	bool now; /* the kernel still relays it */
};

/* Events of the kernel. source, ssrc: a packet of another one was received, and is passed to us;
 * silence: of STEER_SILENCE_MS; flood: packets over a rate are dropped. X(id, name in
 * statistics) */
#define STEER_SILENCE_MS 5000u
#define STEER_EVENTS(X)       \
	X(SOURCE, "source")   \
	X(SSRC, "ssrc")       \
	X(SILENCE, "silence") \
	X(FLOOD, "flood")

enum steer_event_kind {
#define X(id, name) STEER_EVENT_##id,
	STEER_EVENTS(X)
#undef X
		STEER_EVENT_KINDS
};

struct steer_event {
	enum steer_event_kind kind;
	uint32_t worker, id;           /* id: of the steer_relay; UINT32_MAX: not relayed */
	struct endpoint local, source; /* source: family 0 if there is none */
};

enum steer_port {
	/* datagrams other than RTP: recv() must receive each of them, whatever its first bytes and
	 * length */
	STEER_PORT_UNREAD = 1,
	STEER_PORT_EMERGENCY = 2, /* an emergency call: its packets are dropped last */
};

enum steer_gather {
	STEER_GATHER_NOT,  /* the worker waits by itself, for the epoll */
	STEER_GATHER_WAIT, /* a descriptor becomes readable when it is time for recv() */
	STEER_GATHER_NOW,  /* recv() is worth its while already */
};

struct steer_wait {
	uint64_t wait_ns; /* as of gather() */
	/* Written by send_and_wait(): when the packets had been sent, CLOCK_REALTIME and
	 * CLOCK_MONOTONIC. */
	uint64_t sent_real_ns, sent_ns;
	/* Written: descriptors of the worker's epoll may be ready. Until the epoll reports none,
	 * the worker waits there. */
	bool polled;
};

struct steer_ops {
	const char *name;
	/* Fallback when open() fails. NULL: none. */
	const struct steer_ops *instead;
	/* These four are optional; NULL: nothing to do. Called first and last by the control
	 * thread, for state shared by all workers, in cfg->hub. close() without open() is
	 * allowed. */
	int (*open)(struct steer_config *cfg, char *err, size_t err_len);
	void (*close)(struct steer_config *cfg);
	/* After open(): arena slots for one worker, if more than steer_first_slots(). */
	uint32_t (*slots)(const struct steer_config *cfg);
	/* After create(): the arena for recv() and send(). It stays until destroy(). */
	int (*memory)(struct steer *s, const struct arena *a, char *err, size_t err_len);
	/* Once, control thread, before workers run: netfilter rules etc. err: one line with cause
	 * and remedy. */
	int (*setup)(const struct steer_config *cfg, char *err, size_t err_len);
	/* Undoes setup(). Safe to call twice, and before setup() to remove leftovers of a killed
	 * instance. */
	void (*teardown)(const struct steer_config *cfg);
	/* These three are optional: all or none. Control thread, after setup(), whose effect other
	 * programs may undo. Returns a descriptor to watch for reading, which the caller closes, or
	 * -errno. */
	int (*watch)(void);
	/* Reads it: *missing becomes true when part of the set-up was undone, false when it was
	 * restored. 0 or -errno. */
	int (*watched)(const struct steer_config *cfg, int fd, bool *missing);
	/* Repeats setup(), also if part of it is still in place. */
	int (*setup_again)(const struct steer_config *cfg, char *err, size_t err_len);
	int (*create)(struct steer **out, const struct steer_config *cfg, uint32_t worker,
		char *err, size_t err_len);
	void (*destroy)(struct steer *s);
	/* Optional. Worker thread. What the port carries: bits of enum steer_port. None of them
	 * after port_add(). */
	void (*carries)(struct steer *s, struct local_port local, unsigned what);
	/* Readable when packets may wait (an epoll fd). */
	int (*fd)(const struct steer *s);
	/* These two are optional, both or none: the steering waits for packets, or the kernel
	 * gathers them for a burst. wakes(): once, after create() and memory(): may add a further
	 * descriptor to this epoll, which wakes the worker. The worker does not read it. 0 or
	 * -errno. */
	int (*wakes)(struct steer *s, int epoll);
	/* Worker thread, before it waits for packets, while no burst is in flight: packets shall
	 * gather for this time, from the arrival of the first one, or until many have; 0: they
	 * shall not. May wait until that epoll is readable. */
	enum steer_gather (*gather)(struct steer *s, uint64_t wait_ns);
	/* Optional, in addition to gather(). Worker thread, with the results of the oldest burst
	 * (n may be 0), while no other burst is in flight: send() and wait in one system call.
	 * Returns when it is time for recv(), or when a descriptor of the worker's epoll is
	 * ready. False: nothing was done, so use send() and gather(). */
	bool (*send_and_wait)(struct steer *s, const struct arena *a, struct packet_out *out,
		uint32_t n, struct steer_wait *w);
	/* Worker thread. fd: bound, non-blocking UDP socket for this local port; owned by the
	 * steering afterwards. */
	int (*port_add)(struct steer *s, struct local_port local, int fd);
	void (*port_del)(struct steer *s, struct local_port local); /* closes the socket */
	/* Receives up to max packets into arena.in without blocking. Uses slots from first_slot on,
	 * or the steering's own slots beyond steer_first_slots(). Returns their number. Packets
	 * returned together are a burst, and stay until its verdict. As many bursts as configured
	 * may wait. */
	uint32_t (*recv)(struct steer *s, const struct arena *a, uint32_t first_slot,
		struct packet_in *in, uint32_t max);
	/* Sends n results of the oldest burst from arena.out, in as few system calls as possible.
	 * Sets out[i].failed. */
	void (*send)(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n);
	/* Reports the verdicts of the oldest burst to the kernel (PACKET_PASS: to the socket; all
	 * others are consumed). */
	void (*verdict)(struct steer *s, const struct packet_in *in, uint32_t n);
	const struct steer_counters *(*counters)(const struct steer *s);
	/* The rest is optional, all or none: relaying by the kernel. relays(): whether this host's
	 * kernel can.
	 * relay(): worker thread. Starts once no packet of the stream waits in the daemon, so that
	 * none is overtaken; gives up after two seconds. -EAGAIN: too many streams wait already. */
	bool (*relays)(const struct steer_config *cfg);
	int (*relay)(struct steer *s, const struct steer_relay *r);
	/* Worker thread. From now on the daemon receives the packets. */
	void (*unrelay)(struct steer *s, struct local_port local);
	/* Control thread. Counters of one port, relayed or not; or of all that the kernel relays
	 * now. 0 or -errno. */
	int (*relayed)(
		const struct steer_config *cfg, struct local_port local, struct steer_relayed *out);
	int (*relayed_all)(const struct steer_config *cfg, uint32_t worker,
		void (*put)(void *arg, const struct steer_relayed *r), void *arg);
	/* Control thread. Descriptor to watch for reading; -1: no events. */
	int (*events_fd)(const struct steer_config *cfg);
	/* Reads events without waiting. 0 or -errno. */
	int (*events)(const struct steer_config *cfg,
		void (*put)(void *arg, const struct steer_event *e), void *arg);
	/* 0; -ENOENT: the kernel's part is gone, and packets use the ordinary sockets. */
	int (*alive)(const struct steer_config *cfg);
	/* Optional. Packets of this network namespace that the kernel's part has dropped over the
	 * limit per source address, since it was loaded. 0 or -errno. */
	int (*over_source_rate)(const struct steer_config *cfg, uint64_t *packets);
	/* After -ENOENT: 0: it is back, call again() for all workers; -ENOENT: still gone; other
	 * errors: it is back but unusable, with the reason in err. */
	int (*back)(const struct steer_config *cfg, char *err, size_t err_len);
	/* Optional, independent of others. Worker thread. Sets the guard of this port, which is
	 * anything; NULL: no guard. It ends with port_del(). window.at_ns: CLOCK_MONOTONIC. */
	void (*guard)(struct steer *s, struct local_port local, const struct guard *g);
	/* Worker thread; optional in addition to watch(). Receives all ports' packets by the
	 * steering again. May take several recv() calls if ports are announced one by one. Safe to
	 * call twice. */
	void (*again)(struct steer *s);
};

extern const struct steer_ops steer_udp;
extern const struct steer_ops steer_nfqueue;
extern const struct steer_ops steer_kernel;
extern const struct steer_ops steer_xdp;

#endif
