/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering: how packets come in and go out. One interface, several ways: "udp" (ordinary sockets,
 * no privileges), "nfqueue" (netfilter hands packets over in bursts, replies leave through a raw
 * socket; what is no media goes on to the ordinary sockets, which it serves like "udp", so that
 * nothing is lost when a rule is missing), "kernel" (the same with our kernel module in place of
 * the rules, or without it "nfqueue") and "xdp" (AF_XDP: the card or its driver writes into the
 * arena and reads from it; what it does not take comes by the ordinary sockets). */
#ifndef STEER_STEER_H
#define STEER_STEER_H

#include "packet/arena.h"
#include "packet/packet.h"
#include "steer/counters.h"

#define STEER_MAX_LOCAL 16 /* local addresses */

enum steer_xdp_mode {
	STEER_XDP_AUTO,     /* the best there is, in the order of this list */
	STEER_XDP_ZEROCOPY, /* the card itself uses our memory */
	STEER_XDP_COPY,     /* program in the driver, the kernel copies */
	STEER_XDP_SKB,      /* program behind the driver: any interface */
};

/* nfqueue: how results of IPv4 packets leave. */
enum steer_queue_send {
	STEER_QUEUE_AUTO,    /* by verdict where the host is set up for it */
	STEER_QUEUE_RAW,     /* the packet is dropped, its result leaves by a raw socket */
	STEER_QUEUE_VERDICT, /* the result takes the packet's place, and the kernel forwards it */
};

/* udp: how the sockets are served. */
enum steer_udp_io {
	STEER_UDP_AUTO,  /* by io_uring where the kernel allows it */
	STEER_UDP_URING, /* only so */
	STEER_UDP_PLAIN, /* epoll, recvmmsg and sendmmsg */
};

struct host;
struct steer_hub;
struct knl;

struct steer_config {
	struct endpoint local[STEER_MAX_LOCAL]; /* addresses we receive on; ports 0 */
	uint32_t locals;
	uint16_t port_min, port_max; /* all workers' ports */
	uint32_t workers;
	bool workers_auto;                /* open() may take fewer, if more would not help */
	uint16_t queue_num;               /* nfqueue: first queue, one per worker */
	enum steer_queue_send queue_send; /* nfqueue; no longer AUTO after open() */
	bool queue_closed;                /* nfqueue: what finds a queue full is dropped */
	bool queue_only;                  /* kernel: nothing is relayed without us */
	/* kernel: marks what leaves by verdict for the module, which sends it; 0 = the host
	 * forwards */
	uint32_t queue_mark;
	enum steer_udp_io udp_io; /* udp; AUTO is PLAIN unless open() decided */
	uint32_t burst_max;
	uint32_t bursts; /* that are received and have no verdict yet; 0 = 1 */
	/* xdp: names, ',' between; "" or NULL: those that carry the local addresses */
	const char *xdp_interfaces;
	enum steer_xdp_mode xdp_mode;
	uint32_t port_rate,
		/* kernel: packets per second, of one port and of one source address; 0: any */
		source_rate;
	struct knl *knl; /* kernel: for questions by the control thread; from open() to close() */
	struct knl *events;    /* likewise, for what it tells by itself; NULL: nothing */
	uint32_t knl_features; /* kernel: by open(): of both */
	bool relays;           /* kernel: by open(): media may stay there */
	bool relays_copies;    /* kernel: by open(): also to several destinations */
	/* kernel: by open(): also what is passed through, as indexes can be followed */
	bool relays_srtp;
	struct steer_hub *hub;   /* shared by all workers; from open() to close() */
	const struct host *host; /* NULL: unknown (tests) */
};

/* The ports of worker w are one contiguous part of the range, even-aligned, so that one netfilter
 * rule hands each worker its own: [*min, *max]. Pure. */
void steer_worker_ports(
	const struct steer_config *cfg, uint32_t worker, uint16_t *min, uint16_t *max);

/* Slots that the worker gives to bursts by itself (recv()'s first_slot, copies). */
static inline uint32_t steer_first_slots(const struct steer_config *cfg)
{
	return cfg->burst_max * (cfg->bursts ? cfg->bursts : 1);
}

struct steer; /* one worker's steering source */

/* RTP of one SSRC from one source to one port, and RTCP where asked, which may go on to one
 * destination as it is. */
#define STEER_COPIES 7
struct steer_relay {
	struct endpoint source, to;
	struct local_port local, from; /* where it comes in, where it leaves from */
	uint32_t ssrc;
	uint32_t id; /* whose it is */
	uint8_t tos;
	bool rtcp;
	bool strict;    /* what comes from elsewhere is nobody's */
	uint8_t copies; /* further destinations, if the steering says that it relays to several */
	struct steer_copy {
		struct endpoint to;
		struct local_port from;
		uint8_t tos;
	} copy[STEER_COPIES];
};

struct steer_relayed { /* what the kernel did of that on its own, since the port is ours */
	uint64_t packets, bytes;
	/* CLOCK_REALTIME when the last packet came to the port, by whichever way; 0: none */
	uint64_t last_ns;
	uint32_t id;
	uint64_t strangers; /* from elsewhere, dropped or told of */
	bool has_seq;       /* seq is of the last RTP that it relayed since it began */
	uint16_t seq;
	bool now; /* it still does */
};

/* What the kernel tells by itself: source, ssrc: a packet of another came, and is on its way to us;
 * silence: of STEER_SILENCE_MS; flood: it drops what is over a rate. X(id, name in statistics) */
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
	uint32_t worker, id;           /* id: of the steer_relay; UINT32_MAX: it is not relayed */
	struct endpoint local, source; /* source: family 0 where there is none */
};

struct steer_ops {
	const char *name;
	/* What to do instead when open() fails. NULL: nothing else will do. */
	const struct steer_ops *instead;
	/* Optional, these four; NULL: nothing to do. First and last of all, control thread: what
	 * all workers share, in cfg->hub. close() without open() is fine. */
	int (*open)(struct steer_config *cfg, char *err, size_t err_len);
	void (*close)(struct steer_config *cfg);
	/* After open(): arena slots one worker needs, if more than steer_first_slots(). */
	uint32_t (*slots)(const struct steer_config *cfg);
	/* After create(): the arena that recv() and send() will get. It stays until destroy(). */
	int (*memory)(struct steer *s, const struct arena *a, char *err, size_t err_len);
	/* Once, control thread, before workers run: netfilter rules and the like. err: one line,
	 * says what to do. */
	int (*setup)(const struct steer_config *cfg, char *err, size_t err_len);
	/* Undo setup(). Safe to call twice, and before setup() to clear what a killed instance
	 * left. */
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
	/* Optional. Worker thread. on: the port carries datagrams other than RTP, so recv() must
	 * receive each of them, whatever its first bytes and length. Otherwise the port carries
	 * RTP, as after port_add(). */
	void (*unread)(struct steer *s, struct local_port local, bool on);
	/* Readable when packets may be there (an epoll fd). */
	int (*fd)(const struct steer *s);
	/* Worker thread. fd: bound, non-blocking UDP socket for this local port; owned by the
	 * steering from here on. */
	int (*port_add)(struct steer *s, struct local_port local, int fd);
	void (*port_del)(struct steer *s, struct local_port local); /* closes the socket */
	/* Take up to max packets, without blocking, into arena.in, one per slot from first_slot on,
	 * or into slots of the steering's own choice beyond steer_first_slots(). Returns their
	 * number; if there are any they are a burst, of which as many as configured may wait for
	 * their verdict. Packets stay until then. */
	uint32_t (*recv)(struct steer *s, const struct arena *a, uint32_t first_slot,
		struct packet_in *in, uint32_t max);
	/* Send n results of the oldest such burst out of arena.out in as few system calls as the
	 * path allows. Sets out[i].failed. */
	void (*send)(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n);
	/* Tell the kernel what became of the oldest such burst's packets (PACKET_PASS: go on to the
	 * socket; all else is consumed). */
	void (*verdict)(struct steer *s, const struct packet_in *in, uint32_t n);
	const struct steer_counters *(*counters)(const struct steer *s);
	/* Optional, the rest, and all or none: media that needs nothing of us does not come to us.
	 * relays() says whether this host's kernel can. Worker thread. From the next moment on when
	 * nothing of it waits for us, so that no packet overtakes another, or never, if there is
	 * none for two seconds. -EAGAIN when too many wait already. */
	bool (*relays)(const struct steer_config *cfg);
	int (*relay)(struct steer *s, const struct steer_relay *r);
	/* Worker thread. What comes from now on comes to us. */
	void (*unrelay)(struct steer *s, struct local_port local);
	/* Control thread. One port's, also when it is ours again; or of all that the kernel relays
	 * now. 0 or -errno. */
	int (*relayed)(
		const struct steer_config *cfg, struct local_port local, struct steer_relayed *out);
	int (*relayed_all)(const struct steer_config *cfg, uint32_t worker,
		void (*put)(void *arg, const struct steer_relayed *r), void *arg);
	/* Control thread. To be watched for reading; -1: it tells nothing. */
	int (*events_fd)(const struct steer_config *cfg);
	/* What came, without waiting. 0 or -errno. */
	int (*events)(const struct steer_config *cfg,
		void (*put)(void *arg, const struct steer_event *e), void *arg);
	/* 0; -ENOENT: what steers is gone from the kernel, and packets come by the ordinary
	 * sockets. */
	int (*alive)(const struct steer_config *cfg);
	/* When it was: 0: it is there again, for again() of all workers; -ENOENT: it is not; else
	 * what came will not do, and err says why. */
	int (*back)(const struct steer_config *cfg, char *err, size_t err_len);
	/* Worker thread; also optional beside watch(). All ports' packets come by it again, now or
	 * in a moment. From some more ports with each recv(), where ports are told one by one. Safe
	 * to call twice. */
	void (*again)(struct steer *s);
};

extern const struct steer_ops steer_udp;
extern const struct steer_ops steer_nfqueue;
extern const struct steer_ops steer_kernel;
extern const struct steer_ops steer_xdp;

#endif
