/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel steering: streams that the module relays, their counters, and its events. */
#include "steer/kernel/kernel_int.h"

#include <errno.h>

#include "base/clock.h"
#include "steer/kernel/kernel_meet.h"

#define PENDING_LOOKS 8u /* pending streams tried in one burst */
#define PENDING_NS    (2 * NS_PER_SEC)

/* --- Media relayed by the kernel -------------------------------------------------------------- */

static bool same_port(struct local_port a, struct local_port b)
{
	return a.port == b.port && a.addr == b.addr;
}

void kernel_pending_drop(struct steer *s, struct local_port local)
{
	for (uint32_t i = 0; i < s->pendings; i++)
		if (same_port(s->pending[i].relay.local, local)) {
			s->pending[i] = s->pending[--s->pendings];
			return;
		}
}

bool kernel_relays(const struct steer_config *cfg)
{
	return cfg->relays;
}

int kernel_relay(struct steer *s, const struct steer_relay *r)
{
	kernel_pending_drop(s, r->local);
	if (s->pendings == KERNEL_PENDING)
		return -EAGAIN;
	s->pending[s->pendings++] =
		(struct kernel_pending){.relay = *r, .until_ns = clock_mono_ns() + PENDING_NS};
	return 0;
}

void kernel_unrelay(struct steer *s, struct local_port local)
{
	kernel_pending_drop(s, local);
	(void)kernel_queue_target(s, local);
}

/* Readable RTCP stays with the daemon: it is rare, and shows the quality of the call. So does RTP
 * of other sources, which media checks. */
static int relay_target(struct steer *s, const struct steer_relay *r, uint64_t queued)
{
	struct knl_target t = {
		.action = NFX_ACTION_RELAY,
		.rtcp_action = r->rtcp ? NFX_ACTION_RELAY : NFX_ACTION_QUEUE,
		.cookie = (uint64_t)s->instance << 32 | r->id,
		.source = r->source,
		.mismatch = r->strict ? NFX_MISMATCH_DROP : NFX_MISMATCH_PASS,
		.silence_ms = s->features & NFX_FEATURE_EVENTS ? STEER_SILENCE_MS : 0,
		.if_queued = true,
		.queued = queued,
		.only_ssrc = true,
		.ssrc = r->ssrc,
		.dest = {{.to = r->to, .from = kernel_endpoint(s, r->from), .tos = r->tos}},
		.dests = 1,
	};

	_Static_assert(STEER_COPIES < KNL_DESTS, "there is room for all");
	for (uint32_t i = 0; i < r->copies && i < STEER_COPIES; i++)
		t.dest[t.dests++] = (struct knl_dest){.to = r->copy[i].to,
			.from = kernel_endpoint(s, r->copy[i].from),
			.tos = r->copy[i].tos};

	kernel_target_begin(s, r->local, &t);
	return knl_target_set(s->knl, &t);
}

/* Moves a stream to the kernel without reordering. Reads how many of the port's packets were
 * queued. Then empties the queue and sends the results. If nothing was queued since, no packet of
 * the port waits, and the next one cannot overtake any. First step: */
void kernel_pending_look(struct steer *s)
{
	for (uint32_t i = 0; i < s->pendings; i++) {
		struct kernel_pending *p = &s->pending[i];
		struct endpoint e = kernel_endpoint(s, p->relay.local);
		struct knl_seen seen;

		p->looked = i < PENDING_LOOKS && knl_target_get(s->knl, &e, &seen) == 0;
		if (p->looked)
			p->queued = seen.stats[NFX_S_QUEUED];
	}
}

/* Last: */
void kernel_pending_relay(struct steer *s)
{
	uint64_t now = clock_mono_ns();

	for (uint32_t i = s->pendings; i-- > 0;) {
		struct kernel_pending p = s->pending[i];
		bool waits = !p.looked || relay_target(s, &p.relay, p.queued) == -EAGAIN;

		if (!waits || now >= p.until_ns)
			kernel_pending_drop(s, p.relay.local);
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

int kernel_relayed(
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

int kernel_relayed_all(const struct steer_config *cfg, uint32_t worker,
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

int kernel_events_fd(const struct steer_config *cfg)
{
	return cfg->events ? knl_fd(cfg->events) : -1;
}

int kernel_events(const struct steer_config *cfg,
	void (*put)(void *arg, const struct steer_event *e), void *arg)
{
	struct event_put p = {put, arg, cfg};

	return cfg->events ? knl_events(cfg->events, event_one, &p) : 0;
}
