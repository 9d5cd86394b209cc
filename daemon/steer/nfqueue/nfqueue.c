/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by NFQUEUE. Netfilter delivers packets of a worker's ports in bursts, without a socket
 * look-up and a wake-up per packet. Results leave through a raw socket; or they replace packets in
 * their verdicts and are forwarded, which saves a second socket buffer. Either way costs one system
 * call per burst.
 * Netlink messages are received into arena slots, and the UDP payload is processed in place.
 * Packets other than plain datagrams to our ports, and packets that media passes on, are accepted.
 * They arrive at the ordinary socket, and are received from there. */
#include "steer/nfqueue/nfqueue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/log.h"
#include "packet/arena.h"
#include "steer/dgram.h"
#include "steer/nfqueue/early.h"
#include "steer/nfqueue/forward.h"
#include "steer/nfqueue/limit.h"
#include "steer/nfqueue/queue.h"
#include "steer/raw.h"
#include "steer/nfqueue/rules.h"
#include "steer/nfqueue/rules_watch.h"
#include "steer/sockets.h"

#define IP_MAX_HDR 60u
/* Bytes to capture: enough to recognise datagrams that are too long. */
#define COPY (IP_MAX_HDR + 8 + ARENA_MAX_PACKET)
/* Bursts from the queue between two looks at the sockets. */
#define SOCKETS_EVERY 8u
/* Bursts from the sockets only, at most, after the queue takes over; in addition to those for older
 * packets. */
#define TAKE_OVER_TURNS 8u
/* For this time after again(), each burst comes from both queue and sockets. */
#define BOTH_NS (2 * NS_PER_SEC)
/* Drop verdicts may be late: they are sent together, after this many packets or this time. */
#define DROP_TOGETHER 32u
#define DROP_AFTER_NS 50000000ull
#define COUNT_EVERY   100000000ull /* ns between two reads of the kernel's counters */
/* Offset of a message in its slot, and its maximum length: COPY and about 200 bytes of
 * attributes. */
#define MSG_OFF ARENA_HEADROOM
#define MSG_LEN (ARENA_SLOT_LEN - ARENA_HEADROOM - XC_SLACK)
_Static_assert(MSG_LEN > COPY + 512, "a message fits into a slot");

/* A burst that waits for its verdict. */
struct waiting {
	uint32_t last_id;   /* last packet id of the burst, including packets that are not media */
	uint32_t undecided; /* packets without verdict yet */
	/* Results that leave by verdict. */
	/* [burst]: ids of the burst's packets, indexed as in[]; 0: not from the queue */
	uint32_t *token;
	uint8_t *family; /* [burst] */
};

struct steer {
	struct steer_counters counters;
	struct steer_config cfg;
	struct sockets *sockets;
	struct raw *raw;
	int queue;
	struct queue_verdicts verdicts; /* accepts are added in recv(), others in verdict() */
	struct waiting *waiting;        /* [bursts], a ring; followed by the one being received */
	uint32_t bursts, oldest, waitings;
	uint32_t last_id;            /* last packet id of completed bursts */
	uint32_t undecided;          /* packets up to last_id without verdict yet */
	uint64_t flushed_ns, now_ns; /* time of the last verdicts; time of the burst */
	bool silent;                 /* the last receive found nothing */
	uint64_t counted_ns;         /* when the kernel's counters were last read */
	uint32_t worker;
	uint32_t lost;        /* by a closed queue so far */
	uint32_t bursts_seen; /* counted to interleave the sockets */
	uint32_t turns;       /* bursts for which the sockets come first */
	uint64_t both_ns;     /* monotonic; until then each burst uses both; 0: unused */
	uint32_t burst;
	uint32_t *left; /* [burst]: packets that the raw socket did not send */
	/* Results that leave by verdict. */
	uint32_t *rest;        /* [burst]: results that leave otherwise */
	struct iovec *replace; /* [burst] */
	uint32_t *replace_of;  /* [burst]: packet that the result replaces */
	uint32_t replaced;
	uint16_t ip_id;
	struct limit limit;
	struct pollfd poll[2]; /* the worker's epoll and the queue, to wait for */
	struct mmsghdr msg[QUEUE_RECV_MAX];
	struct iovec iov[QUEUE_RECV_MAX];
};

/* --- Set-up ----------------------------------------------------------------------------------- */

static void destroy(struct steer *s)
{
	if (!s)
		return;
	if (s->queue >= 0)
		close(s->queue);
	limit_close(&s->limit);
	raw_destroy(s->raw);
	sockets_destroy(s->sockets);
	free(s->verdicts.buf);
	free(s->left);
	for (uint32_t i = 0; s->waiting && i < s->bursts; i++) {
		free(s->waiting[i].token);
		free(s->waiting[i].family);
	}
	free(s->waiting);
	free(s->rest);
	free(s->replace);
	free(s->replace_of);
	free(s);
}

static bool waiting_alloc(struct steer *s)
{
	bool all;

	s->waiting = lines_alloc(s->bursts, sizeof(*s->waiting));
	all = s->waiting != NULL;
	for (uint32_t i = 0; i < s->bursts && all; i++) {
		s->waiting[i].token = lines_alloc(s->burst, sizeof(*s->waiting[i].token));
		s->waiting[i].family = lines_alloc(s->burst, sizeof(*s->waiting[i].family));
		all = s->waiting[i].token && s->waiting[i].family;
	}
	return all;
}

static int queue_start(struct steer *s, uint32_t worker)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = SOCKETS_FOREIGN};

	s->verdicts.num = (uint16_t)(s->cfg.queue_num + worker);
	s->queue = queue_open(s->verdicts.num, COPY, s->cfg.queue_closed);
	if (s->queue < 0)
		return s->queue;
	if (epoll_ctl(sockets_epoll(s->sockets), EPOLL_CTL_ADD, s->queue, &ev))
		return -errno;
	return 0;
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = lines_alloc(1, sizeof(*s));
	int res = -ENOMEM;

	if (!s)
		goto fail;
	s->cfg = *cfg;
	s->worker = worker;
	s->queue = s->limit.fd = -1;
	s->burst = cfg->burst_max ? cfg->burst_max : 1;
	s->left = lines_alloc(s->burst, sizeof(*s->left));
	s->bursts = cfg->bursts ? cfg->bursts : 1;
	/* One for each packet in all bursts, and one for all drops. */
	s->verdicts.max = (s->bursts + 1) * s->burst + 1;
	s->verdicts.buf = lines_alloc(s->verdicts.max, QUEUE_VERDICT_LEN);
	s->rest = lines_alloc(s->burst, sizeof(*s->rest));
	s->replace = lines_alloc(s->burst, sizeof(*s->replace));
	s->replace_of = lines_alloc(s->burst, sizeof(*s->replace_of));
	if (!s->left || !s->verdicts.buf || !waiting_alloc(s) || !s->rest || !s->replace ||
		!s->replace_of)
		goto fail;
	res = sockets_create(&s->sockets, cfg, worker, &s->counters);
	res = res ? res : raw_create(&s->raw, cfg, &s->counters);
	res = res ? res : queue_start(s, worker);
	if (res)
		goto fail;
	if (!cfg->knl) /* under "kernel", nf_xcipher limits sources */
		limit_open(&s->limit, cfg, worker);
	*out = s;
	return 0;
fail:
	/* The kernel returns this error for both causes. */
	if (res == -EPERM && rules_permitted())
		snprintf(err, err_len,
			"nfqueue steering: queue %u is in use by another program, perhaps another xcipherd: stop it, or choose another --nfqueue-num (workers take one queue each from there on)",
			cfg->queue_num + worker);
	else if (res == -EPERM)
		snprintf(err, err_len,
			"nfqueue steering needs CAP_NET_ADMIN and CAP_NET_RAW (root): run as root, or use "
			"--steering=udp");
	else
		snprintf(err, err_len, "nfqueue steering, worker %u, queue %u: %s", worker,
			cfg->queue_num + worker, strerror(-res));
	destroy(s);
	return res;
}

static int fd(const struct steer *s)
{
	return sockets_epoll(s->sockets);
}

/* An epoll is called back for each packet, also while the worker runs or packets gather. So the
 * queue is watched while the worker waits only. */
static int wakes(struct steer *s, int epoll)
{
	s->poll[0] = (struct pollfd){.fd = epoll, .events = POLLIN};
	s->poll[1] = (struct pollfd){.fd = s->queue, .events = POLLIN};
	return epoll_ctl(sockets_epoll(s->sockets), EPOLL_CTL_DEL, s->queue, NULL) ? -errno : 0;
}

static enum steer_gather wait_for_packet(struct steer *s, uint64_t wait_ns)
{
	if (wait_ns)
		return STEER_GATHER_NOT;
	s->poll[0].revents = 0;
	(void)poll(s->poll, ARRAY_LEN(s->poll), -1);
	return s->poll[0].revents ? STEER_GATHER_NOT : STEER_GATHER_NOW;
}

void nfqueue_takes_over(struct steer *s)
{
	s->turns = TAKE_OVER_TURNS;
}

/* Packets that arrived before the port was added were accepted by the kernel, and belong before
 * those of the queue. So pass on pending packets now, not with the next burst's verdicts, and read
 * the socket first. After a restart during calls this concerns all media that arrived meanwhile. */
static int port_add(struct steer *s, struct local_port local, int sock)
{
	int res;

	(void)queue_flush(&s->verdicts, s->queue);
	res = sockets_add(s->sockets, local, sock);
	if (!res)
		nfqueue_takes_over(s);
	return res;
}

static void guard(struct steer *s, struct local_port local, const struct guard *g)
{
	if (s->cfg.early)
		early_guard(s->cfg.early, s->worker, local, g);
}

static void port_del(struct steer *s, struct local_port local)
{
	guard(s, local, NULL);
	sockets_del(s->sockets, local);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return &s->counters;
}

struct steer_counters *nfqueue_counters(struct steer *s)
{
	return &s->counters;
}

void nfqueue_mark(struct steer *s, uint32_t mark)
{
	if (s->cfg.queue_mark)
		s->cfg.queue_mark = mark;
}

/* --- Receive ---------------------------------------------------------------------------------- */

/* Finds our port of this packet. A wildcard entry matches any address no other entry does. */
static bool find_local(const struct steer *s, const struct endpoint *dst, struct local_port *out)
{
	for (int wildcard = 0; wildcard < 2; wildcard++) {
		for (uint32_t i = 0; i < s->cfg.locals; i++) {
			const struct endpoint *l = &s->cfg.local[i];

			if (wildcard ? l->family == dst->family && endpoint_is_unspecified(l)
				     : endpoint_addr_eq(l, dst)) {
				*out = (struct local_port){.port = dst->port, .addr = (uint8_t)i};
				if (sockets_has(s->sockets, *out))
					return true;
			}
		}
	}
	return false;
}

/* The loopback interface, with this index in every namespace. Packets of the host itself need no
 * source check. */
#define LOOPBACK 1u

/* The receiving interface, if the source must still be checked; otherwise 0. The host checks IPv4
 * sources when it routes, before mangle INPUT. It never refuses its own IPv6 addresses as
 * sources. */
static uint32_t unchecked_dev(const struct queue_packet *p, const struct packet_in *in)
{
	bool checked = p->routed && in->src.family == AF_INET;

	if (checked || p->dev == LOOPBACK)
		return 0;
	return p->dev ? p->dev : PACKET_DEV_NOWHERE;
}

enum taken { TAKE, ACCEPT, DROP };

static enum taken take(const struct steer *s, const struct queue_packet *p, struct packet_in *in)
{
	struct dgram d;

	if (p->gso || !p->ip || dgram_parse(&d, p->ip, p->have, p->whole) ||
		!find_local(s, &d.dst, &in->local))
		return ACCEPT;
	if (d.off + d.len > p->have) {
		/* Truncated: only packets that are too long anyway. */
		if (d.len <= ARENA_MAX_PACKET)
			return ACCEPT;
	} else if (p->verify && !dgram_checksum_ok(&d, p->ip)) {
		return DROP;
	}
	in->src = d.src;
	in->len = d.len;
	in->in_off = d.off;
	return TAKE;
}

/* Processes n messages in the slots from slot on. Returns the number of packets. */
static uint32_t take_all(
	struct steer *s, const struct arena *a, uint32_t slot, uint32_t n, struct packet_in *in)
{
	struct waiting *w = &s->waiting[(s->oldest + s->waitings) % s->bursts];
	uint32_t taken = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *msg = s->iov[i].iov_base;
		struct packet_in d = {.slot = slot + i};
		struct queue_packet p;

		if (queue_parse(&p, msg, s->msg[i].msg_len))
			continue;
		w->last_id = p.id;
		w->undecided++;
		switch (take(s, &p, &d)) {
		case ACCEPT:
			queue_accept(&s->verdicts, p.id);
			break;
		case DROP:
			steer_count(&s->counters.checksum_errors, 1);
			break;
		case TAKE:
			d.in_off += (uint32_t)(p.ip - a->in);
			d.token = p.id;
			d.dev = unchecked_dev(&p, &d);
			d.t_ns = p.t_ns ? p.t_ns : s->now_ns;
			in[taken++] = d;
			break;
		}
	}
	return taken;
}

/* Prepares buffers in these slots: usually the same as the last time. */
static void messages_at(struct steer *s, uint8_t *first)
{
	if (s->iov[0].iov_base == first)
		return;
	for (uint32_t i = 0; i < QUEUE_RECV_MAX; i++) {
		s->iov[i] = (struct iovec){first + (size_t)i * ARENA_SLOT_LEN, MSG_LEN};
		s->msg[i].msg_hdr = (struct msghdr){.msg_iov = &s->iov[i], .msg_iovlen = 1};
	}
}

/* Receives up to max messages of the queue into the slots [slot, slot + max). */
static uint32_t queue_recv(
	struct steer *s, const struct arena *a, uint32_t slot, struct packet_in *in, uint32_t max)
{
	uint32_t n = 0;

	s->now_ns = clock_real_ns();
	while (max) {
		uint32_t want = min_u32(max, QUEUE_RECV_MAX);
		int got;

		messages_at(s, a->in + (size_t)slot * ARENA_SLOT_LEN + MSG_OFF);
		got = recvmmsg(s->queue, s->msg, want, MSG_DONTWAIT, NULL);
		steer_count(&s->counters.recv_calls, 1);
		if (got <= 0)
			break;
		n += take_all(s, a, slot, (uint32_t)got, in + n);
		slot += (uint32_t)got;
		max -= (uint32_t)got;
		if ((uint32_t)got < want)
			break;
	}
	steer_count(&s->counters.recv_packets, n);
	return n;
}

/* Drops all packets up to last_id that have no verdict yet, in one message. */
static void flush(struct steer *s)
{
	if (s->undecided == 0 ||
		(s->verdicts.n == 0 && s->undecided < DROP_TOGETHER &&
			s->now_ns - s->flushed_ns < DROP_AFTER_NS))
		return;
	queue_drop_up_to(&s->verdicts, s->last_id);
	(void)queue_flush(&s->verdicts, s->queue);
	s->undecided = 0;
	s->flushed_ns = s->now_ns;
}

/* Ends a burst: the next flush covers its packets. */
static void decided(struct steer *s, struct waiting *w)
{
	if (w->undecided)
		s->last_id = w->last_id;
	s->undecided += w->undecided;
	w->undecided = 0;
}

static void sort_by_time(struct packet_in *in, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct packet_in one = in[i];
		uint32_t at = i;

		for (; at && in[at - 1].t_ns > one.t_ns; at--)
			in[at] = in[at - 1];
		in[at] = one;
	}
}

/* Adds packets of the queue to n packets of the sockets, in the order of arrival. While rules
 * vanish and return, a call's packets take both ways. Returns how many it added. */
static uint32_t receive_queue_too(struct steer *s, const struct arena *a, uint32_t slot,
	struct packet_in *in, uint32_t n, uint32_t max)
{
	uint32_t q = n ? queue_recv(s, a, slot + n, in + n, max - n) : 0;

	if (q)
		sort_by_time(in, n + q);
	return q;
}

/* Rules are about to be restored: packets in the sockets may be older than the queue's next
 * ones. */
static void again(struct steer *s)
{
	s->both_ns = clock_mono_ns() + BOTH_NS;
}

static bool both_now(struct steer *s)
{
	if (s->both_ns && clock_mono_ns() > s->both_ns)
		s->both_ns = 0;
	return s->both_ns;
}

static void count_dropped(struct steer *s)
{
	if (s->cfg.queue_closed)
		sockets_lost(s->queue, &s->lost, &s->counters);
	limit_count(&s->limit, &s->cfg, &s->counters);
	if (s->cfg.early && s->worker == 0) /* for all */
		early_count(s->cfg.early, &s->counters);
	s->counted_ns = s->now_ns;
}

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	struct waiting *w = &s->waiting[(s->oldest + s->waitings) % s->bursts];
	uint32_t n = 0;
	bool both = false;

	if (s->waitings == s->bursts)
		return 0;
	max = min_u32(max, s->burst);
	/* While the rules work, sockets are empty, and asking costs a system call. So they are
	 * served when the queue is silent, and every SOCKETS_EVERY bursts with a limited share.
	 * Bursts of both leave by the raw socket, because verdicts would leave first. */
	if (s->turns || sockets_before(s->sockets)) {
		n = sockets_recv(s->sockets, a, first_slot, in, max);
		s->turns = n && s->turns ? s->turns - 1 : 0;
	} else if (both_now(s) || ++s->bursts_seen % SOCKETS_EVERY == 0) {
		uint32_t share = s->both_ns ? max - max / 4 : max > 4 ? max / 4 : 1;
		uint32_t of_sockets = sockets_recv(s->sockets, a, first_slot, in, share);

		n = of_sockets + receive_queue_too(s, a, first_slot, in, of_sockets, max);
		both = n > of_sockets;
	}
	if (n == 0)
		n = queue_recv(s, a, first_slot, in, max);
	/* The queue was empty already: do not ask it twice. */
	if (n == 0 && s->silent)
		n = sockets_recv(s->sockets, a, first_slot, in, max);
	s->silent = n == 0;
	if (s->now_ns - s->counted_ns > COUNT_EVERY)
		count_dropped(s);
	for (uint32_t i = 0; i < n; i++) {
		w->family[i] = in[i].src.family;
		w->token[i] =
			!both && (w->family[i] == AF_INET || s->cfg.queue_mark) ? in[i].token : 0;
	}
	s->waitings += n > 0;
	/* Accepts of many non-media packets must not wait for the device. */
	if (s->verdicts.n > s->burst)
		(void)queue_flush(&s->verdicts, s->queue);
	/* No media, so verdict() will not be called. If another burst waits, the accepts go out
	 * with it. */
	if (n == 0 && s->waitings == 0) {
		decided(s, w);
		flush(s);
	}
	return n;
}

/* Gives the verdicts of a burst: accepts passed packets one by one, then all others together. A
 * passed packet may be the first media of a call that is added a moment later: it returns by the
 * socket, before the next packets of the queue. */
static void verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	bool passed = false;

	for (uint32_t i = 0; i < n; i++) {
		if (in[i].token && in[i].verdict == PACKET_PASS) {
			queue_accept(&s->verdicts, in[i].token);
			passed = true;
		} else if (!in[i].token && in[i].verdict != PACKET_PASS) {
			steer_count(&s->counters.fallback, 1);
		}
	}
	if (passed && !s->turns)
		s->turns = 1;
	decided(s, &s->waiting[s->oldest]);
	s->oldest = (s->oldest + 1) % s->bursts;
	s->waitings--;
	flush(s);
}

/* --- Send ------------------------------------------------------------------------------------- */

_Static_assert(ARENA_HEADROOM >= DGRAM_HDR_MAX + QUEUE_REPLACE_LEN + 4,
	"room for headers before a result");

/* Sends the result as its packet's verdict, if both are of one family and the packet has no verdict
 * yet. IPv6 only if nf_xcipher sends it. */
static bool replace(struct steer *s, const struct arena *a, const struct packet_out *o)
{
	struct waiting *w = &s->waiting[s->oldest];
	uint32_t id = s->waitings && o->in < s->burst ? w->token[o->in] : 0, len;
	uint8_t *payload = a->out + o->out_off, *ip;
	const struct endpoint *local = &s->cfg.local[o->local.addr];
	struct endpoint src;
	int hdr;

	if (!id || o->local.addr >= s->cfg.locals || local->family != w->family[o->in] ||
		o->dst.family != local->family)
		return false;
	src = *local;
	src.port = o->local.port;
	hdr = dgram_write(&src, &o->dst, o->tos, payload, o->len);
	if (hdr < 0)
		return false;
	ip = payload - hdr;
	if (local->family == AF_INET)
		dgram_v4_finish(ip, s->ip_id++);
	len = queue_replace(ip, (uint32_t)hdr + o->len, s->verdicts.num, id, s->cfg.queue_mark);
	memset(payload + o->len, 0, 3); /* alignment */
	s->replace[s->replaced++] = (struct iovec){payload + o->len - len, (len + 3) & ~3u};
	w->token[o->in] = 0;
	return true;
}

static void replace_flush(struct steer *s, struct packet_out *out)
{
	struct waiting *w = &s->waiting[s->oldest];
	uint32_t sent = 0, calls = queue_send(s->queue, s->replace, s->replaced);

	for (uint32_t i = 0; i < s->replaced; i++) {
		out[s->replace_of[i]].failed = s->replace[i].iov_len == 0;
		sent += s->replace[i].iov_len != 0;
	}
	steer_count(&s->counters.send_calls, calls);
	steer_count(&s->counters.send_errors, s->replaced - sent);
	steer_count(&s->counters.send_packets, sent);
	steer_count(&s->counters.rewritten, sent);
	w->undecided -= min_u32(w->undecided, sent);
	s->replaced = 0;
}

/* At most one burst. */
static void transmit_some(
	struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	uint32_t rest = 0, over;

	for (uint32_t i = 0; i < n; i++) {
		if (s->cfg.queue_send == STEER_QUEUE_VERDICT && replace(s, a, &out[i]))
			s->replace_of[s->replaced - 1] = i;
		else
			s->rest[rest++] = i;
	}
	if (s->replaced)
		replace_flush(s, out);
	if (rest == 0)
		return;
	over = raw_send(s->raw, a, out, s->rest, rest, s->left);
	if (over)
		sockets_send(s->sockets, a, out, s->left, over);
}

static void transmit(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	for (uint32_t base = 0; base < n; base += s->burst)
		transmit_some(s, a, out + base, min_u32(n - base, s->burst));
}

/* All workers and the rules use the same way of sending results. */
static int open_queues(struct steer_config *cfg, char *err, size_t err_len)
{
	char why[160];
	bool ready = cfg->queue_send != STEER_QUEUE_RAW && forward_ready(cfg, why, sizeof(why));
	int res;

	if (cfg->queue_send == STEER_QUEUE_VERDICT && !ready) {
		snprintf(err, err_len,
			"nfqueue steering, sending by verdict: %s, or use --nfqueue-send=raw", why);
		return -EINVAL;
	}
	cfg->queue_send = ready ? STEER_QUEUE_VERDICT : STEER_QUEUE_RAW;
	res = early_open(&cfg->early, cfg);
	if (res)
		log_info(
			"nfqueue: forged packets of streams under attack reach the queue (%s): dropping them before it needs Linux 6.6, and CAP_BPF at the start",
			strerror(-res));
	return 0;
}

static void close_queues(struct steer_config *cfg)
{
	early_close(cfg->early);
	cfg->early = NULL;
}

const struct steer_ops steer_nfqueue = {
	.name = "nfqueue",
	.open = open_queues,
	.close = close_queues,
	.setup = rules_setup,
	.teardown = rules_teardown,
	.watch = rules_watch_open,
	.watched = rules_watch_read,
	.setup_again = rules_again,
	.again = again,
	.create = create,
	.destroy = destroy,
	.fd = fd,
	.wakes = wakes,
	.gather = wait_for_packet,
	.port_add = port_add,
	.port_del = port_del,
	.recv = receive,
	.send = transmit,
	.verdict = verdict,
	.counters = counters,
	.guard = guard,
};
