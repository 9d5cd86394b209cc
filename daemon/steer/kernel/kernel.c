/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steering by our kernel module: its ports and its life. nf_xcipher delivers packets of our ports
 * to the workers itself. It needs no rules, runs before connection tracking and other hooks, and
 * sends results for both families without forwarding on the host.
 * Packets come by a ring in the arena (steer/kernel/kring.h). Without a ring they come by the
 * workers' netlink queues, and results leave as verdicts: that is nfqueue's
 * (steer/nfqueue/nfqueue.c), which this calls, also for the ordinary sockets.
 * Each worker has a netlink socket that owns its ring and the targets of its ports. Targets stay
 * for a while after the daemon dies, and then queue. The next daemon takes them over by the same
 * owner number, which is the queue's number. It opens its ring after it knows all ports, because
 * until then packets of unknown ports must reach the sockets. steer/kernel/kernel_meet.c checks
 * whether the module is usable. */
#include "steer/kernel/kernel_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/log.h"
#include "steer/kernel/kernel_meet.h"
#include "steer/nfqueue/nfqueue.h"
#include "steer/sockets.h"

#define PURGE_STEP 32u
#define AGAIN_STEP 32u /* targets restored in one burst, after the module was loaded again */
#define AGAIN_NS   NS_PER_SEC
/* The module refuses a ring while another thread changes the memory maps of the process. */
#define RING_TRIES    50u
#define RING_RETRY_NS (NS_PER_SEC / 100)

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
	kring_home_destroy(s->ring);
	steer_nfqueue.destroy(s->queue);
	free(s->stale);
	free(s->port);
	free(s->burst);
	free(s->rest);
	free(s->sent);
	free(s->rest_out);
	free(s);
}

static uint32_t ports_of(const struct steer_config *cfg)
{
	return (uint32_t)(cfg->port_max - cfg->port_min + 1);
}

static bool alloc(struct steer *s, const struct steer_config *cfg)
{
	s->sends = cfg->burst_max ? cfg->burst_max : 1;
	s->bursts = cfg->bursts ? cfg->bursts : 1;
	s->port = calloc((size_t)ports_of(cfg) * cfg->locals, sizeof(*s->port));
	s->burst = lines_alloc(s->bursts, sizeof(*s->burst));
	s->rest = lines_alloc(s->sends, sizeof(*s->rest));
	s->sent = lines_alloc(s->sends, sizeof(*s->sent));
	s->rest_out = lines_alloc(s->sends, sizeof(*s->rest_out));
	return s->port && s->burst && s->rest && s->sent && s->rest_out;
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
	if (!alloc(s, cfg)) {
		destroy(s);
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
	s->counters = nfqueue_counters(s->queue);
	s->features = peer.features;
	if (peer.adopted) {
		log_info("kernel steering, worker %u: %u targets of an earlier instance taken over",
			worker, peer.adopted);
		s->purge_ns = clock_mono_ns() + KERNEL_GRACE_MS * 1000000ull;
	}
	*out = s;
	return 0;
}

/* --- The ring --------------------------------------------------------------------------------- */

static uint32_t slots(const struct steer_config *cfg)
{
	return steer_first_slots(cfg) + (cfg->ring ? KRING_SLOTS : 0);
}

/* Once, and after the module was loaded again. */
static void ring_open(struct steer *s)
{
	uint64_t lost = 0;
	int res = kring_open(s->ring, s->knl, s->features & NFX_FEATURE_RING_WAIT, &lost);

	if (res == -EAGAIN && s->ring_tries++ < RING_TRIES) {
		s->ring_ns = clock_mono_ns() + RING_RETRY_NS;
		return;
	}
	s->ring_due = false;
	s->ring_tries = 0;
	if (res) {
		log_warn(
			"kernel steering, worker %u: no packet ring, so packets use netlink queue %u, at higher cost: %s%s%s",
			s->worker, s->cfg.queue_num + s->worker, strerror(-res),
			knl_said(s->knl)[0] ? ": " : "", knl_said(s->knl));
		return;
	}
	kernel_ring_opened(s);
	steer_count(&s->counters->ring_lost, lost);
	if (lost)
		log_warn(
			"kernel steering, worker %u: up to %llu packets were lost in the ring of the previous xcipherd",
			s->worker, (unsigned long long)lost);
	log_info("kernel steering, worker %u: packets use a ring of %u slots", s->worker,
		KRING_SLOTS);
}

static int memory(struct steer *s, const struct arena *a, char *err, size_t err_len)
{
	int res;

	if (!s->cfg.ring)
		return 0;
	res = kring_home_create(&s->ring, s->sends);
	if (res) {
		snprintf(err, err_len, "kernel steering, worker %u: packet ring: %s", s->worker,
			strerror(-res));
		return res;
	}
	kring_home_memory(s->ring, a, steer_first_slots(&s->cfg));
	s->ring_due = true;
	return 0;
}

static int wakes(struct steer *s, int epoll)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	if (!s->ring)
		return 0;
	ev.data.fd = s->ring->event_fd;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, ev.data.fd, &ev))
		return -errno;
	s->ring->poll_fd = epoll;
	if (!s->purge_ns)
		ring_open(s);
	return 0;
}

/* --- Ports ------------------------------------------------------------------------------------ */

static int fd(const struct steer *s)
{
	return steer_nfqueue.fd(s->queue);
}

static const struct steer_counters *counters(const struct steer *s)
{
	return steer_nfqueue.counters(s->queue);
}

struct endpoint kernel_endpoint(const struct steer *s, struct local_port local)
{
	struct endpoint e = s->cfg.local[local.addr];

	e.port = local.port;
	return e;
}

/* NULL: outside the port range. */
static uint8_t *port_at(const struct steer *s, struct local_port local)
{
	uint32_t at = (uint32_t)(local.port - s->cfg.port_min);

	return local.addr < s->cfg.locals && at < ports_of(&s->cfg)
		? &s->port[local.addr * ports_of(&s->cfg) + at]
		: NULL;
}

static void port_set(struct steer *s, struct local_port local, unsigned what)
{
	uint8_t *at = port_at(s, local);

	if (at)
		*at = (uint8_t)what;
}

bool kernel_has(const struct steer *s, struct local_port local)
{
	const uint8_t *at = port_at(s, local);

	return at && *at;
}

static unsigned carried(const struct steer *s, struct local_port local)
{
	const uint8_t *at = port_at(s, local);

	return at ? *at : 0;
}

void kernel_target_begin(struct steer *s, struct local_port local, struct knl_target *t)
{
	bool emergency = carried(s, local) & STEER_PORT_EMERGENCY && s->features & NFX_FEATURE_RING;

	t->local = kernel_endpoint(s, local);
	t->queue = (uint16_t)(s->cfg.queue_num + s->worker);
	t->flags = NFX_FLAG_BYPASS | (emergency ? NFX_FLAG_EMERGENCY : 0);
	if (s->features & NFX_FEATURE_RATE) {
		t->rate = s->cfg.port_rate;
		t->source_rate = s->cfg.source_rate;
	}
}

/* If the module refuses, the ordinary socket receives the packets. */
int kernel_queue_target(struct steer *s, struct local_port local)
{
	struct knl_target t = {
		.action = NFX_ACTION_QUEUE,
		.rtcp_action = NFX_ACTION_QUEUE,
		.cookie = (uint64_t)s->instance << 32 | KERNEL_NO_ID,
	};

	kernel_target_begin(s, local, &t);
	/* Modules without the feature drop short datagrams. steer/kernel/kernel_meet.c logs a
	 * warning about them. */
	if (carried(s, local) & STEER_PORT_UNREAD && s->features & NFX_FEATURE_UNREAD)
		t.flags |= NFX_FLAG_UNREAD;
	return knl_target_set(s->knl, &t);
}

static int port_add(struct steer *s, struct local_port local, int sock)
{
	int res = steer_nfqueue.port_add(s->queue, local, sock);

	if (res)
		return res;
	port_set(s, local, KERNEL_PORT_OURS);
	(void)kernel_queue_target(s, local);
	return 0;
}

static void port_del(struct steer *s, struct local_port local)
{
	struct endpoint e = kernel_endpoint(s, local);

	kernel_pending_drop(s, local);
	port_set(s, local, 0);
	(void)knl_target_del(s->knl, &e);
	steer_nfqueue.port_del(s->queue, local);
}

static void carries(struct steer *s, struct local_port local, unsigned what)
{
	unsigned now = carried(s, local);

	if (!now || now == (KERNEL_PORT_OURS | what))
		return;
	port_set(s, local, KERNEL_PORT_OURS | what);
	kernel_pending_drop(s, local);
	(void)kernel_queue_target(s, local);
}

/* --- Targets of an earlier instance ----------------------------------------------------------- */

static void note_stale(void *arg, const struct knl_seen *seen)
{
	struct steer *s = arg;

	if (seen->cookie >> 32 != s->instance && s->stales < s->stale_cap)
		s->stale[s->stales++] = seen->local;
}

static bool is_ours(const struct steer *s, const struct endpoint *e)
{
	for (uint32_t i = 0; i < s->cfg.locals; i++)
		if (endpoint_addr_eq(&s->cfg.local[i], e) &&
			kernel_has(s, (struct local_port){.port = e->port, .addr = (uint8_t)i}))
			return true;
	return false;
}

/* Once per worker; a few at a time, so that packets are not delayed. A call may have taken the port
 * of a target since the targets were listed: this target stays. */
static void purge(struct steer *s)
{
	if (!s->stale) {
		s->stale_cap = ports_of(&s->cfg) * s->cfg.locals;
		s->stale = calloc(s->stale_cap, sizeof(*s->stale));
		if (s->stale)
			(void)knl_dump(s->knl, kernel_owner(&s->cfg, s->worker), -1, note_stale, s);
	}
	for (uint32_t i = 0; i < PURGE_STEP && s->stales; i++)
		if (!is_ours(s, &s->stale[--s->stales]))
			(void)knl_target_del(s->knl, &s->stale[s->stales]);
	if (s->stales)
		return;
	free(s->stale);
	s->stale = NULL;
	s->purge_ns = 0;
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
	s->ring_due = s->ring && peer.features & NFX_FEATURE_RING;
	return true;
}

static void make_again(struct steer *s)
{
	uint32_t ports = ports_of(&s->cfg), made = 0;

	s->met = s->met || meet_again(s);
	if (!s->met)
		return;
	for (; s->next < ports * s->cfg.locals && made < AGAIN_STEP; s->next++)
		if (s->port[s->next]) {
			(void)kernel_queue_target(s,
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

void kernel_chores(struct steer *s)
{
	if (s->purge_ns && clock_mono_ns() >= s->purge_ns)
		purge(s);
	if (s->again_ns && clock_mono_ns() >= s->again_ns)
		make_again(s);
	/* Not into slots that bursts still use. */
	if (s->ring_due && !s->purge_ns && !s->again_ns && !s->ring_bursts && !s->ring->open &&
		clock_mono_ns() >= s->ring_ns)
		ring_open(s);
}

const struct steer_ops steer_kernel = {
	.name = "kernel",
	.instead = &steer_nfqueue,
	.open = kernel_open,
	.close = kernel_close,
	.slots = slots,
	.memory = memory,
	.setup = setup,
	.teardown = teardown,
	.create = create,
	.destroy = destroy,
	.fd = fd,
	.wakes = wakes,
	.gather = kernel_gather,
	.send_and_wait = kernel_send_and_wait,
	.port_add = port_add,
	.port_del = port_del,
	.carries = carries,
	.recv = kernel_recv,
	.send = kernel_send,
	.verdict = kernel_verdict,
	.counters = counters,
	.guard = kernel_guard,
	.relays = kernel_relays,
	.relay = kernel_relay,
	.unrelay = kernel_unrelay,
	.relayed = kernel_relayed,
	.relayed_all = kernel_relayed_all,
	.events_fd = kernel_events_fd,
	.events = kernel_events,
	.alive = kernel_alive,
	.over_source_rate = kernel_over_source_rate,
	.back = kernel_back,
	.again = again,
};
