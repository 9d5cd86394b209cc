/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by our kernel module. nf_xcipher delivers packets of our ports to the workers' queues
 * itself. It needs no rules, runs before connection tracking and other hooks, and sends results of
 * verdicts for both families without forwarding on the host. The rest is nfqueue's
 * (steer/nfqueue/nfqueue.c), which this calls.
 * Each worker has a netlink socket that owns the targets of its ports. Targets stay for a while
 * after the daemon dies. The next daemon takes them over by the same owner number, which is the
 * queue's number. steer/kernel/kernel_meet.c checks whether the module is usable. */
#include "steer/steer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/log.h"
#include "packet/arena.h"
#include "steer/kernel/kernel_meet.h"
#include "steer/kernel/kernel_nl.h"
#include "steer/nfqueue/nfqueue.h"

#define NO_ID         UINT32_MAX /* in cookies of targets that do not relay */
#define PURGE_STEP    32u
#define PENDING_MAX   64u
#define PENDING_LOOKS 8u /* pending streams tried in one burst */
#define PENDING_NS    (2 * NS_PER_SEC)
#define AGAIN_STEP    32u /* targets restored in one burst, after the module was loaded again */
#define AGAIN_NS      NS_PER_SEC

enum port { NOT_OURS, RTP, UNREAD };

struct steer {
	struct steer *queue; /* opaque state of nfqueue steering */
	struct knl *knl;
	struct steer_config cfg;
	uint32_t worker;
	uint32_t instance; /* of the daemon: upper half of our targets' cookies */
	uint32_t features; /* of both */
	/* Ports to be relayed as soon as none of their packets waits for us. */
	struct pending {
		struct steer_relay relay;
		uint64_t until_ns; /* monotonic */
		uint64_t queued;   /* the port's packets so far, read before the queue was */
		bool looked;
	} pending[PENDING_MAX];
	uint32_t pendings;
	bool drained;     /* the last receive() emptied the queue */
	uint32_t waiting; /* bursts without verdict: their results are not sent yet */
	/* Targets of an earlier instance that were not requested again. */
	uint64_t purge_ns; /* monotonic; 0: unused */
	struct endpoint *stale;
	uint32_t stales, stale_cap;
	uint8_t *port; /* [addresses x ports]: enum port. UNREAD: datagrams other than RTP */
	/* After the module was loaded again: ports whose targets to restore. */
	uint64_t again_ns; /* monotonic; 0: unused */
	bool met;
	uint32_t next; /* of port */
};

/* --- Worker ----------------------------------------------------------------------------------- */

/* No rules: targets are set per port. Targets of a killed instance are taken over. */
static int setup(const struct steer_config *cfg, char *err, size_t err_len)
{
	(void)cfg;
	(void)err;
	(void)err_len;
	return 0;
}

static void teardown(const struct steer_config *cfg)
{
	(void)cfg;
}

static void destroy(struct steer *s)
{
	if (!s)
		return;
	knl_close(s->knl);
	steer_nfqueue.destroy(s->queue);
	free(s->stale);
	free(s->port);
	free(s);
}

static uint32_t ports_of(const struct steer_config *cfg)
{
	return (uint32_t)(cfg->port_max - cfg->port_min + 1);
}

static int create(struct steer **out, const struct steer_config *cfg, uint32_t worker, char *err,
	size_t err_len)
{
	struct steer *s = lines_alloc(1, sizeof(*s));
	struct knl_peer peer;
	int res;

	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->worker = worker;
	s->port = calloc((size_t)ports_of(cfg) * cfg->locals, sizeof(*s->port));
	if (!s->port) {
		free(s);
		return -ENOMEM;
	}
	s->instance = (uint32_t)(clock_real_ns() >> 10) | 1;
	/* The queue first: packets must have a reader when targets send them there. */
	res = steer_nfqueue.create(&s->queue, cfg, worker, err, err_len);
	res = res ? res : kernel_meet(&s->knl, cfg, worker, &peer, err, err_len);
	if (res) {
		destroy(s);
		return res;
	}
	s->features = peer.features;
	if (peer.adopted) {
		log_info("kernel steering, worker %u: %u targets of an earlier instance taken over",
			worker, peer.adopted);
		s->purge_ns = clock_mono_ns() + KERNEL_GRACE_MS * 1000000ull;
	}
	*out = s;
	return 0;
}

static int fd(const struct steer *s)
{
	return steer_nfqueue.fd(s->queue);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return steer_nfqueue.counters(s->queue);
}

static struct endpoint endpoint_of(const struct steer *s, struct local_port local)
{
	struct endpoint e = s->cfg.local[local.addr];

	e.port = local.port;
	return e;
}

static bool same_port(struct local_port a, struct local_port b)
{
	return a.port == b.port && a.addr == b.addr;
}

static void limits(const struct steer *s, struct knl_target *t)
{
	if (!(s->features & NFX_FEATURE_RATE))
		return;
	t->rate = s->cfg.port_rate;
	t->source_rate = s->cfg.source_rate;
}

/* NULL: outside the port range. */
static uint8_t *port_at(struct steer *s, struct local_port local)
{
	uint32_t at = (uint32_t)(local.port - s->cfg.port_min);

	return local.addr < s->cfg.locals && at < ports_of(&s->cfg)
		? &s->port[local.addr * ports_of(&s->cfg) + at]
		: NULL;
}

static void port_set(struct steer *s, struct local_port local, enum port kind)
{
	uint8_t *at = port_at(s, local);

	if (at)
		*at = (uint8_t)kind;
}

/* Modules without the feature drop short datagrams. steer/kernel/kernel_meet.c logs a warning about
 * them. */
static uint32_t queue_flags(struct steer *s, struct local_port local)
{
	const uint8_t *at = port_at(s, local);
	bool unread = at && *at == UNREAD && s->features & NFX_FEATURE_UNREAD;

	return NFX_FLAG_BYPASS | (unread ? NFX_FLAG_UNREAD : 0);
}

/* If the module refuses, the ordinary socket receives the packets. */
static int queue_target(struct steer *s, struct local_port local)
{
	struct knl_target t = {
		.local = endpoint_of(s, local),
		.action = NFX_ACTION_QUEUE,
		.rtcp_action = NFX_ACTION_QUEUE,
		.queue = (uint16_t)(s->cfg.queue_num + s->worker),
		.flags = queue_flags(s, local),
		.cookie = (uint64_t)s->instance << 32 | NO_ID,
	};

	limits(s, &t);
	return knl_target_set(s->knl, &t);
}

static int port_add(struct steer *s, struct local_port local, int sock)
{
	int res = steer_nfqueue.port_add(s->queue, local, sock);

	if (res)
		return res;
	port_set(s, local, RTP);
	(void)queue_target(s, local);
	return 0;
}

static void pending_drop(struct steer *s, struct local_port local)
{
	for (uint32_t i = 0; i < s->pendings; i++)
		if (same_port(s->pending[i].relay.local, local)) {
			s->pending[i] = s->pending[--s->pendings];
			return;
		}
}

static void port_del(struct steer *s, struct local_port local)
{
	struct endpoint e = endpoint_of(s, local);

	pending_drop(s, local);
	port_set(s, local, NOT_OURS);
	(void)knl_target_del(s->knl, &e);
	steer_nfqueue.port_del(s->queue, local);
}

static void unread(struct steer *s, struct local_port local, bool on)
{
	enum port kind = on ? UNREAD : RTP;
	const uint8_t *at = port_at(s, local);

	if (!at || *at == NOT_OURS || *at == kind)
		return;
	port_set(s, local, kind);
	pending_drop(s, local);
	(void)queue_target(s, local);
}

/* --- Targets of an earlier instance ----------------------------------------------------------- */

static void note_stale(void *arg, const struct knl_seen *seen)
{
	struct steer *s = arg;

	if (seen->cookie >> 32 != s->instance && s->stales < s->stale_cap)
		s->stale[s->stales++] = seen->local;
}

/* Once per worker; a few at a time, so that packets are not delayed. */
static void purge(struct steer *s)
{
	if (!s->stale) {
		s->stale_cap = ports_of(&s->cfg) * s->cfg.locals;
		s->stale = calloc(s->stale_cap, sizeof(*s->stale));
		if (s->stale)
			(void)knl_dump(s->knl, kernel_owner(&s->cfg, s->worker), -1, note_stale, s);
	}
	for (uint32_t i = 0; i < PURGE_STEP && s->stales; i++)
		(void)knl_target_del(s->knl, &s->stale[--s->stales]);
	if (s->stales)
		return;
	free(s->stale);
	s->stale = NULL;
	s->purge_ns = 0;
}

/* --- Media relayed by the kernel -------------------------------------------------------------- */

static bool relays(const struct steer_config *cfg)
{
	return cfg->relays;
}

static int relay(struct steer *s, const struct steer_relay *r)
{
	pending_drop(s, r->local);
	if (s->pendings == PENDING_MAX)
		return -EAGAIN;
	s->pending[s->pendings++] =
		(struct pending){.relay = *r, .until_ns = clock_mono_ns() + PENDING_NS};
	return 0;
}

static void unrelay(struct steer *s, struct local_port local)
{
	pending_drop(s, local);
	(void)queue_target(s, local);
}

/* Readable RTCP stays with the daemon: it is rare, and shows the quality of the call. So does RTP
 * of other sources, which media checks. */
static int relay_target(struct steer *s, const struct steer_relay *r, uint64_t queued)
{
	struct knl_target t = {
		.local = endpoint_of(s, r->local),
		.action = NFX_ACTION_RELAY,
		.rtcp_action = r->rtcp ? NFX_ACTION_RELAY : NFX_ACTION_QUEUE,
		.queue = (uint16_t)(s->cfg.queue_num + s->worker),
		.flags = NFX_FLAG_BYPASS,
		.cookie = (uint64_t)s->instance << 32 | r->id,
		.source = r->source,
		.mismatch = r->strict ? NFX_MISMATCH_DROP : NFX_MISMATCH_PASS,
		.silence_ms = s->features & NFX_FEATURE_EVENTS ? STEER_SILENCE_MS : 0,
		.if_queued = true,
		.queued = queued,
		.only_ssrc = true,
		.ssrc = r->ssrc,
		.dest = {{.to = r->to, .from = endpoint_of(s, r->from), .tos = r->tos}},
		.dests = 1,
	};

	_Static_assert(STEER_COPIES < KNL_DESTS, "there is room for all");
	for (uint32_t i = 0; i < r->copies && i < STEER_COPIES; i++)
		t.dest[t.dests++] = (struct knl_dest){.to = r->copy[i].to,
			.from = endpoint_of(s, r->copy[i].from),
			.tos = r->copy[i].tos};

	limits(s, &t);
	return knl_target_set(s->knl, &t);
}

/* Moves a stream to the kernel without reordering. Reads how many of the port's packets were
 * queued. Then empties the queue and sends the results. If nothing was queued since, no packet of
 * the port waits, and the next one cannot overtake any. First step: */
static void pending_look(struct steer *s)
{
	for (uint32_t i = 0; i < s->pendings; i++) {
		struct pending *p = &s->pending[i];
		struct endpoint e = endpoint_of(s, p->relay.local);
		struct knl_seen seen;

		p->looked = i < PENDING_LOOKS && knl_target_get(s->knl, &e, &seen) == 0;
		if (p->looked)
			p->queued = seen.stats[NFX_S_QUEUED];
	}
}

/* Last: */
static void pending_relay(struct steer *s)
{
	uint64_t now = clock_mono_ns();

	for (uint32_t i = s->pendings; i-- > 0;) {
		struct pending p = s->pending[i];
		bool waits = !p.looked || relay_target(s, &p.relay, p.queued) == -EAGAIN;

		if (!waits || now >= p.until_ns)
			pending_drop(s, p.relay.local);
	}
}

static void relayed_from(
	const struct knl_seen *seen, uint64_t now_real_ns, struct steer_relayed *out)
{
	*out = (struct steer_relayed){.packets = seen->stats[NFX_S_RELAYED],
		.bytes = seen->stats[NFX_S_RELAYED_BYTES],
		.id = (uint32_t)seen->cookie,
		.strangers = seen->stats[NFX_S_MISMATCH],
		.has_seq = seen->has_seq,
		.seq = seen->seq,
		.now = seen->action == NFX_ACTION_RELAY};
	if (seen->last_seen_ms < now_real_ns / 1000000)
		out->last_ns = now_real_ns - seen->last_seen_ms * 1000000;
}

static int relayed(
	const struct steer_config *cfg, struct local_port local, struct steer_relayed *out)
{
	struct endpoint e = cfg->local[local.addr];
	struct knl_seen seen;
	int res;

	e.port = local.port;
	res = knl_target_get(cfg->knl, &e, &seen);
	if (!res)
		relayed_from(&seen, clock_real_ns(), out);
	return res;
}

struct relayed_put {
	void (*put)(void *arg, const struct steer_relayed *r);
	void *arg;
	uint64_t now_real_ns;
};

static void relayed_one(void *arg, const struct knl_seen *seen)
{
	const struct relayed_put *p = arg;
	struct steer_relayed r;

	relayed_from(seen, p->now_real_ns, &r);
	p->put(p->arg, &r);
}

static int relayed_all(const struct steer_config *cfg, uint32_t worker,
	void (*put)(void *arg, const struct steer_relayed *r), void *arg)
{
	struct relayed_put p = {put, arg, clock_real_ns()};

	return knl_dump(cfg->knl, kernel_owner(cfg, worker), NFX_ACTION_RELAY, relayed_one, &p);
}

/* --- Events of the module --------------------------------------------------------------------- */

struct event_put {
	void (*put)(void *arg, const struct steer_event *e);
	void *arg;
	const struct steer_config *cfg;
};

static void event_one(void *arg, const struct knl_event *k)
{
	static const uint8_t kinds[NFX_EVENT_COUNT] = {[NFX_EVENT_SOURCE] = STEER_EVENT_SOURCE,
		[NFX_EVENT_SSRC] = STEER_EVENT_SSRC,
		[NFX_EVENT_SILENCE] = STEER_EVENT_SILENCE,
		[NFX_EVENT_FLOOD] = STEER_EVENT_FLOOD};
	const struct event_put *p = arg;
	struct steer_event e = {.local = k->local,
		.source = k->source,
		.id = (uint32_t)k->cookie,
		.worker = k->owner - p->cfg->queue_num};

	/* From another daemon, or of a later version. */
	if (k->event == 0 || k->event >= NFX_EVENT_COUNT || k->owner < p->cfg->queue_num ||
		e.worker >= p->cfg->workers)
		return;
	e.kind = kinds[k->event];
	p->put(p->arg, &e);
}

static int events_fd(const struct steer_config *cfg)
{
	return cfg->events ? knl_fd(cfg->events) : -1;
}

static int events(const struct steer_config *cfg,
	void (*put)(void *arg, const struct steer_event *e), void *arg)
{
	struct event_put p = {put, arg, cfg};

	return cfg->events ? knl_events(cfg->events, event_one, &p) : 0;
}

/* --- Unloaded, and loaded again --------------------------------------------------------------- */

static void again(struct steer *s)
{
	s->again_ns = clock_mono_ns();
	s->met = false;
	s->next = 0;
}

static bool meet_again(struct steer *s)
{
	struct knl_peer peer;
	int res = knl_again(s->knl);

	res = res ? res : kernel_hello(s->knl, &s->cfg, s->worker, &peer);
	if (res) {
		/* Unloaded again: kernel_back() will report its return. */
		s->again_ns = res == -ENOENT ? 0 : clock_mono_ns() + AGAIN_NS;
		return false;
	}
	s->features = peer.features;
	nfqueue_mark(s->queue, peer.mark);
	return true;
}

static void make_again(struct steer *s)
{
	uint32_t ports = ports_of(&s->cfg), made = 0;

	s->met = s->met || meet_again(s);
	if (!s->met)
		return;
	for (; s->next < ports * s->cfg.locals && made < AGAIN_STEP; s->next++)
		if (s->port[s->next] != NOT_OURS) {
			(void)queue_target(s,
				(struct local_port){
					.port = (uint16_t)(s->cfg.port_min + s->next % ports),
					.addr = (uint8_t)(s->next / ports)});
			made++;
		}
	if (made)
		nfqueue_takes_over(s->queue);
	if (s->next == ports * s->cfg.locals)
		s->again_ns = 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static uint32_t receive(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	uint32_t n;

	if (s->purge_ns && clock_mono_ns() >= s->purge_ns)
		purge(s);
	if (s->again_ns && clock_mono_ns() >= s->again_ns)
		make_again(s);
	if (s->pendings)
		pending_look(s);
	n = steer_nfqueue.recv(s->queue, a, first_slot, in, max);
	s->drained = n < max;
	s->waiting += n > 0;
	/* No media, so verdict() will not be called. */
	if (n == 0 && s->pendings && !s->waiting)
		pending_relay(s);
	return n;
}

static void transmit(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	steer_nfqueue.send(s->queue, a, out, n);
}

static void verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	steer_nfqueue.verdict(s->queue, in, n);
	s->waiting--;
	if (s->pendings && s->drained && !s->waiting)
		pending_relay(s);
}

const struct steer_ops steer_kernel = {
	.name = "kernel",
	.instead = &steer_nfqueue,
	.open = kernel_open,
	.close = kernel_close,
	.setup = setup,
	.teardown = teardown,
	.create = create,
	.destroy = destroy,
	.fd = fd,
	.port_add = port_add,
	.port_del = port_del,
	.unread = unread,
	.recv = receive,
	.send = transmit,
	.verdict = verdict,
	.counters = counters,
	.relays = relays,
	.relay = relay,
	.unrelay = unrelay,
	.relayed = relayed,
	.relayed_all = relayed_all,
	.events_fd = events_fd,
	.events = events,
	.alive = kernel_alive,
	.back = kernel_back,
	.again = again,
};
